/** A new credit grant of a plan or of a subscription, which must be there (docs/rules/credit-grants.md). */
import {
  type CreditGrant,
  checkGrantable,
  checkInside,
  checkSameRates,
  defineCreditGrant,
} from '../../core/credit-grant/record.ts';
import { invalid, notFound } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
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
  if (grant.scope === 'PLAN') return checkPlan(grant, scope, database);
  if (grant.scope === 'SUBSCRIPTION') return checkSubscription(grant, scope, database);
  throw invalid('scope', 'ADDON is not supported yet: use PLAN or SUBSCRIPTION');
}

/** The plan is held, so that two grants with different rates do not pass each other. */
async function checkPlan(
  grant: Pick<CreditGrant, 'plan_id' | 'conversion_rate' | 'topup_conversion_rate'>,
  scope: Scope,
  database: Database,
): Promise<void> {
  const plan_id = grant.plan_id!;
  const plan = await PlanModel.fetch(scope, plan_id, { database, lock: true });
  if (plan.status !== 'published') throw notFound('plan', plan_id);
  checkSameRates(grant, await CreditGrantModel.in(scope, database).where({ plan_id, status: 'published' }).limit(1));
}

async function checkSubscription(
  grant: Pick<CreditGrant, 'subscription_id' | 'start_date' | 'end_date'>,
  scope: Scope,
  database: Database,
): Promise<void> {
  const subscription = await SubscriptionModel.fetch(scope, grant.subscription_id!, { database });
  if (subscription.status !== 'published') throw notFound('subscription', subscription.id);
  checkGrantable(subscription);
  checkInside(grant, subscription);
}
