/**
 * A change inside a period credits ended lines and charges new ones (docs/rules/proration.md, "Changes inside a period"). A line that ends
 * early credits the cost of its unused time, capped at the billed amount net of earlier credits. A new line is charged from its start to
 * the end of its period. A line with periods shorter than the subscription's was charged for several of them at once, and the line that
 * replaces it is charged likewise: each period becomes one invoice line. This file handles only fixed charges in advance; all others are
 * charged in arrears for the time served.
 */
import { Decimal, ZERO } from '../foundation/decimal.ts';
import { roundMoney } from '../foundation/money.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import { type Period, periodContaining } from '../foundation/time/period.ts';
import { type BilledItemLine, computeBilledBefore, type PreviouslyBilled } from './billed-before.ts';
import {
  type BilledSubscription,
  computeCharge,
  type DueCharge,
  hasOwnPeriods,
  listChargedPeriods,
  periodRule,
} from './charges.ts';
import { computeCreditAdjustments } from './credit-adjustments.ts';
import { type PlannedLine, type PricedItem, priceFixedCharge } from './line-amount.ts';
import { computeRemainingShare } from './proration.ts';

export type EndingLineItem<Item extends PricedItem = PricedItem> = {
  /** State of the item before the change. */
  readonly item: Item;
  readonly at: Milliseconds;
  readonly billed_lines: readonly BilledItemLine[];
};

/** Input for a line whose scheduled end is revoked: it was charged until that end, and is now charged to the end of the period. */
type ResumptionInput<Item extends PricedItem = PricedItem> = {
  /** Subscription without the revoked end. */
  readonly subscription: BilledSubscription;
  readonly current: Period;
  readonly currency: string;
  readonly ended_ms: Milliseconds;
  readonly items: readonly PreviouslyBilledItem<Item>[];
};

type PreviouslyBilledItem<Item extends PricedItem> = {
  readonly item: Item;
  readonly billed_lines: readonly BilledItemLine[];
};

/**
 * Charges the time after the revoked end for items that were billed only up to that end. Items that were billed in full, or not at all,
 * need no charge.
 */
export function planResumptionLines<Item extends PricedItem>(input: ResumptionInput<Item>): PlannedLine<Item>[] {
  return input.items.flatMap(({ item, billed_lines }) =>
    listAdvancePeriods(item, input, input.current.start).flatMap((period) => {
      const billed = computeBilledBefore(period, billed_lines);
      return resumedLine(item, { period, billed }, input) ?? [];
    }),
  );
}

/**
 * Credits lines that a change ended while a cancellation without credits was scheduled. The change did not credit the time after that
 * cancellation. If the cancellation is revoked, the new lines are charged for that time, so the ended lines must credit it.
 */
export function planResumptionCredits<Item extends PricedItem>(input: ResumptionInput<Item>): PlannedLine<Item>[] {
  const { subscription, currency, ended_ms } = input;
  return input.items.flatMap(({ item, billed_lines }) => {
    if (item.end_ms === null || item.end_ms > ended_ms) return [];
    const endless = { ...item, end_ms: null };
    return listAdvancePeriods(endless, input, ended_ms).flatMap((period) => {
      const served = computeCharge(item, period, subscription);
      const servedCost = served === null ? ZERO : computeCost(served, currency);
      const before = computeBilledBefore(period, billed_lines);
      const billed = { ...before, credited: before.credited.plus(servedCost) };
      return creditLine({ item: endless, at: ended_ms }, { period, billed }, input) ?? [];
    });
  });
}

export type LineChangeInput<Item extends PricedItem = PricedItem> = {
  readonly subscription: BilledSubscription;
  readonly current: Period;
  readonly currency: string;
  readonly endings: readonly EndingLineItem<Item>[];
  readonly beginnings: readonly Item[];
};

/** Credits first, then charges, each in input order. */
export function planChangeLines<Item extends PricedItem>(input: LineChangeInput<Item>): PlannedLine<Item>[] {
  const credits = input.endings.flatMap(({ item, at, billed_lines }) =>
    listAdvancePeriods(item, input, at).flatMap((period) => {
      const billed = computeBilledBefore(period, billed_lines);
      return creditLine({ item, at }, { period, billed }, input) ?? [];
    }),
  );
  return [...credits, ...input.beginnings.flatMap((item) => chargeLines(item, input))];
}

