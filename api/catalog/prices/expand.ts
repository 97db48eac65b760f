/** Answer shape of prices: names of the published client, and the records that `expand` names. */
import type { QuantityCost } from '../../../core/rating/quantity-cost.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import type { PriceModel } from '../../../storage/models/catalog/price.ts';
import { PriceUnitModel } from '../../../storage/models/catalog/price-unit.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import type { Context } from '../../http/route.ts';
import { showGroupsById } from '../groups/expand.ts';

export async function showPrices(prices: readonly PriceModel[], expand: readonly string[], context: Context) {
  const { scope, services } = context;
  const meterIds = expand.includes('meters') ? prices.map(({ meter_id }) => meter_id) : [];
  const collectEntityIds = (part: string, type: string) =>
    expand.includes(part)
      ? prices.filter(({ entity_type }) => entity_type === type).map(({ entity_id }) => entity_id)
      : [];
  const meters = await MeterModel.byId(scope, meterIds, services.postgres);
  const plans = await PlanModel.byId(scope, collectEntityIds('plan', 'PLAN'), services.postgres);
  const addons = await AddonModel.byId(scope, collectEntityIds('addons', 'ADDON'), services.postgres);
  const unitIds = expand.includes('priceunit') ? prices.map(({ price_unit_id }) => price_unit_id) : [];
  const units = await PriceUnitModel.byId(scope, unitIds, services.postgres);
  const groups = await showGroupsById(expand.includes('groups') ? prices : [], context);
  return prices.map((price) => ({
    ...price,
    trial_period: price.trial_period_days,
    meter: meters.get(price.meter_id ?? '') ?? null,
    plan: plans.get(price.entity_id ?? '') ?? null,
    group: groups.get(price.group_id ?? '') ?? null,
    pricing_unit: units.get(price.price_unit_id ?? '') ?? null,
    addon: addons.get(price.entity_id ?? '') ?? null,
  }));
}

export async function showPrice(price: PriceModel, context: Context) {
  const [shown] = await showPrices([price], [], context);
  return shown!;
}

export function showPriceCosts({ currency, items }: { currency: string; items: readonly QuantityCost[] }) {
  return {
    currency,
    items: items.map(({ quantity, amount, amount_rounded, lines }) => ({
      quantity,
      amount: amount.toFixed(),
      amount_rounded: amount_rounded.toFixed(),
      lines: lines.map((line) => ({
        ...line,
        quantity: line.quantity.toFixed(),
        unit_amount: line.unit_amount.toFixed(),
        flat_amount: line.flat_amount?.toFixed() ?? null,
        amount: line.amount.toFixed(),
      })),
    })),
  };
}
