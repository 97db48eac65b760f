/** Invoiced usage amount, after coupons and before taxes and credits (docs/rules/wallets.md, "The balance in real time"). */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import type { PricedItem } from './line-amount.ts';
import type { DiscountedLines } from './plan-invoice.ts';

/**
 * Usage amount that the customer's wallets will pay. Credit lines lower the invoice as a whole, fees included. Prepaid credits that return
 * with credited usage pay usage first.
 */
export function usageNet<Item extends PricedItem>(invoice: DiscountedLines<Item>): Decimal {
  return totalUsageNet([invoice]);
}

/** Sums up consecutive invoices. Credits beyond the charges of an invoice lower the next one. */
export function totalUsageNet<Item extends PricedItem>(invoices: readonly DiscountedLines<Item>[]): Decimal {
  let net = ZERO;
  let credited = ZERO;
  let returned = ZERO;
  for (const { lines, money } of invoices) {
    const nets = lines.map(({ amount }, index) => {
      const { line_item_discount, invoice_level_discount } = money[index]!;
      return amount.minus(line_item_discount).minus(invoice_level_discount);
    });
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
