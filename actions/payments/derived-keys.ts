/**
 * Derives keys for requests without one: equal requests within one minute count as one request (docs/rules/payments.md, "Making a
 * payment").
 */
import { createHash } from 'node:crypto';
import { MINUTE_MS } from '../../core/foundation/time/durations.ts';

/**
 * Returns the key of this minute and those of the neighbouring minutes. The earlier minute finds a recent request; the later one covers
 * processes whose clocks differ.
 */
export function deriveKeys(
  parts: readonly unknown[],
  now: Date,
): { readonly key: string; readonly neighbouring_keys: string[] } {
  const neighbouring_keys = [-MINUTE_MS, MINUTE_MS].map((away) => computeKey(parts, new Date(now.getTime() + away)));
  return { key: computeKey(parts, now), neighbouring_keys };
}

function computeKey(parts: readonly unknown[], instant: Date): string {
  const text = JSON.stringify([...parts, instant.toISOString().slice(0, 16)]);
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Checks whether less than a minute lies between two requests whose keys are of neighbouring minutes. */
export function isWithinMinute(created_at: string, now: Date): boolean {
  return Math.abs(now.getTime() - Date.parse(created_at)) < MINUTE_MS;
}
