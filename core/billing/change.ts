/**
 * What a change inside a period credits and charges (docs/rules/proration.md, "Changes inside a period"). Of a line that ends
 * earlier than it was charged for: what its unused time costs, never more than was billed for it and not given back before.
 * Of a line that begins: its charge from then to the end of its period. A line whose periods are shorter than the subscription's
 * was charged for several of them at once, and so is one that follows it: each of them is a line. Only what is fixed and charged in advance; everything
 * else is charged for the time that it served when its period ends.
 */
import { Decimal, ZERO } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import type { Milliseconds } from '../time/instant.ts';
import { type Period, periodContaining } from '../time/period.ts';
import {
  type BilledSubscription,
  computeCharge,
  type DueCharge,
  hasOwnPeriods,
  listChargedPeriods,
  periodRule,
} from './charges.ts';
import { type BilledTotal, computeCreditAdjustments } from './credit-adjustments.ts';
import { fixedCharge, type PlannedLine, type PricedItem } from './line-amount.ts';
import { computeRemainingShare } from './proration.ts';

/** What was billed for an item in one of its periods, by final invoices. */
export type PreviouslyBilled = {
  readonly amount: Decimal;
  /** What of it was given back by earlier changes. */
  readonly credited: Decimal;
  /** What it came to before somebody edited it by hand; as it was billed where nobody did. */
  readonly computed?: Decimal;
  /** Until when it was charged, which may be the day of a cancellation; null where it was not. */
  readonly until_ms: Milliseconds | null;
  /** The invoice line that charged it; null where none did. */
  readonly invoice_line_item_id: string | null;
  /** With the discounts and the tax that went with what is left of it. */
  readonly billed?: BilledTotal;
};

export type EndingLineItem<Item extends PricedItem = PricedItem> = {
  /** As it was before the change. */
  readonly item: Item;
  readonly at: Milliseconds;
  billedIn(period: Period): PreviouslyBilled;
};

/** Of a line whose end is taken back: what was charged until the end, and is charged on to the end of the period now. */
export type ResumptionInput<Item extends PricedItem = PricedItem> = {
  /** Without the end that it had. */
  readonly subscription: BilledSubscription;
  readonly current: Period;
  readonly currency: string;
  readonly ended_ms: Milliseconds;
  /** With what was billed for each in a period of it. */
  readonly items: readonly PreviouslyBilledItem<Item>[];
};

type PreviouslyBilledItem<Item extends PricedItem> = {
  readonly item: Item;
  billedIn(period: Period): PreviouslyBilled;
};

/** What was billed only up to the end is charged from there on; what was billed in full, or not at all, is not. */
export function planResumptionLines<Item extends PricedItem>(input: ResumptionInput<Item>): PlannedLine<Item>[] {
  const { subscription, current } = input;
  return input.items.flatMap(({ item, billedIn }) => {
    // What is charged once is not charged on.
    if (!isBilledImmediately(item) || item.billing_period === 'ONETIME') return [];
    const periods = listChargedPeriods(item, { subscription, current, from: current.start });
    return periods.flatMap((period) => resumedLine(item, { period, billed: billedIn(period) }, input) ?? []);
  });
}

/**
 * Of a line that a change ended while a cancellation without credits was scheduled: what was charged for the time behind that
 * cancellation was not given back by the change. Once it is taken back, what came in the place of the line pays for that time.
 */
export function planResumptionCredits<Item extends PricedItem>(input: ResumptionInput<Item>): PlannedLine<Item>[] {
  const { subscription, current, currency, ended_ms } = input;
  return input.items.flatMap(({ item, billedIn }) => {
    if (item.end_ms === null || item.end_ms > ended_ms) return [];
    const deriveBilled = (period: Period) => {
      const served = computeCharge(item, period, subscription);
      const servedCost = served === null ? ZERO : computeCost(served, currency);
      const billed = billedIn(period);
      return { ...billed, credited: billed.credited.plus(servedCost) };
    };
    const ending = { item: { ...item, end_ms: null }, at: ended_ms, billedIn: deriveBilled };
    return creditLines(ending, { subscription, current, currency });
  });
}

export type LineChangeInput<Item extends PricedItem = PricedItem> = {
  readonly subscription: BilledSubscription;
  readonly current: Period;
  readonly currency: string;
  readonly endings: readonly EndingLineItem<Item>[];
  readonly beginnings: readonly Item[];
};

/** Credits first, then charges, each in the order in which they were given. */
export function planChangeLines<Item extends PricedItem>(input: LineChangeInput<Item>): PlannedLine<Item>[] {
  const credits = input.endings.flatMap((ending) => creditLines(ending, input));
  return [...credits, ...input.beginnings.flatMap((item) => chargeLines(item, input))];
}

/** What may be given back: no more than was billed less what was given back before, and never less than nothing. */
export function cappedCredit(
  potential: Decimal,
  { amount, credited }: Pick<PreviouslyBilled, 'amount' | 'credited'>,
): Decimal {
  return Decimal.max(ZERO, Decimal.min(potential, amount.minus(credited)));
}

/** Whether a change of the line is settled at once. */
export function isBilledImmediately({ price_type, invoice_cadence }: PricedItem): boolean {
  return price_type === 'FIXED' && invoice_cadence === 'ADVANCE';
}

type RunningSubscription = Pick<LineChangeInput, 'subscription' | 'current'>;

