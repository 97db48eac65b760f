/**
 * Ids of `event_identities`, in the order of their hashes. That is the order of the table, so no query needs more memory than its
 * answer.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';

export type DoubledId = Scope & { readonly event_id: string; readonly positions: readonly string[] };

const HASHES_MAX = 1_000;

/** Hashes from `first` to `last`, both inclusive. */
export type HashRange = { readonly first: bigint; readonly last: bigint };

export const ALL_HASHES: HashRange = { first: 0n, last: (1n << 64n) - 1n };

/** Finds ids with more than one row before the given offsets, and counts the identities read. */
export async function findDuplicateIds(
  clickhouse: ClickHouseClient,
  { first, last }: HashRange,
  before: ReadonlyMap<number, bigint>,
): Promise<{ identities: number; doubled: number; first: DoubledId[] }> {
  const [row] = await loadRows<{ identities: string; doubled: string; hashes: string[] }>(clickhouse, 'doubled ids', {
    query: `select sum(n) as identities, countIf(n > 1) as doubled, groupArrayIf(${HASHES_MAX})(h, n > 1) as hashes
              from (select id_hash as h, count() as n from event_identities
                     where id_hash between {first:UInt64} and {last:UInt64} group by h)`,
    params: { first, last },
    settings: { optimize_aggregation_in_order: 1 },
  });
  const { identities, doubled, hashes } = row!;
  const named = hashes.length === 0 ? [] : await doubledAmong(clickhouse, hashes.map(BigInt), before);
  // `doubled` counts repeated hashes, and two different ids may have equal hashes. If the ids of all repeated hashes
  // were read, the count of repeated ids is exact.
  const exact = hashes.length < HASHES_MAX || named.length === 0;
  return { identities: Number(identities), doubled: exact ? named.length : Number(doubled), first: named };
}

async function doubledAmong(
  clickhouse: ClickHouseClient,
  hashes: readonly bigint[],
  before: ReadonlyMap<number, bigint>,
): Promise<DoubledId[]> {
  const partitions = [...before.keys()];
  return loadRows<DoubledId>(clickhouse, 'doubled ids', {
    query: `select tenant_id, environment_id, event_id,
                   arrayMap(event_position -> concat(toString(event_position.1), '/', toString(event_position.2), '.', toString(event_position.3)),
                            arraySort(groupArray((partition, offset, position)))) as positions
              from event_identities
             where id_hash in {hashes:Array(UInt64)}
               and offset < transform(partition, {partitions:Array(UInt16)}, {before:Array(UInt64)}, toUInt64(0))
             group by tenant_id, environment_id, event_id having count() > 1
             order by tenant_id, environment_id, event_id`,
    params: { hashes, partitions, before: partitions.map((partition) => before.get(partition)!) },
  });
}

export type HashedId = Scope & { readonly event_id: string; readonly id_hash: bigint };

/** Lists the next ids in the order of their hashes, starting at a hash. */
export async function listHashedIds(clickhouse: ClickHouseClient, hash: bigint, limit: number): Promise<HashedId[]> {
  const rows = await loadRows<Omit<HashedId, 'id_hash'> & { h: string }>(clickhouse, 'ids from a hash on', {
    query: `select toString(id_hash) as h, tenant_id, environment_id, event_id from event_identities
             where id_hash >= {hash:UInt64} order by id_hash limit ${limit}`,
    params: { hash },
  });
  return rows.map(({ h, ...id }) => ({ ...id, id_hash: BigInt(h) }));
}

export async function countIdentities(clickhouse: ClickHouseClient): Promise<number> {
  const query = 'select count() as n from event_identities';
  const [row] = await loadRows<{ n: string }>(clickhouse, 'count of identities', { query });
  return Number(row!.n);
}
