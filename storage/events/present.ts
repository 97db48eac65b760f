/** Finds the rows of a slice that are already in a table, for a slice of which an earlier attempt may have written some. */
import { groupBy } from '../../core/foundation/group-by.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';

type RowWithPlace = { readonly partition: number; readonly offset: number; readonly position: number };

/** Rows that the table lacks, compared by their position in the log and, for outcomes, by their kind. */
export async function findMissingRows<Row extends RowWithPlace>(
  clickhouse: ClickHouseClient,
  { table, rows, kind }: { table: string; rows: readonly Row[]; kind?: (row: Row) => string },
): Promise<Row[]> {
  const missing: Row[] = [];
  for (const [partition, some] of groupBy(rows, (row) => row.partition)) {
    const present = await loadPresentPlaces(clickhouse, {
      table,
      partition,
      rows: some,
      hasKind: kind !== undefined,
    });
    for (const row of some) if (!present.has(toPlaceText(row, kind))) missing.push(row);
  }
  return missing;
}

async function loadPresentPlaces(
  clickhouse: ClickHouseClient,
  query: { table: string; partition: number; rows: readonly RowWithPlace[]; hasKind: boolean },
): Promise<Set<string>> {
  const { table, partition, rows, hasKind } = query;
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const { offset } of rows) {
    from = Math.min(from, offset);
    to = Math.max(to, offset);
  }
  try {
    const answer = await clickhouse.query({
      query: `select toString(offset), position, ${hasKind ? `concat(outcome, '/', meter_id)` : `''`} from ${table}
               where partition = {partition:UInt16} and offset >= {from:UInt64} and offset <= {to:UInt64}`,
      query_params: { partition, from, to },
      format: 'JSONCompactEachRow',
    });
    return new Set((await answer.json<[string, number, string]>()).map((position) => position.join('.')));
  } catch (error) {
    throw toClickHouseFailure(`rows present in ${table}`, error);
  }
}

function toPlaceText<Row extends RowWithPlace>(row: Row, kind: ((row: Row) => string) | undefined): string {
  return `${row.offset}.${row.position}.${kind ? kind(row) : ''}`;
}

/** Tables whose rows have their position in the log in `partition` and `offset`. */
export const LOG_TABLES = ['events', 'event_identities', 'event_outcomes', 'event_corrections'] as const;
export type LogTable = (typeof LOG_TABLES)[number];

type FoundRow = { readonly table: LogTable; readonly offset: bigint };

/** The first row of a partition from `from` on, where no row should exist yet; null if no table has one. */
export async function findFirstRowFrom(
  clickhouse: ClickHouseClient,
  { partition, from }: { partition: number; from: bigint },
): Promise<FoundRow | null> {
  const counts = LOG_TABLES.map(
    (table) => `select '${table}' as name, toString(min(offset)) as first, toString(count()) as found from ${table}
                 where partition = {partition:UInt16} and offset >= {from:UInt64}`,
  );
  try {
    const answer = await clickhouse.query({
      query: counts.join(' union all '),
      query_params: { partition, from },
      format: 'JSONEachRow',
    });
    const rows = await answer.json<{ name: LogTable; first: string; found: string }>();
    const byTable = new Map(rows.map((row) => [row.name, row]));
    const table = LOG_TABLES.find((name) => byTable.get(name)!.found !== '0');
    return table === undefined ? null : { table, offset: BigInt(byTable.get(table)!.first) };
  } catch (error) {
    throw toClickHouseFailure('rows behind a partition', error);
  }
}
