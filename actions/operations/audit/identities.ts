/**
 * Audit of event ids: no id has two identities, and each is stored under its hash. Whether identities and raw rows match is
 * compared range by range (storage/audit/positions.ts). The hash is our own and the store cannot compute it, so random ids are hashed
 * here.
 */
import { hashIdentity, hashToBigInt } from '../../../core/metering/event/identity.ts';
import {
  ALL_HASHES,
  type DoubledId,
  findDuplicateIds,
  type HashedId,
  type HashRange,
  listHashedIds,
} from '../../../storage/audit/ids.ts';
import { nextOffsets } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import type { AuditStores } from './findings.ts';
import { formatEventId, type OnFinding } from './findings.ts';

const NAMED_MAX = 5;

export async function auditIds(
  { postgres, clickhouse }: AuditStores,
  found: OnFinding,
  hashes: HashRange = ALL_HASHES,
): Promise<{ identities: number }> {
  // Rows before these offsets are complete and never change.
  const before = nextOffsets(await readProgress(postgres));
  const { identities, doubled, first } = await findDuplicateIds(clickhouse, hashes, before);
  if (first.length > 0) {
    const named = first.slice(0, NAMED_MAX).map(describeDoubledId).join('; ');
    found({ kind: 'ids_doubled', count: doubled, what: `ids have more than one identity: ${named}` });
  }
  return { identities };
}

function describeDoubledId({ positions, ...id }: DoubledId): string {
  return `${formatEventId(id)} at ${positions.join(' and ')}`;
}

type HashSample = {
  /** Number of random groups of ids with neighbouring hashes. */
  readonly times: number;
  readonly ids: number;
  /** Returns numbers in [0, 1). */
  readonly chance: () => number;
};

export async function auditHashes(
  { clickhouse }: Pick<AuditStores, 'clickhouse'>,
  { times, ids, chance }: HashSample,
  found: OnFinding,
): Promise<{ hashes: number }> {
  const wrong: HashedId[] = [];
  let hashes = 0;
  for (let time = 0; time < times; time++) {
    // The first group starts at the first hash: if there are few ids, it contains all of them.
    const from = time === 0 ? 0n : hashToBigInt(Math.floor(chance() * 2 ** 32), 0);
    const some = await listHashedIds(clickhouse, from, ids);
    hashes += some.length;
    wrong.push(...some.filter((id) => id.id_hash !== hashIdentity(id)));
    if (time === 0 && some.length < ids) break;
  }
  const [first] = wrong;
  if (first) {
    const what = `of ${hashes} identities do not stand under the hash of their id: ${formatEventId(first)}`;
    found({ kind: 'id_hash_wrong', count: wrong.length, what });
  }
  return { hashes };
}
