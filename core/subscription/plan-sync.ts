/**
 * What a subscription takes over from a plan whose prices have changed since (docs/rules/subscriptions.md, "Prices that the
 * plan gets later"). Lines of prices that have ended end, prices that are new get lines, and a price that the subscription
 * has overridden is left alone. What was billed stays as it is: nothing begins or ends in a time that is paid or invoiced.
 */
import { type BilledItem, type BilledSubscription, periodRule, runningPeriod } from '../billing/charges.ts';
import { Decimal } from '../decimal.ts';
import type { Price } from '../price/record.ts';
import { formatMs, instantOf, type Milliseconds } from '../time/instant.ts';
import { type Period, periodContaining } from '../time/period.ts';
import type { Subscription, SubscriptionLineItem } from './record.ts';

export type SyncQuestion = {
  readonly subscription: Pick<Subscription, 'currency' | 'subscription_status'> & {
    /** When it starts, and is charged for the first time, where that lies ahead. */
    readonly opens_at?: string | null;
  };
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
  readonly added: readonly {
    readonly price: Price;
    readonly start_date: string;
    readonly end_date: string | null;
    readonly quantity: string | null;
  }[];
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
    if (line.end_date && instantOf(line.end_date) <= instantOf(price.end_date)) return [];
    const start = instantOf(line.start_date);
    const end = endOf(itemOf(price, start), price, question);
    if (end === null || (line.end_date && instantOf(line.end_date) <= end)) return [];
    return [{ line, end_date: formatMs(Math.max(end, start)), is_void: end <= start }];
  });
}

/** When a line of a price that ends comes to its end: at its start if it has never lived. Null where it stays as it is. */
function endOf(item: BilledItem, price: Price, question: SyncQuestion): Milliseconds | null {
  const { current, subscription, now } = question;
  const { start_ms: start } = item;
  const priceEnd = instantOf(price.end_date!);
  // A draft is not charged: it is as if it were made now.
  const isDraft = subscription.subscription_status === 'draft';
  if (isDraft && priceEnd <= Math.max(start, now)) return start;
  // It is charged in full where it begins, and to no end.
  if (item.billing_period === 'ONETIME') return start > current.start && priceEnd <= start ? start : null;
  const end = isDraft ? priceEnd : Math.max(priceEnd, untouchableUntil(item, priceEnd, question));
  return end > start && standsAcrossPeriods(price, question) ? periodEndFrom(end, item, question) : end;
}

/** Until when a line is paid for, or invoiced, or cannot be cut. */
function untouchableUntil(item: BilledItem, priceEnd: Milliseconds, question: SyncQuestion): Milliseconds {
  const { current, subscription } = question;
  const { start_ms: start } = item;
  if (item.invoice_cadence === 'ARREAR') {
    const running = runningAt(current.start, item, question);
    if (running === undefined) return start;
    // Cut inside what is invoiced already, a period of its own that still runs would be due nowhere.
    return running.start < priceEnd && priceEnd <= current.start ? running.end : running.start;
  }
  // What begins inside the running period may have been charged with its opening.
  const isCharged = start <= current.start || (start < current.end && start < priceEnd);
  if (subscription.subscription_status === 'trialing' || subscription.opens_at || !isCharged) return start;
  return runningAt(current.end - 1, item, question)?.end ?? current.end;
}

export function itemOf(price: Price, start_ms: Milliseconds): BilledItem {
  return { ...price, price_type: price.type, start_ms, end_ms: null, reset_usage: null };
}

/** The period of an item that holds the instant, which is in the running period of the subscription or later. */
function runningAt(at: Milliseconds, item: BilledItem, { billed, current }: SyncQuestion): Period | undefined {
  const later = () => periodContaining(at, current.end, periodRule(billed)) ?? { start: at, end: at };
  return runningPeriod(item, { subscription: billed, current: at < current.end ? current : later(), now: at });
}

function periodEndFrom(at: Milliseconds, item: BilledItem, question: SyncQuestion): Milliseconds {
  const period = runningAt(at, item, question);
  return period === undefined || period.start === at ? at : period.end;
}

/** What a meter that never resets has counted stands in every period: two lines in one would charge it twice. */
function standsAcrossPeriods(price: Price, { reset_usage }: SyncQuestion): boolean {
  return price.meter_id !== null && reset_usage.get(price.meter_id) === 'NEVER';
}

function addedPrices(question: SyncQuestion, ended: PlanSync['ended']): PlanSync['added'] {
  const { plan_prices, overridden, subscription } = question;
  const known = lastKnown(question);
  const lineages = lineagesOf(question, ended);
  const added: PlanSync['added'][number][] = [];
  for (const price of plan_prices) {
    if (price.status !== 'published' || price.currency !== subscription.currency) continue;
    if (price.sequence <= (known.get(rootOf(price)) ?? 0) || overridden.has(rootOf(price))) continue;
    const ends = lineages.get(rootOf(price)) ?? [NONE_BEFORE];
    const next = ends.map((before) => successor(price, before, question));
    added.push(...next.flatMap((each) => each?.line ?? []));
    lineages.set(
      rootOf(price),
      ends.map((before, index) => next[index]?.lineage ?? before),
    );
  }
  return added;
}

