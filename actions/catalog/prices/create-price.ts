/**
 * Creates prices, all or none. Their entities must exist, their number is limited, and an omitted name or start has a default
 * (docs/rules/pricing.md, "What a price must state").
 */

import { definePrice } from '../../../core/catalog/price/define.ts';
import { type CreatePrice, type Price, type PriceDefinition } from '../../../core/catalog/price/record.ts';
import { checkTimeBuckets } from '../../../core/catalog/price/time-buckets.ts';
import { alreadyExists, invalid, notAllowed, prefixIndex } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { checkFixedPeriods } from '../../../core/invoicing/costs/fixed-cost.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { PriceUnitModel } from '../../../storage/models/catalog/price-unit.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { CostsheetModel } from '../../../storage/models/reporting/costsheet.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { checkGroup } from '../groups/check-group.ts';

const ACTIVE_PRICES_MAX = 5000;

export async function createPrice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  input: { request: CreatePrice; author: Author },
): Promise<PriceModel> {
  return stores.postgres.transaction(async (database) => {
    const { request, author } = input;
    await lockSellers([request], scope, database);
    const price = await addPrice(request, { scope, database, author });
    await checkLimit(price, { scope, database, author });
    return price;
  });
}

/** One error rejects the batch and names the index of its entry. */
export async function createPrices(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  input: { requests: readonly CreatePrice[]; author: Author },
): Promise<PriceModel[]> {
  return stores.postgres.transaction(async (database) => {
    const { requests, author } = input;
    await lockSellers(requests, scope, database);
    const prices: PriceModel[] = [];
    for (const [index, request] of requests.entries()) {
      try {
        prices.push(await addPrice(request, { scope, database, author }));
      } catch (error) {
        throw prefixIndex(error, index);
      }
    }
    const perEntity = new Map(prices.map((price) => [`${price.entity_type}/${price.entity_id}`, price]));
    for (const price of perEntity.values()) await checkLimit(price, { scope, database, author });
    return prices;
  });
}

/** Context of a write: one transaction with one author. */
export type PriceWriteContext = { readonly scope: Scope; readonly database: Database; readonly author: Author };

/** Stores a complete, checked price; its lookup key must be free for the price's lifetime. */
export async function storePrice(price: PriceDefinition, writing: PriceWriteContext): Promise<PriceModel> {
  const { scope, database, author } = writing;
  await checkKeyFree(price, writing);
  const record = { id: newId('price', author.now.getTime()), ...price, ...createdBy(author) };
  return PriceModel.add(scope, record, { database, conflict: formatPriceKeyConflict(price.lookup_key) });
}

/**
 * Locks plans and add-ons in a fixed order, which serializes additions without deadlocks. Counts, keys and sequences are therefore exact.
 */
async function lockSellers(requests: readonly CreatePrice[], scope: Scope, database: Database): Promise<void> {
  const plans = listEntityIds(requests, 'PLAN');
  if (plans.length > 0) await PlanModel.in(scope, database).select('id').whereIn('id', plans).orderBy('id').forUpdate();
  const addons = listEntityIds(requests, 'ADDON');
  if (addons.length > 0)
    await AddonModel.in(scope, database).select('id').whereIn('id', addons).orderBy('id').forUpdate();
}

function listEntityIds(requests: readonly CreatePrice[], entity_type: CreatePrice['entity_type']): string[] {
  return [...new Set(requests.filter((one) => one.entity_type === entity_type).map((one) => one.entity_id))];
}

/** Stores the requested price, after the records that it references are found. */
export async function addPrice(request: CreatePrice, writing: PriceWriteContext): Promise<PriceModel> {
  const { scope, database, author } = writing;
  const completed = { ...request, start_date: request.start_date ?? author.now.toISOString() };
  const price = definePrice(completed, await findPriceUnit(request, writing));
  const entityName = await loadEntityName(request, writing);
  if (request.entity_type === 'COSTSHEET' && price.type === 'FIXED') checkFixedPeriods(price, completed.start_date);
  const meter = await lockPublishedMeter(price.meter_id, writing);
  await checkGroup(scope, { group_id: price.group_id, entity_type: 'price' }, database);
  const byDefault = price.type === 'USAGE' ? (meter?.name ?? null) : entityName;
  return storePrice(
    {
      ...price,
      display_name: price.display_name ?? byDefault,
      commitment_time_buckets: buildTimeBuckets(price, meter, writing),
    },
    writing,
  );
}

