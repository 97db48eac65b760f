/**
 * What a change inside a period credits and charges (docs/rules/proration.md, "Changes inside a period"). Of a line that ends
 * earlier than it was charged for: what its unused time costs, never more than was billed for it and not given back before.
 * Of a line that begins: its charge from then to the end of its period. Only what is fixed and charged in advance; everything
 * else is charged for the time that it served when its period ends.
 *
 * What a part of a period costs is what all of it costs less what the rest costs, each rounded as on an invoice: so the parts
 * add up to the whole, whatever was changed in between.
 */
import { Decimal, ZERO } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import { type BilledSubscription, chargeIn, runningPeriod } from './charges.ts';
import { fixedCharge, type PlannedLine, type PricedItem } from './line-amount.ts';

/** What was billed for an item in one of its periods, by final invoices. */
export type BilledBefore = {
  readonly amount: Decimal;
  /** What of it was given back by earlier changes. */
  readonly credited: Decimal;
  /** The invoice line that charged it; null where none did. */
  readonly invoice_line_item_id: string | null;
};

export type Ending<Item extends PricedItem = PricedItem> = {
  /** As it was before the change. */
  readonly item: Item;
  readonly at: Milliseconds;
  readonly billed: BilledBefore;
};

/** Of a line whose end is taken back: what was charged until the end, and is charged on to the end of the period now. */
export type ResumedQuestion<Item extends PricedItem = PricedItem> = {
  /** Without the end that it had. */
  readonly subscription: BilledSubscription;
  readonly current: Period;
  readonly currency: string;
  readonly ended_ms: Milliseconds;
  /** With what was billed for each in its period. */
  readonly items: readonly { readonly item: Item; readonly billed: BilledBefore }[];
};

/** What was billed only up to the end is charged from there on; what was billed in full, or not at all, is not. */
export function linesOfResumption<Item extends PricedItem>(question: ResumedQuestion<Item>): PlannedLine<Item>[] {
  return question.items.flatMap(({ item, billed }) => resumedLine(item, billed, question) ?? []);
}

export type ChangeQuestion<Item extends PricedItem = PricedItem> = {
  readonly subscription: BilledSubscription;
  readonly current: Period;
  readonly currency: string;
  readonly endings: readonly Ending<Item>[];
  readonly beginnings: readonly Item[];
};

/** Credits first, then charges, each in the order in which they were given. */
export function linesOfChange<Item extends PricedItem>(question: ChangeQuestion<Item>): PlannedLine<Item>[] {
  const credits = question.endings.flatMap((ending) => creditLine(ending, question) ?? []);
  return [...credits, ...question.beginnings.flatMap((item) => chargeLine(item, question) ?? [])];
}

/** What may be given back: no more than was billed less what was given back before, and never less than nothing. */
export function cappedCredit(
  potential: Decimal,
  { amount, credited }: Pick<BilledBefore, 'amount' | 'credited'>,
): Decimal {
  return Decimal.max(ZERO, Decimal.min(potential, amount.minus(credited)));
}

/** Whether a change of the line is settled at once. */
export function isSettledAtOnce({ price_type, invoice_cadence }: PricedItem): boolean {
  return price_type === 'FIXED' && invoice_cadence === 'ADVANCE';
}

/** The period of the item in which an instant lies, as far as it is charged in advance. */
export function periodOf(
  item: PricedItem,
  at: Milliseconds,
  { subscription, current }: Pick<ChangeQuestion, 'subscription' | 'current'>,
): Period | undefined {
  return runningPeriod(item, { subscription, current, now: at });
}

function creditLine<Item extends PricedItem>(
  { item, at, billed }: Ending<Item>,
  question: ChangeQuestion<Item>,
): PlannedLine<Item> | null {
  // What is charged once is not given back.
  if (!isSettledAtOnce(item) || item.billing_period === 'ONETIME') return null;
  const period = periodOf(item, at, question);
  const whole = period && chargeIn(item, period, question.subscription);
  if (!period || !whole || at >= whole.service.end) return null;
  const served = chargeIn({ ...item, end_ms: at }, period, question.subscription);
  const full = fixedCharge(item, whole.share, question.currency);
  const kept = served === null ? ZERO : fixedCharge(item, served.share, question.currency).amount;
  const amount = cappedCredit(full.amount.minus(kept), billed);
  if (amount.isZero()) return null;
  const part_ms = whole.share.part_ms - (served?.share.part_ms ?? 0);
  const unused = fixedCharge(item, { ...whole.share, part_ms }, question.currency);
  return {
    item,
    service: { start: Math.max(at, whole.service.start), end: whole.service.end },
    display_name: `${item.display_name} (unused time)`,
    parent_line_item_id: billed.invoice_line_item_id,
    quantity: unused.quantity,
    amount: amount.negated(),
    computed_from: {
      ...unused.computed_from,
      reason: 'unused_time: it was charged in advance, and ended by a change',
    },
  };
}

function resumedLine<Item extends PricedItem>(
  item: Item,
  billed: BilledBefore,
  question: ResumedQuestion<Item>,
): PlannedLine<Item> | null {
  if (!isSettledAtOnce(item) || item.billing_period === 'ONETIME' || billed.invoice_line_item_id === null) return null;
  const { subscription, currency, ended_ms } = question;
  const period = periodOf(item, Math.max(item.start_ms, question.current.start), question);
  const whole = period && chargeIn(item, period, subscription);
  const served = period && chargeIn(item, period, { ...subscription, end_ms: ended_ms });
  if (!whole || !served || served.service.end >= whole.service.end) return null;
  const full = fixedCharge(item, whole.share, currency).amount;
  const amount = full.minus(billed.amount.minus(billed.credited));
  if (amount.lte(0)) return null;
  const part_ms = whole.share.part_ms - served.share.part_ms;
  const rest = fixedCharge(item, { ...whole.share, part_ms }, currency);
  const service = { start: served.service.end, end: whole.service.end };
  return { ...rest, item, service, display_name: item.display_name, parent_line_item_id: null, amount };
}

function chargeLine<Item extends PricedItem>(item: Item, question: ChangeQuestion<Item>): PlannedLine<Item> | null {
  // What begins later is charged by the invoice of its period.
  if (!isSettledAtOnce(item) || item.start_ms >= question.current.end) return null;
  const period = periodOf(item, item.start_ms, question);
  const charge = period && chargeIn(item, period, question.subscription);
  if (!charge) return null;
  return {
    ...fixedCharge(item, charge.share, question.currency),
    item,
    service: charge.service,
    display_name: item.display_name,
    parent_line_item_id: null,
  };
}
