/** The tax that the amounts of a credit note include (docs/rules/documents.md, "Credit notes"). */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { computeDiscountedAmount } from '../../rating/adjustment-fields.ts';
import type { InvoiceLineItem } from '../invoice/record.ts';

/** Amount of an invoice line that a note credits, and what earlier notes credited of it. */
type CreditedAmount = { readonly amount: Decimal; readonly before: Decimal };

/** Computes the note's share of a line's included tax. The shares of all notes of a line add up to its tax, because their sum is rounded. */
export function computeIncludedTax(line: InvoiceLineItem, { amount, before }: CreditedAmount): Decimal {
  const charge = computeDiscountedAmount(line);
  if (charge.isZero()) return ZERO;
  const taxUntil = (credited: Decimal) =>
    roundMoney(new Decimal(line.included_tax_amount).times(credited).div(charge), line.currency);
  return taxUntil(before.plus(amount)).minus(taxUntil(before));
}
