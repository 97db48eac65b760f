/**
 * Until when the usage of a subscription should stand on invoices by now, and which time of a line item stands on none: for whoever looks
 * whether something was forgotten (docs/rules/invoices.md, "What stands on which invoice"). Where the records leave a doubt whether it is to
 * be invoiced, it is taken that it is not: nobody is to be told of what is as it should be.
 */
import { deriveEndInstant } from '../subscription/propagation.ts';
import type { Subscription } from '../subscription/record.ts';
import { type Milliseconds, toInstant, toMs, toUs } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import { computeUncovered, cutTo } from './charge-intervals.ts';
import { type BilledItem, type BilledSubscription, computeServicesWithin, hasOwnPeriods } from './charges.ts';

export type InvoicedReach = {
  readonly until_ms: Milliseconds;
  /** Nothing follows: also of a line with periods of its own all is invoiced. */
  readonly is_over: boolean;
};

type BillingHierarchy = {
  /** Of one that is invoiced with it. */
  readonly parent: Subscription | undefined;
  /** Whether there is an invoice of the cancellation, which ends where the subscription does. */
  readonly has_last: boolean;
};

/** Null where nothing of it is to be invoiced, or is invoiced with another. */
export function deriveInvoicedReach(
  subscription: Subscription,
  { parent, has_last }: BillingHierarchy,
): InvoicedReach | null {
  const { subscription_status, subscription_type } = subscription;
  // It has no lines: its usage stands on its parent's.
  if (subscription_type === 'INHERITED') return null;
  const running = { until_ms: toInstant(subscription.current_period_start), is_over: false };
  if (subscription_status === 'active') return running;
  // A draft and a trial are charged nothing; what is incomplete is invoiced when it is paid.
  if (subscription_status !== 'cancelled') return null;
  const over = { until_ms: deriveEndInstant(subscription), is_over: true };
  if (subscription_type !== 'grouped_invoicing') return hasEndedByItself(subscription) || has_last ? over : running;
  if (parent === undefined) return null;
  // What it owes waits for the next invoice of its parent.
  const reached = toInstant(parent.current_period_start);
  const isReached = parent.subscription_status === 'cancelled' || over.until_ms <= reached;
  return isReached ? over : { ...running, until_ms: Math.min(running.until_ms, reached) };
}

/**
 * Its end came, by a date that was stated or a cancellation that was scheduled. One that is cancelled at once keeps its period, and may have been
 * forgiven it (`cancel_immediately_invoice_policy` `skip`), which no record says.
 */
function hasEndedByItself(subscription: Subscription): boolean {
  return toInstant(subscription.current_period_end) === deriveEndInstant(subscription);
}

/**
 * Whether it may have ended without ever having been paid for, so that nothing of it was invoiced (docs/rules/subscriptions.md, "States"): nothing
 * says so of one that is cancelled. A child waits for the payment of its parent.
 */
export function canBeUnpaid(subscription: Subscription, parent: Subscription | undefined): boolean {
  if (subscription.subscription_status !== 'cancelled') return false;
  const isPaymentRequired = [subscription, parent].some((one) => one && one.payment_behavior !== 'default_active');
  return isPaymentRequired || Boolean(subscription.trial_end);
}

type UninvoicedLineInput = {
  readonly item: BilledItem;
  readonly subscription: BilledSubscription;
  readonly reach: InvoicedReach;
  /** What invoices say of it. */
  readonly invoiced: readonly Period[];
};

/** In order of time. */
export function uninvoicedTimes({ item, subscription, reach, invoiced }: UninvoicedLineInput): Period[] {
  const start = Math.max(item.start_ms, subscription.start_ms);
  const end = Math.min(item.end_ms ?? Number.POSITIVE_INFINITY, reach.until_ms);
  if (start >= end) return [];
  const open = computeUncovered(toIntervalUs({ start, end }), invoiced.map(toIntervalUs)).filter(
    ({ start_us, end_us }) => start_us < end_us,
  );
  // Most often nothing is open, and the periods of a line need not be gone through.
  const isCut = open.length > 0 && !reach.is_over && hasOwnPeriods(item, subscription);
  const due = isCut ? cutTo(open, toIntervalUs({ start, end: endedBefore(reach.until_ms, item, subscription) })) : open;
  return due.map(({ start_us, end_us }) => ({ start: toMs(start_us), end: toMs(end_us) }));
}

/**
 * Of periods of its own those are invoiced that have ended; one that a change has cut where a period begins is with the next invoice. Where the
 * last of them ended before this instant.
 */
function endedBefore(at: Milliseconds, item: BilledItem, subscription: BilledSubscription): Milliseconds {
  const services = computeServicesWithin({ start: item.start_ms, end: at }, item, subscription);
  return services.findLast(({ end }) => end < at)?.end ?? item.start_ms;
}

function toIntervalUs({ start, end }: Period) {
  return { start_us: toUs(start), end_us: toUs(end) };
}
