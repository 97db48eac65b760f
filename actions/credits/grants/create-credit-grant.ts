/** Creates a credit grant of a plan, an add-on or a subscription, which must exist (docs/rules/credits.md). */
import {
  type CreditGrant,
  checkCanBeGranted,
  checkSameRates,
  checkWithinSubscription,
  defineCreditGrant,
} from '../../../core/catalog/credit-grant/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { continueGrant } from './give-grants.ts';

type CreditGrantInput = Parameters<typeof defineCreditGrant>[0];

export async function createCreditGrant(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { input: CreditGrantInput; author: Author },
): Promise<CreditGrantModel> {
  const { author } = request;
  const grant = defineCreditGrant(request.input);
  return stores.postgres.transaction(async (database) => {
    const subscription = await checkReference(grant, scope, database);
    const record = { id: newId('credit_grant', author.now.getTime()), ...grant, ...createdBy(author) };
    const added = await CreditGrantModel.add(scope, record, { database });
    if (subscription) await continueGrant(database, { subscription, grant: added, by: author });
    return added;
  });
}

/** Checks the granting entity. Returns the subscription of a subscription grant, else null. */
async function checkReference(
  grant: CreditGrantInput,
  scope: Scope,
  database: Database,
): Promise<SubscriptionModel | null> {
  if (grant.scope === 'SUBSCRIPTION') return checkSubscription(grant, scope, database);
  // Locks the plan or add-on, so that two concurrent grants cannot have different rates.
  const isOfPlan = grant.scope === 'PLAN';
  const id = isOfPlan ? grant.plan_id! : grant.addon_id!;
  const options = { database, lock: true };
  const seller = await (isOfPlan ? PlanModel.fetch(scope, id, options) : AddonModel.fetch(scope, id, options));
  if (seller.status !== 'published') throw notFound(isOfPlan ? 'plan' : 'add-on', id);
  const others = CreditGrantModel.buildPublishedQuery(scope, [isOfPlan ? 'plan_id' : 'addon_id', [id]], database);
  checkSameRates(grant, await others.limit(1));
  return null;
}

type SubscriptionGrantTimes = Pick<CreditGrant, 'subscription_id' | 'start_date' | 'end_date'>;

/** Locks the subscription, so that it does not end meanwhile. */
async function checkSubscription(
  grant: SubscriptionGrantTimes,
  scope: Scope,
  database: Database,
): Promise<SubscriptionModel> {
  const subscription = await SubscriptionModel.fetchPublished(scope, grant.subscription_id!, { database, lock: true });
  checkCanBeGranted(subscription);
  checkWithinSubscription(grant, subscription);
  return subscription;
}
