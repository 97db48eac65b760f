import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Session } from 'chdb';
import { quoteName, quoteText } from '../../clickhouse/literals.ts';
import { StatementError } from '../../clickhouse/tokens.ts';

export interface EngineOptions {
  dir: string;
  /** Number of concurrent statements; the others wait. */
  connections: number;
  queue_ms: number;
  memory_bytes: number;
}

/** Settings of a single statement. */
export interface Surroundings {
  /** Our id of the statement, by which it can be killed. */
  id: string;
  database?: string;
  settings: [name: string, value: string][];
  params: [name: string, value: string][];
  /** Kills the statement, or prevents its start. */
  signal?: AbortSignal;
}

interface EngineConnection {
  /** Runs a statement with a small answer. */
  run(sql: string, format: string): Promise<Uint8Array>;
  /** Runs an insert and returns the numbers of written rows and bytes. */
  write(sql: string): Promise<WriteCounts>;
  /** Runs a read and streams the answer in pieces. Ending the iteration ends the statement. */
  stream(sql: string, format: string): AsyncGenerator<Uint8Array>;
}

export interface WriteCounts {
  rows: number;
  bytes: number;
}

export interface Engine {
  version: string;
  with<Result>(surroundings: Surroundings, work: (connection: EngineConnection) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** The directory is opened once and stays open; every statement gets a connection of its own, which costs 0.1 ms. */
export function openEngine({ dir, connections, queue_ms, memory_bytes }: EngineOptions): Engine {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const data = join(dir, 'data');
  const config = join(dir, 'config.xml');
  writeFileSync(config, serverConfig(memory_bytes), { mode: 0o600 });
  rmSync(join(data, 'tmp'), { recursive: true, force: true });
  const keeper = openSession(data, [`--config-file=${config}`]);
  const slots = createSlots(connections, queue_ms);
  const already = readSettings(keeper);
  return {
    version: asking(() => keeper.query('SELECT version()', 'TabSeparated')).trim(),
    with: async (surroundings, work) => {
      const giveBack = await slots.take();
      try {
        return await inSession(data, { keeper, already, surroundings }, work);
      } finally {
        giveBack();
      }
    },
    close: async () => {
      await slots.drain();
      keeper.close();
    },
  };
}

/**
 * Runs a statement in a connection of its own. In a shared one a leftover setting would silently change the next statement: for example,
 * with a leftover `insert_deduplication_token` the next insert would be dropped.
 */
async function inSession<Result>(
  data: string,
  {
    keeper,
    already,
    surroundings,
  }: { keeper: Session; already: ReadonlyMap<string, string>; surroundings: Surroundings },
  work: (connection: EngineConnection) => Promise<Result>,
): Promise<Result> {
  const { session, sql } = prepared(data, surroundings, already);
  const release = endOnAbort(keeper, surroundings);
  try {
    for (const statement of sql) asking(() => session.query(statement));
    surroundings.signal?.throwIfAborted();
    return await work(toConnection(session));
  } finally {
    release();
    session.close();
  }
}

/**
 * Kills the statement when the signal aborts. The engine may not know it yet if it was just sent, so the kill is repeated until it has
 * ended.
 */
function endOnAbort(keeper: Session, { id, signal }: Surroundings): () => void {
  let timer: NodeJS.Timeout | undefined;
  const kill = () => {
    keeper.queryAsync(`KILL QUERY WHERE Settings['log_comment'] = ${quoteText(id)} ASYNC`).catch(() => {});
  };
  const onAbort = () => {
    kill();
    timer = setInterval(kill, 200);
  };
  signal?.addEventListener('abort', onAbort);
  return () => {
    signal?.removeEventListener('abort', onAbort);
    clearInterval(timer);
  };
}

/**
 * A mutation rewrites one part after another, and by default the engine sleeps up to a second between two of them: with this default a
 * correction of a month of ten parts takes ten seconds instead of half a second. By default it also starts no mutation while two merges
 * run, because it reserves twenty free slots in a pool of four. Results of merges and mutations are synced to the disk before the replaced
 * parts are removed. This build removes the replaced parts at once, while a server retains them for eight minutes. Without the sync a power
 * loss would destroy both.
 */
function serverConfig(memory_bytes: number): string {
  return `<clickhouse>
  <max_server_memory_usage>${memory_bytes}</max_server_memory_usage>
  <mark_cache_size>134217728</mark_cache_size>
  <background_schedule_pool_size>16</background_schedule_pool_size>
  <background_processing_pool_thread_sleep_seconds_if_nothing_to_do>0.005</background_processing_pool_thread_sleep_seconds_if_nothing_to_do>
  <background_processing_pool_task_sleep_seconds_when_no_work_random_part>0.002</background_processing_pool_task_sleep_seconds_when_no_work_random_part>
  <merge_tree>
    <fsync_after_insert>1</fsync_after_insert>
    <fsync_part_directory>1</fsync_part_directory>
    <min_rows_to_fsync_after_merge>1</min_rows_to_fsync_after_merge>
    <min_compressed_bytes_to_fsync_after_merge>1</min_compressed_bytes_to_fsync_after_merge>
    <number_of_free_entries_in_pool_to_execute_mutation>1</number_of_free_entries_in_pool_to_execute_mutation>
  </merge_tree>
</clickhouse>
`;
}

function openSession(data: string, args: string[]): Session {
  return asking(() => new Session(data, { connectionArgs: args }));
}

/** Reads the default settings of a connection, which need not be set again: that would cost a tenth of a small statement. */
function readSettings(keeper: Session): ReadonlyMap<string, string> {
  const rows = asking(() => keeper.query('SELECT name, value FROM system.settings', 'TabSeparated')).split('\n');
  return new Map(rows.map((row) => row.split('\t') as [string, string]));
}

/**
 * Prepares a connection: its arguments, and the statements to run first. The settings are those in which the embedded engine differs from a
 * server, then those of the request. As connection arguments they take a tenth of the time of a SET. But a connection ignores unknown names
 * and does not report which value is wrong, so such settings go into a SET, which rejects them.
 */
function prepared(data: string, surroundings: Surroundings, already: ReadonlyMap<string, string>): PreparedStatements {
  const { database, settings, params } = surroundings;
  const assignments = settings.map(named(/^[A-Za-z_][A-Za-z0-9_.]*$/));
  const all = new Map([...OWN_SETTINGS, ['log_comment', surroundings.id] as const, ...assignments]);
  const changed = [...all].filter(([name, value]) => already.get(name) !== value);
  const [known, unknown] = [
    changed.filter(([name]) => already.has(name)),
    changed.filter(([name]) => !already.has(name)),
  ];
  const bound = params.map(named(/^[A-Za-z0-9_]+$/)).map(([name, value]) => [`param_${name}`, value] as const);
  const use = database === undefined || database === INITIAL_DATABASE ? [] : [`USE ${quoteName(database)}`];
  try {
    const session = openSession(
      data,
      known.map(([name, value]) => `--${name}=${value}`),
    );
    return { session, sql: [...use, ...assignment([...unknown, ...bound])] };
  } catch {
    return { session: openSession(data, []), sql: [...use, ...assignment([...known, ...unknown, ...bound])] };
  }
}

type PreparedStatements = { session: Session; sql: readonly string[] };

const OWN_SETTINGS: readonly (readonly [string, string])[] = [
  ['max_query_size', String(256 * 1024 * 1024)],
  ['implicit_select', '0'],
  ['allow_introspection_functions', '0'],
  ['async_insert', '0'],
];

/** Initial database of a connection. */
const INITIAL_DATABASE = 'default';

function assignment(values: readonly (readonly [string, string])[]): string[] {
  return values.length === 0
    ? []
    : [`SET ${values.map(([name, value]) => `${name} = ${quoteText(value)}`).join(', ')}`];
}

function named(pattern: RegExp): (entry: [string, string]) => [string, string] {
  return (entry) => {
    if (pattern.test(entry[0])) return entry;
    throw new StatementError(36, 'BAD_ARGUMENTS', `'${entry[0]}' is not a name`);
  };
}

function toConnection(session: Session): EngineConnection {
  return {
    run: (sql, format) => awaiting(async () => (await session.queryAsync(sql, { format })).bytes()),
    write: (sql) => awaiting(() => countingWrite(session, sql)),
    stream: async function* (sql, format) {
      const chunks = asking(() => session.queryStream(sql, { format }));
      try {
        for await (const chunk of chunks) yield chunk.raw();
      } catch (error) {
        throw asStatementError(error);
      }
    },
  };
}

/**
 * Runs an insert by the package's call for raw inserts, because only that returns the number of written rows. The call concatenates a
 * beginning and a payload: here the statement, and a line end.
 */
async function countingWrite(session: Session, sql: string): Promise<WriteCounts> {
  const connection = (session as unknown as { connection: unknown }).connection;
  const { rowsWritten, bytesWritten } = await native.InsertRawAsyncConnection(
    connection,
    sql,
    Buffer.from('\n'),
    false,
  );
  return { rows: rowsWritten, bytes: bytesWritten };
}

interface NativeEngine {
  InsertRawAsyncConnection(
    connection: unknown,
    beginning: string,
    payload: Buffer,
    count_lines: boolean,
  ): Promise<{ rowsWritten: number; bytesWritten: number }>;
}

const chdbRequire = createRequire(createRequire(import.meta.url).resolve('chdb'));
const native = (chdbRequire('./dist/loader.js') as { loadNative(): NativeEngine }).loadNative();

function asking<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw asStatementError(error);
  }
}

