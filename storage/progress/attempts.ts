/** Numbers of tries to write to ClickHouse, from the sequence `write_attempts`: whoever begins later has the greater one. */

import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { findGreatestCorrection } from '../events/known-numbers.ts';
import { runAsSystem } from '../request-context.ts';
import type { Stores } from '../stores.ts';

/** The writer of a partition of the log: its slices, and what its control messages do. */
export function toPartitionWriter(partition: number): string {
  return `partition:${partition}`;
}

/** Any number, the same in every process. */
const LOCK = 7_155_023;
/** So that whoever takes a number at this moment is not overtaken by the sequence that is moved. */
const LEAP = 1_000_000n;

/**
 * Before a pipeline begins: numbers go on behind the greatest that ClickHouse has seen, in fences or in rows, whatever state
 * Postgres was put back to. Otherwise a try would fail at the fence of one that Postgres has forgotten, and a rebuild would
 * take the rows of such a one for its own.
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
 * Before a correction gets its number: numbers go on after the greatest that ClickHouse has stored. A Postgres that was restored to an
 * earlier moment would give one of them out again, and of two corrections of one number readers take either. One sequence serves all
 * tenants, so the request of one of them asks for it on behalf of the system.
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
