/** A coupon as it is answered: whether it can be redeemed now depends on when it is asked for. */
import { refusalOf } from '../../core/coupon/record.ts';
import type { CouponModel } from '../../storage/models/coupon.ts';
import type { Context } from '../http/route.ts';

export function showCoupon(coupon: CouponModel, context: Context) {
  return { ...coupon, valid: refusalOf(coupon, { now: context.now.getTime() }) === null };
}
