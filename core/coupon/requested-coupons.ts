/** Coupons that are stated with a new subscription, or with one of its phases (docs/rules/coupons.md, "Stated with a subscription"). */
import { z } from 'zod';
import { keyText, orNull, timestampText } from '../record.ts';

const name = keyText.min(1);
const subscriptionCoupon = z.object({
  coupon_code: name.meta({ description: 'The code, in any case of its letters.' }),
  start_date: orNull(timestampText).meta({ description: 'From when on it works; from the start when absent.' }),
  end_date: orNull(timestampText).meta({ description: 'Until when, exclusive; open when absent.' }),
  price_id: orNull(name).meta({ description: 'The price whose line it takes from; from the invoice when absent.' }),
});

/** Fields of a new subscription and of a phase. */
export const subscriptionCouponFields = {
  subscription_coupons: orNull(z.array(subscriptionCoupon).max(100)).meta({
    description: 'Coupons that it redeems, with dates and prices of their own.',
  }),
  coupons: orNull(z.array(name).max(100)).meta({ description: 'The same by ids or codes, for the whole of it.' }),
  line_item_coupons: orNull(z.record(name, z.array(name).max(100))).meta({
    description: 'The same by the id of the price whose line they take from.',
  }),
};

const terms = z.object(subscriptionCouponFields);
type SubscriptionCouponTerms = z.output<typeof terms>;

export type RequestedCoupon = {
  /** Where the request states it. */
  readonly field: string;
  /** An id or a code. */
  readonly named: string;
  readonly price_id: string | null;
  readonly start_date: string | null;
  readonly end_date: string | null;
};

/** In the order of the request: those of subscriptions first, then those of lines. */
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
