/** Table `coupon_applications`: made with their invoice, and made anew when that is computed again. */
import { CouponApplication } from '../../core/coupon/application.ts';
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';
import { joinBatch } from './batched.ts';
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

/** Of an invoice that is computed anew: they are made again with it. */
export async function deleteApplications(scope: Scope, invoice_id: string, transaction: Database): Promise<void> {
  const { tenant_id, environment_id } = scope;
  const key = `take applications away ${tenant_id} ${environment_id}`;
  await joinBatch(transaction, { key, query: invoice_id }, async (invoice_ids) => {
    await CouponApplicationModel.in(scope, transaction)
      .whereIn('invoice_id', [...invoice_ids])
      .delete();
    return invoice_ids;
  });
}
