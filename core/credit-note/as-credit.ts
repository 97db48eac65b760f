/**
 * What credit notes gave back of a charge, as the line of a change would say it: before its discounts, with the discounts and the
 * tax that went with it (docs/rules/credit-notes.md, "No more than was charged").
 */
import type { LineDiscount } from '../coupon/discounts.ts';
import { Decimal } from '../decimal.ts';
import { roundMoney } from '../money.ts';

type TaxOfLine = { readonly tax_amount: string };
export type CreditedCharge = {
  readonly amount: string;
  readonly line_item_discount?: string;
  readonly invoice_level_discount?: string;
  readonly discounts?: readonly LineDiscount[] | null;
  readonly taxes?: readonly TaxOfLine[] | null;
};

/** `noted`: what the notes gave back without tax, after discounts. */
export function asCredit<Charge extends CreditedCharge>(charge: Charge, noted: Decimal, currency: string): Charge {
  const { amount, line_item_discount = '0', invoice_level_discount = '0', discounts, taxes } = charge;
  const charged = new Decimal(amount).minus(line_item_discount).minus(invoice_level_discount);
  const shareOf = (whole: string) =>
    roundMoney(new Decimal(whole).times(noted).dividedBy(charged), currency).negated().toFixed();
  return {
    ...charge,
    amount: shareOf(amount),
    line_item_discount: shareOf(line_item_discount),
    invoice_level_discount: shareOf(invoice_level_discount),
    ...(discounts
      ? { discounts: discounts.map((one) => ({ ...one, discount_amount: shareOf(one.discount_amount) })) }
      : {}),
    ...(taxes ? { taxes: taxes.map((tax) => ({ ...tax, tax_amount: shareOf(tax.tax_amount) })) } : {}),
  };
}
