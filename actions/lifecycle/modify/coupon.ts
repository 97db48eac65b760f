/** Redeems a coupon for a subscription or for one of its lines, or ends a redemption (docs/rules/coupons.md, "Associations"). */

import { findCouponRefusal } from '../../../core/catalog/coupon/record.ts';
import { invalid, notAllowed, prefixField } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import {
  type CouponAssociation,
  checkDiscountable,
  checkRedeemedOnce,
} from '../../../core/subscriptions/coupon-association.ts';
import { checkLinesChange, planAddedInterval } from '../../../core/subscriptions/line-changes.ts';
import { checkParams } from '../../../core/subscriptions/modification.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import { CouponAssociationModel } from '../../../storage/models/subscriptions/coupon-association.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { toScope } from '../../rating/billable-items.ts';
import { toLockedSubscription } from '../subscriptions/lock-lines.ts';
import { planOtherModification } from './changed-lines.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

type CouponModificationInput = ModifyInput<'coupon'>;

const FIELDS = {
  add: { needs: 'coupon_code' as const, others: ['start_date' as const, 'subscription_line_item_id' as const] },
  remove: { needs: 'coupon_association_id' as const },
};

export async function planCouponChange(input: CouponModificationInput): Promise<PlannedModification> {
  const { params, subscription } = input;
  checkParams(params, 'coupon_params', FIELDS);
  checkLinesChange(subscription);
  if (params.subscription_id !== null && params.subscription_id !== subscription.id)
    throw invalid('coupon_params.subscription_id', `is not the subscription that is modified, ${subscription.id}`);
  try {
    return await (params.action === 'add' ? planRedemption(input) : planCouponRemoval(input));
  } catch (error) {
    throw prefixField(error, 'coupon_params');
  }
}

async function planRedemption(input: CouponModificationInput): Promise<PlannedModification> {
  const { database, subscription, params, author } = input;
  const scope = toScope(subscription);
  const coupon = await lockCoupon(scope, params.coupon_code!, database);
  const now = author.now.getTime();
  const refusal = findCouponRefusal(coupon, { now, currency: subscription.currency });
  if (refusal)
    throw notAllowed(`coupon ${coupon.coupon_code} ${refusal.why}`, { field: 'coupon_code', reason: refusal.reason });
  checkDiscountable(subscription, { field: 'coupon_code', line_id: params.subscription_line_item_id });
  await checkLine(input);
  const life = planAddedInterval(
    params,
    { id: '', start_date: null, end_date: null },
    toLockedSubscription(subscription, author).times,
  );
  const record: Omit<CouponAssociation, keyof ReturnType<typeof createdBy> | keyof Scope | 'status'> = {
    id: newId('coupon_association', now),
    coupon_id: coupon.id,
    subscription_id: subscription.id,
    subscription_line_item_id: params.subscription_line_item_id,
    subscription_phase_id: null,
    start_date: life.start_date,
    end_date: life.end_date,
    metadata: null,
  };
  const existing = await CouponAssociationModel.in(scope, database).where({
    subscription_id: subscription.id,
    coupon_id: coupon.id,
    status: 'published',
  });
  checkRedeemedOnce(record, existing);
  return planOtherModification(subscription, async (transaction) => {
    const changes = { total_redemptions: coupon.total_redemptions + 1 };
    await CouponModel.change(coupon, changes, { by: author, database: transaction });
    await CouponAssociationModel.add(scope, { ...record, ...createdBy(author) }, { database: transaction });
  });
}

/** Loads the coupon. A transaction locks it, so that two concurrent redemptions are counted as two; a preview does not. */
async function lockCoupon(scope: Scope, code: string, database: Database): Promise<CouponModel> {
  const coupon = await CouponModel.fetchByCode(scope, code, database);
  return database.isTransaction ? CouponModel.fetch(scope, coupon.id, { database, lock: true }) : coupon;
}

async function checkLine({ database, subscription, params, author }: CouponModificationInput): Promise<void> {
  const id = params.subscription_line_item_id;
  if (id === null) return;
  const line = await SubscriptionLineItemModel.fetchPublished(subscription, id, { database });
  if (line.subscription_id !== subscription.id)
    throw invalid('subscription_line_item_id', `is a line of subscription ${line.subscription_id}`);
  if (line.end_date && toInstant(line.end_date) <= author.now.getTime())
    throw invalid('subscription_line_item_id', `line ${id} has ended`);
}

async function planCouponRemoval({
  database,
  subscription,
  params,
  author,
}: CouponModificationInput): Promise<PlannedModification> {
  const id = params.coupon_association_id!;
  const association = await CouponAssociationModel.fetch(toScope(subscription), id, { database });
  if (association.subscription_id !== subscription.id)
    throw invalid('coupon_association_id', `is of subscription ${association.subscription_id}`);
  const now = author.now.getTime();
  const end = association.end_date === null ? Number.POSITIVE_INFINITY : toInstant(association.end_date);
  if (end <= now) throw notAllowed(`coupon association ${id} has ended already`, { field: 'coupon_association_id' });
  const requestedEnd = params.end_date ? toInstant(params.end_date) : now;
  if (requestedEnd < now || requestedEnd > end)
    throw invalid('end_date', 'must lie between now and the end that it has');
  const end_date = formatMs(Math.max(requestedEnd, toInstant(association.start_date)));
  return planOtherModification(subscription, async (transaction) => {
    await CouponAssociationModel.change(association, { end_date }, { by: author, database: transaction });
  });
}