async function awaiting<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw asStatementError(error);
  }
}

/** Parses "Code: 60. DB::Exception: Unknown table … (UNKNOWN_TABLE)". */
function asStatementError(error: unknown): StatementError {
  if (error instanceof StatementError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = /Code:\s*(\d+)/.exec(message)?.[1];
  const types = [...message.matchAll(/\(([A-Z][A-Z0-9_]{2,})\)/g)];
  const text = message
    .replace(/^(?:Code:\s*\d+\.\s*DB::Exception:\s*)+/, '')
    .replace(/\s*\([A-Z][A-Z0-9_]{2,}\)\s*$/, '');
  return new StatementError(code === undefined ? 1002 : Number(code), types.at(-1)?.[1] ?? 'UNKNOWN_EXCEPTION', text);
}

/** At most `width` statements run at a time; a statement that waits longer than `queue_ms` is rejected. */
function createSlots(width: number, queue_ms: number) {
  const waiting: (() => void)[] = [];
  const drained: (() => void)[] = [];
  let taken = 0;
  const giveBack = () => {
    taken -= 1;
    waiting.shift()?.();
    if (taken === 0) for (const resolve of drained.splice(0)) resolve();
  };
  return {
    take: (): Promise<() => void> => {
      const taking = () => {
        taken += 1;
        return giveBack;
      };
      if (taken < width) return Promise.resolve(taking());
      return new Promise((resolve, reject) => {
        const proceed = () => {
          clearTimeout(timer);
          resolve(taking());
        };
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(proceed), 1);
          const why = `Too many simultaneous queries: waited ${queue_ms} ms for one of ${width} connections`;
          reject(new StatementError(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', why));
        }, queue_ms);
        waiting.push(proceed);
      });
    },
    drain: (): Promise<void> => (taken === 0 ? Promise.resolve() : new Promise((resolve) => drained.push(resolve))),
  };
}
