import { type CouponAssociation, couponAssociationShape } from '../../../core/subscriptions/coupon-association.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CouponAssociationModel extends CouponAssociation {}

export class CouponAssociationModel extends ScopedModel {
  static override tableName = 'coupon_associations';
  static override recordName = 'coupon association';
  static override record = couponAssociationShape;
}
