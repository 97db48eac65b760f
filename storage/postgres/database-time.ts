/** Time by the clock of the database, which all processes share: the clock of one machine may be wrong by any amount. */
import { DAY_SECONDS } from '../../core/foundation/time/durations.ts';
import type { Database } from '../foundation/stores.ts';

async function loadDatabaseTime(database: Database): Promise<Date> {
  const { rows } = await database.raw('select clock_timestamp() as at');
  return new Date(rows[0].at);
}

/** Difference between two clocks that is normal: a request may wait, and clocks are not exact. */
const CLOCK_TOLERANCE_MS = 60_000;

/**
 * Time to store as the creation of a provider's idempotency key. If the clock of the database is ahead of `now`, which is
 * by the clock of this process, `now` counts: a key must never seem newer than it is.
 */
export async function loadKeyTime(database: Database, now: Date): Promise<string> {
  const at = await loadDatabaseTime(database);
  return (at.getTime() - now.getTime() > CLOCK_TOLERANCE_MS ? now : at).toISOString();
}

/** A key of this age has been forgotten by its provider, which is searched before the key is used again. */
const FORGOTTEN_KEY_SECONDS = DAY_SECONDS;

/**
 * Age of a key by the clock of the database. By a wrong clock of this process, a key that the provider has forgotten
 * could seem new. A negative age shows that the clock of the database was moved back: then the key counts as forgotten.
 */
export async function measureKeyAge(database: Database, key_created_at: Date): Promise<number> {
  const age_ms = (await loadDatabaseTime(database)).getTime() - key_created_at.getTime();
  return age_ms < 0 ? FORGOTTEN_KEY_SECONDS : age_ms / 1_000;
}
