/** Table `coupon_applications`: made with their invoice, and made anew when that is computed again. */
import { CouponApplication } from '../../core/coupon/application.ts';
import { ScopedModel } from './model.ts';

export interface CouponApplicationModel extends CouponApplication {}

export class CouponApplicationModel extends ScopedModel {
  static override tableName = 'coupon_applications';
  static override recordName = 'coupon application';
  /** They are made with their invoice, whose totals tell of them. */
  static override isAudited = false;
  static override record = CouponApplication;
  /** Its place in the order in which coupons were applied to the invoice, from 0. */
  declare position: number;
}
