/**
 * Redeems the coupons in a new subscription's request, for it or for a phase (docs/rules/coupons.md, "Coupons in a subscription
 * request").
 */

import { listRequestedCoupons, type RequestedCoupon } from '../../core/catalog/coupon/requested-coupons.ts';
import { invalid, prefixField } from '../../core/foundation/error.ts';
import { createdBy } from '../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../core/foundation/time/instant.ts';
import { checkRedeemedOnce } from '../../core/subscriptions/coupon-association.ts';
import type { CreateSubscription } from '../../core/subscriptions/record.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { CouponModel } from '../../storage/models/catalog/coupon.ts';
import { PriceModel } from '../../storage/models/catalog/price.ts';
import { CouponAssociationModel } from '../../storage/models/subscriptions/coupon-association.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import type { SubscriptionLineItemModel } from '../../storage/models/subscriptions/subscription-line-item.ts';
import { SubscriptionPhaseModel } from '../../storage/models/subscriptions/subscription-phase.ts';
import { countRedemptions, loadRedeemable, lockCoupons, type RedemptionWriting } from '../rating/coupons/redeem.ts';

type NewSubscriptionRedemption = {
  readonly subscription: SubscriptionModel;
  readonly line_items: readonly SubscriptionLineItemModel[];
  readonly request: CreateSubscription;
};

type CouponInterval = { readonly start: string; readonly end: string | null; readonly phase_id: string | null };
type CouponToRedeem = RequestedCoupon & { readonly life: CouponInterval };
type RedemptionTarget = {
  readonly coupon: CouponModel;
  readonly wanted: CouponToRedeem;
  readonly line_id: string | null;
};

export async function redeemRequested(
  redeemed: NewSubscriptionRedemption,
  redeeming: RedemptionWriting,
): Promise<void> {
  const { subscription } = redeemed;
  const wanted = await gatherCouponsToRedeem(redeemed, redeeming);
  const existing: CouponAssociationModel[] = [];
  await lockCoupons(
    wanted.map(({ named }) => named),
    redeeming,
  );
  for (const one of wanted) {
    const { field, named } = one;
    const coupon = await loadRedeemable({ field, named, currency: subscription.currency }, redeeming);
    const lines = await loadCouponLines(one, coupon, redeemed, redeeming);
    for (const line_id of lines)
      existing.push(await attach({ coupon, wanted: one, line_id }, existing, { subscription, ...redeeming }));
    await countRedemptions(coupon, 1, redeeming);
  }
}

async function gatherCouponsToRedeem(
  { subscription, request }: NewSubscriptionRedemption,
  { scope, transaction }: RedemptionWriting,
): Promise<CouponToRedeem[]> {
  const { start_date: start, end_date: end = null } = subscription;
  const own = listRequestedCoupons(request).map((one) => ({ ...one, life: { start, end, phase_id: null } }));
  const requestedPhases = request.phases ?? [];
  if (requestedPhases.length === 0) return own;
  const phases = await SubscriptionPhaseModel.in(scope, transaction)
    .where({ subscription_id: subscription.id })
    .orderBy('start_date');
  const ofPhases = requestedPhases.flatMap((phase, index) => {
    const { id: phase_id, start_date, end_date } = phases[index]!;
    const life = { start: start_date, end: end_date ?? null, phase_id };
    return listRequestedCoupons(phase, `phases[${index}].`).map((one) => ({ ...one, life }));
  });
  return [...own, ...ofPhases];
}

/** Loads the lines that a coupon discounts. Null stands for the whole invoice; a price may have one line per phase. */
async function loadCouponLines(
  { field, price_id, ...wanted }: CouponToRedeem,
  coupon: CouponModel,
  { line_items }: NewSubscriptionRedemption,
  { scope, transaction }: RedemptionWriting,
): Promise<(string | null)[]> {
  if (price_id === null) return [null];
  const ids = line_items.map((line) => line.price_id);
  const prices = await PriceModel.byId(scope, ids, transaction);
  const { start_date, end_date } = deriveActiveDates(wanted);
  const lines = line_items.filter(
    (line) =>
      (line.price_id === price_id || prices.get(line.price_id)?.parent_price_id === price_id) &&
      (end_date === null || !line.start_date || toInstant(line.start_date) < toInstant(end_date)) &&
      (!line.end_date || toInstant(line.end_date) > toInstant(start_date)),
  );
  if (lines.length === 0) throw invalid(field, `no line of the subscription has price ${price_id}`);
  if (lines.length > 1 && coupon.cadence !== 'forever')
    throw invalid(field, `price ${price_id} has ${lines.length} lines, and the coupon works ${coupon.cadence}`);
  return lines.map(({ id }) => id);
}

function deriveActiveDates({ life, ...wanted }: Pick<CouponToRedeem, 'life' | 'start_date' | 'end_date'>) {
  return { start_date: wanted.start_date ?? life.start, end_date: wanted.end_date ?? life.end };
}

async function attach(
  { coupon, wanted, line_id }: RedemptionTarget,
  existing: readonly CouponAssociationModel[],
  { subscription, scope, transaction, author }: RedemptionWriting & { subscription: SubscriptionModel },
): Promise<CouponAssociationModel> {
  const { start_date, end_date } = deriveActiveDates(wanted);
  const { field, life } = wanted;
  if (toInstant(start_date) < toInstant(life.start))
    throw invalid(`${field}.start_date`, `must not lie before ${formatMs(toInstant(life.start))}`);
  if (end_date !== null && toInstant(end_date) <= toInstant(start_date))
    throw invalid(`${field}.end_date`, 'must be after start_date');
  if (end_date !== null && life.end !== null && toInstant(end_date) > toInstant(life.end))
    throw invalid(`${field}.end_date`, `must not lie after ${formatMs(toInstant(life.end))}`);
  const record = {
    ...createdBy(author),
    id: newId('coupon_association', author.now.getTime()),
    coupon_id: coupon.id,
    subscription_id: subscription.id,
    subscription_line_item_id: line_id,
    subscription_phase_id: life.phase_id,
    start_date,
    end_date,
    metadata: null,
  };
  try {
    checkRedeemedOnce(record, existing);
  } catch (error) {
    throw prefixField(error, field);
  }
  return CouponAssociationModel.add(scope, record, { database: transaction });
}
