/** Redeems coupons: each is held while that is written, so that the last one is redeemed once (docs/rules/coupons.md). */
import { refusalOf } from '../../core/coupon/record.ts';
import { invalid } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { CouponModel } from '../../storage/models/coupon.ts';
import { CouponApplicationModel } from '../../storage/models/coupon-application.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import type { Transaction } from '../../storage/stores.ts';

export type Redeeming = { readonly scope: Scope; readonly transaction: Transaction; readonly author: Author };
export type NamedCoupon = {
  readonly field: string;
  readonly named: string;
  readonly currency: string;
  readonly before?: number;
};

/** All that a request names, in one order whatever that of the request: who holds one waits for no other that names both. */
export async function holdNamed(named: readonly string[], { scope, transaction }: Redeeming): Promise<void> {
  if (named.length < 2) return;
  const codes = 'select lower(code) from unnest(?::text[]) code';
  await CouponModel.in(scope, transaction)
    .select('id')
    .whereRaw(`(id = any(?) or (status = ? and lower(coupon_code) = any(${codes})))`, [named, 'published', named])
    .orderBy('id')
    .forUpdate();
}

/**
 * The coupon with this id or code, which may be redeemed now; refused by the name of the field. `before`: how often the same request redeems
 * it besides.
 */
export async function redeemable(
  { field, named, currency, before = 0 }: NamedCoupon,
  { scope, transaction, author }: Redeeming,
): Promise<CouponModel> {
  const coupons = await CouponModel.in(scope, transaction)
    .whereRaw('(id = ? or (status = ? and lower(coupon_code) = lower(?)))', [named, 'published', named])
    .orderBy('id')
    .forUpdate();
  const coupon = coupons.find(({ id }) => id === named) ?? coupons[0];
  if (!coupon) throw invalid(field, `there is no coupon ${named}`, { reason: 'COUPON_NOT_FOUND' });
  const counted = { ...coupon, total_redemptions: coupon.total_redemptions + before };
  const refusal = refusalOf(counted, { now: author.now.getTime(), currency });
  if (refusal) throw invalid(field, `coupon ${named} ${refusal.why}`, { reason: refusal.reason });
  return coupon;
}

/** Counted once more, or, with -1, given back. */
export async function countRedemptions(
  coupon: CouponModel,
  times: number,
  { transaction, author }: Omit<Redeeming, 'scope'>,
): Promise<CouponModel> {
  const total_redemptions = Math.max(0, coupon.total_redemptions + times);
  return CouponModel.change(coupon, { total_redemptions }, { by: author, database: transaction });
}

/**
 * A void invoice has redeemed nothing by itself; what a subscription has redeemed stays so, and works on another invoice instead
 * (coupons-in-force.ts).
 */
export async function giveRedemptionsBack(
  invoice: InvoiceModel,
  { transaction, author }: Omit<Redeeming, 'scope'>,
): Promise<void> {
  const asked = { column: 'invoice_id', value: invoice.id, where: { status: 'published' } };
  const applications = await CouponApplicationModel.listOf(invoice, asked, transaction);
  const own = applications.filter(({ coupon_association_id }) => coupon_association_id === null);
  // In the order of their ids, as everybody holds them.
  for (const coupon_id of own.map((one) => one.coupon_id).toSorted()) {
    const coupon = await CouponModel.fetch(invoice, coupon_id, { database: transaction, lock: true });
    await countRedemptions(coupon, -1, { transaction, author });
  }
}
