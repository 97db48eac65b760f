/**
 * When a payment is tried again, and what follows the last try (docs/rules/payments.md, "Tried again" and "After the last try").
 */
import type { SettingValue } from '../setting/record.ts';
import type { SubscriptionStatus } from '../subscription/record.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

export type PaymentConfig = SettingValue<'payment_config'>;

/** The instant of the next try after the n-th has failed at `now`; null when there is none. */
export function computeNextAttempt(attempt: number, { retry_after_days }: PaymentConfig, now: Date): Date | null {
  const days = retry_after_days[attempt - 1];
  return days === undefined ? null : new Date(now.getTime() + days * DAY_MS);
}

/** Whoever has begun has this long to write down what came of it; then the provider is asked. */
export function computeOutcomeCheckAt(now: Date): Date {
  return new Date(now.getTime() + MINUTE_MS);
}

/** A provider that does not answer, or that has nothing new to say, is asked again after this. */
export function computeProviderRecheckAt(now: Date): Date {
  return new Date(now.getTime() + HOUR_MS);
}

/** What can still be ended because its invoices are not paid. */
export const OPEN_SUBSCRIPTIONS: readonly SubscriptionStatus[] = ['active', 'trialing', 'incomplete'];
