import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
  type DataFormat,
  type QueryParams,
} from '@clickhouse/client';
import { z } from 'zod';
import { FarthingError, unavailable } from '../../core/error.ts';
import { isUnavailable } from '../failure.ts';
import { quoteText } from './literals.ts';
import { toReplicaClient } from './replicas.ts';
import { CLUSTER_SETTINGS, STATEMENT_SETTINGS } from './settings.ts';
import { withStatementsTraced } from './traced.ts';
import { watchForUnresponsiveClickHouse } from './unresponsive-server.ts';

export type { ClickHouseClient };
export { ClickHouseError };

export interface ClickHouseOptions {
  /** Overrides the database of the URL. */
  database?: string;
  application?: string;
  request_timeout_ms?: number;
  max_open_connections?: number;
  /** Compresses both directions: worth it over a network, not on loopback. */
  compression?: boolean;
  settings?: ClickHouseSettings;
  /** The cluster whose servers all have the tables; one server when absent. */
  cluster?: string | undefined;
}

/** Connects to ClickHouse by its HTTP interface; a served embedded engine and a cluster look the same from here. */
export function connectClickHouse(url: string, options: ClickHouseOptions = {}): ClickHouseClient {
  const { database, application = 'farthing', request_timeout_ms = 60_000, max_open_connections = 20 } = options;
  const compressed = options.compression ?? false;
  const client = createClient({
    url: database === undefined ? url : withDatabase(url, database),
    application,
    request_timeout: request_timeout_ms,
    max_open_connections,
    compression: { request: compressed, response: compressed },
    // A socket that the server is about to close must not be used again: servers keep idle ones for 3 s at least.
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    // Long lists of values go into the body, because the URL of a request is limited on the way.
    use_multipart_params_auto: true,
    // What fails is thrown; the client's own log would only repeat it, with the values of the statement.
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: {
      ...STATEMENT_SETTINGS,
      ...(options.cluster === undefined ? {} : CLUSTER_SETTINGS),
      ...options.settings,
    },
  });
  const whole = withWholeAnswers(withStatementsTraced(watchForUnresponsiveClickHouse(client, url)));
  if (options.cluster === undefined) return whole;
  const one = toReplicaClient(whole);
  clusters.set(one, options.cluster);
  return one;
}

const clusters = new WeakMap<ClickHouseClient, string>();

/** The cluster that a connection was opened for, if any. */
export function findCluster(client: ClickHouseClient): string | undefined {
  return clusters.get(client);
}

/**
 * A list of lines that ends early, because something on the way took a broken connection for the end of the answer, looks
 * like a shorter list. A document that ends early cannot be read: lines that are asked for come as one.
 */
function withWholeAnswers(client: ClickHouseClient): ClickHouseClient {
  const query = client.query.bind(client);
  const queryWhole = async (params: QueryParams) => {
    const document = DOCUMENT_FOR[params.format ?? ''];
    if (document === undefined) return query(params);
    const answer = await query({ ...params, format: document });
    const read = answer.json.bind(answer) as () => Promise<Document>;
    return Object.assign(answer, { json: async () => checkRows(await read()) });
  };
  return Object.assign(client, { query: queryWhole as typeof client.query });
}

const DOCUMENT_FOR: Record<string, DataFormat> = { JSONEachRow: 'JSON', JSONCompactEachRow: 'JSONCompact' };

type Document = { data: unknown[]; rows: number };

function checkRows({ data, rows }: Document): unknown[] {
  if (data.length !== rows) throw unavailable(`the usage store (${data.length} of ${rows} rows arrived)`);
  return data;
}

export type ShortStatement = {
  readonly query: string;
  readonly params?: Record<string, unknown>;
  readonly signal?: AbortSignal | undefined;
  readonly settings?: ClickHouseSettings;
};

/** All rows of a short answer, as objects; `name` says what was asked for when it fails. */
export async function loadRows<Row>(
  client: ClickHouseClient,
  name: string,
  { query, params = {}, signal, settings = {} }: ShortStatement,
): Promise<Row[]> {
  try {
    const answer = await client.query({
      query,
      query_params: params,
      format: 'JSONEachRow',
      clickhouse_settings: settings,
      ...(signal ? { abort_signal: signal } : {}),
    });
    return await answer.json<Row>();
  } catch (error) {
    throw toClickHouseFailure(name, error);
  }
}

export type LongStatement = {
  readonly query: string;
  readonly query_params: Record<string, unknown>;
  readonly abort_signal?: AbortSignal;
  readonly settings?: ClickHouseSettings;
};

/**
 * Each row of a long answer as an array, some rows at a time and as they come; the answer is not held anywhere. It ends with
 * a line of its own: without that line it was cut off, and that is an error. Numbers of 64 bits are JSON numbers unless the
 * settings say otherwise.
 */
