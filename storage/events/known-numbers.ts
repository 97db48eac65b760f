/** Numbers that Postgres issues and ClickHouse also stores: of corrections, meter versions and partitions. */
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import { MARK } from './bucket-rows.ts';

export async function findGreatestCorrection(clickhouse: ClickHouseClient): Promise<bigint> {
  const [row] = await loadRows<{ greatest: string }>(clickhouse, 'the greatest number of a correction', {
    query: `select toString(max(sequence)) as greatest from event_corrections`,
  });
  return BigInt(row!.greatest);
}

export type CountedWriters = {
  /** Partitions with bucket rows of a slice or a rebuild. */
  readonly partitions: readonly number[];
  /** Meter versions with back-filled rows. */
  readonly versions: readonly { readonly meter_id: string; readonly version: number }[];
};

const PARTITION = 'partition:';
const BACKFILL = 'backfill:';

/**
 * Lists who wrote bucket rows: each part of such rows has a mark with the name of its writer. The condition matches the sort key of the
 * table.
 */
export async function listCountedWriters(clickhouse: ClickHouseClient): Promise<CountedWriters> {
  const rows = await loadRows<{ writer: string }>(clickhouse, 'writers of bucket rows', {
    query: `select distinct group_key as writer from usage_buckets
             where tenant_id = '' and environment_id = '' and meter_id = '' and meter_version = 0 and size = '${MARK}'
               and external_customer_id = '' and (startsWith(group_key, '${PARTITION}') or startsWith(group_key, '${BACKFILL}'))`,
  });
  const listNames = (kind: string) =>
    rows.flatMap(({ writer }) => (writer.startsWith(kind) ? [writer.slice(kind.length)] : []));
  const versions = listNames(BACKFILL).map((name) => {
    const [meter_id, version] = name.split(':') as [string, string];
    return { meter_id, version: Number(version) };
  });
  return { partitions: listNames(PARTITION).map(Number), versions };
}

/** Numbers without a stored correction. */
export async function findMissingCorrectionNumbers(
  clickhouse: ClickHouseClient,
  numbers: readonly string[],
): Promise<string[]> {
  if (numbers.length === 0) return [];
  const rows = await loadRows<{ nth: string }>(clickhouse, 'numbers of corrections', {
    query: `select distinct toString(sequence) as nth from event_corrections where sequence in {numbers:Array(UInt64)}`,
    params: { numbers: numbers.map(BigInt) },
  });
  const known = new Set(rows.map(({ nth }) => nth));
  return numbers.filter((number) => !known.has(number));
}
