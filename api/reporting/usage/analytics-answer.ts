/** Answer of usage analytics, with the records that `expand` names. */
import { z } from 'zod';
import type { AnalyticsItem } from '../../../actions/reporting/usage/analytics-items.ts';
import type { AnalyticsPoint } from '../../../actions/reporting/usage/analytics-points.ts';
import type { AnalyticsRow } from '../../../actions/reporting/usage/usage-analytics.ts';
import { type PermissionEntity, requireRead } from '../../../core/foundation/access/role.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import { type Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { decimalText } from '../../../core/foundation/record.ts';
import { formatUs, type Microseconds } from '../../../core/foundation/time/instant.ts';
import { WINDOW_SIZES } from '../../../core/foundation/time/window.ts';
import { AGGREGATION_TYPES } from '../../../core/metering/meter/record.ts';
import { CommitmentInfo } from '../../../core/rating/commitments/info.ts';
import { mapYielding, TimeSlicer } from '../../../storage/concurrency/time-slicer.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import type { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { AddonWithoutParts } from '../../catalog/addons/answer.ts';
import { showFeatures } from '../../catalog/features/expand.ts';
import { FeatureAnswer } from '../../catalog/features/schema.ts';
import { showGroupsById } from '../../catalog/groups/expand.ts';
import { GroupAnswer } from '../../catalog/groups/schema.ts';
import { PlanWithoutParts } from '../../catalog/plans/answer.ts';
import { showPrices } from '../../catalog/prices/expand.ts';
import { PriceAnswer } from '../../catalog/prices/schema.ts';
import type { Context } from '../../http/route.ts';
import { MeterAnswer } from '../../metering/meters/schema.ts';
import { SubscriptionLineItemAnswer } from '../../subscriptions/answer.ts';
import { showLineItems } from '../../subscriptions/expand.ts';
import { hideAmounts } from './amounts.ts';
import { BucketSummary, bucketSummaries, PointBucket, pointBuckets } from './times-of-day.ts';

/** Values of `expand`, and the entity whose read permission each needs. */
const SHOWN_BY: ReadonlyMap<string, PermissionEntity> = new Map([
  ['price', 'price'],
  ['meter', 'meter'],
  ['feature', 'feature'],
  ['subscription_line_item', 'subscription'],
  ['plan', 'plan'],
  ['addon', 'addon'],
]);

const Point = z
  .object({
    timestamp: z.string().meta({ description: 'Start of the window.' }),
    usage: decimalText.meta({ description: 'Usage of the window alone.' }),
    subtotal: decimalText
      .nullable()
      .meta({ description: 'Exact cost that the window added, before discounts. It equals `cost`.' }),
    discount: decimalText.nullable().meta({ description: 'Always 0, because discounts apply to invoices.' }),
    cost: decimalText.nullable().meta({
      description:
        'Exact cost that the window added to the running cost. Points add up to `total_cost`. It is below 0 if the cost fell.',
    }),
    event_count: z.int().meta({ description: 'Number of events in the window.' }),
    computed_commitment_utilized_amount: decimalText
      .nullable()
      .meta({ description: 'Part of the cost of the window that a windowed commitment covers; null without one.' }),
    computed_overage_amount: decimalText.nullable().meta({
      description: 'Amount of the window above a windowed commitment, after the overage factor; null without one.',
    }),
    computed_true_up_amount: decimalText
      .nullable()
      .meta({ description: 'Shortfall of a windowed commitment in the window; null without one.' }),
    buckets: z.array(PointBucket).nullable().meta({
      description: 'Times of day in which the windows of the point begin; null unless `breakdown_bucket` is true.',
    }),
  })
  .meta({ id: 'UsageAnalyticPoint' });

