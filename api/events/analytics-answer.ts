/** Usage analytics as it is answered, with the records that `expand` asks for. */
import { z } from 'zod';
import type { AnalyticsPoint, AnalyticsRow } from '../../actions/usage/usage-analytics.ts';
import { byId } from '../../core/by-id.ts';
import { type Decimal, sumOf } from '../../core/decimal.ts';
import { invalid } from '../../core/error.ts';
import { AGGREGATION_TYPES } from '../../core/meter/record.ts';
import { decimalText } from '../../core/record.ts';
import { formatUs, type Microseconds } from '../../core/time/instant.ts';
import { WINDOW_SIZES } from '../../core/time/window.ts';
import type { FeatureModel } from '../../storage/models/feature.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { inTurns } from '../../storage/turns.ts';
import { showFeatures } from '../features/expand.ts';
import { FeatureAnswer } from '../features/schema.ts';
import type { Context } from '../http/route.ts';
import { MeterAnswer } from '../meters/schema.ts';
import { PlanWithoutParts } from '../plans/answer.ts';
import { showPrices } from '../prices/expand.ts';
import { PriceAnswer } from '../prices/schema.ts';
import { SubscriptionLineItemAnswer } from '../subscriptions/answer.ts';
import { showLineItems } from '../subscriptions/expand.ts';

export const ANALYTICS_EXPAND = ['price', 'meter', 'feature', 'subscription_line_item', 'plan', 'addon'];

const Point = z
  .object({
    timestamp: z.string(),
    usage: decimalText,
    subtotal: decimalText,
    discount: decimalText,
    cost: decimalText,
    event_count: z.int(),
    computed_commitment_utilized_amount: z.null(),
    computed_overage_amount: z.null(),
    computed_true_up_amount: z.null(),
    buckets: z.null(),
  })
  .meta({ id: 'UsageAnalyticPoint' });

const Item = z
  .object({
    feature_id: z.string(),
    price_id: z.string().nullable(),
    meter_id: z.string(),
    sub_line_item_id: z.string().nullable(),
    subscription_id: z.string().nullable(),
    external_customer_id: z.string(),
    price: PriceAnswer.nullable(),
    meter: MeterAnswer.nullable(),
    feature: FeatureAnswer.nullable(),
    subscription_line_item: SubscriptionLineItemAnswer.nullable(),
    plan: PlanWithoutParts.nullable(),
    addon: z.null(),
    name: z.string(),
    event_name: z.string(),
    source: z.string().nullable(),
    sources: z.array(z.string()).nullable(),
    unit: z.string().nullable(),
    unit_plural: z.string().nullable(),
    aggregation_type: z.enum(AGGREGATION_TYPES),
    total_usage: decimalText,
    total_usage_display: z.string(),
    reporting_unit: FeatureAnswer.shape.reporting_unit,
    subtotal: decimalText,
    total_discount: decimalText,
    total_cost: decimalText,
    currency: z.string().nullable(),
    event_count: z.int(),
    properties: z.record(z.string(), z.string()).nullable(),
    commitment_info: z.null(),
    points: z.array(Point).nullable(),
    add_on_id: z.string().nullable(),
    plan_id: z.string().nullable(),
    window_size: z.enum(WINDOW_SIZES).nullable(),
    group: z.null(),
    bucket_summaries: z.null(),
  })
  .meta({ id: 'UsageAnalyticItem' });

const Totals = { subtotal: decimalText, total_discount: decimalText, total_cost: decimalText, currency: z.string() };

export const AnalyticsAnswer = z
  .object({
    ...Totals,
    totals: z
      .array(z.object(Totals))
      .meta({ description: 'One per currency; the totals beside are those of the first.' }),
    items: z.array(Item),
    custom_analytics: z.array(z.never()),
    start_time: z.string(),
    end_time: z.string(),
    as_of: z.string().meta({ description: 'Every event that was accepted before this instant is counted.' }),
  })
  .meta({ id: 'GetUsageAnalyticsResponse' });

