/** What invoices charge for usage, after coupons and before taxes and credits (docs/rules/wallets.md, "The balance in real time"). */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import type { PricedItem } from './line-amount.ts';
import type { DiscountedLines } from './plan-invoice.ts';

/** What is given back comes off the invoice, whatever it is charged for; what is left of that is charged for usage as far as there is any, and never less than nothing. */
export function usageNet<Item extends PricedItem>(invoice: DiscountedLines<Item>): Decimal {
  return usageNetOfAll([invoice]);
}

/** Of invoices that follow each other, each but the last giving back all that there is: what it does not come to comes off the next one. */
export function usageNetOfAll<Item extends PricedItem>(invoices: readonly DiscountedLines<Item>[]): Decimal {
  let net = ZERO;
  let back = ZERO;
  for (const { lines, money } of invoices) {
    const nets = lines.map(({ amount }, index) => {
      const { line_item_discount, invoice_level_discount } = money[index]!;
      return amount.minus(line_item_discount).minus(invoice_level_discount);
    });
    const used = sumOf(nets.filter((one, index) => one.gt(0) && isForUsage(lines[index]!)));
    const all = sumOf(nets).plus(back);
    net = net.plus(Decimal.max(ZERO, Decimal.min(used, all)));
    back = Decimal.min(ZERO, all);
  }
  return net;
}

function isForUsage<Item extends PricedItem>({ item, is_true_up }: DiscountedLines<Item>['lines'][number]): boolean {
  return item.price_type === 'USAGE' && !is_true_up;
}
