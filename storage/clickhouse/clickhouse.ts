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
import { FarthingError, unavailable } from '../../core/foundation/error.ts';
import { isUnavailable } from '../foundation/failure.ts';
import { quoteText } from './literals.ts';
import { toReplicaClient } from './replicas.ts';
import { CLUSTER_SETTINGS, STATEMENT_SETTINGS } from './settings.ts';
import { withStatementsTraced } from './traced.ts';
import { watchForUnresponsiveClickHouse } from './unresponsive-server.ts';

export type { ClickHouseClient };
export { ClickHouseError };

interface ClickHouseOptions {
  /** Overrides the database of the URL. */
  database?: string;
  application?: string;
  request_timeout_ms?: number;
  max_open_connections?: number;
  /** Compresses both directions: worth it over a network, not on loopback. */
  compression?: boolean;
  settings?: ClickHouseSettings;
  /** The cluster whose servers all have the tables; absent for a single server. */
  cluster?: string | undefined;
}

/** Connects to ClickHouse by its HTTP interface; the embedded engine and a cluster behave the same from here. */
export function connectClickHouse(url: string, options: ClickHouseOptions = {}): ClickHouseClient {
  const { database, application = 'farthing', request_timeout_ms = 60_000, max_open_connections = 20 } = options;
  const compressed = options.compression ?? false;
  const client = createClient({
    url: database === undefined ? url : withDatabase(url, database),
    application,
    request_timeout: request_timeout_ms,
    max_open_connections,
    compression: { request: compressed, response: compressed },
    // A socket that the server is about to close must not be reused: servers hold idle ones for at least 3 s.
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    // Sends long lists of values in the body, because proxies limit the URL of a request.
    use_multipart_params_auto: true,
    // The client's own log is off: failures are thrown, and the log would only repeat them with the values of the statement.
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

export function findCluster(client: ClickHouseClient): string | undefined {
  return clusters.get(client);
}

/**
 * If a proxy takes a broken connection for the end of the answer, a list of lines only seems shorter. A truncated document cannot
 * be parsed, so lines are requested as one document.
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

type ShortStatement = {
  readonly query: string;
  readonly params?: Record<string, unknown>;
  readonly signal?: AbortSignal | undefined;
  readonly settings?: ClickHouseSettings;
};

/** All rows of a short answer, as objects; `name` is the name of the statement in a failure. */
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
 * Streams a long answer as arrays, some rows at a time, without storing the answer. After the last row the answer has the line `END_LINE`:
 * an answer without it was truncated, which is an error. 64-bit numbers are JSON numbers unless the settings override it.
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
  // The client handles the signal only until the answer begins.
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
  // Without this setting the server would continue after the client has disconnected, until it has something to send.
  cancel_http_readonly_queries_on_client_close: 1,
};

/**
 * Settings for few rows, which are read fastest by one thread in one step. PREWHERE, which reads some columns before the others,
 * costs a third of the time if there are many small parts. Our tables have no projections to search for. The answer comes in one
 * piece at the end, so the server plans for no slow reader.
 */
export const SMALL_ANSWER = {
  max_threads: 1,
  optimize_move_to_prewhere: 0,
  optimize_use_projections: 0,
  optimize_use_implicit_projections: 0,
  wait_end_of_query: 1,
} as const;

/** Clause after a table name in CREATE, ALTER, DROP and similar statements, so that all servers execute it. */
export function onCluster(client: ClickHouseClient): string {
  const cluster = findCluster(client);
  return cluster === undefined ? '' : `ON CLUSTER ${quoteText(cluster)}`;
}

/** The client prefers the database of the URL to any other. */
function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${encodeURIComponent(database)}`;
  return changed.href;
}

interface StatementOptions {
  abort_signal?: AbortSignal;
  settings?: ClickHouseSettings;
}

interface ClickHouseStatement<Params extends z.ZodObject, Row extends z.ZodType> {
  name: string;
  sql: string;
  params: Params;
  row: Row;
  /** All rows of the answer. Failures are thrown and never become an empty answer. */
  run(client: ClickHouseClient, params: z.input<Params>, options?: StatementOptions): Promise<z.output<Row>[]>;
}

/**
 * A ClickHouse statement as one value: its SQL, the shape of its parameters, and the shape of a row. Values reach the SQL only as
 * bound parameters `{name:Type}`. A name that is in only one of SQL and shape is refused when the file is loaded.
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

/** Turns a failure of the client into our error: the store is unavailable, or it rejects this statement. */
export function toClickHouseFailure(name: string, error: unknown): Error {
  if (error instanceof FarthingError || error instanceof z.ZodError) return error;
  if (isUnavailable(error) || isBrokenOff(error)) return unavailable('the usage store', error);
  const why = error instanceof Error ? error.message : String(error);
  return new FarthingError('database_error', `${name}: ${why}`, { cause: error });
}

/** Whether the client aborted the request itself, which only its message shows. */
function isBrokenOff(error: unknown): boolean {
  return /aborted/i.test(error instanceof Error ? error.message : '');
}
