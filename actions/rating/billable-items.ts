/** A subscription's line items with their prices and meters, in the terms of core. */

import { Decimal } from '../../core/foundation/decimal.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { toInstant } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import { AGGREGATIONS } from '../../core/metering/aggregations/index.ts';
import type { ChainTerms } from '../../core/rating/chains/chain.ts';
import type { BilledItem, BilledSubscription } from '../../core/rating/charges.ts';
import { lineCommitment } from '../../core/rating/commitments/line-item-commitment.ts';
import type { PricedItem } from '../../core/rating/line-amount.ts';
import { loadAll } from '../../storage/concurrency/batched.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { PriceModel } from '../../storage/models/catalog/price.ts';
import { MeterModel } from '../../storage/models/metering/meter.ts';
import type { EarlierPeriods, SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscriptions/subscription-line-item.ts';
import { loadSubscriptionAllowances } from './allowances/gather-allowances.ts';

/** A line item as core prices it, with its source records. */
export type BillableItem = PricedItem & {
  readonly line_item: SubscriptionLineItemModel;
  readonly price: PriceModel;
  readonly meter: MeterModel | null;
};

/**
 * Gathers the items. `at`: adds the allowances in force at this instant; without it the items have none. `withRemoved` also returns
 * lines that a change ended at their start.
 */
export async function gatherItems(
  database: Database,
  subscription: SubscriptionModel,
  { at, withRemoved = false }: { at?: Date; withRemoved?: boolean } = {},
): Promise<BillableItem[]> {
  const all = await listLineItems(database, subscription);
  const line_items = withRemoved ? all : all.filter(isInForce);
  return gatherItemsOfLines(database, subscription, { line_items, at });
}

export function isInForce({ status }: SubscriptionLineItemModel): boolean {
  return status === 'published';
}

/** Lists all lines, also removed ones. */
export function listLineItems(
  database: Database,
  subscription: SubscriptionModel,
): Promise<SubscriptionLineItemModel[]> {
  const listed = { column: 'subscription_id', value: subscription.id };
  return SubscriptionLineItemModel.listBy(toScope(subscription), listed, database);
}

type GatheredLines = { readonly line_items: readonly SubscriptionLineItemModel[]; readonly at?: Date | undefined };

export async function gatherItemsOfLines(
  database: Database,
  subscription: SubscriptionModel,
  { line_items, at }: GatheredLines,
): Promise<BillableItem[]> {
  const isMeasured = line_items.some(({ price_type }) => price_type === 'USAGE');
  const [{ prices, meters }, allowances] = await loadAll(database, [
    (connected) => loadPrices(connected, toScope(subscription), line_items),
    at && isMeasured ? (connected) => loadSubscriptionAllowances(connected, subscription, at) : null,
  ]);
  const priced = line_items.map((line_item) => {
    const price = requireRecord(prices, line_item.price_id, 'price');
    const meter = line_item.price_type === 'USAGE' ? requireRecord(meters, price.meter_id ?? '', 'meter') : null;
    return toBillableItem(line_item, { price, meter, subscription });
  });
  const items = withCommittedLines(priced);
  return (allowances ? withAllowances(items, allowances) : items).sort(inOrder);
}

async function loadPrices(database: Database, scope: Scope, records: readonly SubscriptionLineItemModel[]) {
  const priceIds = records.map(({ price_id }) => price_id);
  const prices = await PriceModel.byId(scope, priceIds, database);
  const meterIds = Array.from(prices.values(), ({ meter_id }) => meter_id);
  return { prices, meters: await MeterModel.byId(scope, meterIds, database) };
}

/** Gives each line of a shared commitment the list of all its lines. A commitment per window belongs to one line alone. */
export function withCommittedLines<Item extends Pick<BillableItem, keyof PricedItem | 'line_item'>>(
  items: readonly Item[],
): Item[] {
  const committed = items.filter(({ commitment }) => commitment && !commitment.windows);
  const groups = groupBy(committed, ({ line_item }) => line_item.commitment_line_id ?? line_item.id);
  return items.map((item) => {
    const lines = groups.get(item.line_item.commitment_line_id ?? item.id) ?? [];
    if (lines.length < 2 || lines.every(({ id }) => id !== item.id)) return item;
    const ends = lines.map(({ end_ms }) => end_ms ?? Number.POSITIVE_INFINITY);
    const last = Math.max(...ends);
    const committed_lines = {
      since: Math.min(...lines.map(({ start_ms }) => start_ms)),
      end_ms: Number.isFinite(last) ? last : null,
      item_ids: lines.map(({ id }) => id),
      active_intervals: lines.map(({ start_ms, end_ms }) => ({ start_ms, end_ms })),
    };
    return { ...item, committed_lines };
  });
}

function withAllowances(
  items: readonly BillableItem[],
  allowances: Awaited<ReturnType<typeof loadSubscriptionAllowances>>,
): BillableItem[] {
  return items.map((item) => ({ ...item, allowances: allowances.get(item.meter_id ?? '') ?? [] }));
}

/** Compares by the order of addition; lines added at one instant follow the order of prices in the plan. */
function inOrder(a: BillableItem, b: BillableItem): number {
  return (
    toInstant(a.line_item.created_at) - toInstant(b.line_item.created_at) ||
    a.price.sequence - b.price.sequence ||
    getLinePosition(a) - getLinePosition(b) ||
    (a.id < b.id ? -1 : 1)
  );
}

function getLinePosition({ line_item: { position } }: BillableItem): number {
  return position ?? Number.MAX_SAFE_INTEGER;
}

type LineItemPricing = { price: PriceModel; meter: MeterModel | null; subscription: SubscriptionModel };

export function toBillableItem(
  line_item: SubscriptionLineItemModel,
  { price, meter, subscription }: LineItemPricing,
): BillableItem {
  return {
    ...toBilledLineItem(line_item, subscription),
    reset_usage: meter?.reset_usage ?? null,
    price,
    quantity: new Decimal(line_item.quantity),
    display_name:
      line_item.display_name || line_item.meter_display_name || line_item.plan_display_name || line_item.price_id,
    meter_id: meter?.id ?? null,
    commitment: deriveCommitment(line_item, meter, subscription),
    chain_terms: deriveChainTerms(line_item, meter, subscription),
    line_item,
    meter,
  };
}

/** Returns the cadence and billed interval of a line, as far as its record defines them. */
export function toBilledLineItem(
  line_item: SubscriptionLineItemModel,
  subscription: SubscriptionModel,
): Omit<BilledItem, 'reset_usage'> {
  // The trial is never billed: paid periods begin at its end.
  const trialEnd = subscription.trial_end ? toInstant(subscription.trial_end) : Number.NEGATIVE_INFINITY;
  return {
    id: line_item.id,
    price_type: line_item.price_type,
    invoice_cadence: line_item.invoice_cadence,
    billing_period: line_item.billing_period,
    billing_period_count: line_item.billing_period_count,
    start_ms: Math.max(toInstant(line_item.charged_from ?? line_item.start_date), trialEnd),
    anchor_ms: line_item.period_anchor ? Math.max(toInstant(line_item.period_anchor), trialEnd) : null,
    end_ms: instantOrNull(line_item.charged_until ?? line_item.end_date),
  };
}

function instantOrNull(timestamp: string | null | undefined): number | null {
  return timestamp ? toInstant(timestamp) : null;
}

/** Derives the commitment of the line; null if it has none. */
export function deriveCommitment(
  line_item: SubscriptionLineItemModel,
  meter: MeterModel | null,
  subscription: SubscriptionModel,
) {
  const { timezone, billing_anchor } = subscription;
  return lineCommitment(line_item, { bucket_size: meter?.aggregation.bucket_size ?? null, timezone, billing_anchor });
}

/**
 * Derives the terms of a chain (lines charged together over a change of price). Null for a line that is charged by itself: a line with a
 * commitment per window, or on a meter that never resets and measures no level.
 */
export function deriveChainTerms(
  line_item: SubscriptionLineItemModel,
  meter: MeterModel | null,
  subscription: SubscriptionModel,
): ChainTerms | null {
  if (meter === null || deriveCommitment(line_item, meter, subscription)?.windows) return null;
  const { chain_rule: rule } = AGGREGATIONS[meter.aggregation.type];
  if (meter.reset_usage === 'NEVER' && rule !== 'integral') return null;
  const source = line_item.entity_type === 'addon' ? line_item.entity_id : 'plan';
  const { timezone } = subscription;
  const { bucket_size: size } = meter.aggregation;
  const billing_anchor = toInstant(subscription.billing_anchor);
  return {
    rule,
    key: `${source} ${meter.id}`,
    follows_id: line_item.follows_line_item_id,
    windows: size ? { size, timezone, billing_anchor } : null,
  };
}

/**
 * Returns the price or meter of a line item. A missing record is an error: without it the item cannot be charged, and to omit the item
 * would silently lose revenue.
 */
export function requireRecord<M>(records: ReadonlyMap<string, M>, id: string, what: string): M {
  const record = records.get(id);
  if (!record) throw new FarthingError('system_error', `${what} ${id} of a subscription line item does not exist`);
  return record;
}

/**
 * Number of charges that are measured concurrently. They form one batch for the stores (storage/usage/batched-cells.ts); one statement
 * takes this many.
 */
export const CHARGES_AT_ONCE = 50;

export function toScope(record: Scope): Scope {
  return { tenant_id: record.tenant_id, environment_id: record.environment_id };
}

export function toBilledSubscription(subscription: SubscriptionModel): BilledSubscription {
  return {
    start_ms: toInstant(subscription.start_date),
    end_ms: computeSubscriptionEnd(subscription),
    trial_end_ms: instantOrNull(subscription.trial_end),
    billing_anchor_ms: toInstant(subscription.billing_anchor),
    billing_period: subscription.billing_period,
    billing_period_count: subscription.billing_period_count,
    timezone: subscription.timezone,
    ...(subscription.earlier_periods ? { earlier: subscription.earlier_periods.map(earlierGrid) } : {}),
  };
}

function earlierGrid({ until, billing_anchor, billing_period, billing_period_count }: EarlierPeriods) {
  return {
    until_ms: toInstant(until),
    billing_anchor_ms: toInstant(billing_anchor),
    billing_period,
    billing_period_count,
  };
}

export function currentPeriod(subscription: SubscriptionModel): Period {
  return { start: toInstant(subscription.current_period_start), end: toInstant(subscription.current_period_end) };
}

/** Returns the current period, cut at the subscription's end. */
export function currentPeriodUntilEnd(subscription: SubscriptionModel): Period {
  const { start, end } = currentPeriod(subscription);
  return { start, end: Math.min(end, toBilledSubscription(subscription).end_ms ?? end) };
}

export function toRunningPeriod(subscription: SubscriptionModel): {
  subscription: BilledSubscription;
  current: Period;
} {
  return { subscription: toBilledSubscription(subscription), current: currentPeriod(subscription) };
}

function computeSubscriptionEnd(subscription: SubscriptionModel): number | null {
  const cancelAt =
    subscription.cancel_at ?? (subscription.cancel_at_period_end ? subscription.current_period_end : null);
  const ends = [subscription.end_date, cancelAt].filter((end) => end !== null && end !== undefined);
  return ends.length === 0 ? null : Math.min(...ends.map(toInstant));
}
