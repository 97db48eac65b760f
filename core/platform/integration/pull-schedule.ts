/**
 * Schedule by which the service reads an invoice again at the provider to which it was pushed (docs/integrations/README.md, "Reading an
 * invoice").
 */
import { DAY_MS, HOUR_MS } from '../../foundation/time/durations.ts';

export function computeFirstPull(now: Date): Date {
  return new Date(now.getTime() + HOUR_MS);
}

/** Computes the time of the next read. The wait equals the age of the mapping, from an hour up to a day, so it doubles each time. */
export function computeNextPull({ made_at, now }: { made_at: Date; now: Date }): Date {
  const age_ms = now.getTime() - made_at.getTime();
  return new Date(now.getTime() + Math.min(DAY_MS, Math.max(HOUR_MS, age_ms)));
}
