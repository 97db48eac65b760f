/** Plans as they are answered, with the parts that `expand` asks for. */
import { CreditGrantModel } from '../../storage/models/credit-grant.ts';
import type { PlanModel } from '../../storage/models/plan.ts';
import { PriceModel } from '../../storage/models/price.ts';
import type { Context } from '../http/route.ts';
import { showPrices } from '../prices/expand.ts';

/** Everything that is sold under a plan: what GET of one plan shows. */
export const EVERY_PART = ['prices', 'prices.meters', 'entitlements', 'credit_grant'];

export async function showPlans(plans: readonly PlanModel[], expand: readonly string[], context: Context) {
  const asks = (part: string) => expand.some((path) => path === part || path.startsWith(`${part}.`));
  const withMeters = expand.includes('prices.meters') || expand.includes('meters');
  const withUnits = expand.includes('prices.priceunit') || expand.includes('priceunit');
  const ofPrices = [...(withMeters ? ['meters'] : []), ...(withUnits ? ['priceunit'] : [])];
  const prices = asks('prices') ? await pricesOf(plans, ofPrices, context) : null;
  const grants = asks('credit_grant') ? await grantsOf(plans, context) : null;
  return plans.map((plan) => ({
    ...plan,
    prices: prices === null ? null : prices.filter(({ entity_id }) => entity_id === plan.id),
    entitlements: asks('entitlements') ? [] : null,
    credit_grants: grants === null ? null : grants.filter(({ plan_id }) => plan_id === plan.id),
  }));
}

export async function showPlan(plan: PlanModel, context: Context) {
  const [shown] = await showPlans([plan], EVERY_PART, context);
  return shown!;
}

function grantsOf(plans: readonly PlanModel[], { scope, services }: Context) {
  const ids = plans.map(({ id }) => id);
  return CreditGrantModel.in(scope, services.postgres)
    .whereIn('plan_id', ids)
    .where('status', 'published')
    .orderBy(['created_at', 'id']);
}

async function pricesOf(plans: readonly PlanModel[], expand: readonly string[], context: Context) {
  const { scope, services, now } = context;
  const ids = plans.map(({ id }) => id);
  const prices = await PriceModel.current(scope, now, services.postgres)
    .where('entity_type', 'PLAN')
    .whereIn('entity_id', ids)
    .orderBy(['created_at', 'sequence']);
  return showPrices(prices, expand, context);
}
