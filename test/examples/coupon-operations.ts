/** The operations of the area coupon.validation on core/. */
import { z } from 'zod';
import { type Coupon, couponFields, defineCoupon, findCouponRefusal } from '../../core/catalog/coupon/record.ts';
import { invalid } from '../../core/foundation/error.ts';

const when = z.string().optional();
const attachment = z.object({
  type: z.string().default('percentage'),
  coupon_currency: z.string().optional(),
  target_currency: z.string().optional(),
  max_redemptions: z.number().optional(),
  redemptions_so_far: z.number().default(0),
  redeem_after: when,
  redeem_before: when,
  now: z.string().default('2026-01-01T00:00:00Z'),
});

/** What the row leaves out is filled with what is valid, so that only what it states can be at fault. */
export function attachCoupon(given: unknown) {
  const { type, coupon_currency, target_currency, redemptions_so_far, now, ...stated } = attachment.parse(given);
  const off = type === 'fixed' ? { amount_off: '5' } : { percentage_off: '10' };
  const fields = { name: 'x', type, ...off, currency: coupon_currency ?? 'usd', cadence: 'once', ...stated };
  const made = defineCoupon(couponFields.parse(fields));
  const coupon = { ...made, status: 'published', total_redemptions: redemptions_so_far } as Coupon;
  const target = target_currency === undefined ? {} : { currency: target_currency };
  const refusal = findCouponRefusal(coupon, { now: Date.parse(now), ...target });
  if (refusal) throw invalid(refusal.field, refusal.why);
  return { accepted: true };
}
