/** A new credit grant of a plan, an add-on or a subscription, which must be there (docs/rules/credits.md). */
import {
  type CreditGrant,
  checkGrantable,
  checkInside,
  checkSameRates,
  defineCreditGrant,
} from '../../core/credit-grant/record.ts';
import { notFound } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { AddonModel } from '../../storage/models/addon.ts';
import { CreditGrantModel } from '../../storage/models/credit-grant.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores } from '../../storage/stores.ts';

type Stated = Parameters<typeof defineCreditGrant>[0];

export async function createCreditGrant(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { stated: Stated; author: Author },
): Promise<CreditGrantModel> {
  const { author } = request;
  const grant = defineCreditGrant(request.stated);
  return stores.postgres.transaction(async (database) => {
    await checkReference(grant, scope, database);
    const record = { id: newId('credit_grant', author.now.getTime()), ...grant, ...createdBy(author) };
    return CreditGrantModel.add(scope, record, { database });
  });
}

async function checkReference(grant: Stated, scope: Scope, database: Database): Promise<void> {
  if (grant.scope === 'SUBSCRIPTION') return checkSubscription(grant, scope, database);
  // Who sells it is held, so that two grants with different rates do not pass each other.
  const isOfPlan = grant.scope === 'PLAN';
  const id = isOfPlan ? grant.plan_id! : grant.addon_id!;
  const options = { database, lock: true };
  const seller = await (isOfPlan ? PlanModel.fetch(scope, id, options) : AddonModel.fetch(scope, id, options));
  if (seller.status !== 'published') throw notFound(isOfPlan ? 'plan' : 'add-on', id);
  const others = CreditGrantModel.publishedOf(scope, [isOfPlan ? 'plan_id' : 'addon_id', [id]], database);
  checkSameRates(grant, await others.limit(1));
}

type OfSubscription = Pick<CreditGrant, 'subscription_id' | 'start_date' | 'end_date'>;

async function checkSubscription(grant: OfSubscription, scope: Scope, database: Database): Promise<void> {
  const subscription = await SubscriptionModel.fetchPublished(scope, grant.subscription_id!, { database });
  checkGrantable(subscription);
  checkInside(grant, subscription);
}
