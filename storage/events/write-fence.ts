/**
 * Who may write to ClickHouse, decided there and by nobody's clock (docs/decisions/0002). Every try to write has a number
 * (storage/progress/attempts.ts), which its statements carry; they fail once the fence of their writer stands at a greater one. Who
 * does not know what an earlier try has written raises the fence, waits until none of its statements runs any more, and then
 * looks what is there: from then on nothing of it can arrive, however late.
 */

import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import { unavailable } from '../../core/error.ts';
import { type ClickHouseClient, findCluster, onCluster, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { quoteName, quoteText } from '../clickhouse/literals.ts';

/** One try of one writer: `partition:3`, `backfill:<meter>:<version>`. A writer has one try at a time in progress. */
export type WriteAttempt = { readonly writer: string; readonly attempt: bigint };

/** Fails the statement in which it stands when a later try of the writer has raised the fence. */
export function buildFenceCondition({ writer, attempt }: WriteAttempt): string {
  const fence = `(SELECT max(attempt) FROM write_fences WHERE writer = ${quoteText(writer)})`;
  return `throwIf(${fence} > ${attempt}, '${LATE}') = 0`;
}

/** The settings by which a running statement is known, and a copy of it that a network delivers twice. */
export function buildStatementMark({ writer, attempt }: WriteAttempt): {
  log_comment: string;
  insert_deduplication_token: string;
} {
  const mark = `${buildQueryPrefix(writer)}${attempt}/${randomUUID()}`;
  return { log_comment: mark, insert_deduplication_token: mark };
}

const LATE = 'a later try of this writer has begun';

/** Whether a statement failed at the fence: somebody else writes now. */
export function isFenceFailure(error: unknown): boolean {
  return error instanceof Error && error.message.includes(LATE);
}

const STATEMENTS_END_WITHIN_MS = 20_000;
const PAUSE_MS = 50;

/** Resolves when no statement of an earlier try runs, none that comes can pass, and what is there can be seen. */
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

/** From here on no statement of an earlier try begins: enough where all that was sent has been answered. */
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

/** By name: what asks for the current database may be answered by another server of the cluster, which has one of its own. */
async function loadDatabaseName(clickhouse: ClickHouseClient): Promise<string> {
  const answer = await clickhouse.query({ query: 'select currentDatabase() as name', format: 'JSONEachRow' });
  return (await answer.json<{ name: string }>())[0]!.name;
}

/**
 * A statement is listed before it looks at the fence, so one that is not listed now will find the new one. What hangs on its
 * disk cannot be killed: it is waited for, and the caller comes again. So is a server that cannot be asked: what runs there
 * may still arrive.
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
    // Only to wait less: whoever may not end statements waits for them.
    await clickhouse.command({ query: `KILL QUERY ${onCluster(clickhouse)} WHERE ${running} ASYNC` }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/**
 * A part of an earlier try may be on a replica alone, and be seen when others have it, too: after a look that did not see it.
 * So all of them fetch what there is to fetch before anybody looks.
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
