/** Invoiced usage amount, after coupons and before taxes and credits (docs/rules/wallets.md, "The balance in real time"). */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { sumDiscounts } from './adjustment-fields.ts';
import type { PricedItem } from './line-amount.ts';
import type { DiscountedLines } from './plan-invoice.ts';

/**
 * Computes the usage amount that remains for the customer's wallets to pay. Credit lines lower all charges of the invoice, including fixed
 * ones. Prepaid credits that return with credited usage are spent on usage first.
 */
export function usageNet<Item extends PricedItem>(invoice: DiscountedLines<Item>): Decimal {
  return totalUsageNet([invoice]);
}

/** Sums up consecutive invoices. Credits beyond the charges of an invoice lower the next one. */
export function totalUsageNet<Item extends PricedItem>(invoices: readonly DiscountedLines<Item>[]): Decimal {
  let net = ZERO;
  let credited = ZERO;
  let returned = ZERO;
  for (const { lines, adjustments } of invoices) {
    const nets = lines.map(({ amount }, index) => amount.minus(sumDiscounts(adjustments[index]!)));
    const used = sumDecimals(nets.filter((one, index) => one.gt(0) && isForUsage(lines[index]!)));
    returned = returned.plus(returnedForUsage(lines));
    const paid = Decimal.min(used, returned);
    returned = returned.minus(paid);
    const all = sumDecimals(nets).plus(credited);
    net = net.plus(Decimal.max(ZERO, Decimal.min(used.minus(paid), all)));
    credited = Decimal.min(ZERO, all);
  }
  return net;
}

function returnedForUsage<Item extends PricedItem>(lines: DiscountedLines<Item>['lines']): Decimal {
  const credits = lines
    .filter(isForUsage)
    .map(({ credit_adjustments }) => credit_adjustments?.prepaid_credits_applied ?? ZERO);
  return sumDecimals(credits).negated();
}

function isForUsage<Item extends PricedItem>({ item, is_true_up }: DiscountedLines<Item>['lines'][number]): boolean {
  return item.price_type === 'USAGE' && !is_true_up;
}
