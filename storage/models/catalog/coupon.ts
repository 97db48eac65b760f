import { type Coupon, couponShape } from '../../../core/catalog/coupon/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CouponModel extends Coupon {}

export class CouponModel extends ScopedModel {
  static override tableName = 'coupons';
  static override recordName = 'coupon';
  static override record = couponShape;

  /** The published coupon with this code, case-insensitive; an archived coupon no longer holds its code. */
  static async fetchByCode(scope: Scope, coupon_code: string, database: Database): Promise<CouponModel> {
    const [coupon] = await CouponModel.in(scope, database)
      .where('status', 'published')
      .whereRaw('lower(coupon_code) = lower(?)', [coupon_code]);
    if (!coupon) throw notFound('coupon', coupon_code);
    return coupon;
  }

  /** Query for the coupons with one of these codes; if `codes` is absent, for all coupons. */
  static coded(scope: Scope, codes: readonly string[] | undefined, database: Database) {
    const coupons = CouponModel.in(scope, database);
    if (!codes?.length) return coupons;
    return coupons.whereRaw('lower(coupon_code) = any(select lower(code) from unnest(?::text[]) code)', [codes]);
  }
}
