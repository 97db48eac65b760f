/** Answer shape of plans, with the parts that `expand` names. */
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import type { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import type { Context } from '../../http/route.ts';
import { loadEntitlementsByEntity } from '../entitlements/expand.ts';
import { showPrices } from '../prices/expand.ts';

/** Parts that the answer of a single plan contains. */
export const EVERY_PART = ['prices', 'prices.meters', 'entitlements', 'credit_grant'];

export async function showPlans(plans: readonly PlanModel[], expand: readonly string[], context: Context) {
  const asks = (part: string) => expand.some((path) => path === part || path.startsWith(`${part}.`));
  const withMeters = expand.includes('prices.meters') || expand.includes('meters');
  const withUnits = expand.includes('prices.priceunit') || expand.includes('priceunit');
  const ofPrices = [...(withMeters ? ['meters'] : []), ...(withUnits ? ['priceunit'] : [])];
  const prices = asks('prices') ? await loadPlanPrices(plans, ofPrices, context) : null;
  const ids = plans.map(({ id }) => id);
  const { scope, services } = context;
  const grants = asks('credit_grant')
    ? await CreditGrantModel.buildPublishedQuery(scope, ['plan_id', ids], services.postgres)
    : null;
  const withFeatures = expand.includes('entitlements.features') ? ['features'] : [];
  const entitlements = asks('entitlements') ? await loadEntitlementsByEntity(ids, withFeatures, context) : null;
  return plans.map((plan) => ({
    ...plan,
    prices: prices === null ? null : prices.filter(({ entity_id }) => entity_id === plan.id),
    entitlements: entitlements && (entitlements.get(plan.id) ?? []),
    credit_grants: grants && grants.filter(({ plan_id }) => plan_id === plan.id),
  }));
}

export async function showPlan(plan: PlanModel, context: Context) {
  const [shown] = await showPlans([plan], EVERY_PART, context);
  return shown!;
}

async function loadPlanPrices(plans: readonly PlanModel[], expand: readonly string[], context: Context) {
  const { scope, services, now } = context;
  const ids = plans.map(({ id }) => id);
  const prices = await PriceModel.current(scope, now, services.postgres)
    .where('entity_type', 'PLAN')
    .whereIn('entity_id', ids)
    .orderBy(['created_at', 'sequence']);
  return showPrices(prices, expand, context);
}