export async function* streamRows<Row>(
  client: ClickHouseClient,
  { settings, ...queryWhole }: LongStatement,
): AsyncGenerator<Row[]> {
  const answer = await client.query({
    ...queryWhole,
    format: 'CustomSeparated',
    clickhouse_settings: { ...LINES, ...settings },
  });
  const lines = answer.stream<Row>();
  // The client hears of the signal until the answer begins.
  const { abort_signal: signal } = queryWhole;
  const onAbort = () => void lines.destroy(signal!.reason as Error);
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  let isWhole = false;
  try {
    for await (const some of lines as AsyncIterable<{ text: string }[]>) {
      const last = some.at(-1)?.text === END_LINE ? some.length - 1 : some.length;
      isWhole = last < some.length;
      yield some.slice(0, last).map(({ text }) => JSON.parse(text) as Row);
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
  if (!isWhole) throw unavailable('the usage store (an answer ended before its last row)');
}

const END_LINE = 'end';
const LINES: ClickHouseSettings = {
  format_custom_escaping_rule: 'JSON',
  format_custom_row_before_delimiter: '[',
  format_custom_field_delimiter: ',',
  format_custom_row_after_delimiter: ']\n',
  format_custom_result_after_delimiter: `${END_LINE}\n`,
  output_format_json_quote_64bit_integers: 0,
  wait_end_of_query: 0,
  // Otherwise the server goes on for nobody until it has something to send.
  cancel_http_readonly_queries_on_client_close: 1,
};

/**
 * Few rows are read soonest by one thread, in one step (to read some columns before the others takes a third of the time
 * where there are many small parts), without a search for projections, which our tables have not, and in one piece when they
 * are known: a server need not plan for a reader who comes for more.
 */
export const SMALL_ANSWER = {
  max_threads: 1,
  optimize_move_to_prewhere: 0,
  optimize_use_projections: 0,
  optimize_use_implicit_projections: 0,
  wait_end_of_query: 1,
} as const;

/** Behind the name of a table in CREATE, ALTER, DROP and the like: all servers do it. */
export function onCluster(client: ClickHouseClient): string {
  const cluster = findCluster(client);
  return cluster === undefined ? '' : `ON CLUSTER ${quoteText(cluster)}`;
}

/** For the client, the database of the URL would win over any other. */
function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${encodeURIComponent(database)}`;
  return changed.href;
}

export interface StatementOptions {
  abort_signal?: AbortSignal;
  settings?: ClickHouseSettings;
}

export interface ClickHouseStatement<Params extends z.ZodObject, Row extends z.ZodType> {
  name: string;
  sql: string;
  params: Params;
  row: Row;
  /** All rows of the answer. What fails is thrown and never answered with no rows. */
  run(client: ClickHouseClient, params: z.input<Params>, options?: StatementOptions): Promise<z.output<Row>[]>;
}

/**
 * A question to ClickHouse as one value: its SQL, the shape of its parameters, the shape of a row. Values reach the SQL as
 * bound parameters `{name:Type}` only; a name that is in one place and not in the other is refused when the file is loaded.
 */
export function defineStatement<Params extends z.ZodObject, Row extends z.ZodType>(
  parts: Pick<ClickHouseStatement<Params, Row>, 'name' | 'sql' | 'params' | 'row'>,
): ClickHouseStatement<Params, Row> {
  checkNames(parts);
  const run = (client: ClickHouseClient, params: z.input<Params>, options: StatementOptions = {}) =>
    client.query({
      query: parts.sql,
      query_params: parts.params.parse(params) as Record<string, unknown>,
      format: 'JSONEachRow',
      ...(options.settings ? { clickhouse_settings: options.settings } : {}),
      ...(options.abort_signal ? { abort_signal: options.abort_signal } : {}),
    });
  return {
    ...parts,
    run: async (client, params, options) => {
      const rows = await reading(parts.name, async () => (await run(client, params, options)).json<unknown>());
      return rows.map((row) => shaped(parts, row));
    },
  };
}

function checkNames({ name, sql, params }: { name: string; sql: string; params: z.ZodObject }): void {
  const used = new Set([...sql.matchAll(/\{\s*(\w+)\s*:/g)].map((match) => match[1] ?? ''));
  const given = new Set(Object.keys(params.shape));
  const wrong = [...used].filter((key) => !given.has(key)).concat([...given].filter((key) => !used.has(key)));
  if (wrong.length > 0) throw new Error(`question ${name}: its SQL and its parameters differ in ${wrong.join(', ')}`);
}

function shaped<Row extends z.ZodType>({ name, row }: { name: string; row: Row }, value: unknown): z.output<Row> {
  const parsed = row.safeParse(value);
  if (parsed.success) return parsed.data;
  const why = z.prettifyError(parsed.error);
  throw new FarthingError('database_error', `question ${name}: a row has another shape: ${why}`, {
    cause: parsed.error,
  });
}

async function reading<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    throw toClickHouseFailure(name, error);
  }
}

/** Turns what the client throws into an error of ours: the store cannot answer now, or it refuses this statement. */
export function toClickHouseFailure(name: string, error: unknown): Error {
  if (error instanceof FarthingError || error instanceof z.ZodError) return error;
  if (isUnavailable(error) || isBrokenOff(error)) return unavailable('the usage store', error);
  const why = error instanceof Error ? error.message : String(error);
  return new FarthingError('database_error', `${name}: ${why}`, { cause: error });
}

/** The client's word for a request that it broke off itself. */
function isBrokenOff(error: unknown): boolean {
  return /aborted/i.test(error instanceof Error ? error.message : '');
}
