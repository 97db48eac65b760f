/** Redeems coupons under their row locks, so that the last redemption happens once (docs/rules/coupons.md). */

import { findCouponRefusal } from '../../../core/catalog/coupon/record.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { AppliedCoupon } from '../../../core/rating/discounts.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import { CouponApplicationModel } from '../../../storage/models/invoicing/coupon-application.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { CouponAssociationModel } from '../../../storage/models/subscriptions/coupon-association.ts';

export type RedemptionWriting = { readonly scope: Scope; readonly transaction: Transaction; readonly author: Author };
type NamedCoupon = {
  readonly field: string;
  readonly named: string;
  readonly currency: string;
  readonly before?: number;
};

/** Locks all coupons that are about to be redeemed or released, in order of their ids, which prevents deadlocks. */
export async function lockCoupons(
  names: readonly string[],
  { scope, transaction }: Omit<RedemptionWriting, 'author'>,
): Promise<void> {
  if (names.length < 2) return;
  const codes = names.map((name) => name.toLowerCase());
  await CouponModel.in(scope, transaction)
    .whereRaw('(id = any(?) or (status = ? and lower(coupon_code) = any(?)))', [[...names], 'published', codes])
    .select('id')
    .orderBy('id')
    .forUpdate();
}

/**
 * Returns the coupon with this id or code; throws with the field's name if it may not be redeemed now. `before`: number of redemptions that
 * the same request makes in addition.
 */
export async function loadRedeemable(
  { field, named, currency, before = 0 }: NamedCoupon,
  { scope, transaction, author }: RedemptionWriting,
): Promise<CouponModel> {
  const coupons = await CouponModel.in(scope, transaction)
    .whereRaw('(id = ? or (status = ? and lower(coupon_code) = lower(?)))', [named, 'published', named])
    .orderBy('id')
    .forUpdate();
  const coupon = coupons.find(({ id }) => id === named) ?? coupons[0];
  if (!coupon) throw invalid(field, `there is no coupon ${named}`, { reason: 'COUPON_NOT_FOUND' });
  const counted = { ...coupon, total_redemptions: coupon.total_redemptions + before };
  const refusal = findCouponRefusal(counted, { now: author.now.getTime(), currency });
  if (refusal) throw invalid(field, `coupon ${named} ${refusal.why}`, { reason: refusal.reason });
  return coupon;
}

/** Adds redemptions; a negative number releases them. */
export async function countRedemptions(
  coupon: CouponModel,
  times: number,
  { transaction, author }: Omit<RedemptionWriting, 'scope'>,
): Promise<CouponModel> {
  const total_redemptions = Math.max(0, coupon.total_redemptions + times);
  return CouponModel.change(coupon, { total_redemptions }, { by: author, database: transaction });
}

/**
 * Counts the redemptions of coupons that an invoice applies. A coupon of a subscription was counted when it was
 * attached, and is skipped.
 */
export async function countApplied(applied: readonly AppliedCoupon[], redeeming: RedemptionWriting): Promise<void> {
  const { scope, transaction } = redeeming;
  for (const { by } of applied) {
    if (by.coupon_association_id !== null) continue;
    const coupon = await CouponModel.fetch(scope, by.coupon.id, { database: transaction, lock: true });
    await countRedemptions(coupon, 1, redeeming);
  }
}

/**
 * Releases the redemptions that a voided invoice made itself. A subscription's redemption remains and applies to another invoice
 * (coupons-in-force.ts).
 */
export async function returnRedemptions(
  invoice: InvoiceModel,
  { transaction, author }: Omit<RedemptionWriting, 'scope'>,
): Promise<void> {
  const filter = { column: 'invoice_id', value: invoice.id, where: { status: 'published' } };
  const applications = await CouponApplicationModel.listBy(invoice, filter, transaction);
  const own = applications.filter(({ coupon_association_id }) => coupon_association_id === null);
  const ids = own.map(({ coupon_id }) => coupon_id);
  await lockCoupons(ids, { scope: invoice, transaction });
  for (const { coupon_id } of own) {
    const coupon = await CouponModel.fetch(invoice, coupon_id, { database: transaction, lock: true });
    await countRedemptions(coupon, -1, { transaction, author });
  }
}

/** Releases all redemptions of a subscription whose creation was undone. */
export async function undoRedemptions(
  subscription_id: string,
  { scope, transaction, author }: RedemptionWriting,
): Promise<void> {
  const filter = { column: 'subscription_id', value: subscription_id, where: { status: 'published' } };
  const associations = await CouponAssociationModel.listBy(scope, filter, transaction);
  const ids = [...new Set(associations.map(({ coupon_id }) => coupon_id))].sort();
  for (const id of ids) {
    const coupon = await CouponModel.fetch(scope, id, { database: transaction, lock: true });
    const times = associations.filter(({ coupon_id }) => coupon_id === id).length;
    await countRedemptions(coupon, -times, { transaction, author });
  }
  for (const association of associations)
    await CouponAssociationModel.change(association, { status: 'archived' }, { by: author, database: transaction });
}