/** Until when a line was, or will be, charged in advance by the invoices up to the running period; null where by none of them. */
export function computeChargedUntil(
  item: PricedItem,
  at: Milliseconds,
  running: RunningSubscription,
): Milliseconds | null {
  const periods = isBilledImmediately(item) ? listChargedPeriods(item, { ...running, from: at }) : [];
  const ends = periods.map((period) => computeCharge(item, period, running.subscription)?.service.end ?? 0);
  const last = Math.max(...ends);
  return item.billing_period !== 'ONETIME' && last > at ? last : null;
}

/** Where the next whole period begins of a line that begins inside one; null where a period begins with the line. */
export function nextWholePeriod(item: PricedItem, { subscription, current }: RunningSubscription): Milliseconds | null {
  if (item.billing_period === 'ONETIME' || hasOwnPeriods(item, subscription)) return null;
  const rule = { ...periodRule(subscription), subscription_end: null };
  const period = periodContaining(item.start_ms, Math.min(item.start_ms, current.start), rule);
  return period === undefined || period.start >= item.start_ms ? null : period.end;
}

type CreditLineInput = Pick<LineChangeInput, 'subscription' | 'current' | 'currency'>;

function creditLines<Item extends PricedItem>(
  ending: EndingLineItem<Item>,
  input: CreditLineInput,
): PlannedLine<Item>[] {
  const { item, at } = ending;
  // What is charged once is not given back.
  if (!isBilledImmediately(item) || item.billing_period === 'ONETIME') return [];
  const { subscription, current } = input;
  const periods = listChargedPeriods(item, { subscription, current, from: at });
  return periods.flatMap((period) => creditLine(ending, period, input) ?? []);
}

function creditLine<Item extends PricedItem>(
  { item, at, billedIn }: EndingLineItem<Item>,
  period: Period,
  input: CreditLineInput,
): PlannedLine<Item> | null {
  const billed = billedIn(period);
  const whole = computeCharge(item, period, endingAt(billed.until_ms, input.subscription));
  if (!whole || at >= whole.service.end) return null;
  const served = computeCharge({ ...item, end_ms: at }, period, input.subscription);
  const unused = fixedCharge(item, computeRemainingShare(whole.share, served?.share), input.currency);
  const amount = cappedCredit(applyAgreedRate(unused.amount, billed, input.currency), billed);
  if (amount.isZero()) return null;
  return {
    item,
    service: { start: Math.max(at, whole.service.start), end: whole.service.end },
    display_name: `${item.display_name} (unused time)`,
    parent_line_item_id: billed.invoice_line_item_id,
    quantity: unused.quantity,
    amount: amount.negated(),
    ...(billed.billed ? { credit_adjustments: computeCreditAdjustments(amount, billed.billed, input.currency) } : {}),
    computed_from: {
      ...unused.computed_from,
      kind: 'unused_time',
      reason: 'unused_time: it was charged in advance, and ended by a change',
    },
  };
}

/** What somebody has agreed on by hand holds for each part of the time (docs/rules/invoices.md, "Edits"). */
function applyAgreedRate(cost: Decimal, { amount, computed = amount }: PreviouslyBilled, currency: string): Decimal {
  if (computed.eq(amount)) return cost;
  return computed.isZero() ? ZERO : roundMoney(cost.times(amount).dividedBy(computed), currency);
}

function endingAt(until_ms: Milliseconds | null, subscription: BilledSubscription): BilledSubscription {
  if (until_ms === null) return subscription;
  return { ...subscription, end_ms: Math.min(until_ms, subscription.end_ms ?? until_ms) };
}

function resumedLine<Item extends PricedItem>(
  item: Item,
  { period, billed }: { period: Period; billed: PreviouslyBilled },
  input: ResumptionInput<Item>,
): PlannedLine<Item> | null {
  if (billed.invoice_line_item_id === null) return null;
  const { subscription, currency, ended_ms } = input;
  const whole = computeCharge(item, period, subscription);
  const served = computeCharge(item, period, { ...subscription, end_ms: ended_ms });
  if (!whole || !served || served.service.end >= whole.service.end) return null;
  const amount = applyAgreedRate(computeCost(whole, currency), billed, currency).minus(
    billed.amount.minus(billed.credited),
  );
  if (amount.lte(0)) return null;
  const rest = fixedCharge(item, computeRemainingShare(whole.share, served.share), currency);
  const service = { start: served.service.end, end: whole.service.end };
  const computed_from = {
    ...rest.computed_from,
    kind: 'resumed' as const,
    reason: 'resumed: it was charged up to an end that was taken back',
  };
  return { ...rest, computed_from, item, service, display_name: item.display_name, parent_line_item_id: null, amount };
}

function chargeLines<Item extends PricedItem>(item: Item, input: LineChangeInput<Item>): PlannedLine<Item>[] {
  const { subscription, current, currency } = input;
  // What begins later is charged by the invoice of its period.
  if (!isBilledImmediately(item) || item.start_ms >= current.end) return [];
  return listChargedPeriods(item, { subscription, current, from: item.start_ms }).flatMap((period) => {
    const charge = computeCharge(item, period, subscription);
    if (!charge) return [];
    const priced = fixedCharge(item, charge.share, currency);
    return [{ ...priced, item, service: charge.service, display_name: item.display_name, parent_line_item_id: null }];
  });
}

function computeCost<Item extends PricedItem>({ item, share }: DueCharge<Item>, currency: string): Decimal {
  return fixedCharge(item, share, currency).amount;
}
