/** Numbers of attempts to write to ClickHouse, from the sequence `write_attempts`: a later attempt has a greater number. */

import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { findGreatestCorrection } from '../events/known-numbers.ts';
import { runAsSystem } from '../foundation/request-context.ts';
import type { Stores } from '../foundation/stores.ts';

/** Returns the writer name of a log partition, for its slices and control messages. */
export function toPartitionWriter(partition: number): string {
  return `partition:${partition}`;
}

/** Key of an advisory lock: arbitrary, but equal in every process. */
const LOCK = 7_155_023;
/** Margin for attempts that take a number while the sequence is being raised. */
const LEAP = 1_000_000n;

/**
 * Must run before a pipeline starts. Raises the sequence above the greatest number in ClickHouse, in fences or rows, in case Postgres was
 * restored to an earlier state. Otherwise a new attempt could get the number of an attempt that Postgres no longer knows: the old
 * fence would reject the new attempt, and a rebuild would treat the old rows as its own.
 */
export async function raiseAttempts({ postgres, clickhouse }: Pick<Stores, 'postgres' | 'clickhouse'>): Promise<void> {
  const greatest = await greatestAttempt(clickhouse);
  await postgres.transaction(async (transaction) => {
    await transaction.raw(`select pg_advisory_xact_lock(?)`, [LOCK]);
    await transaction.raw(
      `select setval('write_attempts', ?::bigint) from write_attempts where last_value <= ?::bigint`,
      [String(greatest + LEAP), String(greatest)],
    );
  });
}

/**
 * Must run before a correction gets its number. Raises the sequence above the greatest number in ClickHouse. A restored Postgres would
 * otherwise issue a number again, and readers would pick either of the two corrections. One sequence serves all tenants, so a
 * request of a tenant raises it by `runAsSystem`.
 */
export async function ensureCorrectionNumbers(stores: Pick<Stores, 'postgres' | 'clickhouse'>): Promise<void> {
  await runAsSystem(() => raiseCorrectionNumbers(stores));
}

async function raiseCorrectionNumbers({
  postgres,
  clickhouse,
}: Pick<Stores, 'postgres' | 'clickhouse'>): Promise<void> {
  const greatest = String(await findGreatestCorrection(clickhouse));
  const isBehind = `(last_value < ?::bigint or (not is_called and last_value <= ?::bigint))`;
  const { rows } = await postgres.raw(`select from event_corrections_id_seq where ${isBehind}`, [greatest, greatest]);
  if (rows.length === 0) return;
  await postgres.transaction(async (transaction) => {
    await transaction.raw(`select pg_advisory_xact_lock(?)`, [LOCK]);
    await transaction.raw(
      `select setval('event_corrections_id_seq', ?::bigint) from event_corrections_id_seq where ${isBehind}`,
      [greatest, greatest, greatest],
    );
  });
}

async function greatestAttempt(clickhouse: ClickHouseClient): Promise<bigint> {
  try {
    const query = `select toString(greatest((select max(attempt) from write_fences), (select max(attempt) from usage_buckets))) as n`;
    const answer = await clickhouse.query({ query, format: 'JSONEachRow' });
    return BigInt((await answer.json<{ n: string }>())[0]!.n);
  } catch (error) {
    throw toClickHouseFailure('numbers of tries', error);
  }
}
