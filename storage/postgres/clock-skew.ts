/**
 * How far the clock of this process is from that of Postgres. Leases go by the clock of Postgres; the holds of reservations, and all that falls due, by that of whoever
 * looks (docs/decisions/0013-reservations.md): a process whose clock is ahead ends the holds of others before their time, so a difference is told.
 */
import type { Logger } from 'pino';
import { runWithTimeout } from '../in-time.ts';
import type { Database } from '../stores.ts';

/** Seconds that it is ahead, or behind (below 0). What may be the time of the way to Postgres and back is no difference. */
export async function measureClockSkew(postgres: Database, clock: () => Date): Promise<number> {
  const sent = clock().getTime();
  const { rows } = await postgres.raw('select extract(epoch from clock_timestamp()) * 1000 as now_ms');
  const received = clock().getTime();
  const now_ms = Number(rows[0].now_ms);
  // An instant of ours is a whole millisecond, and rounded down.
  if (sent > now_ms) return (sent - now_ms) / 1000;
  return Math.min(0, received + 1 - now_ms) / 1000;
}

/** Of which somebody has to hear: a lease is 10 s long, the shortest hold 1 s. */
export const SKEW_MAX_SECONDS = 1;
const CHECK_INTERVAL_MS = 60_000;

type WatchedClock = { readonly clock: () => Date; readonly logger: Pick<Logger, 'warn'> };

/** At the start and every minute; answers what ends it. */
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
