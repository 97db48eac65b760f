/**
 * What refunds of payments gave back of an invoice, line by line (docs/rules/credit-notes.md, "No more than was charged"). A refund
 * names no line: each charge has its share of it, by what it came to with tax.
 */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import type { Invoice, InvoiceLineItem } from '../invoice/record.ts';
import { roundMoney } from '../money.ts';

type Refunded = Pick<Invoice, 'refunded_amount' | 'amount_paid' | 'amount_due' | 'currency'>;
type Line = Pick<InvoiceLineItem, 'id' | 'amount' | 'line_item_discount' | 'invoice_level_discount' | 'tax_amount'>;

/** Of what was charged: not what credit notes gave back, nor what had been paid too much, or in part, which lowers what was paid. */
export function refundedByPayments(invoice: Pick<Invoice, 'refunded_amount'>, by_notes: Decimal): Decimal {
  return Decimal.max(ZERO, new Decimal(invoice.refunded_amount).minus(by_notes));
}

type Given = {
  readonly amount: Decimal;
  readonly discount: Decimal;
  readonly tax: Decimal;
  readonly credited: Decimal;
  readonly tax_credited: Decimal;
};

/** What refunds of payments may still give back of the charges, which changes, corrections and credit notes have lowered; and what was paid too much. */
export function refundableOf(invoice: Refunded, lines: readonly Given[], by_notes: Decimal): Decimal {
  const over = new Decimal(invoice.amount_paid).minus(invoice.amount_due);
  // Of a part: it is owed again.
  if (over.isNegative()) return new Decimal(invoice.amount_paid);
  const left = lines.flatMap(({ amount, discount, credited, tax, tax_credited }) => [
    Decimal.max(ZERO, amount.minus(discount).minus(credited)),
    Decimal.max(ZERO, tax.minus(tax_credited)),
  ]);
  return sumOf(left).plus(over).minus(new Decimal(invoice.refunded_amount).minus(by_notes));
}

/** After discounts and without tax, as a credit note says it. */
export function refundedOfLines(invoice: Refunded, lines: readonly Line[], by_notes: Decimal): Map<string, Decimal> {
  const refunded = refundedByPayments(invoice, by_notes);
  const charges = lines.filter(({ amount }) => new Decimal(amount).gt(0));
  const whole = sumOf(charges.map((line) => chargedBy(line).plus(line.tax_amount)));
  if (refunded.isZero() || !whole.gt(0)) return new Map();
  const shareOf = (line: Line) => {
    const charged = chargedBy(line);
    return Decimal.min(charged, roundMoney(charged.times(refunded).dividedBy(whole), invoice.currency));
  };
  return new Map(charges.map((line) => [line.id, shareOf(line)]));
}

function chargedBy({ amount, line_item_discount, invoice_level_discount }: Line): Decimal {
  return new Decimal(amount).minus(line_item_discount).minus(invoice_level_discount);
}
