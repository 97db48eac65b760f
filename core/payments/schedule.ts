/**
 * Retry times of a payment, and the subscriptions that failed retries can end (docs/rules/payments.md, "Tried again" and "After the last
 * try").
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../foundation/time/durations.ts';
import type { SubscriptionStatus } from '../subscriptions/record.ts';
import type { PaymentConfig } from './setting.ts';

/** Time of the next attempt after the n-th failed at `now`; null if there is none. */
export function computeNextAttempt(attempt: number, { retry_after_days }: PaymentConfig, now: Date): Date | null {
  const days = retry_after_days[attempt - 1];
  return days === undefined ? null : new Date(now.getTime() + days * DAY_MS);
}

/** Instant at which the provider is queried about an attempt that has not recorded its result, e.g. after a crash. */
export function computeOutcomeCheckAt(now: Date): Date {
  return new Date(now.getTime() + MINUTE_MS);
}

/** Instant of the next query of a provider that did not answer, or whose payment is still pending. */
export function computeProviderRecheckAt(now: Date): Date {
  return new Date(now.getTime() + HOUR_MS);
}

/** Instant of the next attempt to close a void page: an hour later, doubled by each earlier failure, up to a day. */
export function computePageClosingAt(failures: number, now: Date): Date {
  const doublings = Math.min(failures, MAX_DOUBLINGS);
  return new Date(now.getTime() + Math.min(HOUR_MS * 2 ** doublings, DAY_MS));
}

const MAX_DOUBLINGS = 5;

/** Statuses of subscriptions that an unpaid invoice can still end. */
export const OPEN_SUBSCRIPTIONS: readonly SubscriptionStatus[] = ['active', 'trialing', 'incomplete'];
