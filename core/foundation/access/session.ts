/**
 * Lifetime of a browser session (docs/permissions.md, "Sessions"): it ends 12 hours after its last use, and 7 days after the sign-in at the
 * latest. A one-time link is valid for a day.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time/durations.ts';
import { type Milliseconds, toInstant } from '../time/instant.ts';

const IDLE_MS = 12 * HOUR_MS;
const LONGEST_MS = 7 * DAY_MS;
const LINK_MS = DAY_MS;

/** Time after which the use of a session is recorded again. A write per request would cost more than many requests. */
const RECORDED_EVERY_MS = 5 * MINUTE_MS;

type SessionTimes = { readonly last_used_at: string; readonly expires_at: string };

/** Latest end of a session that begins at `now`. */
export function deriveSessionExpiry(now: Date): Date {
  return new Date(now.getTime() + LONGEST_MS);
}

export function deriveLinkExpiry(now: Date): Date {
  return new Date(now.getTime() + LINK_MS);
}

/** End of a session that is not used again. */
export function deriveSessionEnd({ last_used_at, expires_at }: SessionTimes): Date {
  return new Date(Math.min(toInstant(last_used_at) + IDLE_MS, toInstant(expires_at)));
}

/** A session whose last use is earlier has ended. */
export function deriveOldestUse(now: Date): Date {
  return new Date(now.getTime() - IDLE_MS);
}

export function shouldRecordUse(last_used_at: string, now: Date): boolean {
  const idle_ms: Milliseconds = now.getTime() - toInstant(last_used_at);
  return idle_ms > RECORDED_EVERY_MS;
}

/** Seconds for which a browser stores the cookie. */
export const COOKIE_SECONDS = LONGEST_MS / 1000;
