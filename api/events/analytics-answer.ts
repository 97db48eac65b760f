/** Usage analytics as it is answered, with the records that `expand` asks for. */
import { z } from 'zod';
import type { AnalyticsItem } from '../../actions/usage/analytics-items.ts';
import type { AnalyticsPoint } from '../../actions/usage/analytics-points.ts';
import type { AnalyticsRow } from '../../actions/usage/usage-analytics.ts';
import { type PermissionEntity, requireRead } from '../../core/access/role.ts';
import { indexById } from '../../core/by-id.ts';
import { CommitmentInfo } from '../../core/commitment/info.ts';
import { type Decimal, sumDecimals } from '../../core/decimal.ts';
import { invalid } from '../../core/error.ts';
import { AGGREGATION_TYPES } from '../../core/meter/record.ts';
import { decimalText } from '../../core/record.ts';
import { formatUs, type Microseconds } from '../../core/time/instant.ts';
import { WINDOW_SIZES } from '../../core/time/window.ts';
import { AddonModel } from '../../storage/models/addon.ts';
import type { FeatureModel } from '../../storage/models/feature.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { mapYielding, TimeSlicer } from '../../storage/time-slicer.ts';
import { AddonWithoutParts } from '../addons/answer.ts';
import { showFeatures } from '../features/expand.ts';
import { FeatureAnswer } from '../features/schema.ts';
import { showGroupsById } from '../groups/expand.ts';
import { GroupAnswer } from '../groups/schema.ts';
import type { Context } from '../http/route.ts';
import { MeterAnswer } from '../meters/schema.ts';
import { PlanWithoutParts } from '../plans/answer.ts';
import { showPrices } from '../prices/expand.ts';
import { PriceAnswer } from '../prices/schema.ts';
import { SubscriptionLineItemAnswer } from '../subscriptions/answer.ts';
import { showLineItems } from '../subscriptions/expand.ts';
import { hideAmounts } from './amounts.ts';
import { BucketSummary, bucketSummaries, PointBucket, pointBuckets } from './times-of-day.ts';

/** What may be expanded, and as what it may be read. */
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
    timestamp: z.string().meta({ description: 'Where the window begins.' }),
    usage: decimalText.meta({ description: 'Usage of the window by itself.' }),
    subtotal: decimalText
      .nullable()
      .meta({ description: 'Cost that the window added, exact, before discounts; the same as `cost`.' }),
    discount: decimalText.nullable().meta({ description: 'Discounts come off invoices and not off usage: 0.' }),
    cost: decimalText.nullable().meta({
      description:
        'Cost that the window added to the running cost, exact; points add up to `total_cost`. Below 0 where the cost fell.',
    }),
    event_count: z.int().meta({ description: 'How many events are in it.' }),
    computed_commitment_utilized_amount: decimalText
      .nullable()
      .meta({ description: 'What of the window is paid out of a windowed commitment; null without one.' }),
    computed_overage_amount: decimalText.nullable().meta({
      description: 'What of the window lies above a windowed commitment, after the factor; null without one.',
    }),
    computed_true_up_amount: decimalText
      .nullable()
      .meta({ description: 'What was lacking in the window to a windowed commitment; null without one.' }),
    buckets: z
      .array(PointBucket)
      .nullable()
      .meta({ description: 'The times of day that its windows begin in; null unless `breakdown_bucket` asks for it.' }),
  })
  .meta({ id: 'UsageAnalyticPoint' });

