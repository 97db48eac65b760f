/** Table `coupon_applications`: created with the invoice, and recreated if the invoice is recomputed. */
import { CouponApplication } from '../../../core/catalog/coupon/application.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { joinBatch } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CouponApplicationModel extends CouponApplication {}

export class CouponApplicationModel extends ScopedModel {
  static override tableName = 'coupon_applications';
  static override recordName = 'coupon application';
  /** Applications are created with the invoice, whose totals are audited. */
  static override isAudited = false;
  static override record = CouponApplication;
  /** Index in the order in which coupons were applied to the invoice, from 0. */
  declare position: number;
}

/** Deletes the applications of an invoice before it is recomputed, which creates them again. */
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
