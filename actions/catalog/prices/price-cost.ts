/** Computes the cost of quantities under a stored or a requested price (docs/rules/pricing.md, "Cost of a quantity"). Writes nothing. */
import { type ChargeRequest, defineCharge } from '../../../core/catalog/price/define.ts';
import type { ChargeDefinition, CreatePrice } from '../../../core/catalog/price/record.ts';
import { invalid, prefixField } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { type CostWindow, computeQuantityCosts, type QuantityCost } from '../../../core/rating/quantity-cost.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { buildTimeBuckets, findPriceUnit, type PriceWriteContext } from './create-price.ts';

type PriceCostInput = {
  /** A stored price by its id, or the fields of a price that is not written. */
  readonly priced: { readonly price_id: string } | { readonly price: CostedPrice };
  readonly quantities: readonly string[];
  /** Instant of the usage, for a price with times of day. */
  readonly at: string | null;
  readonly author: Author;
};
/** Fields of a requested price, as far as they determine its cost. */
export type CostedPrice = ChargeRequest & Pick<CreatePrice, 'meter_id' | 'commitment_time_buckets'>;

export async function computePriceCosts(
  { postgres: database }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { priced, quantities, at, author }: PriceCostInput,
): Promise<{ currency: string; items: QuantityCost[] }> {
  const gathering = { scope, database, author };
  const { price, timed } = await gatherPrice(priced, gathering);
  const window = timed && buildWindow(timed, at);
  return { currency: price.currency, items: computeQuantityCosts(quantities, { price, window }) };
}

type GatheredPrice = {
  readonly price: ChargeDefinition;
  /** Times of day of the price; null without any. */
  readonly timed: Omit<CostWindow, 'at'> | null;
};

async function gatherPrice(priced: PriceCostInput['priced'], gathering: PriceWriteContext): Promise<GatheredPrice> {
  const { scope, database } = gathering;
  if ('price_id' in priced) {
    const price = await PriceModel.fetch(scope, priced.price_id, { database });
    return { price, timed: await gatherTimes(price, gathering) };
  }
  try {
    const { price: request } = priced;
    const charge = defineCharge(request, await findPriceUnit(request, gathering));
    const { meter_id, commitment_time_buckets } = request;
    const timed = await gatherTimes({ ...charge, meter_id, commitment_time_buckets }, gathering);
    return { price: charge, timed };
  } catch (error) {
    throw prefixField(error, 'price');
  }
}

type TimedPrice = Pick<CreatePrice, 'type' | 'currency' | 'meter_id' | 'commitment_time_buckets'>;

async function gatherTimes(price: TimedPrice, gathering: PriceWriteContext): Promise<GatheredPrice['timed']> {
  if (!price.commitment_time_buckets?.length) return null;
  if (price.type !== 'USAGE') throw invalid('commitment_time_buckets', 'is for USAGE prices only');
  const { scope, database } = gathering;
  const meter = price.meter_id ? await MeterModel.fetch(scope, price.meter_id, { database }) : null;
  const time_buckets = buildTimeBuckets(price, meter, gathering) ?? [];
  return { size: meter!.aggregation.bucket_size!, time_buckets };
}

function buildWindow(timed: Omit<CostWindow, 'at'>, at: string | null): CostWindow {
  if (at === null) throw invalid('at', 'is required: the price has times of day with commitments of their own');
  return { ...timed, at: toInstant(at) };
}
