/**
 * A plan change: the subscription keeps its id (docs/rules/subscriptions.md, "Plan changes"). Checks whether it is
 * possible, decides whether the period continues or a new one begins, and compares the costs.
 */

import { type Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { buildStateError, invalid } from '../foundation/error.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { calendarAnchor, nextPeriodEnd } from '../foundation/time/period.ts';
import { compareDuration } from '../rating/commitments/term.ts';
import type { PricedItem } from '../rating/line-amount.ts';
import { yearlyCharge } from '../rating/yearly-charge.ts';
import type { Subscription } from './record.ts';

export const CHANGE_TYPES = ['upgrade', 'downgrade', 'lateral'] as const;
export type ChangeType = (typeof CHANGE_TYPES)[number];

/** Requested billing periods. An absent field keeps the current value. */
export type PeriodTerms = Partial<Pick<Subscription, 'billing_period' | 'billing_period_count' | 'billing_cycle'>>;

type PlanChangeSubscription = Pick<
  Subscription,
  | 'plan_id'
  | 'subscription_status'
  | 'subscription_type'
  | 'parent_subscription_id'
  | 'cancel_at'
  | 'cancel_at_period_end'
>;

const STATUSES: readonly Subscription['subscription_status'][] = ['active', 'trialing'];

/** Types whose periods and lines are independent of a parent subscription. Only the payer may be another customer. */
const INDEPENDENT_TYPES: readonly string[] = ['STANDALONE', 'DELEGATED_INVOICING'];

export function checkPlanChange(
  subscription: PlanChangeSubscription,
  { target_plan_id, pending }: { target_plan_id: string; pending: string | null },
): void {
  const { subscription_status, subscription_type } = subscription;
  if (!STATUSES.includes(subscription_status))
    throw buildStateError('subscription_status', `a subscription that is ${subscription_status} gets no other plan`);
  if (!INDEPENDENT_TYPES.includes(subscription_type) || subscription.parent_subscription_id)
    throw buildStateError('subscription_type', `a subscription that is ${subscription_type} gets no other plan`);
  if (subscription.plan_id === target_plan_id) throw invalid('target_plan_id', 'is the plan that it has');
  if (subscription.cancel_at || subscription.cancel_at_period_end)
    throw buildStateError('cancel_at', 'a cancellation is scheduled: undo it first');
  if (pending) throw buildStateError('change_at', `a ${pending} is scheduled already: undo it first`);
}

/** Plans new periods from the change; null if the periods stay the same. */
export function planPeriodsFromChange(
  subscription: Subscription,
  requested: PeriodTerms,
  at: Milliseconds,
): Partial<Subscription> | null {
  const { billing_period, billing_period_count, billing_cycle, timezone } = {
    ...subscription,
    ...withoutUndefined(requested),
  };
  const isSame =
    billing_period === subscription.billing_period &&
    billing_period_count === subscription.billing_period_count &&
    billing_cycle === subscription.billing_cycle;
  if (isSame) return null;
  if (subscription.subscription_status === 'trialing')
    throw invalid('billing_period', 'cannot change during a trial: its periods begin when the trial ends');
  const { commitment_amount, commitment_duration } = subscription;
  if (
    commitment_amount &&
    commitment_duration &&
    compareDuration(commitment_duration, { billing_period, billing_period_count }) < 0
  )
    throw invalid(
      'billing_period',
      `is longer than the ${commitment_duration} for which the subscription is committed`,
    );
  const anchor = billing_cycle === 'calendar' ? calendarAnchor(at, billing_period, timezone) : at;
  const subscription_end = subscription.end_date ? toInstant(subscription.end_date) : null;
  const rule = { billing_period, billing_period_count, timezone, billing_anchor: anchor, subscription_end };
  return {
    billing_period,
    billing_period_count,
    billing_cycle,
    billing_anchor: formatMs(anchor),
    current_period_start: formatMs(at),
    current_period_end: formatMs(nextPeriodEnd({ ...rule, period_start: at })),
  };
}

function withoutUndefined(terms: PeriodTerms): PeriodTerms {
  return Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== undefined && value !== null));
}

/** Compares the fixed, recurring charges per year of the lines that end and begin. */
export function deriveChangeType(closing: readonly PricedItem[], opening: readonly PricedItem[]): ChangeType {
  const difference = sumYearly(opening).comparedTo(sumYearly(closing));
  if (difference === 0) return 'lateral';
  return difference > 0 ? 'upgrade' : 'downgrade';
}

function sumYearly(items: readonly PricedItem[]): Decimal {
  return sumDecimals(items.map((item) => (item.price_type === 'FIXED' ? yearlyCharge(item) : ZERO)));
}
