/**
 * A coupon with its discount, its number of periods and its redemption limits (docs/rules/coupons.md). This file validates the combination
 * of fields and decides whether a coupon can be redeemed.
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { checkCurrency, minorUnits } from '../../foundation/money.ts';
import {
  anyCase,
  baseFields,
  decimalText,
  int32,
  metadata,
  optionalKey,
  orNull,
  requiredName,
  timestampText,
} from '../../foundation/record.ts';
import { type Milliseconds, toInstant } from '../../foundation/time/instant.ts';

export const COUPON_TYPES = ['fixed', 'percentage'] as const;
const COUPON_CADENCES = ['once', 'repeated', 'forever'] as const;
const MAX_REDEMPTIONS = 1_000_000;
const MAX_PERCENTAGE = 100;

/** Fields of a request for a new coupon, in stored form. */
export const couponFields = z.object({
  name: requiredName.meta({ description: 'Name for people.' }),
  coupon_code: optionalKey.default(null).meta({
    description: 'Code that redeems the coupon: case-insensitive, unique among published coupons. Default: none.',
  }),
  type: anyCase(COUPON_TYPES).meta({
    description: '`fixed` takes off `amount_off`, `percentage` takes off `percentage_off`.',
  }),
  amount_off: orNull(decimalText).meta({
    description:
      'Discount of a fixed coupon, in units of the currency; greater than 0. Refused for a percentage coupon.',
  }),
  percentage_off: orNull(decimalText).meta({
    description: 'Discount of a percentage coupon; greater than 0 and at most 100. Refused for a fixed coupon.',
  }),
  currency: orNull(z.string()).meta({
    description:
      "Currency of a fixed coupon's amount (ISO 4217). It must be the currency of the subscription or invoice that redeems the coupon.",
  }),
  cadence: anyCase(COUPON_CADENCES).meta({
    description: '`once` applies in one period, `repeated` in `duration_in_periods` of them, `forever` in all.',
  }),
  duration_in_periods: orNull(int32).meta({
    description: 'Number of periods in which a repeated coupon applies; at least 1.',
  }),
  redeem_after: orNull(timestampText).meta({ description: 'Start of redemption. Default: redeemable at once.' }),
  redeem_before: orNull(timestampText).meta({ description: 'End of redemption, inclusive. Default: no end.' }),
  max_redemptions: orNull(int32).meta({
    description: 'Maximum number of redemptions, from 1 to 1,000,000. Default: no limit.',
  }),
  rules: orNull(z.record(z.string(), z.unknown())).meta({
    description: 'Object for your own use. It is stored and returned, and has no effect.',
  }),
  metadata,
});
type CouponFields = z.output<typeof couponFields>;

export const couponShape = couponFields.extend({
  id: z.string(),
  total_redemptions: z.int().meta({ description: 'Number of redemptions.' }),
  ...baseFields,
});
export type Coupon = z.output<typeof couponShape>;

/** Validates the fields of a requested coupon and their combination. */
export function defineCoupon(input: CouponFields): CouponFields {
  checkDiscountFields(input);
  checkDuration(input);
  checkRedemption(input);
  const currency = input.currency === null ? null : checkCurrency(input.currency);
  return { ...input, currency };
}

function checkDiscountFields({ type, amount_off, percentage_off, currency }: CouponFields): void {
  const [own, other] = type === 'fixed' ? (['amount_off', 'percentage_off'] as const) : PERCENTAGE_FIELDS;
  const off = type === 'fixed' ? amount_off : percentage_off;
  if (off === null) throw invalid(own, `is required for a ${type} coupon`);
  if ((type === 'fixed' ? percentage_off : amount_off) !== null)
    throw invalid(other, `is not allowed for a ${type} coupon`);
  if (!new Decimal(off).gt(0)) throw invalid(own, 'must be greater than 0');
  if (type === 'percentage' && new Decimal(off).gt(MAX_PERCENTAGE))
    throw invalid(own, `must not be greater than ${MAX_PERCENTAGE}`);
  if (type === 'percentage') return;
  if (currency === null) throw invalid('currency', 'is required for a fixed coupon');
  if (new Decimal(off).decimalPlaces() > minorUnits(currency)) throw invalid(own, `has more decimals than ${currency}`);
}

const PERCENTAGE_FIELDS = ['percentage_off', 'amount_off'] as const;

function checkDuration({ cadence, duration_in_periods }: CouponFields): void {
  const duration = 'duration_in_periods';
  if (cadence === 'repeated') {
    if (duration_in_periods === null) throw invalid(duration, 'is required for a repeated coupon');
    if (duration_in_periods < 1) throw invalid(duration, 'must be greater than 0');
    return;
  }
  // `once` means one period, so a duration of 1 changes nothing and is accepted.
  if (cadence === 'once' && duration_in_periods === 1) return;
  if (duration_in_periods !== null) throw invalid(duration, `is not allowed for a coupon that works ${cadence}`);
}

function checkRedemption({ redeem_after, redeem_before, max_redemptions }: CouponFields): void {
  if (redeem_after !== null && redeem_before !== null && toInstant(redeem_after) > toInstant(redeem_before))
    throw invalid('redeem_before', 'must not lie before redeem_after');
  if (max_redemptions !== null && (max_redemptions < 1 || max_redemptions > MAX_REDEMPTIONS))
    throw invalid('max_redemptions', `must be from 1 to ${MAX_REDEMPTIONS}`);
}

type CouponRedemption = { readonly now: Milliseconds; readonly currency?: string };
type CouponRefusal = { readonly field: string; readonly reason: string; readonly why: string };

/** Reason why the coupon cannot be redeemed now, in `currency` if given; null if it can. */
export function findCouponRefusal(coupon: Coupon, { now, currency }: CouponRedemption): CouponRefusal | null {
  const toRefusal = (field: string, reason: string, why: string) => ({ field, reason, why });
  const { status, redeem_after, redeem_before, max_redemptions, total_redemptions } = coupon;
  if (status !== 'published') return toRefusal('coupon', 'COUPON_NOT_PUBLISHED', `is ${status}`);
  if (redeem_after !== null && now < toInstant(redeem_after))
    return toRefusal('coupon', 'COUPON_NOT_ACTIVE', `may be redeemed from ${redeem_after} on`);
  if (redeem_before !== null && now > toInstant(redeem_before))
    return toRefusal('coupon', 'COUPON_EXPIRED', `could be redeemed until ${redeem_before}`);
  if (max_redemptions !== null && total_redemptions >= max_redemptions)
    return toRefusal('coupon', 'REDEMPTION_LIMIT_REACHED', `was redeemed ${total_redemptions} times, which is all`);
  if (coupon.type === 'fixed' && currency !== undefined && coupon.currency !== currency.toLowerCase())
    return toRefusal('currency', 'CURRENCY_MISMATCH', `is ${currency}, that of the coupon ${coupon.currency}`);
  return null;
}
