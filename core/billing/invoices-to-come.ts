/**
 * Invoices that wait to be made, one behind the other: each is planned as if those before it were made (docs/rules/wallets.md, "The balance in real
 * time"). What they charge is charged, what they draw from commitments is drawn, and a coupon that has taken something off has been used.
 */
import type { RecordedUsage } from '../commitment/part.ts';
import { type CouponInForce, isUsableAgain } from '../coupon/discounts.ts';
import { toRecordedUsage } from './committed-lines.ts';
import type { PricedItem } from './line-amount.ts';
import {
  type DiscountedLines,
  type InvoicePlanInput,
  invoicedKeys,
  openCharges,
  planDiscounted,
} from './plan-invoice.ts';

/** By association of a coupon: on how many invoices it has taken something off. */
export type CouponUses = ReadonlyMap<string, number>;

/** Of an invoice: by what its charges are known to the next one. */
export function deriveInvoicedKeys<Item extends PricedItem>(input: InvoicePlanInput<Item>): string[] {
  return openCharges(input).flatMap(({ item, service }) => invoicedKeys(item.id, service));
}

/** The charges of each are not among those of the ones before it (`keysOf`). */
export function planFollowing<Item extends PricedItem>(
  questions: readonly InvoicePlanInput<Item>[],
): DiscountedLines<Item>[] {
  const drawn: RecordedUsage[] = [];
  const uses = new Map<string, number>();
  return questions.map((input, index) => {
    const { recorded = [], coupons = [] } = input;
    const planned = planDiscounted({
      ...input,
      recorded: [...recorded, ...drawn],
      coupons: coupons.filter((one) => isLeft(one, uses)),
      is_followed: index < questions.length - 1,
    });
    drawn.push(...toRecordedUsage(planned.lines));
    countUses(planned, uses);
    return planned;
  });
}

function isLeft({ coupon, coupon_association_id: id, uses = 0 }: CouponInForce, since: CouponUses): boolean {
  return id === null || isUsableAgain(coupon, uses + (since.get(id) ?? 0));
}

/** One for each coupon that takes something off it. */
export function countUses({ money }: Pick<DiscountedLines<PricedItem>, 'money'>, uses: Map<string, number>): void {
  const shares = money.flatMap((one) => one.shares ?? []);
  const used = new Set(shares.filter((one) => one.discount_amount.gt(0)).map((one) => one.coupon_association_id));
  for (const id of used) uses.set(id, (uses.get(id) ?? 0) + 1);
}
