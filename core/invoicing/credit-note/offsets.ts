/**
 * Offsets the excess credit of a subscription change against open invoices (docs/rules/credit-notes.md, "Adjustments of changes"):
 * first the invoices with the credited charges, then the others, oldest first. The `rest` is the credit that no open invoice takes, because
 * the customer had paid it.
 */

import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { spread } from '../../foundation/spread.ts';
import { type AdjustmentValues, computeLineNet } from '../../rating/adjustment-fields.ts';
import type { Invoice } from '../invoice/record.ts';

type OpenInvoice = Pick<Invoice, 'id' | 'amount_remaining'>;
/** Credit of an invoice line after its discounts, with its tax. */
export type CreditedLine = {
  readonly invoice_id: string;
  readonly line_id: string;
  readonly amount: Decimal;
  readonly tax: Decimal;
};
export type CreditOffset = { readonly invoice_id: string; readonly amount: Decimal };
type CreditOffsetPlan = { readonly offsets: readonly CreditOffset[]; readonly rest: Decimal };

/** Distributes a credit over open invoices. `open` is sorted, oldest first. */
export function planOffsets(
  credit: Decimal,
  { open, credited }: { readonly open: readonly OpenInvoice[]; readonly credited: readonly CreditedLine[] },
): CreditOffsetPlan {
  const taken = new Map<string, Decimal>();
  let left = credit;
  const take = ({ id, amount_remaining }: OpenInvoice, at_most: Decimal) => {
    const before = taken.get(id) ?? ZERO;
    const amount = Decimal.min(left, at_most, new Decimal(amount_remaining).minus(before));
    if (!amount.gt(0)) return;
    taken.set(id, before.plus(amount));
    left = left.minus(amount);
  };
  for (const invoice of open) take(invoice, sumCreditOn(invoice.id, credited));
  for (const invoice of open) take(invoice, left);
  const offsets = open.flatMap(({ id }) => {
    const amount = taken.get(id);
    return amount ? [{ invoice_id: id, amount }] : [];
  });
  return { offsets, rest: left };
}

/** Sums the credits on lines of this invoice, including tax. */
export function sumCreditOn(invoice_id: string, credited: readonly CreditedLine[]): Decimal {
  return sumDecimals(
    credited.filter((line) => line.invoice_id === invoice_id).map(({ amount, tax }) => amount.plus(tax)),
  );
}

/** Line of an open invoice that a credit reduces: its charge after discounts and prepaid credits, and its tax. */
type ReducedLine = { readonly id: string; readonly amount: Decimal; readonly tax: Decimal };
type OffsetLine = ReducedLine;

/** Plans the credit note's lines: credited lines get their own credit first, then all share the rest in proportion to their charges. */
export function planOffsetLines(
  { invoice_id, amount }: CreditOffset,
  {
    lines,
    credited,
    currency,
  }: {
    readonly lines: readonly ReducedLine[];
    readonly credited: readonly CreditedLine[];
    readonly currency: string;
  },
): OffsetLine[] {
  const own = Decimal.min(amount, sumCreditOn(invoice_id, credited));
  const sumCreditOfLine = (id: string, part: 'amount' | 'tax') =>
    sumDecimals(credited.filter((one) => one.line_id === id).map((one) => one[part]));
  const ownWeights = lines.flatMap(({ id }) => [sumCreditOfLine(id, 'amount'), sumCreditOfLine(id, 'tax')]);
  const weights = lines.flatMap((line) => [line.amount, line.tax]);
  const ownParts = spread(own, ownWeights, currency);
  const others = spread(amount.minus(own), weights, currency);
  const parts = ownParts.map((part, index) => part.plus(others[index]!));
  const spent = lines.map(({ id }, index) => ({ id, amount: parts[2 * index]!, tax: parts[2 * index + 1]! }));
  return spent.filter((line) => line.amount.plus(line.tax).gt(0));
}

type CreditedLineAmounts = AdjustmentValues & { readonly amount: string; readonly tax_amount: string };

/**
 * Credit of a credit line: its amount after discounts, without the part that returns to prepaid lots, and its tax. Both
 * are not negative.
 */
export function computeLineCredit(line: CreditedLineAmounts): { amount: Decimal; tax: Decimal } {
  return { amount: computeLineNet(line).negated(), tax: new Decimal(line.tax_amount).negated() };
}

/** Line that charged usage. If several lines charged the same usage, they are listed with the newest first. */
type ChargedUsageLine = ReducedLine & { readonly invoice_id: string };

/** Divides a credit of usage among the lines that charged this usage, the newest first. Amount and tax are divided separately. */
export function splitUsageCredit(
  credit: { readonly amount: Decimal; readonly tax: Decimal },
  charged: readonly ChargedUsageLine[],
): CreditedLine[] {
  let { amount, tax } = credit;
  return charged.flatMap((line) => {
    const part = { amount: Decimal.min(amount, line.amount), tax: Decimal.min(tax, line.tax) };
    amount = amount.minus(part.amount);
    tax = tax.minus(part.tax);
    const credited = { invoice_id: line.invoice_id, line_id: line.id, ...part };
    return part.amount.plus(part.tax).gt(0) ? [credited] : [];
  });
}
