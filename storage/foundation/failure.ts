/**
 * Meaning of a store failure, classified once for the API, the pipeline and the start.
 *
 * - `away`: the store was not reached, was too busy or is stopping; the operation may succeed later.
 * - `conflict`: the database decided between two writers, and this one came second.
 * - `refused`: the store does not accept a value or a reference that was sent; it never will.
 * - `ours`: any other error of a store: the statement is wrong, or the store is damaged.
 */
import { ClickHouseError } from '@clickhouse/client';
import { FarthingError } from '../../core/foundation/error.ts';

type StoreFailure = 'away' | 'conflict' | 'refused' | 'ours';

/** Classifies an error; undefined if it is no failure of a store. */
export function classifyFailure(error: unknown): StoreFailure | undefined {
  if (error instanceof FarthingError) return FAILURE_BY_ERROR_CODE[error.code];
  const code = readPostgresCode(error);
  if (isStalePlan(error)) return 'away';
  if (code !== undefined) return classifyPostgresFailure(code, toNativeError(error).severity);
  const native = toNativeError(error);
  if (isClickHouseError(native)) return UNAVAILABLE_CLICKHOUSE_CODES.has(Number(native.code)) ? 'away' : 'ours';
  return isUnreached(native) ? 'away' : undefined;
}

export function isUnavailable(error: unknown): boolean {
  return classifyFailure(error) === 'away';
}

/** Reads the SQLSTATE (five characters) that Postgres reported; undefined if the error is not from Postgres. */
function readPostgresCode(error: unknown): string | undefined {
  const { code, severity } = toNativeError(error);
  return severity !== undefined && typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Whether Postgres aborted the transaction to resolve a deadlock. A retry runs after the other transaction. */
export const isDeadlock = (error: unknown): boolean => readPostgresCode(error) === '40P01';

/** Whether a table has changed, in a migration, since the statement was prepared. It must be prepared again. */
export const isStalePlan = (error: unknown): boolean =>
  readPostgresCode(error) === '0A000' &&
  /cached plan must not change result type/.test(toNativeError(error).message ?? '');

/** Whether a statement was refused because an earlier one of its transaction had failed, which may have skipped its preparation. */
export const isAfterFailure = (error: unknown): boolean => ['25P02', '26000'].includes(readPostgresCode(error) ?? '');

/** Whether a referenced row does not exist. */
export const isMissingReference = (error: unknown): boolean => readPostgresCode(error) === '23503';

/** Whether an idle connection was closed in the moment in which it was reused. Nothing was answered then, so a query can be repeated. */
export function isHungUp(error: unknown): boolean {
  return (
    error instanceof Error && /socket hang up|ECONNRESET/.test(`${error.message} ${(error as { code?: string }).code}`)
  );
}

const FAILURE_BY_ERROR_CODE: Partial<Record<FarthingError['code'], StoreFailure>> = {
  service_unavailable: 'away',
  already_exists: 'conflict',
  version_conflict: 'conflict',
  database_error: 'ours',
};

/**
 * SQLSTATEs of rejected input. 22… are values that no column can store: a NUL in a text, a number or a date beyond its range. 23503 is a
 * missing reference.
 */
const REJECTED_CODES = new Set(['22001', '22003', '22007', '22008', '22021', '22P02', '22P05', '23503']);

function classifyPostgresFailure(code: string, severity: unknown): StoreFailure {
  if (code === '23505') return 'conflict';
  if (REJECTED_CODES.has(code)) return 'refused';
  // A protocol error repeats on each try; but a connection pooler reports it, as FATAL, for a server that it cannot reach.
  if (code === '08P01') return severity === 'FATAL' ? 'away' : 'ours';
  // Classes of SQLSTATE: 08 connection lost, 40 rolled back for another transaction, 53 out of resources, 57 shut down
  // or timed out.
  return /^(08|40|53|57)/.test(code) ? 'away' : 'ours';
}

type Native = { name?: string; code?: unknown; message?: string; severity?: unknown; type?: unknown };

/** The driver's error, which Objection wraps. */
function toNativeError(error: unknown): Native {
  return ((error as { nativeError?: unknown } | null)?.nativeError ?? error ?? {}) as Native;
}

/** Whether the error is from ClickHouse: it has a numeric code and a type name. */
function isClickHouseError(native: Native): boolean {
  const { code, type } = native;
  return native instanceof ClickHouseError || (/^\d+$/.test(String(code)) && typeof type === 'string');
}

const UNAVAILABLE_CLICKHOUSE_CODES = new Set([
  159, // TIMEOUT_EXCEEDED
  202, // TOO_MANY_SIMULTANEOUS_QUERIES
  209, // SOCKET_TIMEOUT
  210, // NETWORK_ERROR
  225, // NO_ZOOKEEPER
  236, // ABORTED
  241, // MEMORY_LIMIT_EXCEEDED
  242, // TABLE_IS_READ_ONLY
  252, // TOO_MANY_PARTS
  232, // NO_SUCH_DATA_PART
  234, // NO_REPLICA_HAS_PART
  244, // UNEXPECTED_ZOOKEEPER_ERROR
  279, // ALL_CONNECTION_TRIES_FAILED
  285, // TOO_FEW_LIVE_REPLICAS
  286, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
  289, // REPLICA_IS_NOT_IN_QUORUM
  319, // UNKNOWN_STATUS_OF_INSERT
  341, // UNFINISHED: the mutation waits for an unavailable replica
  394, // QUERY_WAS_CANCELLED: by the process that took over the writes
  999, // KEEPER_EXCEPTION
]);

const UNREACHED = new Set([
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

/** Messages of clients that have no code. Knex prefixes the driver's message with the statement. */
const LOST =
  /(^| - )(Connection terminated|Connection ended|Client was closed|Client has encountered a connection error|timeout exceeded when trying to connect|Timeout error|socket hang up|Unable to acquire a connection)/;

function isUnreached({ name, code, message = '' }: Native): boolean {
  return UNREACHED.has(String(code)) || name === 'KnexTimeoutError' || LOST.test(message);
}
