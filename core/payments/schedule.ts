/**
 * Retry times of a payment, and the subscriptions that failed retries can end (docs/rules/payments.md, "Tried again" and "After the last
 * try").
 */
import type { SubscriptionStatus } from '../subscriptions/record.ts';
import type { PaymentConfig } from './setting.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Time of the next attempt after the n-th failed at `now`; null if there is none. */
export function computeNextAttempt(attempt: number, { retry_after_days }: PaymentConfig, now: Date): Date | null {
  const days = retry_after_days[attempt - 1];
  return days === undefined ? null : new Date(now.getTime() + days * DAY_MS);
}

/** An attempt has one minute to record its result; then the provider is queried. */
export function computeOutcomeCheckAt(now: Date): Date {
  return new Date(now.getTime() + MINUTE_MS);
}

/** An unresponsive provider, or one without news, is queried again after one hour. */
export function computeProviderRecheckAt(now: Date): Date {
  return new Date(now.getTime() + HOUR_MS);
}

/** States of subscriptions that unpaid invoices can still end. */
export const OPEN_SUBSCRIPTIONS: readonly SubscriptionStatus[] = ['active', 'trialing', 'incomplete'];
