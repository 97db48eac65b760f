/** Coupons in a request for a subscription or one of its phases (docs/rules/coupons.md, "Coupons in a subscription request"). */
import { z } from 'zod';
import { keyText, orNull, timestampText } from '../../foundation/record.ts';

const name = keyText.min(1);
const subscriptionCoupon = z.object({
  coupon_code: name.meta({ description: 'Code of the coupon, case-insensitive.' }),
  start_date: orNull(timestampText).meta({
    description: 'Start of the interval in which the coupon applies. Default: the start of the subscription or phase.',
  }),
  end_date: orNull(timestampText).meta({
    description: 'Exclusive end of the interval in which the coupon applies. Default: no end.',
  }),
  price_id: orNull(name).meta({
    description: 'Price whose line the coupon discounts. Default: the coupon discounts the invoice.',
  }),
});

export const subscriptionCouponFields = {
  subscription_coupons: orNull(z.array(subscriptionCoupon).max(100)).meta({
    description: 'Coupons to redeem, with their own dates and prices; at most 100.',
  }),
  coupons: orNull(z.array(name).max(100)).meta({
    description: 'Coupons to redeem for the whole subscription or phase, by id or code; at most 100.',
  }),
  line_item_coupons: orNull(z.record(name, z.array(name).max(100))).meta({
    description: 'Coupons to redeem by the id of the price whose line they discount; at most 100 for each price.',
  }),
};

const terms = z.object(subscriptionCouponFields);
type SubscriptionCouponTerms = z.output<typeof terms>;

export type RequestedCoupon = {
  /** Path of the coupon in the request, for error messages. */
  readonly field: string;
  /** Id or code of the coupon. */
  readonly named: string;
  readonly price_id: string | null;
  readonly start_date: string | null;
  readonly end_date: string | null;
};

/** Order: `coupons`, `subscription_coupons`, `line_item_coupons`. */
export function listRequestedCoupons(
  { subscription_coupons, coupons, line_item_coupons }: SubscriptionCouponTerms,
  prefix = '',
): RequestedCoupon[] {
  const always = { start_date: null, end_date: null };
  return [
    ...(coupons ?? []).map((named, index) => ({
      ...always,
      field: `${prefix}coupons[${index}]`,
      named,
      price_id: null,
    })),
    ...(subscription_coupons ?? []).map(({ coupon_code, ...input }, index) => ({
      ...input,
      field: `${prefix}subscription_coupons[${index}]`,
      named: coupon_code,
    })),
    ...Object.entries(line_item_coupons ?? {}).flatMap(([price_id, names]) =>
      names.map((named) => ({ ...always, field: `${prefix}line_item_coupons.${price_id}`, named, price_id })),
    ),
  ];
}
