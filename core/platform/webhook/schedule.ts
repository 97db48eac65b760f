/**
 * Retry times of a failed delivery, its end, and the disabling of its endpoint (docs/rules/webhooks.md, "Tried again" and "An endpoint that
 * fails").
 */
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Delays after the first, second, … failure; the last one repeats. */
const DELAYS_MS = [MINUTE, 10 * MINUTE, HOUR, 12 * HOUR, DAY] as const;

/** Maximum age of an event that is retried automatically. */
export const RETRY_WINDOW_MS = 48 * HOUR;

/** Later events of a record wait for a failed delivery until it has failed this often. Then the order is given up. */
export const ORDERED_FAILURES_MAX = 4;

/** An endpoint is disabled after this time without a successful delivery, if it has failed at least this often. */
const FAILS_FOR_MS = 5 * DAY;
const FAILS_AT_LEAST = 10;

type DeliveryFailure = { readonly failure_count: number; readonly emitted_at: number; readonly now: number };

/** Time of the next attempt after this number of failures; null if the delivery is given up. */
export function computeNextDeliveryAttempt(
  { failure_count, emitted_at, now }: DeliveryFailure,
  max_attempts: number,
): number | null {
  if (failure_count >= max_attempts) return null;
  const next = now + DELAYS_MS[Math.min(failure_count, DELAYS_MS.length) - 1]!;
  return next - emitted_at > RETRY_WINDOW_MS ? null : next;
}

/** Rules for automatic retries. Default: all tenants and event types. */
export type RetryRules = {
  readonly max_attempts: number;
  readonly enabled?: boolean;
  readonly excluded_tenants?: readonly string[];
  readonly allowed_event_types?: readonly string[];
};

/** Maximum attempts of a delivery. A delivery without retries fails for good at its first failure, so that no later event waits for it. */
export function deriveMaxAttempts(
  { tenant_id, event_name }: { tenant_id: string; event_name: string },
  { max_attempts, enabled = true, excluded_tenants = [], allowed_event_types = [] }: RetryRules,
): number {
  const isAllowed = allowed_event_types.length === 0 || allowed_event_types.includes(event_name);
  return enabled && isAllowed && !excluded_tenants.includes(tenant_id) ? max_attempts : 1;
}

export function shouldDisableEndpoint(failing: { since: number; failures: number; now: number }): boolean {
  return failing.failures >= FAILS_AT_LEAST && failing.now - failing.since >= FAILS_FOR_MS;
}
