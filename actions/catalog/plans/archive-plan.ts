/**
 * Archives a plan with its prices and entitlements, which frees their lookup keys; refused while it has live subscriptions
 * (docs/rules/records.md, "Archiving").
 */

import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { archiveEntityEntitlements } from '../entitlements/archive-entitlements.ts';
import { archivePrices } from '../prices/archive-prices.ts';

export async function archivePlan(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (database) => {
    const plan = await PlanModel.fetchPublished(scope, id, { database, lock: true });
    const [live] = await SubscriptionModel.in(scope, database)
      .select('id')
      .where({ plan_id: id, status: 'published' })
      .whereNot('subscription_status', 'cancelled')
      .limit(1);
    if (live) throw notAllowed(`plan ${id} has active subscriptions`);
    await PlanModel.change(plan, { status: 'archived' }, { by: author, database });
    await archivePrices(scope, { entity_type: 'PLAN', entity_id: id }, { by: author, database });
    await CreditGrantModel.archiveBySeller(scope, ['plan_id', id], { by: author, database });
    await archiveEntityEntitlements(scope, id, { by: author, database });
  });
}
