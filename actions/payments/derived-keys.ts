/** Keys of requests that state none: equal ones within one minute are one (docs/rules/payments.md, "Making a payment"). */
import { createHash } from 'node:crypto';

const MINUTE_MS = 60_000;

/**
 * The key of whoever says this now, and those that somebody had who said it in the minutes of the clock beside this one: the one before,
 * and where several clocks are not quite together the one behind.
 */
export function deriveKeys(parts: readonly unknown[], now: Date): { readonly key: string; readonly beside: string[] } {
  const beside = [-MINUTE_MS, MINUTE_MS].map((away) => computeKey(parts, new Date(now.getTime() + away)));
  return { key: computeKey(parts, now), beside };
}

function computeKey(parts: readonly unknown[], instant: Date): string {
  const text = JSON.stringify([...parts, instant.toISOString().slice(0, 16)]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Of two whose keys are of neighbouring minutes: whether less than one lies between them. */
export function isWithinMinute(created_at: string, now: Date): boolean {
  return Math.abs(now.getTime() - Date.parse(created_at)) < MINUTE_MS;
}
