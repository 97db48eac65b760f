/**
 * How the pipeline's results are written to ClickHouse: one insert of one block per table and try. The statement carries the
 * number of its try and fails when a later one has begun (`write-fence.ts`), so that what was held up on its way, or by a
 * disk, never comes on top of what was written instead.
 */
import { Readable } from 'node:stream';
import { unavailable } from '../../core/error.ts';
import { groupBy } from '../../core/group-by.ts';
import { type ClickHouseClient, clickhouseFailure, clusterOf } from '../clickhouse/clickhouse.ts';
import { inTurn, whenReplicasAgree } from '../clickhouse/replicas.ts';
import { ONE_BLOCK } from '../clickhouse/settings.ts';
import { type Column, nativeBlock } from './native.ts';
import { monthStart, type RowTarget } from './tables.ts';
import { failedAtFence, fenceCondition, markedStatement, type WriteAttempt } from './write-fence.ts';

/**
 * Writes all rows as one block. Resolves when they are there; after an error it is not known which of them are: who writes
 * them again raises the fence before, and looks.
 */
export async function writeRows<Row>(
  clickhouse: ClickHouseClient,
  target: RowTarget<Row>,
  { rows, attempt }: { rows: readonly Row[]; attempt: WriteAttempt },
): Promise<void> {
  if (rows.length === 0) return;
  try {
    if (clusterOf(clickhouse) === undefined) return await writeBlock(clickhouse, target, { rows, attempt });
    for (const part of partsOf(target, rows)) await writePart(clickhouse, target, { rows: part, attempt });
  } catch (error) {
    throw writeFailure(target.table, error);
  }
}

type Block<Row> = { readonly rows: readonly Row[]; readonly attempt: WriteAttempt };

async function writeBlock<Row>(
  clickhouse: ClickHouseClient,
  target: RowTarget<Row>,
  { rows, attempt }: Block<Row>,
): Promise<void> {
  const columns = target.columns.filter(({ rare }) => rare === undefined || rows.some(rare.has));
  const { stream } = await clickhouse.exec({
    query: `${insertOf(target, columns)} WHERE ${fenceCondition(attempt)} FORMAT Native`,
    values: Readable.from(nativeBlock(columns, rows), { objectMode: false }),
    clickhouse_settings: { ...ONE_BLOCK, ...markedStatement(attempt) },
  });
  for await (const _chunk of stream) {
    // The answer of an insert is empty; reading it to its end frees the connection.
  }
}

/** On a cluster each part is a statement, so that one that is refused for the moment has left nothing, and is sent again. */
function writePart<Row>(clickhouse: ClickHouseClient, target: RowTarget<Row>, block: Block<Row>): Promise<void> {
  return inTurn(clickhouse, target.table, () => whenReplicasAgree(() => writeBlock(clickhouse, target, block)));
}

function partsOf<Row>({ instant_us }: RowTarget<Row>, rows: readonly Row[]): Iterable<Row[]> {
  return groupBy(rows, (row) => (instant_us === undefined ? 0 : monthStart(instant_us(row)))).values();
}

/** Whoever was overtaken comes again with a new number, or learns from Postgres that the work is another's. */
export function writeFailure(table: string, error: unknown): Error {
  return failedAtFence(error)
    ? unavailable('the usage store', error)
    : clickhouseFailure(`insert into ${table}`, error);
}

/** What the block has, and the neutral values of what it goes without. */
function insertOf<Row>(target: RowTarget<Row>, present: readonly Column<Row>[]): string {
  const structure = present.map((column) => `${column.name} ${column.type}`).join(', ');
  const filled = target.columns.flatMap((column) => {
    if (present.includes(column)) return [{ name: column.name, value: column.name }];
    const neutral = column.rare?.neutral;
    return neutral === undefined ? [] : [{ name: column.name, value: neutral }];
  });
  const constants = Object.entries(target.constants ?? {}).map(([name, value]) => ({ name, value }));
  const names = [...filled, ...constants].map(({ name }) => name).join(', ');
  const values = [...filled, ...constants].map(({ value }) => value).join(', ');
  return `INSERT INTO ${target.table} (${names}) SELECT ${values} FROM input('${structure.replaceAll("'", "\\'")}')`;
}
