/** Numbers that Postgres gives out and ClickHouse knows too: of corrections, and of the versions of meters. */
import { askRows, type ClickHouseClient } from '../clickhouse/clickhouse.ts';
import { MARK } from './usage-rows.ts';

export async function greatestCorrection(clickhouse: ClickHouseClient): Promise<bigint> {
  const [row] = await askRows<{ greatest: string }>(clickhouse, 'the greatest number of a correction', {
    query: `select toString(max(sequence)) as greatest from event_corrections`,
  });
  return BigInt(row!.greatest);
}

/** The meters and versions whose past was counted: each part of such rows holds a mark with the name of its writer. */
export async function backfilledVersions(
  clickhouse: ClickHouseClient,
): Promise<{ readonly meter_id: string; readonly version: number }[]> {
  const rows = await askRows<{ writer: string }>(clickhouse, 'back-filled versions', {
    query: `select distinct group_key as writer from usage_buckets where tenant_id = '' and environment_id = '' and meter_id = '' and meter_version = 0 and size = '${MARK}'
              and external_customer_id = '' and startsWith(group_key, 'backfill:')`,
  });
  return rows.map(({ writer }) => {
    const [, meter_id, version] = writer.split(':') as [string, string, string];
    return { meter_id, version: Number(version) };
  });
}

/** Those of the numbers of corrections that are not there. */
export async function missingCorrectionNumbers(
  clickhouse: ClickHouseClient,
  numbers: readonly string[],
): Promise<string[]> {
  const rows = await askRows<{ nth: string }>(clickhouse, 'numbers of corrections', {
    query: `select distinct toString(sequence) as nth from event_corrections where sequence in {numbers:Array(UInt64)}`,
    params: { numbers: numbers.map(BigInt) },
  });
  const known = new Set(rows.map(({ nth }) => nth));
  return numbers.filter((number) => !known.has(number));
}
