/** Builds the answers of coupons; `valid` depends on the current time. */
import { findCouponRefusal } from '../../../core/catalog/coupon/record.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import type { CouponAssociationModel } from '../../../storage/models/subscriptions/coupon-association.ts';
import type { Context } from '../../http/route.ts';

export function showCoupon(coupon: CouponModel, context: Context) {
  return { ...coupon, valid: findCouponRefusal(coupon, { now: context.now.getTime() }) === null };
}

export async function showCouponAssociations(
  associations: readonly CouponAssociationModel[],
  expand: readonly string[],
  context: Context,
) {
  const ids = expand.includes('coupon') ? associations.map(({ coupon_id }) => coupon_id) : [];
  const coupons = await CouponModel.byId(context.scope, ids, context.services.postgres);
  return associations.map((association) => {
    const coupon = coupons.get(association.coupon_id);
    return { ...association, coupon: coupon ? showCoupon(coupon, context) : null };
  });
}