const Item = z
  .object({
    feature_id: z.string().meta({ description: 'Feature of the meter; empty without one.' }),
    price_id: z
      .string()
      .nullable()
      .meta({ description: 'Price of the line item; null if no line item bills the usage.' }),
    meter_id: z.string(),
    sub_line_item_id: z.string().nullable().meta({ description: 'Line item that bills the usage; null without one.' }),
    subscription_id: z.string().nullable().meta({ description: 'Subscription of the line item; null without one.' }),
    external_customer_id: z.string().meta({ description: 'External id of the customer.' }),
    price: PriceAnswer.nullable().meta({ description: 'Price, if `expand` names it; null otherwise.' }),
    meter: MeterAnswer.nullable().meta({ description: 'Meter, if `expand` names it; null otherwise.' }),
    feature: FeatureAnswer.nullable().meta({ description: 'Feature, if `expand` names it; null otherwise.' }),
    subscription_line_item: SubscriptionLineItemAnswer.nullable().meta({
      description: 'Line item, if `expand` names it; null otherwise.',
    }),
    plan: PlanWithoutParts.nullable().meta({ description: 'Plan, if `expand` names it; null otherwise.' }),
    addon: AddonWithoutParts.nullable().meta({ description: 'Add-on, if `expand` names it; null otherwise.' }),
    name: z.string().meta({ description: 'Name of the feature, or of the meter without a feature.' }),
    event_name: z.string().meta({ description: 'Name of the counted events.' }),
    source: z
      .string()
      .nullable()
      .meta({ description: 'Source of the events if `group_by` names source; null otherwise.' }),
    sources: z
      .array(z.string())
      .nullable()
      .meta({ description: 'List with `source` as its only entry; null if `source` is null.' }),
    unit: z.string().nullable().meta({ description: 'Name of one unit, from the feature.' }),
    unit_plural: z.string().nullable().meta({ description: 'Name of several units, from the feature.' }),
    aggregation_type: z.enum(AGGREGATION_TYPES).meta({ description: 'Aggregation of the values of the events.' }),
    total_usage: decimalText.meta({
      description:
        'Usage of the part of the range in which the line item is active. For a meter that never resets it counts from the start of the subscription.',
    }),
    total_usage_display: z.string().meta({ description: 'Text of `total_usage` for display.' }),
    reporting_unit: FeatureAnswer.shape.reporting_unit.meta({
      description: 'Another unit for display, from the feature.',
    }),
    subtotal: decimalText.nullable().meta({ description: 'Exact cost of the usage of the range, before discounts.' }),
    total_discount: decimalText.nullable().meta({ description: 'Always 0, because discounts apply to invoices.' }),
    total_cost: decimalText
      .nullable()
      .meta({ description: 'Exact cost of the usage of the range, not rounded; 0 if no line item bills it.' }),
    currency: z
      .string()
      .nullable()
      .meta({ description: 'Currency of the subscription; null if no line item bills the usage.' }),
    event_count: z.int().meta({ description: 'Number of counted events.' }),
    properties: z
      .record(z.string(), z.string())
      .nullable()
      .meta({ description: 'Values of the properties in `group_by`, by name; null if it names no property.' }),
    commitment_info: CommitmentInfo.nullable().meta({
      description: 'Commitment of the line item in the range and its effect; null without one.',
    }),
    points: z.array(Point).nullable().meta({
      description: 'Points in order of time, one per window with events or a cost; null without a `window_size`.',
    }),
    add_on_id: z.string().nullable().meta({ description: 'Add-on of the line item; null without one.' }),
    plan_id: z.string().nullable().meta({ description: 'Plan of the line item; null without one.' }),
    window_size: z
      .enum(WINDOW_SIZES)
      .nullable()
      .meta({ description: 'Size of the windows of the points, never finer than the buckets of the meter.' }),
    group: GroupAnswer.nullable().meta({ description: 'Group of the feature; null without one.' }),
    bucket_summaries: z.array(BucketSummary).nullable().meta({
      description:
        'Usage and exact amounts per time of day of the commitment; null without one, or unless `breakdown_bucket` is true.',
    }),
  })
  .meta({ id: 'UsageAnalyticItem' });

