/**
 * Finds usage that should be on an invoice by now but is on none (docs/rules/invoices.md, "What stands on which invoice"). If the records
 * do not show whether usage is to be invoiced, it counts as not due, which avoids false alarms.
 */

import { type Milliseconds, toInstant, toMs, toUs } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { computeUncovered, cutTo } from '../../rating/charge-intervals.ts';
import {
  type BilledItem,
  type BilledSubscription,
  computeServicesWithin,
  hasOwnPeriods,
} from '../../rating/charges.ts';
import { deriveEndInstant } from '../../subscriptions/propagation.ts';
import type { Subscription } from '../../subscriptions/record.ts';

export type InvoicedReach = {
  readonly until_ms: Milliseconds;
  /** True if no further invoice follows. Then all usage is due, also that of lines with their own periods. */
  readonly is_over: boolean;
};

type BillingHierarchy = {
  /** Parent whose invoices bill the subscription. */
  readonly parent: Subscription | undefined;
  /** Whether the final invoice of a cancellation exists; its period ends when the subscription does. */
  readonly has_last: boolean;
};

/** Derives the time that must be on invoices by now; null if nothing has to be invoiced, or if the parent's invoices bill the usage. */
export function deriveInvoicedReach(
  subscription: Subscription,
  { parent, has_last }: BillingHierarchy,
): InvoicedReach | null {
  const { subscription_status, subscription_type } = subscription;
  // An inherited subscription has no lines: its parent bills its usage.
  if (subscription_type === 'INHERITED') return null;
  const running = { until_ms: toInstant(subscription.current_period_start), is_over: false };
  if (subscription_status === 'active') return running;
  // A draft and a trial are charged nothing; an incomplete subscription is invoiced when it is paid.
  if (subscription_status !== 'cancelled') return null;
  const over = { until_ms: deriveEndInstant(subscription), is_over: true };
  if (subscription_type !== 'grouped_invoicing') return hasEndedByItself(subscription) || has_last ? over : running;
  if (parent === undefined) return null;
  // The charges of a grouped subscription wait for the next invoice of its parent.
  const reached = toInstant(parent.current_period_start);
  const isReached = parent.subscription_status === 'cancelled' || over.until_ms <= reached;
  return isReached ? over : { ...running, until_ms: Math.min(running.until_ms, reached) };
}

/**
 * Whether the subscription reached an end date or a scheduled cancellation. An immediate cancellation leaves the current period unchanged,
 * and may have waived its charges (`cancel_immediately_invoice_policy` `skip`), which no record shows.
 */
function hasEndedByItself(subscription: Subscription): boolean {
  return toInstant(subscription.current_period_end) === deriveEndInstant(subscription);
}

/**
 * Whether the subscription may have ended without ever being paid for, so that nothing of it was invoiced (docs/rules/subscriptions.md,
 * "States"). The record of a cancelled subscription does not show this. A child waits for the payment of its parent.
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
  /** Service periods of the line that invoices already contain. */
  readonly invoiced: readonly Period[];
};

/** Uninvoiced intervals, in order of time. */
export function uninvoicedTimes({ item, subscription, reach, invoiced }: UninvoicedLineInput): Period[] {
  const start = Math.max(item.start_ms, subscription.start_ms);
  const end = Math.min(item.end_ms ?? Number.POSITIVE_INFINITY, reach.until_ms);
  if (start >= end) return [];
  const open = computeUncovered(toIntervalUs({ start, end }), invoiced.map(toIntervalUs)).filter(
    ({ start_us, end_us }) => start_us < end_us,
  );
  // The periods of the line are computed only if uninvoiced time is left, which is rare.
  const isCut = open.length > 0 && !reach.is_over && hasOwnPeriods(item, subscription);
  const due = isCut ? cutTo(open, toIntervalUs({ start, end: endedBefore(reach.until_ms, item, subscription) })) : open;
  return due.map(({ start_us, end_us }) => ({ start: toMs(start_us), end: toMs(end_us) }));
}

/**
 * End of the line's last own period that ended before an instant: this period and all earlier ones are on invoices. A period that ends
 * exactly at the instant, because a change cut it, is on the next invoice.
 */
function endedBefore(at: Milliseconds, item: BilledItem, subscription: BilledSubscription): Milliseconds {
  const services = computeServicesWithin({ start: item.start_ms, end: at }, item, subscription);
  return services.findLast(({ end }) => end < at)?.end ?? item.start_ms;
}

function toIntervalUs({ start, end }: Period) {
  return { start_us: toUs(start), end_us: toUs(end) };
}
