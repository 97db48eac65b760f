/**
 * Converts a returned amount to a credit line, as a subscription change writes it: the amount before discounts, with its discounts and
 * tax (docs/rules/credit-notes.md, "No more than was charged").
 */

import type { LineTax } from '../../catalog/tax/line-tax.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { spread } from '../../foundation/spread.ts';
import {
  buildAdjustments,
  computeDiscountedAmount,
  formatAdjustments,
  type LineAdjustmentField,
  parseAdjustments,
  sumDiscounts,
} from '../../rating/adjustment-fields.ts';
import type { LineDiscount } from '../../rating/discounts.ts';
import type { ReturnedAmount } from './refunded-lines.ts';

type CreditedCharge = { readonly [Field in LineAdjustmentField]?: string } & {
  readonly amount: string;
  readonly discounts?: readonly LineDiscount[] | null;
  readonly taxes?: readonly LineTax[] | null;
};

/** Builds the credit for a returned amount: its amount after discounts and its added tax equal those of `returned`, to the minor unit. */
export function toCredit<Charge extends CreditedCharge>(
  charge: Charge,
  returned: ReturnedAmount,
  currency: string,
): Charge {
  const { amount, discounts, taxes } = charge;
  const before = parseAdjustments(charge);
  const charged = computeDiscountedAmount({ ...before, amount });
  const toShare = (whole: Decimal | string) =>
    roundMoney(new Decimal(whole).times(returned.amount).dividedBy(charged), currency).negated();
  const shares = {
    ...buildAdjustments((field) => toShare(before[field])),
    prepaid_credits_applied: (returned.prepaid ?? ZERO).negated(),
  };
  return {
    ...charge,
    amount: sumDiscounts(shares).minus(returned.amount).toFixed(),
    ...formatAdjustments(shares),
    ...(discounts
      ? { discounts: discounts.map((one) => ({ ...one, discount_amount: toShare(one.discount_amount).toFixed() })) }
      : {}),
    ...(taxes ? { taxes: shareTaxes(taxes, returned.tax, { toShare, currency }) } : {}),
  };
}

type CreditSharing = { readonly toShare: (whole: string) => Decimal; readonly currency: string };

/**
 * Computes the credit of each tax of the line. The returned `tax` is divided among the taxes that were added to the amount. A tax that the
 * amount includes is credited in proportion to the returned amount.
 */
function shareTaxes(taxes: readonly LineTax[], tax: Decimal, { toShare, currency }: CreditSharing): LineTax[] {
  const added = taxes.map((one) => new Decimal(one.tax_behavior === 'exclusive' ? one.tax_amount : '0'));
  const parts = spread(Decimal.min(tax, sumDecimals(added)), added, currency);
  return taxes.map((one, index) => {
    const given = one.tax_behavior === 'exclusive' ? parts[index]!.negated() : toShare(one.tax_amount);
    return { ...one, tax_amount: given.toFixed() };
  });
}