const Totals = {
  subtotal: decimalText.nullable().meta({ description: 'Exact cost of all items of the currency, before discounts.' }),
  total_discount: decimalText.nullable().meta({ description: 'Always 0, because discounts apply to invoices.' }),
  total_cost: decimalText.nullable().meta({ description: 'Exact cost of all items of the currency.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), in lower case; empty if nothing is billed.' }),
};

export const AnalyticsAnswer = z
  .object({
    ...Totals,
    totals: z
      .array(z.object(Totals))
      .meta({ description: 'Totals per currency. The totals outside this list are those of the first currency.' }),
    items: z
      .array(Item)
      .meta({ description: 'One item per usage line item, and per meter with usage that no line item bills.' }),
    custom_analytics: z
      .array(z.never())
      .meta({ description: 'Always empty, because nothing is computed besides the items.' }),
    start_time: z.string().meta({ description: 'Start of the range.' }),
    end_time: z.string().meta({ description: 'Exclusive end of the range.' }),
    as_of: z.string().meta({ description: 'Instant before which every accepted event is counted.' }),
  })
  .meta({ id: 'GetUsageAnalyticsResponse' });

/** Refuses paths outside of SHOWN_BY. Each path needs the permission to read its entity. */
export function parseAnalyticsExpand(
  paths: readonly string[] | null | undefined,
  principal: { readonly roles: readonly string[] },
): readonly string[] {
  for (const path of paths ?? []) {
    const entity = SHOWN_BY.get(path);
    if (!entity) throw invalid('expand', `${path} cannot be expanded here`, { allowed: [...SHOWN_BY.keys()] });
    requireRead(principal, entity, `expanding ${path}`);
  }
  return paths ?? [];
}

export async function showAnalytics(
  rows: readonly AnalyticsRow[],
  query: { expand: readonly string[]; start_us: Microseconds; end_us: Microseconds; as_of: string },
  context: Context,
) {
  const parts = await loadParts(rows, query.expand, context);
  const totals = showTotals(rows);
  const [first = { subtotal: '0', total_discount: '0', total_cost: '0', currency: '' }] = totals;
  const answer = {
    ...first,
    totals,
    items: await showItems(rows, parts, context),
    custom_analytics: [],
    start_time: formatUs(query.start_us),
    end_time: formatUs(query.end_us),
    as_of: query.as_of,
  };
  return hideAmounts(context, answer);
}

/** Amounts of different currencies are never added up. */
function showTotals(rows: readonly AnalyticsRow[]) {
  const costs = new Map<string, Decimal[]>();
  for (const { item, cost } of rows) {
    if (item === null) continue;
    const { currency } = item.subscription;
    costs.set(currency, costs.get(currency) ?? []);
    costs.get(currency)!.push(cost);
  }
  return [...costs].map(([currency, some]) => {
    const total = sumDecimals(some);
    return { subtotal: total, total_discount: '0', total_cost: total, currency };
  });
}

async function showItems(rows: readonly AnalyticsRow[], parts: (row: AnalyticsRow) => object, { scope }: Context) {
  const items = [];
  const timeSlicer = new TimeSlicer(scope.tenant_id);
  for (const row of rows) {
    const points = row.points && (await mapYielding(scope.tenant_id, row.points, buildPointView(row)));
    items.push({ ...showItem(row), points, ...parts(row) });
    if (timeSlicer.isOver()) await timeSlicer.next();
  }
  return items;
}

function buildPointView({ item }: AnalyticsRow) {
  return (point: AnalyticsPoint) => ({ ...showPoint(point), buckets: pointBuckets(item, point.times_of_day) });
}

