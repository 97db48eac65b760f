/**
 * Writes the pipeline's results to ClickHouse: one insert of one block per table and attempt (on a cluster one per month). The statement
 * has the number of its attempt and fails if a later one has begun (`write-fence.ts`). So a statement that was delayed on its way, or by a
 * disk, never adds to the rows of a later attempt.
 */
import { Readable } from 'node:stream';
import { unavailable } from '../../core/foundation/error.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import { type ClickHouseClient, findCluster, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { retryUntilReplicasAgree, writeInOrder } from '../clickhouse/replicas.ts';
import { ONE_BLOCK } from '../clickhouse/settings.ts';
import { encodeNativeBlock, type NativeColumn } from './native.ts';
import { type RowTarget, toMonthStart } from './tables.ts';
import { buildFenceCondition, buildStatementMark, isFenceFailure, type WriteAttempt } from './write-fence.ts';

/**
 * Writes all rows as one block; resolves when they are stored. After an error it is unknown which rows are stored: the next attempt raises
 * the fence first and checks.
 */
export async function writeRows<Row>(
  clickhouse: ClickHouseClient,
  target: RowTarget<Row>,
  { rows, attempt }: { rows: readonly Row[]; attempt: WriteAttempt },
): Promise<void> {
  if (rows.length === 0) return;
  try {
    if (findCluster(clickhouse) === undefined) return await writeBlock(clickhouse, target, { rows, attempt });
    for (const part of splitByMonth(target, rows)) await writePart(clickhouse, target, { rows: part, attempt });
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
    query: `${buildInsert(target, columns)} WHERE ${buildFenceCondition(attempt)} FORMAT Native`,
    values: Readable.from(encodeNativeBlock(columns, rows), { objectMode: false }),
    clickhouse_settings: { ...ONE_BLOCK, ...buildStatementMark(attempt) },
  });
  for await (const _chunk of stream) {
    // The answer of an insert is empty; reading it to its end frees the connection.
  }
}

/**
 * Writes one part. On a cluster each part is a statement, so that one that is temporarily rejected has written nothing and can be sent
 * again.
 */
function writePart<Row>(clickhouse: ClickHouseClient, target: RowTarget<Row>, block: Block<Row>): Promise<void> {
  return writeInOrder(clickhouse, target.table, () =>
    retryUntilReplicasAgree(() => writeBlock(clickhouse, target, block)),
  );
}

function splitByMonth<Row>({ instant_us }: RowTarget<Row>, rows: readonly Row[]): Iterable<Row[]> {
  return groupBy(rows, (row) => (instant_us === undefined ? 0 : toMonthStart(instant_us(row)))).values();
}

/** Converts a failure of a write. A fenced writer retries with a new number, or learns from Postgres that the work belongs to another. */
export function writeFailure(table: string, error: unknown): Error {
  return isFenceFailure(error)
    ? unavailable('the usage store', error)
    : toClickHouseFailure(`insert into ${table}`, error);
}

/** Selects the columns of the block, and neutral values for omitted columns. */
function buildInsert<Row>(target: RowTarget<Row>, present: readonly NativeColumn<Row>[]): string {
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
