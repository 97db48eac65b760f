/** Prices as they are answered: the published client's names, and the records that `expand` asks for. */
import { MeterModel } from '../../storage/models/meter.ts';
import type { ScopedModel } from '../../storage/models/model.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import type { PriceModel } from '../../storage/models/price.ts';
import type { Context } from '../http/route.ts';

export async function showPrices(prices: readonly PriceModel[], expand: readonly string[], context: Context) {
  const { scope, services } = context;
  const meters = new Map<string, MeterModel>();
  const plans = new Map<string, PlanModel>();
  if (expand.includes('meters')) {
    const ids = distinct(prices.map(({ meter_id }) => meter_id));
    put(meters, await MeterModel.in(scope, services.postgres).whereIn('id', ids));
  }
  if (expand.includes('plan')) {
    const ids = distinct(prices.map(({ entity_type, entity_id }) => (entity_type === 'PLAN' ? entity_id : null)));
    put(plans, await PlanModel.in(scope, services.postgres).whereIn('id', ids));
  }
  return prices.map((price) => ({
    ...price,
    trial_period: price.trial_period_days,
    meter: meters.get(price.meter_id ?? '') ?? null,
    plan: plans.get(price.entity_id ?? '') ?? null,
  }));
}

export async function showPrice(price: PriceModel, context: Context) {
  const [shown] = await showPrices([price], [], context);
  return shown!;
}

function distinct(ids: readonly (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))];
}

function put<M extends ScopedModel>(map: Map<string, M>, records: readonly M[]): void {
  for (const record of records) map.set(record.id, record);
}
