/**
 * Derives when lines begin and end that are added, changed or ended while a subscription runs
 * (docs/rules/subscriptions.md, "Lines that come and go"). Earlier periods are invoiced, so nothing begins or ends
 * before the running period.
 */

import type { Price } from '../catalog/price/record.ts';
import { invalid, notAllowed } from '../foundation/error.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import type { BilledItem } from '../rating/charges.ts';
import { computeLineEnd, type LineItemEnd } from './line-end.ts';
import type { Subscription, SubscriptionLineItem, SubscriptionStatus } from './record.ts';

export type LineTimes = {
  readonly subscription: Pick<Subscription, 'subscription_status' | 'subscription_type' | 'start_date'>;
  /** End of the subscription or of its scheduled cancellation, the earlier of the two. */
  readonly end_ms: Milliseconds | null;
  readonly current: Period;
  readonly now: Milliseconds;
};

const CHANGING: readonly SubscriptionStatus[] = ['active', 'trialing', 'draft'];

export function checkLinesChange({ subscription_status, subscription_type }: LineTimes['subscription']): void {
  if (!CHANGING.includes(subscription_status))
    throw notAllowed(`the lines of a subscription that is ${subscription_status} cannot be changed`, {
      field: 'subscription_status',
    });
  if (subscription_type === 'INHERITED')
    throw notAllowed('a subscription that is INHERITED has no lines of its own: change those of its parent', {
      field: 'subscription_type',
    });
}

type RequestedInterval = { readonly start_date: string | null; readonly end_date: string | null };

/**
 * Active interval of a line that is added now, within the subscription and its price. `field` names the start in the
 * request.
 */
export function planAddedInterval(
  requested: RequestedInterval,
  price: Pick<Price, 'id' | 'start_date' | 'end_date'>,
  times: LineTimes,
  field = 'start_date',
): { start_date: string } & LineItemEnd {
  const sold = price.start_date ? toInstant(price.start_date) : Number.NEGATIVE_INFINITY;
  const requestedStart = requested.start_date
    ? toInstant(requested.start_date)
    : Math.max(times.now, findFirstStart(times));
  if (requestedStart < findFirstStart(times))
    throw invalid(field, `must not lie before ${formatMs(findFirstStart(times))}: that time is invoiced`);
  // If the price is sold already, the line starts at the requested instant. If the price is sold only later, the line does not start before
  // that.
  const start = sold > times.now ? Math.max(requestedStart, sold) : requestedStart;
  if (times.end_ms !== null && start >= times.end_ms)
    throw invalid(field, 'must lie before the end of the subscription');
  const last = requested.end_date ? toInstant(requested.end_date) : null;
  if (last !== null && last <= start) throw invalid('end_date', 'must be after start_date');
  if (last !== null && times.end_ms !== null && last > times.end_ms)
    throw invalid('end_date', 'must not be after the end of the subscription');
  const priceEnd = price.end_date ? toInstant(price.end_date) : null;
  if (priceEnd !== null && priceEnd <= start) throw notAllowed(`price ${price.id} has ended`, { field: 'price_id' });
  return { start_date: formatMs(start), ...computeLineEnd(price, [requested.end_date]) };
}

/** Interval of a line of a phase. Dates default to those of the phase. */
export function planPhaseInterval(
  requested: RequestedInterval,
  phase: { readonly start_date: string; readonly end_date?: string | null },
  times: LineTimes,
): RequestedInterval {
  const [start, end] = [toInstant(phase.start_date), phase.end_date ? toInstant(phase.end_date) : Infinity];
  const begins = requested.start_date
    ? toInstant(requested.start_date)
    : Math.max(start, times.now, findFirstStart(times));
  if (begins < start || begins >= end) throw invalid('start_date', 'must lie inside the phase');
  if (requested.end_date && toInstant(requested.end_date) > end) throw invalid('end_date', 'must lie inside the phase');
  return { start_date: formatMs(begins), end_date: requested.end_date ?? phase.end_date ?? null };
}

/**
 * Finds the earliest start of an added line. A draft has no invoices, so its lines may start in the past. A running subscription is
 * invoiced up to its running period, so its lines start in this period or later.
 */
function findFirstStart({ subscription, current }: LineTimes): Milliseconds {
  const start = toInstant(subscription.start_date);
  return subscription.subscription_status === 'draft' ? start : Math.max(start, current.start);
}

type ChangedLineTerms = Pick<SubscriptionLineItem, 'id' | 'status' | 'start_date' | 'end_date'>;

/** Derives the end of a line that is ended at `at` or, if that is null, now. A line that has not begun ends at its start. */
export function deriveLineEnd(
  line: ChangedLineTerms,
  { field, at }: { field: string; at: string | null },
  times: LineTimes,
): number {
  const isDraft = times.subscription.subscription_status === 'draft';
  const start = toInstant(line.start_date);
  const end = line.end_date ? toInstant(line.end_date) : Number.POSITIVE_INFINITY;
  if (line.status !== 'published' || end <= (isDraft ? start : times.now))
    throw notAllowed(`line item ${line.id} has ended already`, { field });
  const requestedEnd = at === null ? Math.max(isDraft ? start : times.now, findFirstStart(times)) : toInstant(at);
  if (requestedEnd < findFirstStart(times))
    throw invalid(field, `must not lie before ${formatMs(findFirstStart(times))}: that time is invoiced`);
  if (requestedEnd > end)
    throw invalid(field, `must not lie after the end of line item ${line.id} at ${line.end_date}`);
  return Math.max(requestedEnd, start);
}

/**
 * Instant at which a successor with another charge replaces a line. A meter that never resets charges its standing usage (such as seats)
 * once per period, so its price changes at the end of the line's running period. A one-time charge can change only before it is charged.
 */
export function deriveLineChange(
  line: ChangedLineTerms,
  item: Pick<BilledItem, 'billing_period' | 'reset_usage'> & { readonly running: Period },
  requested: string | null,
  times: LineTimes,
): number {
  const field = 'effective_from';
  const start = toInstant(line.start_date);
  const hasBegun = start <= times.now && times.subscription.subscription_status !== 'draft';
  if (item.billing_period === 'ONETIME' && hasBegun)
    throw notAllowed(`line item ${line.id} is charged once, and has been`, { field });
  const isWithPeriod = item.reset_usage === 'NEVER' && hasBegun;
  const periodEnd = item.running.end;
  if (isWithPeriod && requested !== null && toInstant(requested) !== periodEnd)
    throw invalid(
      field,
      `must be ${formatMs(periodEnd)}: the price of a meter that never resets changes with the period`,
    );
  const at = isWithPeriod ? formatMs(periodEnd) : requested;
  const change = item.billing_period === 'ONETIME' ? start : deriveLineEnd(line, { field, at }, times);
  const last = Math.min(line.end_date ? toInstant(line.end_date) : Infinity, times.end_ms ?? Infinity);
  if (change >= last) throw invalid(field, 'must lie before the end of the line item and of the subscription');
  return change;
}
