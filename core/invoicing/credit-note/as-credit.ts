/**
 * Converts returned amounts to the form of a change's credit line: the amount before discounts, with its discounts and
 * tax (docs/rules/credit-notes.md, "No more than was charged").
 */

import type { LineTax } from '../../catalog/tax/line-tax.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { spread } from '../../foundation/spread.ts';
import type { LineDiscount } from '../../rating/discounts.ts';
import type { ReturnedAmount } from './refunded-lines.ts';

type CreditedCharge = {
  readonly amount: string;
  readonly line_item_discount?: string;
  readonly invoice_level_discount?: string;
  readonly prepaid_credits_applied?: string;
  readonly discounts?: readonly LineDiscount[] | null;
  readonly taxes?: readonly LineTax[] | null;
};

/** The amount after discounts, and the added tax, equal `returned` to the minor unit. */
export function toCredit<Charge extends CreditedCharge>(
  charge: Charge,
  returned: ReturnedAmount,
  currency: string,
): Charge {
  const { amount, line_item_discount = '0', invoice_level_discount = '0', discounts, taxes } = charge;
  const charged = new Decimal(amount).minus(line_item_discount).minus(invoice_level_discount);
  const toShare = (whole: string) =>
    roundMoney(new Decimal(whole).times(returned.amount).dividedBy(charged), currency).negated();
  const ofLine = toShare(line_item_discount);
  const ofInvoice = toShare(invoice_level_discount);
  return {
    ...charge,
    amount: ofLine.plus(ofInvoice).minus(returned.amount).toFixed(),
    line_item_discount: ofLine.toFixed(),
    invoice_level_discount: ofInvoice.toFixed(),
    prepaid_credits_applied: (returned.prepaid ?? ZERO).negated().toFixed(),
    ...(discounts
      ? { discounts: discounts.map((one) => ({ ...one, discount_amount: toShare(one.discount_amount).toFixed() })) }
      : {}),
    ...(taxes ? { taxes: shareTaxes(taxes, returned.tax, { toShare, currency }) } : {}),
  };
}

type CreditSharing = { readonly toShare: (whole: string) => Decimal; readonly currency: string };

/** Added tax returns as recorded. Included tax returns in proportion to the amount. */
function shareTaxes(taxes: readonly LineTax[], tax: Decimal, { toShare, currency }: CreditSharing): LineTax[] {
  const added = taxes.map((one) => new Decimal(one.tax_behavior === 'exclusive' ? one.tax_amount : '0'));
  const parts = spread(Decimal.min(tax, sumDecimals(added)), added, currency);
  return taxes.map((one, index) => {
    const given = one.tax_behavior === 'exclusive' ? parts[index]!.negated() : toShare(one.tax_amount);
    return { ...one, tax_amount: given.toFixed() };
  });
}
