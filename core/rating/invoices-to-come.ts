/**
 * Plans consecutive pending invoices, each as if the earlier ones existed already (docs/rules/wallets.md, "The balance in real time").
 * Charges of the earlier ones count as invoiced, their commitment draws as drawn, and a coupon that discounted one of them as used.
 */
import type { DueCharge } from './charges.ts';
import type { RecordedUsage } from './commitments/part.ts';
import { toRecordedUsage } from './committed-lines.ts';
import { type CouponInForce, isUsableAgain } from './discounts.ts';
import type { PricedItem } from './line-amount.ts';
import {
  applyCouponsToLines,
  type DiscountedLines,
  type InvoicePlanInput,
  invoicedKeys,
  listOpenCharges,
  planFollowedLines,
  planLines,
} from './plan-invoice.ts';

/** Number of invoices that a coupon discounted, by coupon association. */
export type CouponUses = ReadonlyMap<string, number>;

/** Keys by which the next invoice recognizes the charges of this one. */
export function deriveInvoicedKeys<Item extends PricedItem>(input: InvoicePlanInput<Item>): string[] {
  return listOpenCharges(input).flatMap(({ item, service }) => invoicedKeys(item.id, service));
}

/** An invoice and its due charges, which do not depend on usage (`listOpenCharges`). */
export type ComingInvoiceInput<Item extends PricedItem> = InvoicePlanInput<Item> & {
  readonly open_charges: readonly DueCharge<Item>[];
};

/** Plans the invoices in order. No charge may be in two of the inputs (`deriveInvoicedKeys`). */
export function planFollowing<Item extends PricedItem>(
  inputs: readonly ComingInvoiceInput<Item>[],
): DiscountedLines<Item>[] {
  const drawn: RecordedUsage[] = [];
  const uses = new Map<string, number>();
  return inputs.map(({ open_charges, ...input }, index) => {
    const { recorded, coupons, currency } = input;
    const plan = index < inputs.length - 1 ? planFollowedLines : planLines;
    const lines = plan({ ...input, recorded: [...recorded, ...drawn] }, open_charges);
    const planned = applyCouponsToLines(lines, { coupons: coupons.filter((one) => isLeft(one, uses)), currency });
    drawn.push(...toRecordedUsage(planned.lines));
    countUses(planned, uses);
    return planned;
  });
}

function isLeft({ coupon, coupon_association_id: id, uses = 0 }: CouponInForce, since: CouponUses): boolean {
  return id === null || isUsableAgain(coupon, uses + (since.get(id) ?? 0));
}

/** Counts one use for each coupon that discounts the invoice. */
export function countUses(
  { adjustments }: Pick<DiscountedLines<PricedItem>, 'adjustments'>,
  uses: Map<string, number>,
): void {
  const shares = adjustments.flatMap((one) => one.shares ?? []);
  const used = new Set(shares.filter((one) => one.discount_amount.gt(0)).map((one) => one.coupon_association_id));
  for (const id of used) uses.set(id, (uses.get(id) ?? 0) + 1);
}
