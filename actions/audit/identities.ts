/**
 * Audit of the ids: none has two identities, and each stands under the hash that it has. That identities and raw rows are of
 * the same events is compared range by range (places.ts). A hash is of our own making and cannot be computed by the
 * store, so some are computed here, chosen by chance.
 */
import { hashIdentity, hashToBigInt } from '../../core/event/identity.ts';
import {
  ALL_HASHES,
  type DoubledId,
  findDuplicateIds,
  type HashedId,
  type HashRange,
  listHashedIds,
} from '../../storage/audit/ids.ts';
import { nextOffsets } from '../../storage/progress/slice-state.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import type { Stores } from '../../storage/stores.ts';
import { formatEventId, type OnFinding } from './findings.ts';

type AuditStores = Pick<Stores, 'postgres' | 'clickhouse'>;

const NAMED_MAX = 5;

export async function auditIds(
  { postgres, clickhouse }: AuditStores,
  found: OnFinding,
  hashes: HashRange = ALL_HASHES,
): Promise<{ identities: number }> {
  // What stands before these offsets is whole and never changes.
  const before = nextOffsets(await readProgress(postgres));
  const { identities, doubled, first } = await findDuplicateIds(clickhouse, hashes, before);
  if (first.length > 0) {
    const named = first.slice(0, NAMED_MAX).map(describeDoubledId).join('; ');
    found({ kind: 'ids_doubled', count: doubled, what: `ids have more than one identity: ${named}` });
  }
  return { identities };
}

function describeDoubledId({ places, ...id }: DoubledId): string {
  return `${formatEventId(id)} at ${places.join(' and ')}`;
}

export type HashSample = {
  /** So many times some neighbours are taken. */
  readonly times: number;
  readonly ids: number;
  /** Answers numbers in [0, 1). */
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
    // The first time from the very beginning: where there are few ids, these are all of them.
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
