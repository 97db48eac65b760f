/**
 * When a delivery that failed is tried again, when it is given up, and when its endpoint is switched off
 * (docs/rules/webhooks.md, "Tried again" and "An endpoint that fails").
 */
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** After the first failure, after the second …; the last one after all others. */
const DELAYS_MS = [MINUTE, 10 * MINUTE, HOUR, 12 * HOUR, DAY] as const;

/** An event that is older is not told again by itself. */
export const RETRY_WINDOW_MS = 48 * HOUR;

/** Later events of the same record wait for one that has failed less often than so: then its order is given up. */
export const ORDERED_FAILURES_MAX = 4;

/** An endpoint that has taken nothing for so long, and has failed so often meanwhile, is switched off. */
const FAILS_FOR_MS = 5 * DAY;
const FAILS_AT_LEAST = 10;

export type DeliveryFailure = { readonly failure_count: number; readonly emitted_at: number; readonly now: number };

/** When a delivery with so many failures is tried again; null when it is given up. */
export function computeNextDeliveryAttempt(
  { failure_count, emitted_at: told_at, now }: DeliveryFailure,
  max_attempts: number,
): number | null {
  if (failure_count >= max_attempts) return null;
  const next = now + DELAYS_MS[Math.min(failure_count, DELAYS_MS.length) - 1]!;
  return next - told_at > RETRY_WINDOW_MS ? null : next;
}

/** What is tried again by itself, and how often; each of them all where nothing is said. */
export type RetryRules = {
  readonly max_attempts: number;
  readonly enabled?: boolean;
  readonly excluded_tenants?: readonly string[];
  readonly allowed_event_types?: readonly string[];
};

/** How often a delivery is tried: what is not tried again is given up with its first failure, so that nothing waits for it. */
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