/** Paths outside of the list are refused, never ignored. */
export function checkedExpand(paths: readonly string[] | null | undefined): readonly string[] {
  const unknown = paths?.find((path) => !ANALYTICS_EXPAND.includes(path));
  if (unknown !== undefined)
    throw invalid('expand', `${unknown} cannot be expanded here`, { allowed: ANALYTICS_EXPAND });
  return paths ?? [];
}

export async function showAnalytics(
  rows: readonly AnalyticsRow[],
  asked: { expand: readonly string[]; start_us: Microseconds; end_us: Microseconds; as_of: string },
  context: Context,
) {
  const parts = await partsOf(rows, asked.expand, context);
  const totals = totalsOf(rows);
  const [first = { subtotal: '0', total_discount: '0', total_cost: '0', currency: '' }] = totals;
  return {
    ...first,
    totals,
    items: await itemsOf(rows, parts, context),
    custom_analytics: [],
    start_time: formatUs(asked.start_us),
    end_time: formatUs(asked.end_us),
    as_of: asked.as_of,
  };
}

/** Amounts of different currencies are never added up. */
function totalsOf(rows: readonly AnalyticsRow[]) {
  const costs = new Map<string, Decimal[]>();
  for (const { item, cost } of rows) {
    if (item === null) continue;
    const { currency } = item.subscription;
    costs.set(currency, costs.get(currency) ?? []);
    costs.get(currency)!.push(cost);
  }
  return [...costs].map(([currency, some]) => {
    const total = sumOf(some);
    return { subtotal: total, total_discount: '0', total_cost: total, currency };
  });
}

async function itemsOf(rows: readonly AnalyticsRow[], parts: (row: AnalyticsRow) => object, { scope }: Context) {
  const items = [];
  for (const row of rows) {
    const points = row.points && (await inTurns(scope.tenant_id, row.points, showPoint));
    items.push({ ...itemOf(row), points, ...parts(row) });
  }
  return items;
}

function showPoint(point: AnalyticsPoint) {
  return {
    timestamp: formatUs(point.window_us),
    usage: point.usage,
    subtotal: point.cost,
    discount: '0',
    cost: point.cost,
    event_count: point.event_count,
  };
}

function itemOf({ item, meter, feature, group, usage, cost, event_count, ...row }: AnalyticsRow) {
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
    currency: item?.subscription.currency,
    event_count,
    properties: group.properties,
    plan_id: item?.record.entity_type === 'plan' ? item.record.entity_id : null,
    add_on_id: item?.record.entity_type === 'addon' ? item.record.entity_id : null,
    window_size: row.window_size,
  };
}

function reportingUnit({ reporting_unit }: FeatureModel) {
  return reporting_unit && { ...reporting_unit, conversion_rate: Number(reporting_unit.conversion_rate) };
}

/** One query per part, however many rows. */
async function partsOf(rows: readonly AnalyticsRow[], expand: readonly string[], context: Context) {
  const asks = (part: string) => expand.includes(part);
  const items = rows.flatMap(({ item }) => item ?? []);
  const features = rows.flatMap(({ feature }) => feature ?? []);
  const prices = asks('price') ? await showPrices(distinct(items.map((item) => item.price_record)), [], context) : [];
  const shown = asks('feature') ? await showFeatures(distinct(features), [], context) : [];
  const withoutParts = { prices: false, meters: false };
  const lines = asks('subscription_line_item')
    ? await showLineItems(distinct(items.map((item) => item.record)), withoutParts, context)
    : [];
  const planIds = items.flatMap(({ record }) => (record.entity_type === 'plan' ? (record.entity_id ?? []) : []));
  const { scope, services } = context;
  const plan = await PlanModel.byId(scope, asks('plan') ? planIds : [], services.postgres);
  const [price, feature, line] = [byId(prices), byId(shown), byId(lines)];
  return ({ item, meter, feature: own }: AnalyticsRow) => ({
    price: price.get(item?.price_record.id ?? ''),
    meter: asks('meter') ? meter : null,
    feature: feature.get(own?.id ?? ''),
    subscription_line_item: line.get(item?.id ?? ''),
    plan: item?.record.entity_type === 'plan' ? plan.get(item.record.entity_id ?? '') : null,
  });
}

function distinct<R extends { id: string }>(records: readonly R[]): R[] {
  return [...byId(records).values()];
}
