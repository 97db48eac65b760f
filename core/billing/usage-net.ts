/** What an invoice charges for usage, after coupons and before taxes and credits (docs/rules/wallets.md, "The balance in real time"). */
import { type Decimal, sumOf } from '../decimal.ts';
import type { PricedItem } from './line-amount.ts';
import type { DiscountedLines } from './plan-invoice.ts';

export function usageNet<Item extends PricedItem>({ lines, money }: DiscountedLines<Item>): Decimal {
  return sumOf(
    lines.flatMap(({ item, is_true_up, amount }, index) => {
      if (item.price_type !== 'USAGE' || is_true_up) return [];
      const { line_item_discount, invoice_level_discount } = money[index]!;
      return [amount.minus(line_item_discount).minus(invoice_level_discount)];
    }),
  );
}