/** By lineage the last price that has had a line: one before it without a line has been passed over, for good. */
function lastKnown({ plan_prices, lines }: SyncQuestion): Map<string, number> {
  const priceIds = new Set(lines.map(({ price_id }) => price_id));
  const known = plan_prices.filter(({ id }) => priceIds.has(id));
  return new Map(known.map((price) => [rootOf(price), price.sequence]));
}

/** A line of the last price of a lineage that the subscription has; there may be several. */
type Lineage = {
  readonly quantity: string | null;
  /** A successor begins where it ends: no instant is charged twice, none is free. Null where a successor begins anew. */
  readonly end: Milliseconds | null;
  /** It ended before the running period: what comes after it does not begin in a time that is invoiced. */
  readonly is_settled: boolean;
  /** It ended while its price was sold, or is charged once only: it gets no successor. */
  readonly is_last: boolean;
};
const NONE_BEFORE: Lineage = { quantity: null, end: null, is_settled: false, is_last: false };

type Successor = { line: PlanSync['added'][number]; lineage: Lineage };

function successor(price: Price, before: Lineage, question: SyncQuestion): Successor | null {
  if (before.is_last) return null;
  const isAnew = before.end === null || before.is_settled;
  const own = isAnew ? startOf(price, question) : priceStart(price, question);
  const start = Math.max(own, before.end ?? own);
  const end = price.end_date ? addedEnd(price, start, question) : null;
  const last = firstOf(end, question.billed.end_ms);
  if (last !== null && last <= start) return null;
  const quantity = before.quantity === null ? null : quantityAfter(before.quantity, price);
  return {
    line: { price, start_date: formatMs(start), end_date: end === null ? null : formatMs(end), quantity },
    lineage: { quantity, end, is_settled: false, is_last: price.billing_period === 'ONETIME' },
  };
}

/** Nothing of a line that is added now is paid yet. */
function addedEnd(price: Price, start: Milliseconds, question: SyncQuestion): Milliseconds {
  const end = instantOf(price.end_date!);
  if (end <= start || (price.invoice_cadence === 'ADVANCE' && !standsAcrossPeriods(price, question))) return end;
  return endOf(itemOf(price, start), price, question) ?? end;
}

function lineagesOf(question: SyncQuestion, ended: PlanSync['ended']): Map<string, Lineage[]> {
  const { plan_prices, lines } = question;
  const endsNow = new Map(ended.map((each) => [each.line.id, each]));
  const lineages = new Map<string, Lineage[]>();
  // In the order of their making: the lines of the last price are those that are followed.
  for (const price of plan_prices) {
    const before = lineages.get(rootOf(price)) ?? [];
    const here = lines.filter(({ price_id, status }) => price_id === price.id && status === 'published');
    const found = here.map((line) => {
      const now = endsNow.get(line.id);
      return now ? endedNow(now, before) : goneOn(line, price, question);
    });
    if (found.length > 0) lineages.set(rootOf(price), found);
  }
  return lineages;
}

/** What comes instead of a line that is taken out begins where this one followed another, or anew. */
function endedNow({ line, end_date, is_void }: PlanSync['ended'][number], before: readonly Lineage[]): Lineage {
  const end = instantOf(end_date);
  const isFree = is_void && !before.some((each) => each.end === end);
  return { quantity: line.quantity, end: isFree ? null : end, is_settled: false, is_last: false };
}

function goneOn({ quantity, end_date, billing_period }: SubscriptionLineItem, price: Price, { current }: SyncQuestion) {
  const end = end_date ? instantOf(end_date) : null;
  const hasLeft = end !== null && (!price.end_date || end < instantOf(price.end_date));
  const is_settled = end !== null && end < current.start;
  return { quantity, end, is_settled, is_last: hasLeft || billing_period === 'ONETIME' };
}

function quantityAfter(quantity: string, { min_quantity }: Price): string {
  return Decimal.max(quantity, min_quantity ?? 0).toFixed();
}

/** Not before what is invoiced already; what is paid in advance and is sold already begins with the next period. */
function startOf(price: Price, question: SyncQuestion): Milliseconds {
  const { subscription, billed, current, now } = question;
  const start = priceStart(price, question);
  if (subscription.subscription_status === 'draft')
    return start > now ? Math.max(start, billed.start_ms) : billed.start_ms;
  if (subscription.subscription_status === 'trialing' || subscription.opens_at) return Math.max(start, current.start);
  const isBehind = start <= now || start <= current.start;
  if (price.invoice_cadence === 'ADVANCE' || standsAcrossPeriods(price, question))
    return isBehind ? Math.max(current.end, billed.start_ms) : start;
  return Math.max(start, current.start);
}

function priceStart({ start_date }: Price, { now }: SyncQuestion): Milliseconds {
  return start_date ? instantOf(start_date) : now;
}

function firstOf(a: Milliseconds | null, b: Milliseconds | null): Milliseconds | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
