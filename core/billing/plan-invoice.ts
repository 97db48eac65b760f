/**
 * What should this period's invoice say? The one function behind preview, draft and recomputation, so that they cannot
 * disagree (docs/rules/invoices.md, "Preview and invoice agree"). Lines are rounded, then added up
 * (docs/rules/numbers.md, "Each line first, then the sum"). Charges that stand on another invoice that is not void are left
 * out (docs/rules/invoices.md, "Charged once"). What a line costs is in line-amount.ts.
 */
import { sumOf } from '../decimal.ts';
import { FarthingError } from '../error.ts';
import type { Period } from '../time/period.ts';
import { type BilledItem, type Charge, type ChargeQuestion, chargesDue } from './charges.ts';
import { type ClosedCharge, correctionsOf } from './late-events.ts';
import { fixedCharge, type MeasuredUsage, type PlannedLine, type PricedItem, usageCharge } from './line-amount.ts';
import { type Adjustments, type Totals, totalsOf } from './totals.ts';

export type InvoicePlan<Item extends PricedItem = PricedItem> = Totals & {
  readonly lines: readonly PlannedLine<Item>[];
};

export type InvoiceQuestion<Item extends PricedItem> = ChargeQuestion<Item> & {
  readonly currency: string;
  /** `chargeKey` of everything that stands on another invoice that is not void. */
  readonly invoiced: ReadonlySet<string>;
  /** By `chargeKey`, one answer for every usage charge of `openCharges`. */
  readonly usage: ReadonlyMap<string, MeasuredUsage>;
  /** Usage charges of final invoices whose events have grown since (docs/rules/invoices.md, "Late events"). */
  readonly closed: readonly ClosedCharge<Item>[];
  /** What stands between the lines and the total; nothing in this version (docs/rules/invoices.md, "Totals"). */
  readonly adjustments?: Adjustments;
};

/** What stands on an invoice, in this order: each step says its lines and sees those of the steps before. */
const LINE_STEPS = [linesOfCharges, linesOfLateEvents];

export function planInvoice<Item extends PricedItem>(question: InvoiceQuestion<Item>): InvoicePlan<Item> {
  let lines: readonly PlannedLine<Item>[] = [];
  for (const linesOf of LINE_STEPS) lines = [...lines, ...linesOf(question, lines)];
  const amounts = lines.map((line) => line.amount);
  return { lines, ...totalsOf(amounts, question.currency, question.adjustments) };
}

function linesOfCharges<Item extends PricedItem>(question: InvoiceQuestion<Item>): PlannedLine<Item>[] {
  return openCharges(question).map((charge) => lineOf(charge, question.currency, question.usage));
}

/** What is given back lowers what stands on the invoice already, to 0 at most. */
function linesOfLateEvents<Item extends PricedItem>(
  { closed, currency }: InvoiceQuestion<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  return correctionsOf(closed, { currency, available: sumOf(before.map((line) => line.amount)) });
}

/** The charges that are due and stand on no other invoice: what the usage answers are gathered for. */
export function openCharges<Item extends BilledItem>(
  question: ChargeQuestion<Item> & { readonly invoiced: ReadonlySet<string> },
): Charge<Item>[] {
  return chargesDue(question).filter((charge) => !question.invoiced.has(chargeKey(charge.item.id, charge.service)));
}

/** A charge is known by its line item and its exact service period. */
export function chargeKey(lineItemId: string, service: Period): string {
  return `${lineItemId}/${service.start}/${service.end}`;
}

function lineOf<Item extends PricedItem>(
  charge: Charge<Item>,
  currency: string,
  usage: ReadonlyMap<string, MeasuredUsage>,
): PlannedLine<Item> {
  const { item, service } = charge;
  const line = { item, service, display_name: item.display_name, parent_line_item_id: null };
  if (charge.usage_window === null) return { ...line, ...fixedCharge(item, charge.share, currency) };
  const measured = usage.get(chargeKey(item.id, service));
  // A failed usage read is an error (docs/rules/usage.md, "Never a quiet zero").
  if (measured === undefined) throw new FarthingError('system_error', `no usage was read for line item ${item.id}`);
  return { ...line, ...usageCharge(item, charge.usage_window, { measured, currency }) };
}
