/** Numbers that Postgres gives out and ClickHouse knows too: of corrections, versions of meters, and partitions. */
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import { MARK } from './usage-rows.ts';

export async function findGreatestCorrection(clickhouse: ClickHouseClient): Promise<bigint> {
  const [row] = await loadRows<{ greatest: string }>(clickhouse, 'the greatest number of a correction', {
    query: `select toString(max(sequence)) as greatest from event_corrections`,
  });
  return BigInt(row!.greatest);
}

/** The meters and versions whose past was counted: each part of such rows holds a mark with the name of its writer. */
export async function listBackfilledVersions(
  clickhouse: ClickHouseClient,
): Promise<{ readonly meter_id: string; readonly version: number }[]> {
  const names = await listWriterNames(clickhouse, 'backfill:');
  return names.map((name) => {
    const [meter_id, version] = name.split(':') as [string, string];
    return { meter_id, version: Number(version) };
  });
}

/** The partitions of which a slice or a rebuild has written usage rows. */
export async function listCountedPartitions(clickhouse: ClickHouseClient): Promise<number[]> {
  return (await listWriterNames(clickhouse, 'partition:')).map(Number);
}

/** From the marks in the parts of usage rows, by the key of the table: without the kind of the writer before it. */
async function listWriterNames(clickhouse: ClickHouseClient, kind: string): Promise<string[]> {
  const rows = await loadRows<{ writer: string }>(clickhouse, 'writers of usage rows', {
    query: `select distinct group_key as writer from usage_buckets
             where tenant_id = '' and environment_id = '' and meter_id = '' and meter_version = 0 and size = '${MARK}'
               and external_customer_id = '' and startsWith(group_key, {kind:String})`,
    params: { kind },
  });
  return rows.map(({ writer }) => writer.slice(kind.length));
}

/** Answers the numbers that no stored correction has. */
export async function findMissingCorrectionNumbers(
  clickhouse: ClickHouseClient,
  numbers: readonly string[],
): Promise<string[]> {
  const rows = await loadRows<{ nth: string }>(clickhouse, 'numbers of corrections', {
    query: `select distinct toString(sequence) as nth from event_corrections where sequence in {numbers:Array(UInt64)}`,
    params: { numbers: numbers.map(BigInt) },
  });
  const known = new Set(rows.map(({ nth }) => nth));
  return numbers.filter((number) => !known.has(number));
}