/** Gives each time bucket an id, and checks it against the window size of the meter. An empty list returns null. */
export function buildTimeBuckets(
  price: Pick<PriceDefinition, 'currency' | 'commitment_time_buckets'>,
  meter: MeterModel | null,
  { author }: Pick<PriceWriteContext, 'author'>,
) {
  if (!price.commitment_time_buckets?.length) return null;
  const buckets = checkTimeBuckets(price.commitment_time_buckets, {
    bucket_size: meter?.aggregation.bucket_size ?? null,
    currency: price.currency,
    field: 'commitment_time_buckets',
  });
  return buckets.map((bucket) => ({ ...bucket, id: newId('commitment_bucket', author.now.getTime()) }));
}

/** Finds the published price unit of a CUSTOM price; definePrice checks whether the price may have one. */
export async function findPriceUnit(
  request: Pick<CreatePrice, 'price_unit_type' | 'price_unit_config'>,
  { scope, database }: Omit<PriceWriteContext, 'author'>,
): Promise<PriceUnitModel | undefined> {
  const { price_unit_type, price_unit_config } = request;
  if (price_unit_type !== 'CUSTOM' || price_unit_config === null) return undefined;
  return PriceUnitModel.fetchByCode(scope, price_unit_config.price_unit, database);
}

/** Loads the symbol for amounts in the price's unit; empty without a unit. */
export async function loadUnitSymbol(
  { price_unit_id }: Price,
  { scope, database }: PriceWriteContext,
): Promise<string> {
  return price_unit_id ? (await PriceUnitModel.fetch(scope, price_unit_id, { database })).symbol : '';
}

/** Name of the price's entity, which must exist and be published; a subscription has the name of its plan. */
async function loadEntityName(request: CreatePrice, { scope, database }: PriceWriteContext): Promise<string> {
  const { entity_type, entity_id } = request;
  if (entity_type === 'PLAN') {
    return (await PlanModel.fetchPublished(scope, entity_id, { database })).name;
  }
  if (entity_type === 'SUBSCRIPTION') {
    const subscription = await SubscriptionModel.fetchPublished(scope, entity_id, { database });
    return (await PlanModel.fetch(scope, subscription.plan_id, { database })).name;
  }
  if (entity_type === 'ADDON') {
    return (await AddonModel.fetchPublished(scope, entity_id, { database })).name;
  }
  if (entity_type === 'COSTSHEET') {
    return (await CostsheetModel.fetchPublished(scope, entity_id, { database })).name;
  }
  throw invalid(
    'entity_type',
    `prices of ${entity_type} are not supported: use PLAN, ADDON, SUBSCRIPTION or COSTSHEET`,
  );
}

/** Locks the meter, so that it is not archived meanwhile. */
async function lockPublishedMeter(
  meter_id: string | null,
  { scope, database }: PriceWriteContext,
): Promise<MeterModel | null> {
  return meter_id === null ? null : MeterModel.fetchPublished(scope, meter_id, { database, lock: 'shared' });
}

export const formatPriceKeyConflict = (lookup_key: string | null | undefined) =>
  `a price with lookup_key ${lookup_key} exists already`;

type PriceKeyHolder = Pick<PriceDefinition, 'lookup_key' | 'start_date' | 'end_date'> & { id?: string };

/** Checks that no other price has the key at the same time. A key may pass from a price that ends to one that starts then. */
export async function checkKeyFree(price: PriceKeyHolder, { scope, database }: PriceWriteContext): Promise<void> {
  const { id = '', lookup_key, start_date, end_date } = price;
  if (lookup_key === null) return;
  const [holder] = await narrow(PriceModel.in(scope, database), [
    ['lookup_key', lookup_key],
    ['status', 'published'],
    ['id', '<>', id],
    ['end_date', 'open at', start_date],
    ['start_date', '<', end_date],
  ])
    .select('id')
    .limit(1);
  if (holder) throw alreadyExists(formatPriceKeyConflict(lookup_key));
}

async function checkLimit(price: PriceModel, { scope, database, author }: PriceWriteContext): Promise<void> {
  const { entity_type, entity_id } = price;
  const active = await PriceModel.current(scope, author.now, database).where({ entity_type, entity_id }).resultSize();
  if (active > ACTIVE_PRICES_MAX)
    throw notAllowed(`${entity_type} ${entity_id} would have more than ${ACTIVE_PRICES_MAX} active prices`);
}
