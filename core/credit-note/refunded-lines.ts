/**
 * What refunds of payments gave back of an invoice, line by line (docs/rules/credit-notes.md, "No more than was charged"). A refund
 * names no line: each charge has its share of it, by what it came to with tax.
 */
import { Decimal, sumOf } from '../decimal.ts';
import type { Invoice, InvoiceLineItem } from '../invoice/record.ts';
import { roundMoney } from '../money.ts';
import { refundedByPayments } from './left-to-give-back.ts';

type Refunded = Pick<Invoice, 'refunded_amount' | 'currency'>;
type Line = Pick<InvoiceLineItem, 'id' | 'amount' | 'line_item_discount' | 'invoice_level_discount' | 'tax_amount'>;

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
