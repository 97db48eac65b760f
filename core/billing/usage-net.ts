/** What an invoice charges for usage, after coupons and before taxes and credits (docs/rules/wallets.md, "The balance in real time"). */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import type { PricedItem } from './line-amount.ts';
import type { DiscountedLines } from './plan-invoice.ts';

/** What is given back comes off the invoice, whatever it is charged for; what is left of that is charged for usage as far as there is any, and never less than nothing. */
export function usageNet<Item extends PricedItem>({ lines, money }: DiscountedLines<Item>): Decimal {
  const nets = lines.map(({ amount }, index) => {
    const { line_item_discount, invoice_level_discount } = money[index]!;
    return amount.minus(line_item_discount).minus(invoice_level_discount);
  });
  const used = sumOf(nets.filter((net, index) => net.gt(0) && isForUsage(lines[index]!)));
  return Decimal.max(ZERO, Decimal.min(used, sumOf(nets)));
}

function isForUsage<Item extends PricedItem>({ item, is_true_up }: DiscountedLines<Item>['lines'][number]): boolean {
  return item.price_type === 'USAGE' && !is_true_up;
}
