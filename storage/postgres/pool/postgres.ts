import knex, { type Knex } from 'knex';
import pg from 'pg';
import { parseJson } from '../../../core/foundation/json/parse.ts';
import { isTracing } from '../../../tracing/spans.ts';
import { sendInBundles } from '../interceptors/bundled-statements.ts';
import { coalesceWrites } from '../interceptors/coalesced-writes.ts';
import { recordRows } from '../interceptors/dependency-recorder.ts';
import { countWrites } from '../interceptors/own-writes.ts';
import { traceStatements } from '../interceptors/traced.ts';
import { watchForUnresponsivePostgres } from '../interceptors/unresponsive-server.ts';
import { loadParser } from '../tenant-guard/parser.ts';
import { installTenantGuard } from '../tenant-guard/tenant-guard.ts';
import { StatementClient } from './statement-client.ts';

interface PostgresOptions {
  pool_max?: number;
  application_name?: string;
  /** The server cancels a statement that takes longer; 0 is no limit. */
  statement_timeout_ms?: number;
  /** How long to wait for a free connection of the pool before the query fails. */
  acquire_timeout_ms?: number;
  /** A connection that is idle for longer is closed. */
  idle_timeout_ms?: number;
  /** Receives the pool's own observations, e.g. a connection that was lost while idle; queries throw their errors. */
  log?: (message: string) => void;
}

/**
 * How long a request waits for a connection. Including the time until an unresponsive Postgres is detected, a request is answered within
 * half a minute.
 */
export const PROCESS_POOL = { pool_max: 30, acquire_timeout_ms: 10_000 } as const;

/**
 * Connects to Postgres. Values come back as exact text, because records carry them as text from the database to the wire. Numbers
 * of any length are strings, dates are YYYY-MM-DD, and instants are RFC 3339 in UTC.
 */
export function connectPostgres(url: string, options: PostgresOptions = {}): Knex {
  const {
    pool_max = 10,
    application_name = 'farthing',
    statement_timeout_ms = 0,
    acquire_timeout_ms = 30_000,
    idle_timeout_ms = 30_000,
    log = () => {},
  } = options;
  return knex({
    client: StatementClient as never,
    connection: {
      connectionString: url,
      application_name,
      types: EXACT_TYPES,
      pipeline: true,
    } as Knex.PgConnectionConfig,
    acquireConnectionTimeout: acquire_timeout_ms,
    log: { warn: log, error: log, deprecate: log, debug: () => {} },
    pool: {
      min: 0, // Every idle connection is closed after a while, so one that the server has closed is rarely handed out.
      max: pool_max,
      idleTimeoutMillis: idle_timeout_ms,
      afterCreate: (connection: pg.Client, done: (error: Error | null | undefined, connection: pg.Client) => void) => {
        connection.query(sessionSettings(statement_timeout_ms), (error, results) => {
          if (!error) sendInBundles(connection);
          if (!error) watchForUnresponsivePostgres({ connection, url, pid: pidIn(results) });
          // The last wrapper installed is called first. The wrappers below need the caller's context, so they are
          // installed after this one.
          if (!error) coalesceWrites(connection);
          if (!error && isTracing()) traceStatements(connection);
          if (!error) recordRows(connection);
          if (error) return done(error, connection);
          loadParser().then(
            () => {
              countWrites(connection, url);
              installTenantGuard(connection);
              done(null, connection);
            },
            (refused: Error) => done(refused, connection),
          );
        });
      },
    },
  });
}

/** Returns the URL for a caller that needs a connection outside the pool. */
export function readUrl(postgres: Knex): string {
  return (postgres.client.config.connection as { connectionString: string }).connectionString;
}

type PostgresPoolState = { max: number; used: number; idle: number; waiting: number };

/** Use of the connections; null after the pool was closed. */
export function readPoolState(postgres: Knex): PostgresPoolState | null {
  const pool = postgres.client.pool as ConnectionPool | undefined;
  return pool === undefined
    ? null
    : { max: pool.max, used: pool.numUsed(), idle: pool.numFree(), waiting: pool.numPendingAcquires() };
}

/** knex's connection pool (tarn). */
type ConnectionPool = { max: number; numUsed(): number; numFree(): number; numPendingAcquires(): number };

export async function pingPostgres(postgres: Knex): Promise<void> {
  await postgres.raw('select 1');
}

/**
 * SQL with the settings of a session. The text form of an instant depends on two of them. Only the server knows its own pid: a pooler in
 * between may report another one.
 */
function sessionSettings(statement_timeout_ms: number): string {
  const timeout = `SET statement_timeout TO ${Math.trunc(statement_timeout_ms)}`;
  return `SET TIME ZONE 'UTC'; SET DateStyle TO ISO; ${timeout}; SELECT pg_backend_pid() AS pid`;
}

/** Reads the pid from the results. For several statements the driver returns a list, which its types omit. */
function pidIn(results: unknown): number {
  return (results as pg.QueryResult<{ pid: number }>[]).at(-1)!.rows[0]!.pid;
}

const asIs = (text: string) => text;
const textArray = (pg.types.getTypeParser as (oid: number, format: 'text') => unknown)(1009, 'text') as (
  text: string,
) => (string | null)[];
const instants = (text: string) => textArray(text).map((item) => (item === null ? null : toRfc3339(item)));

/** Parsers by Postgres' OID of the type. Other types use the driver's parser. */
const PARSERS: Record<number, (text: string) => unknown> = {
  20: asIs, // int8
  114: parseJson, // json
  3802: parseJson, // jsonb
  1016: textArray, // int8[]
  1700: asIs, // numeric
  1231: textArray, // numeric[]
  1082: asIs, // date
  1182: textArray, // date[]
  1114: asIs, // timestamp
  1115: textArray, // timestamp[]
  1184: toRfc3339, // timestamptz
  1185: instants, // timestamptz[]
  1186: asIs, // interval
};

const EXACT_TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' && PARSERS[oid]) || pg.types.getTypeParser(oid, format as 'text'),
};

/** Converts an instant: "2025-01-31 10:00:00.25+00" of a session in UTC becomes "2025-01-31T10:00:00.25Z"; infinity stays unchanged. */
function toRfc3339(text: string): string {
  return text.endsWith('+00') ? `${text.slice(0, -3).replace(' ', 'T')}Z` : text;
}
