/**
 * Difference between the clock of this process and that of Postgres. Leases use the clock of Postgres. Holds of reservations, and
 * all due work, use the clock of the checking process (docs/decisions/0013-reservations.md). A process whose clock is ahead ends
 * the holds of others early, so a difference is logged.
 */
import type { Logger } from 'pino';
import { runWithTimeout } from '../../foundation/in-time.ts';
import type { Database } from '../../foundation/stores.ts';

/**
 * Measures the seconds by which this process's clock is ahead of that of Postgres; negative if it is late. A difference
 * within the round trip counts as none.
 */
export async function measureClockSkew(postgres: Database, clock: () => Date): Promise<number> {
  const sent = clock().getTime();
  const { rows } = await postgres.raw('select extract(epoch from clock_timestamp()) * 1000 as now_ms');
  const received = clock().getTime();
  const now_ms = Number(rows[0].now_ms);
  // Our instants are whole milliseconds, rounded down.
  if (sent > now_ms) return (sent - now_ms) / 1000;
  return Math.min(0, received + 1 - now_ms) / 1000;
}

/** A greater difference is logged: a lease lasts 10 s, the shortest hold of a reservation 1 s. */
const SKEW_MAX_SECONDS = 1;
const CHECK_INTERVAL_MS = 60_000;

type WatchedClock = { readonly clock: () => Date; readonly logger: Pick<Logger, 'warn'> };

/** Checks at the start and every minute; returns a function that stops it. */
export async function watchClock(
  postgres: Database,
  { clock, logger }: WatchedClock,
  every_ms = CHECK_INTERVAL_MS,
): Promise<() => void> {
  const check = async () => {
    const skew_seconds = await runWithTimeout(() => measureClockSkew(postgres, clock));
    if (skew_seconds !== null && Math.abs(skew_seconds) > SKEW_MAX_SECONDS)
      logger.warn(
        { skew_seconds },
        'the clock of this process is not that of Postgres: holds end too early or too late',
      );
  };
  await check();
  const timer = setInterval(() => void check(), every_ms);
  timer.unref();
  return () => clearInterval(timer);
}
