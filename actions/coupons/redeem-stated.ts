/** Redeems the coupons that a new subscription states, with itself or with a phase (docs/rules/coupons.md, "Stated with a subscription"). */
import { checkRedeemedOnce } from '../../core/coupon/association.ts';
import { listRequestedCoupons, type RequestedCoupon } from '../../core/coupon/requested-coupons.ts';
import { invalid, prefixField } from '../../core/error.ts';
import { createdBy } from '../../core/stamp.ts';
import type { CreateSubscription } from '../../core/subscription/record.ts';
import { formatMs, toInstant } from '../../core/time/instant.ts';
import type { CouponModel } from '../../storage/models/coupon.ts';
import { CouponAssociationModel } from '../../storage/models/coupon-association.ts';
import { PriceModel } from '../../storage/models/price.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import { SubscriptionPhaseModel } from '../../storage/models/subscription-phase.ts';
import { newId } from '../../storage/new-id.ts';
import { countRedemptions, holdCoupons, type Redeeming, redeemable } from './redeem.ts';

export type Redeemed = {
  readonly subscription: SubscriptionModel;
  readonly line_items: readonly SubscriptionLineItemModel[];
  readonly request: CreateSubscription;
};

type Life = { readonly start: string; readonly end: string | null; readonly phase_id: string | null };
type Wanted = RequestedCoupon & { readonly life: Life };
type Target = { readonly coupon: CouponModel; readonly wanted: Wanted; readonly line_id: string | null };

export async function redeemStated(redeemed: Redeemed, redeeming: Redeeming): Promise<void> {
  const { subscription } = redeemed;
  const wanted = await wantedBy(redeemed, redeeming);
  const held: CouponAssociationModel[] = [];
  await holdCoupons(
    wanted.map(({ named }) => named),
    redeeming,
  );
  for (const one of wanted) {
    const { field, named } = one;
    const coupon = await redeemable({ field, named, currency: subscription.currency }, redeeming);
    const lines = await linesFor(one, coupon, redeemed, redeeming);
    for (const line_id of lines)
      held.push(await attach({ coupon, wanted: one, line_id }, held, { subscription, ...redeeming }));
    await countRedemptions(coupon, 1, redeeming);
  }
}

async function wantedBy({ subscription, request }: Redeemed, { scope, transaction }: Redeeming): Promise<Wanted[]> {
  const { start_date: start, end_date: end = null } = subscription;
  const own = listRequestedCoupons(request).map((one) => ({ ...one, life: { start, end, phase_id: null } }));
  const stated = request.phases ?? [];
  if (stated.length === 0) return own;
  const phases = await SubscriptionPhaseModel.in(scope, transaction)
    .where({ subscription_id: subscription.id })
    .orderBy('start_date');
  const ofPhases = stated.flatMap((phase, index) => {
    const { id: phase_id, start_date, end_date } = phases[index]!;
    const life = { start: start_date, end: end_date ?? null, phase_id };
    return listRequestedCoupons(phase, `phases[${index}].`).map((one) => ({ ...one, life }));
  });
  return [...own, ...ofPhases];
}

/** Null is the invoice; a price may have a line for each phase. */
async function linesFor(
  { field, price_id, ...wanted }: Wanted,
  coupon: CouponModel,
  { line_items }: Redeemed,
  { scope, transaction }: Redeeming,
): Promise<(string | null)[]> {
  if (price_id === null) return [null];
  const ids = line_items.map((line) => line.price_id);
  const prices = await PriceModel.byId(scope, ids, transaction);
  const { start_date, end_date } = lifeOf(wanted);
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

function lifeOf({ life, ...wanted }: Pick<Wanted, 'life' | 'start_date' | 'end_date'>) {
  return { start_date: wanted.start_date ?? life.start, end_date: wanted.end_date ?? life.end };
}

async function attach(
  { coupon, wanted, line_id }: Target,
  held: readonly CouponAssociationModel[],
  { subscription, scope, transaction, author }: Redeeming & { subscription: SubscriptionModel },
): Promise<CouponAssociationModel> {
  const { start_date, end_date } = lifeOf(wanted);
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
    checkRedeemedOnce(record, held);
  } catch (error) {
    throw prefixField(error, field);
  }
  return CouponAssociationModel.add(scope, record, { database: transaction });
}