const Item = z
  .object({
    feature_id: z.string().meta({ description: 'The feature of the meter; empty when it has none.' }),
    price_id: z
      .string()
      .nullable()
      .meta({ description: 'The price of the line item; null where no line item bills the usage.' }),
    meter_id: z.string(),
    sub_line_item_id: z
      .string()
      .nullable()
      .meta({ description: 'The line item that bills the usage; null where none does.' }),
    subscription_id: z
      .string()
      .nullable()
      .meta({ description: 'The subscription of the line item; null without one.' }),
    external_customer_id: z.string().meta({ description: 'Whose usage it is.' }),
    price: PriceAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
    meter: MeterAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
    feature: FeatureAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
    subscription_line_item: SubscriptionLineItemAnswer.nullable().meta({ description: 'Where `expand` names it.' }),
    plan: PlanWithoutParts.nullable().meta({ description: 'Where `expand` names it.' }),
    addon: AddonWithoutParts.nullable().meta({ description: 'Where `expand` names it.' }),
    name: z.string().meta({ description: 'The name of the feature, or of the meter without one.' }),
    event_name: z.string().meta({ description: 'The name of the events that were counted.' }),
    source: z.string().nullable().meta({ description: 'With `group_by` source, that of the events; else null.' }),
    sources: z.array(z.string()).nullable().meta({ description: 'The same as `source`, as a list of one.' }),
    unit: z.string().nullable().meta({ description: 'What one unit is called, by the feature.' }),
    unit_plural: z.string().nullable().meta({ description: 'What several units are called, by the feature.' }),
    aggregation_type: z
      .enum(AGGREGATION_TYPES)
      .meta({ description: 'How the values of the events became one number.' }),
    total_usage: decimalText.meta({
      description:
        'The usage of the range in which the line item lives; of a meter that never resets, since the subscription began.',
    }),
    total_usage_display: z.string().meta({ description: 'The same for people.' }),
    reporting_unit: FeatureAnswer.shape.reporting_unit.meta({
      description: 'Another unit in which usage is shown, by the feature.',
    }),
    subtotal: decimalText.nullable().meta({ description: 'Exact cost of the usage of the range, before discounts.' }),
    total_discount: decimalText.nullable().meta({ description: 'Discounts come off invoices and not off usage: 0.' }),
    total_cost: decimalText
      .nullable()
      .meta({ description: 'Exact cost of the usage of the range, not rounded; 0 where no line item bills it.' }),
    currency: z
      .string()
      .nullable()
      .meta({ description: 'Of the subscription; null where no line item bills the usage.' }),
    event_count: z.int().meta({ description: 'How many events are in the number.' }),
    properties: z
      .record(z.string(), z.string())
      .nullable()
      .meta({ description: 'With `group_by` properties.<name>, their values; else null.' }),
    commitment_info: CommitmentInfo.nullable().meta({
      description: 'What the line item is committed to in the range, and what became of it; null without a commitment.',
    }),
    points: z.array(Point).nullable().meta({
      description:
        'One for each window that has events, or costs something without, in their order; null without a `window_size`.',
    }),
    add_on_id: z
      .string()
      .nullable()
      .meta({ description: 'The add-on of the line item; null where it comes from none.' }),
    plan_id: z.string().nullable().meta({ description: 'The plan of the line item; null where it comes from none.' }),
    window_size: z
      .enum(WINDOW_SIZES)
      .nullable()
      .meta({ description: 'How large the windows of the points are: never finer than the buckets of the meter.' }),
    group: GroupAnswer.nullable().meta({ description: 'The group of the feature; null without one.' }),
    bucket_summaries: z.array(BucketSummary).nullable().meta({
      description:
        'Usage and exact amounts of each time of day of the commitment; null without one, and unless `breakdown_bucket` asks for it.',
    }),
  })
  .meta({ id: 'UsageAnalyticItem' });

const Totals = {
  subtotal: decimalText.nullable().meta({ description: 'What all items cost, before discounts.' }),
  total_discount: decimalText.nullable().meta({ description: 'Discounts come off invoices and not off usage: 0.' }),
  total_cost: decimalText.nullable().meta({ description: 'Exact cost of all items of the currency.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters; empty where nothing is billed.' }),
};

export const AnalyticsAnswer = z
  .object({
    ...Totals,
    totals: z
      .array(z.object(Totals))
      .meta({ description: 'One per currency; the totals beside are those of the first.' }),
    items: z.array(Item).meta({ description: 'One for each usage line item, and for usage that none bills.' }),
    custom_analytics: z.array(z.never()).meta({ description: 'Nothing is computed beside the items: empty.' }),
    start_time: z.string().meta({ description: 'The start of the range that was answered.' }),
    end_time: z.string().meta({ description: 'The end of the range that was answered, which is not in it.' }),
    as_of: z.string().meta({ description: 'Every event that was accepted before this instant is counted.' }),
  })
  .meta({ id: 'GetUsageAnalyticsResponse' });

/** Paths outside of the list are refused, never ignored; and what they show is for who may read it. */
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
    price_id: item?.price_record.id,
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

/** One query per part, however many rows. */
async function loadParts(rows: readonly AnalyticsRow[], expand: readonly string[], context: Context) {
  const asks = (part: string) => expand.includes(part);
  const items = rows.flatMap(({ item }) => item ?? []);
  const features = rows.flatMap(({ feature }) => feature ?? []);
  const prices = asks('price') ? await showPrices(distinct(items.map((item) => item.price_record)), [], context) : [];
  const shown = asks('feature') ? await showFeatures(distinct(features), [], context) : [];
  const withoutParts = { prices: false, meters: false };
  const lines = asks('subscription_line_item')
    ? await showLineItems(distinct(items.map((item) => item.record)), withoutParts, context)
    : [];
  const { scope, services } = context;
  const entityIds = (type: 'plan' | 'addon') =>
    asks(type) ? items.flatMap((item) => pickEntityId(item, type) ?? []) : [];
  const plan = await PlanModel.byId(scope, entityIds('plan'), services.postgres);
  const addon = await AddonModel.byId(scope, entityIds('addon'), services.postgres);
  const groups = await showGroupsById(distinct(features), context);
  const [price, feature, line] = [indexById(prices), indexById(shown), indexById(lines)];
  return ({ item, meter, feature: own }: AnalyticsRow) => ({
    price: price.get(item?.price_record.id ?? ''),
    meter: asks('meter') ? meter : null,
    feature: feature.get(own?.id ?? ''),
    subscription_line_item: line.get(item?.id ?? ''),
    plan: plan.get((item && pickEntityId(item, 'plan')) ?? ''),
    addon: addon.get((item && pickEntityId(item, 'addon')) ?? ''),
    group: groups.get(own?.group_id ?? ''),
  });
}

/** The id of the plan, or add-on, that a line item comes from; null where it comes from another entity. */
function pickEntityId({ record }: AnalyticsItem, type: 'plan' | 'addon'): string | null {
  return record.entity_type === type ? (record.entity_id ?? null) : null;
}

function distinct<R extends { id: string }>(records: readonly R[]): R[] {
  return [...indexById(records).values()];
}
