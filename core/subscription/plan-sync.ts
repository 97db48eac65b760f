/**
 * What a subscription takes over from a plan whose prices have changed since (docs/rules/subscriptions.md, "Prices that the
 * plan gets later"). Lines of prices that have ended end, prices that are new get lines, and a price that the subscription
 * has overridden is left alone. What was billed stays as it is: nothing begins or ends in a time that is paid or invoiced.
 */
import { type BilledItem, type BilledSubscription, runningPeriod } from '../billing/charges.ts';
import { Decimal } from '../decimal.ts';
import type { Price } from '../price/record.ts';
import { formatMs, instantOf, type Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { Subscription, SubscriptionLineItem } from './record.ts';

export type SyncQuestion = {
  readonly subscription: Pick<Subscription, 'currency' | 'subscription_status'>;
  readonly billed: BilledSubscription;
  readonly current: Period;
  /** All of them, also those that have ended, in the order of their making. */
  readonly plan_prices: readonly Price[];
  readonly lines: readonly SubscriptionLineItem[];
  /** Prices of the plan, by the first of their lineage, that the subscription pays on terms of its own. */
  readonly overridden: ReadonlySet<string>;
  readonly reset_usage: ReadonlyMap<string, BilledItem['reset_usage']>;
  readonly now: Milliseconds;
};

export type PlanSync = {
  readonly synced_price_sequence: number;
  /** A line that would have lived no time is taken out. */
  readonly ended: readonly {
    readonly line: SubscriptionLineItem;
    readonly end_date: string;
    readonly is_void: boolean;
  }[];
  /** `quantity` is that of the line that it follows; null where it follows none. */
  readonly added: readonly { readonly price: Price; readonly start_date: string; readonly quantity: string | null }[];
};

export function planSync(question: SyncQuestion): PlanSync {
  const { plan_prices } = question;
  const ended = endedLines(question);
  return {
    synced_price_sequence: Math.max(0, ...plan_prices.map(({ sequence }) => sequence)),
    ended,
    added: addedPrices(question, ended),
  };
}

/** The first price of a lineage: what an override and a successor name. */
export const rootOf = (price: Pick<Price, 'id' | 'parent_price_id'>) => price.parent_price_id || price.id;

function endedLines(question: SyncQuestion): PlanSync['ended'] {
  const prices = new Map(question.plan_prices.map((price) => [price.id, price]));
  return question.lines.flatMap((line) => {
    const price = prices.get(line.price_id);
    if (!price?.end_date || line.status !== 'published') return [];
    const end = Math.max(instantOf(price.end_date), untouchableUntil(line, price, question));
    if (line.end_date && instantOf(line.end_date) <= end) return [];
    const start = instantOf(line.start_date);
    return [{ line, end_date: formatMs(Math.max(end, start)), is_void: end <= start }];
  });
}

/** Until when this line is paid for, or invoiced, or cannot be cut. */
function untouchableUntil(line: SubscriptionLineItem, price: Price, question: SyncQuestion): Milliseconds {
  const { billed, current, subscription, now } = question;
  const start = instantOf(line.start_date);
  // A draft is not charged: it is as if it were made now.
  if (subscription.subscription_status === 'draft') return start <= now ? Number.NEGATIVE_INFINITY : start;
  const item = { ...line, start_ms: start, end_ms: null, reset_usage: null };
  const running = (at: Milliseconds) =>
    runningPeriod(item, { subscription: billed, current: { ...current, start: at }, now: at });
  if (line.invoice_cadence === 'ARREAR')
    return standsAcrossPeriods(price, question) ? current.end : (running(current.start)?.start ?? start);
  const isCharged = subscription.subscription_status !== 'trialing' && start <= current.start;
  return isCharged ? (running(current.end - 1)?.end ?? current.end) : start;
}

/** What a meter that never resets has counted stands in every period: two lines in one would charge it twice. */
function standsAcrossPeriods(price: Price, { reset_usage }: SyncQuestion): boolean {
  return price.meter_id !== null && reset_usage.get(price.meter_id) === 'NEVER';
}

function addedPrices(question: SyncQuestion, ended: PlanSync['ended']): PlanSync['added'] {
  const { plan_prices, lines, overridden, subscription, billed } = question;
  const known = new Set(lines.map(({ price_id }) => price_id));
  const lineages = lineagesOf(question, ended);
  return plan_prices
    .filter((price) => price.status === 'published' && price.currency === subscription.currency)
    .filter((price) => !known.has(price.id) && !overridden.has(rootOf(price)))
    .flatMap((price) => {
      const before = lineages.get(rootOf(price));
      if (before?.has_left) return [];
      const start = Math.max(startOf(price, question), before?.end ?? Number.NEGATIVE_INFINITY);
      const end = firstOf(price.end_date ? instantOf(price.end_date) : null, billed.end_ms);
      if (end !== null && end <= start) return [];
      return [{ price, start_date: formatMs(start), quantity: before ? quantityAfter(before.line, price) : null }];
    });
}

/** The last line that the subscription has of a lineage. */
type Lineage = {
  readonly line: SubscriptionLineItem;
  /** A successor begins where it ends: no instant is charged twice, none is free. Null where it was taken out. */
  readonly end: Milliseconds | null;
  /** It ended while its price was sold: the subscription does not want it, and gets no successor of it. */
  readonly has_left: boolean;
};

function lineagesOf({ plan_prices, lines }: SyncQuestion, ended: PlanSync['ended']): Map<string, Lineage> {
  const prices = new Map(plan_prices.map((price) => [price.id, price]));
  const endsNow = new Map(ended.map((each) => [each.line.id, each]));
  const lineages = new Map<string, Lineage>();
  for (const line of [...lines].sort((a, b) => instantOf(a.start_date) - instantOf(b.start_date))) {
    const price = prices.get(line.price_id);
    if (price === undefined || line.status !== 'published') continue;
    const now = endsNow.get(line.id);
    const end_date = now?.end_date ?? line.end_date;
    const end = end_date && !now?.is_void ? instantOf(end_date) : null;
    const has_left = end !== null && (!price.end_date || end < instantOf(price.end_date));
    lineages.set(rootOf(price), { line, end, has_left });
  }
  return lineages;
}

function quantityAfter({ quantity }: SubscriptionLineItem, { min_quantity }: Price): string {
  return Decimal.max(quantity, min_quantity ?? 0).toFixed();
}

/** Not before what is invoiced already; what is paid in advance and is sold already begins with the next period. */
function startOf(price: Price, question: SyncQuestion): Milliseconds {
  const { subscription, billed, current, now } = question;
  const start = price.start_date ? instantOf(price.start_date) : now;
  if (subscription.subscription_status === 'draft')
    return start > now ? Math.max(start, billed.start_ms) : billed.start_ms;
  if (subscription.subscription_status === 'trialing') return Math.max(start, current.start);
  const isBehind = start <= now || start <= current.start;
  if (price.invoice_cadence === 'ADVANCE' || standsAcrossPeriods(price, question))
    return isBehind ? Math.max(current.end, billed.start_ms) : start;
  return Math.max(start, current.start);
}

function firstOf(a: Milliseconds | null, b: Milliseconds | null): Milliseconds | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
