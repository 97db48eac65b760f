/** The target plan of a change, with the prices that the subscription copies, as for a new subscription. */

import type { Plan } from '../../../core/catalog/plan/record.ts';
import type { Price } from '../../../core/catalog/price/record.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { priceReset } from '../../../core/metering/price-reset.ts';
import { planScheduledPrices } from '../../../core/subscriptions/ahead.ts';
import { selectPricesToCopy } from '../../../core/subscriptions/lines.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';

export type TargetPlan = {
  readonly plan: Plan;
  readonly prices: readonly PriceModel[];
  readonly meters: ReadonlyMap<string, MeterModel>;
  readonly synced_price_sequence: number;
};

/** Gathers the target plan. If `database` is a transaction, a shared lock on the plan's row prevents its archival meanwhile. */
export async function gatherTarget(
  database: Database,
  { subscription, plan_id, at }: { subscription: SubscriptionModel; plan_id: string; at: Milliseconds },
): Promise<TargetPlan> {
  const lock = database.isTransaction ? ('shared' as const) : false;
  const plan = await PlanModel.fetchPublished(subscription, plan_id, { database, lock });
  const prices = (await PriceModel.in(subscription, database)
    .where({ entity_type: 'PLAN', entity_id: plan.id })
    .orderBy(['created_at', 'sequence'])) as Price[];
  const meters = await MeterModel.byId(
    subscription,
    prices.map(({ meter_id }) => meter_id),
    database,
  );
  const end = subscription.end_date ? toInstant(subscription.end_date) : null;
  const billed = { ...toBilledSubscription(subscription), start_ms: at };
  const reset_usage = new Map(Array.from(meters.values(), (meter) => [meter.id, priceReset(meter)]));
  const copied = selectPricesToCopy(prices, subscription.currency, { start: at, end, now: at });
  return {
    plan,
    prices: planScheduledPrices(copied, { billed, reset_usage, now: at }) as PriceModel[],
    meters,
    synced_price_sequence: Math.max(0, ...prices.map(({ sequence }) => sequence)),
  };
}
