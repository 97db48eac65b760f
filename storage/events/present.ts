/** Which rows of a slice are in a table already: for a slice whose tokens may be forgotten. */
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';

export type Placed = { readonly partition: number; readonly offset: number; readonly position: number };

/** Those of the rows that the table does not hold, by their place in the log and, of outcomes, by what they say. */
export async function missingRows<Row extends Placed>(
  clickhouse: ClickHouseClient,
  { table, rows, kind }: { table: string; rows: readonly Row[]; kind?: (row: Row) => string },
): Promise<Row[]> {
  if (rows.length === 0) return [];
  const [{ partition }] = rows as [Row];
  const offsets = rows.map((row) => row.offset);
  const from = offsets.reduce((least, offset) => Math.min(least, offset));
  const to = offsets.reduce((most, offset) => Math.max(most, offset));
  const what = kind ? `concat(outcome, '/', meter_id)` : `''`;
  try {
    const answer = await clickhouse.query({
      query: `select toString(offset), position, ${what} from ${table}
               where partition = {partition:UInt16} and offset >= {from:UInt64} and offset <= {to:UInt64}`,
      query_params: { partition, from, to },
      format: 'JSONCompactEachRow',
    });
    const present = new Set((await answer.json<[string, number, string]>()).map((place) => place.join('.')));
    return rows.filter((row) => !present.has(`${row.offset}.${row.position}.${kind ? kind(row) : ''}`));
  } catch (error) {
    throw clickhouseFailure(`rows present in ${table}`, error);
  }
}
