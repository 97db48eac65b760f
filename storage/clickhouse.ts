import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client';
import { z } from 'zod';
import { FarthingError, unavailable } from '../core/error.ts';

export type { ClickHouseClient };

export interface ClickHouseOptions {
  /** Overrides the database of the URL. */
  database?: string;
  application?: string;
  request_timeout_ms?: number;
  max_open_connections?: number;
  /** Compresses both directions: worth it over a network, not on loopback. */
  compression?: boolean;
  settings?: ClickHouseSettings;
}

/** Connects to ClickHouse by its HTTP interface; a served embedded engine and a cluster look the same from here. */
export function connectClickHouse(url: string, options: ClickHouseOptions = {}): ClickHouseClient {
  const { database, application = 'farthing', request_timeout_ms = 60_000, max_open_connections = 20 } = options;
  const compressed = options.compression ?? false;
  return createClient({
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
    clickhouse_settings: { ...EXACT_SETTINGS, ...options.settings },
  });
}

/** For the client, the database of the URL would win over any other. */
function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${encodeURIComponent(database)}`;
  return changed.href;
}

const EXACT_SETTINGS: ClickHouseSettings = {
  // Exact text: a JSON number would be rounded by the reader.
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_decimals: 1,
  // The server answers when the statement has ended, so a failure half-way is a failure and not a short result.
  wait_end_of_query: 1,
  // An acknowledged insert is in the table.
  async_insert: 0,
};

export interface AskOptions {
  abort_signal?: AbortSignal;
  settings?: ClickHouseSettings;
}

export interface Question<Params extends z.ZodObject, Row extends z.ZodType> {
  name: string;
  sql: string;
  params: Params;
  row: Row;
  /** All rows of the answer. What fails is thrown and never answered with no rows. */
  ask(client: ClickHouseClient, params: z.input<Params>, options?: AskOptions): Promise<z.output<Row>[]>;
  /** The rows one by one, for results that do not fit into memory. */
  stream(client: ClickHouseClient, params: z.input<Params>, options?: AskOptions): AsyncGenerator<z.output<Row>>;
}

/**
 * A question to ClickHouse as one value: its SQL, the shape of its parameters, the shape of a row. Values reach the SQL as
 * bound parameters `{name:Type}` only; a name that is in one place and not in the other is refused when the file is loaded.
 */
export function question<Params extends z.ZodObject, Row extends z.ZodType>(
  parts: Pick<Question<Params, Row>, 'name' | 'sql' | 'params' | 'row'>,
): Question<Params, Row> {
  checkNames(parts);
  const run = (client: ClickHouseClient, params: z.input<Params>, options: AskOptions = {}) =>
    client.query({
      query: parts.sql,
      query_params: parts.params.parse(params) as Record<string, unknown>,
      format: 'JSONEachRow',
      ...(options.settings ? { clickhouse_settings: options.settings } : {}),
      ...(options.abort_signal ? { abort_signal: options.abort_signal } : {}),
    });
  return {
    ...parts,
    ask: async (client, params, options) => {
      const rows = await reading(parts.name, async () => (await run(client, params, options)).json<unknown>());
      return rows.map((row) => shaped(parts, row));
    },
    stream: async function* (client, params, options) {
      const result = await reading(parts.name, () => run(client, params, options));
      const batches = result.stream<unknown>()[Symbol.asyncIterator]();
      for (;;) {
        const { value, done } = await reading(parts.name, () => batches.next());
        if (done) return;
        for (const row of value) yield shaped(parts, row.json());
      }
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
    throw clickhouseFailure(name, error);
  }
}

/** Turns what the client throws into an error of ours: the store cannot answer now, or it refuses this statement. */
export function clickhouseFailure(name: string, error: unknown): Error {
  if (error instanceof FarthingError || error instanceof z.ZodError) return error;
  if (isTransient(error)) return unavailable('the usage store', error);
  const why = error instanceof Error ? error.message : String(error);
  return new FarthingError('database_error', `${name}: ${why}`, { cause: error });
}

/** True when the same statement may succeed later: the store was not reached, was too busy, or had no quorum. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ClickHouseError) return TRANSIENT_SERVER_CODES.has(Number(error.code));
  const { code, message = '' } = error as { code?: string; message?: string };
  return (
    (code !== undefined && TRANSIENT_SOCKET_CODES.has(code)) || /timeout error|socket hang up|aborted/i.test(message)
  );
}

const TRANSIENT_SERVER_CODES = new Set([
  159, // TIMEOUT_EXCEEDED
  202, // TOO_MANY_SIMULTANEOUS_QUERIES
  209, // SOCKET_TIMEOUT
  210, // NETWORK_ERROR
  225, // NO_ZOOKEEPER
  236, // ABORTED
  241, // MEMORY_LIMIT_EXCEEDED
  242, // TABLE_IS_READ_ONLY
  252, // TOO_MANY_PARTS
  279, // ALL_CONNECTION_TRIES_FAILED
  285, // TOO_FEW_LIVE_REPLICAS
  319, // UNKNOWN_STATUS_OF_INSERT
  999, // KEEPER_EXCEPTION
]);

const TRANSIENT_SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
]);