/** Caps a credit at the billed amount net of earlier credits; never below 0. */
export function cappedCredit(
  potential: Decimal,
  { amount, credited }: Pick<PreviouslyBilled, 'amount' | 'credited'>,
): Decimal {
  return Decimal.max(ZERO, Decimal.min(potential, amount.minus(credited)));
}

export function isBilledImmediately({ price_type, invoice_cadence }: PricedItem): boolean {
  return price_type === 'FIXED' && invoice_cadence === 'ADVANCE';
}

type RunningSubscription = Pick<LineChangeInput, 'subscription' | 'current'>;

/**
 * Finds the end of the last period that invoices up to the current one charge the item for in advance. Null if no such period ends after
 * `at`.
 */
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

/** Start of the next whole period for a line that begins inside one; null if the line begins with a period. */
export function nextWholePeriod(item: PricedItem, { subscription, current }: RunningSubscription): Milliseconds | null {
  if (item.billing_period === 'ONETIME' || hasOwnPeriods(item, subscription)) return null;
  const rule = { ...periodRule(subscription), subscription_end: null };
  const period = periodContaining(item.start_ms, Math.min(item.start_ms, current.start), rule);
  return period === undefined || period.start >= item.start_ms ? null : period.end;
}

/**
 * Lists the periods that were charged in advance and end after `from`. A one-time charge has none, because it is never credited and never
 * resumes.
 */
function listAdvancePeriods(item: PricedItem, running: RunningSubscription, from: Milliseconds): Period[] {
  if (!isBilledImmediately(item) || item.billing_period === 'ONETIME') return [];
  const { subscription, current } = running;
  return listChargedPeriods(item, { subscription, current, from });
}

type BilledPeriod = { readonly period: Period; readonly billed: PreviouslyBilled };

function creditLine<Item extends PricedItem>(
  { item, at }: Pick<EndingLineItem<Item>, 'item' | 'at'>,
  { period, billed }: BilledPeriod,
  input: Pick<LineChangeInput, 'subscription' | 'currency'>,
): PlannedLine<Item> | null {
  const whole = computeCharge(item, period, endingAt(billed.until_ms, input.subscription));
  if (!whole || at >= whole.service.end) return null;
  const served = computeCharge({ ...item, end_ms: at }, period, input.subscription);
  const unused = priceFixedCharge(item, computeRemainingShare(whole.share, served?.share), input.currency);
  const amount = cappedCredit(applyAgreedRate(unused.amount, billed, input.currency), billed);
  if (amount.isZero()) return null;
  return {
    item,
    service: { start: Math.max(at, whole.service.start), end: whole.service.end },
    display_name: `${item.display_name} (unused time)`,
    parent_line_item_id: billed.invoice_line_item_id,
    quantity: unused.quantity,
    amount: amount.negated(),
    credit_adjustments: computeCreditAdjustments(amount, billed.billed, input.currency),
    computed_from: {
      ...unused.computed_from,
      kind: 'unused_time',
      reason: 'unused_time: it was charged in advance, and ended by a change',
    },
  };
}

/** Applies a manually edited amount pro rata to a part of the billed time (docs/rules/invoices.md, "Edits"). */
function applyAgreedRate(cost: Decimal, { amount, computed }: PreviouslyBilled, currency: string): Decimal {
  if (computed.eq(amount)) return cost;
  return computed.isZero() ? ZERO : roundMoney(cost.times(amount).dividedBy(computed), currency);
}

function endingAt(until_ms: Milliseconds | null, subscription: BilledSubscription): BilledSubscription {
  if (until_ms === null) return subscription;
  return { ...subscription, end_ms: Math.min(until_ms, subscription.end_ms ?? until_ms) };
}

function resumedLine<Item extends PricedItem>(
  item: Item,
  { period, billed }: BilledPeriod,
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
  const rest = priceFixedCharge(item, computeRemainingShare(whole.share, served.share), currency);
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
  // A line that begins in a later period is charged by the invoice of that period.
  if (!isBilledImmediately(item) || item.start_ms >= current.end) return [];
  return listChargedPeriods(item, { subscription, current, from: item.start_ms }).flatMap((period) => {
    const charge = computeCharge(item, period, subscription);
    if (!charge) return [];
    const priced = priceFixedCharge(item, charge.share, currency);
    return [{ ...priced, item, service: charge.service, display_name: item.display_name, parent_line_item_id: null }];
  });
}

function computeCost<Item extends PricedItem>({ item, share }: DueCharge<Item>, currency: string): Decimal {
  return priceFixedCharge(item, share, currency).amount;
}
