/**
 * Archives a plan and its prices, which gives their lookup keys back; not while it has live subscriptions
 * (docs/rules/records.md, "Archiving").
 */

import { notAllowed, notFound } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { PriceModel } from '../../storage/models/price.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database, Stores } from '../../storage/stores.ts';

export async function archivePlan(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (database) => {
    const plan = await PlanModel.fetch(scope, id, { database, lock: true });
    if (plan.status !== 'published') throw notFound('plan', id);
    const [live] = await SubscriptionModel.in(scope, database)
      .select('id')
      .where({ plan_id: id, status: 'published' })
      .whereNot('subscription_status', 'cancelled')
      .limit(1);
    if (live) throw notAllowed(`plan ${id} has active subscriptions`);
    await PlanModel.change(plan, { status: 'archived' }, { by: author, database });
    await archivePrices(database, { plan, author });
  });
}

/** In their order, which the lines of invoices have. Until none is left: while we wait for one it may get a successor. */
async function archivePrices(database: Database, { plan, author }: { plan: PlanModel; author: Author }): Promise<void> {
  const published = PriceModel.in(plan, database)
    .where({ entity_type: 'PLAN', entity_id: plan.id, status: 'published' })
    .orderBy('sequence')
    .forUpdate();
  for (let prices = await published.clone(); prices.length > 0; prices = await published.clone())
    for (const price of prices) await PriceModel.change(price, { status: 'archived' }, { by: author, database });
}
