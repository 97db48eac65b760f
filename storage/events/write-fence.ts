/**
 * Decides in ClickHouse which attempts may write, without a clock (docs/decisions/0002). Every write attempt has a number
 * (storage/progress/attempts.ts), which its statements contain. They fail once the fence of their writer has a greater number. A writer
 * that does not know the effect of an earlier attempt raises the fence, waits until none of its statements runs, and then checks the
 * tables: from then on nothing of it can arrive, however late.
 */

import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import { unavailable } from '../../core/foundation/error.ts';
import { type ClickHouseClient, findCluster, onCluster, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { quoteName, quoteText } from '../clickhouse/literals.ts';

/** An attempt of a writer: `partition:3`, `backfill:<meter>:<version>`. A writer has one attempt in progress at a time. */
export type WriteAttempt = { readonly writer: string; readonly attempt: bigint };

/** SQL condition that makes a statement fail if a later attempt of the writer has raised the fence. */
export function buildFenceCondition({ writer, attempt }: WriteAttempt): string {
  const fence = `(SELECT max(attempt) FROM write_fences WHERE writer = ${quoteText(writer)})`;
  return `throwIf(${fence} > ${attempt}, '${LATE}') = 0`;
}

/** Settings that identify a running statement, and a duplicate of it from the network. */
export function buildStatementMark({ writer, attempt }: WriteAttempt): {
  log_comment: string;
  insert_deduplication_token: string;
} {
  const mark = `${buildQueryPrefix(writer)}${attempt}/${randomUUID()}`;
  return { log_comment: mark, insert_deduplication_token: mark };
}

const LATE = 'a later try of this writer has begun';

/** Whether a statement failed at the fence: another attempt writes now. */
export function isFenceFailure(error: unknown): boolean {
  return error instanceof Error && error.message.includes(LATE);
}

const STATEMENTS_END_WITHIN_MS = 20_000;
const PAUSE_MS = 50;

/**
 * Resolves when no statement of an earlier attempt runs, no delayed one can pass any more, and all rows of earlier
 * attempts are visible.
 */
export async function raiseFence(clickhouse: ClickHouseClient, own: WriteAttempt): Promise<void> {
  try {
    await setFence(clickhouse, own);
    const database = await loadDatabaseName(clickhouse);
    await untilEarlierEnded(clickhouse, database, own);
    if (findCluster(clickhouse) !== undefined) await untilReplicated(clickhouse, database);
  } catch (error) {
    throw toClickHouseFailure('fence of a writer', error);
  }
}

/**
 * Raises the fence: from here on no statement of an earlier attempt begins. Waiting is not necessary if all sent statements have been
 * answered.
 */
export async function setFence(clickhouse: ClickHouseClient, { writer, attempt }: WriteAttempt): Promise<void> {
  try {
    await clickhouse.insert({
      table: 'write_fences',
      values: [{ writer, attempt: String(attempt) }],
      format: 'JSONEachRow',
      clickhouse_settings: { insert_deduplicate: 0, deduplicate_insert: 'disable' } as ClickHouseSettings,
    });
  } catch (error) {
    throw toClickHouseFailure('fence of a writer', error);
  }
}

/**
 * Loads the name of the database. Later queries contain the name, because another server of the cluster may execute them with another
 * `currentDatabase()`.
 */
async function loadDatabaseName(clickhouse: ClickHouseClient): Promise<string> {
  const answer = await clickhouse.query({ query: 'select currentDatabase() as name', format: 'JSONEachRow' });
  return (await answer.json<{ name: string }>())[0]!.name;
}

/**
 * Waits until no statement of an earlier attempt runs. A statement is listed before it reads the fence, so a statement that is not listed
 * yet will read the new one. A statement that hangs on its disk cannot be killed: it is awaited, and the caller retries. An unreachable
 * server is treated alike, because its statements may still arrive.
 */
async function untilEarlierEnded(
  clickhouse: ClickHouseClient,
  database: string,
  { writer, attempt }: WriteAttempt,
): Promise<void> {
  const running = `current_database = ${quoteText(database)} and startsWith(Settings['log_comment'], ${quoteText(buildQueryPrefix(writer))})
     and toUInt64OrZero(splitByChar('/', Settings['log_comment'])[3]) < ${attempt}`;
  const cluster = findCluster(clickhouse);
  const processes =
    cluster === undefined ? 'system.processes' : `clusterAllReplicas(${quoteText(cluster)}, system.processes)`;
  const until = performance.now() + STATEMENTS_END_WITHIN_MS;
  for (;;) {
    const answer = await clickhouse.query({
      query: `select toString(count()) as statements from ${processes} where ${running}`,
      format: 'JSONEachRow',
    });
    const [row] = await answer.json<{ statements: string }>();
    if (row!.statements === '0') return;
    if (performance.now() > until) throw unavailable(`the usage store (an earlier write of ${writer} has not ended)`);
    // This statement only shortens the wait: without the right to kill statements, the loop waits for their end.
    await clickhouse.command({ query: `KILL QUERY ${onCluster(clickhouse)} WHERE ${running} ASYNC` }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/**
 * Waits until all replicas have fetched missing parts. Otherwise a part of an earlier attempt that only one replica has could become
 * visible elsewhere after a check has missed it.
 */
async function untilReplicated(clickhouse: ClickHouseClient, database: string): Promise<void> {
  for (const table of WRITTEN_TABLES)
    await clickhouse.command({
      query: `SYSTEM SYNC REPLICA ${onCluster(clickhouse)} ${quoteName(database)}.${table} LIGHTWEIGHT`,
      clickhouse_settings: { distributed_ddl_task_timeout: String(STATEMENTS_END_WITHIN_MS / 1000) },
    });
}

const WRITTEN_TABLES = ['events', 'event_identities', 'event_outcomes', 'event_corrections', 'usage_buckets'];

function buildQueryPrefix(writer: string): string {
  return `farthing/${writer}/`;
}