function showPoint(point: AnalyticsPoint) {
  const { commitment_info: info } = point;
  return {
    computed_commitment_utilized_amount: info?.computed_commitment_utilized_amount ?? null,
    computed_overage_amount: info?.computed_overage_amount ?? null,
    computed_true_up_amount: info?.computed_true_up_amount ?? null,
    timestamp: formatUs(point.window_us),
    usage: point.usage,
    subtotal: point.cost,
    discount: '0',
    cost: point.cost,
    event_count: point.event_count,
  };
}

function showItem({ item, meter, feature, group, usage, cost, event_count, ...row }: AnalyticsRow) {
  return {
    feature_id: feature?.id ?? '',
    price_id: item?.price.id,
    meter_id: meter.id,
    sub_line_item_id: item?.id,
    subscription_id: item?.subscription.id,
    external_customer_id: row.external_customer_id,
    name: feature?.name ?? meter.name,
    event_name: meter.event_name,
    source: group.source,
    sources: group.source === null ? null : [group.source],
    unit: feature?.unit_singular,
    unit_plural: feature?.unit_plural,
    aggregation_type: meter.aggregation.type,
    total_usage: usage,
    total_usage_display: usage.toFixed(),
    reporting_unit: feature && reportingUnit(feature),
    subtotal: cost,
    total_discount: '0',
    total_cost: cost,
    commitment_info: row.commitment_info,
    bucket_summaries: bucketSummaries(item, row.times_of_day),
    currency: item?.subscription.currency,
    event_count,
    properties: group.properties,
    plan_id: item && pickEntityId(item, 'plan'),
    add_on_id: item && pickEntityId(item, 'addon'),
    window_size: row.window_size,
  };
}

function reportingUnit({ reporting_unit }: FeatureModel) {
  return reporting_unit && { ...reporting_unit, conversion_rate: Number(reporting_unit.conversion_rate) };
}

/** Runs one query per kind of record, for any number of rows. */
async function loadParts(rows: readonly AnalyticsRow[], expand: readonly string[], context: Context) {
  const asks = (part: string) => expand.includes(part);
  const items = rows.flatMap(({ item }) => item ?? []);
  const features = rows.flatMap(({ feature }) => feature ?? []);
  const prices = asks('price') ? await showPrices(distinct(items.map((item) => item.price)), [], context) : [];
  const shown = asks('feature') ? await showFeatures(distinct(features), [], context) : [];
  const withoutParts = { prices: false, meters: false };
  const lines = asks('subscription_line_item')
    ? await showLineItems(distinct(items.map((item) => item.line_item)), withoutParts, context)
    : [];
  const { scope, services } = context;
  const entityIds = (type: 'plan' | 'addon') =>
    asks(type) ? items.flatMap((item) => pickEntityId(item, type) ?? []) : [];
  const plan = await PlanModel.byId(scope, entityIds('plan'), services.postgres);
  const addon = await AddonModel.byId(scope, entityIds('addon'), services.postgres);
  const groups = await showGroupsById(distinct(features), context);
  const [price, feature, line] = [indexById(prices), indexById(shown), indexById(lines)];
  return ({ item, meter, feature: own }: AnalyticsRow) => ({
    price: price.get(item?.price.id ?? ''),
    meter: asks('meter') ? meter : null,
    feature: feature.get(own?.id ?? ''),
    subscription_line_item: line.get(item?.id ?? ''),
    plan: plan.get((item && pickEntityId(item, 'plan')) ?? ''),
    addon: addon.get((item && pickEntityId(item, 'addon')) ?? ''),
    group: groups.get(own?.group_id ?? ''),
  });
}

/** Id of the plan or add-on of a line item; null if the line item belongs to another entity. */
function pickEntityId({ line_item }: AnalyticsItem, type: 'plan' | 'addon'): string | null {
  return line_item.entity_type === type ? (line_item.entity_id ?? null) : null;
}

function distinct<R extends { id: string }>(records: readonly R[]): R[] {
  return [...indexById(records).values()];
}
