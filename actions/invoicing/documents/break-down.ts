/**
 * Splits the usage lines of an invoice by source, feature or property (docs/rules/invoices.md, "Who used it"). The usage is measured as of
 * now, in the window stored on the line; the parts add up to the stored amount of the line.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import { breakDown, type GroupBreakdown, type GroupUsage } from '../../../core/invoicing/invoice/breakdown.ts';
import {
  type GroupBy,
  hasEventGroups,
  toAnalyticsGroup,
  toGroupValues,
} from '../../../core/metering/analytics/group-by.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import type { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { buildCustomerFilter, loadMembers } from '../../rating/members.ts';

type BreakdownGroup = Readonly<Record<string, string>>;
type BreakdownQuery = {
  /** Null means no split by groups. */
  readonly group_by: GroupBy | null;
  readonly by_feature: boolean;
  readonly by_source: boolean;
  readonly now: Date;
  /** Limits for a request of a tenant; unset when the service itself renders the document. */
  readonly bounds?: QueryBounds | undefined;
};
export type LineBreakdown = {
  readonly usage_breakdown: GroupBreakdown<BreakdownGroup>[] | null;
  readonly usage_analytics: GroupBreakdown<string>[] | null;
};

const QUESTIONS_AT_ONCE = 8;
const BY_SOURCE: GroupBy = { source: true, properties: [] };

/** Splits the lines; the result is by line id. A line that was not measured itself, such as a correction, has no entry. */
export async function breakDownLines(
  stores: Stores,
  scope: Scope,
  { lines, ...query }: BreakdownQuery & { lines: readonly InvoiceLineItemModel[] },
): Promise<Map<string, LineBreakdown>> {
  const measured = lines.filter(isMeasured);
  const { postgres } = stores;
  const subscriptionIds = measured.map(({ subscription_id }) => subscription_id);
  const subscriptions = await SubscriptionModel.byId(scope, subscriptionIds, postgres);
  const meterIds = measured.map(({ meter_id }) => meter_id);
  const [meters, features, members] = await Promise.all([
    MeterModel.byId(scope, meterIds, postgres),
    query.by_feature ? loadFeaturesByMeter(stores, scope, meterIds) : new Map<string, string>(),
    loadMembers(postgres, scope, [...subscriptions.values()]),
  ]);
  const parts = await mapConcurrently(QUESTIONS_AT_ONCE, measured, async (line) => {
    const [subscription, meter] = [subscriptions.get(line.subscription_id!), meters.get(line.meter_id!)];
    if (!subscription || !meter) return null;
    const start = toInstant(line.computed_from!.window_start!);
    const window = { start, end: toInstant(line.computed_from!.window_end!) };
    const service_start = line.period_start ? toInstant(line.period_start) : start;
    const ask = async (group_by: GroupBy) => {
      const { usage } = await readUsageReport(stores, scope, {
        meter,
        ...buildCustomerFilter(members.get(subscription.id)!, window, service_start),
        start_us: toUs(window.start),
        end_us: toUs(window.end),
        timezone: subscription.timezone,
        billing_anchor_ms: toInstant(subscription.billing_anchor),
        key_of: hasEventGroups(group_by) ? (event) => JSON.stringify(toGroupValues(group_by, event)) : undefined,
        now_ms: query.now.getTime(),
        bounds: query.bounds,
      });
      return usage.map(({ key, total }) => ({
        group: toAnalyticsGroup(group_by, hasEventGroups(group_by) ? JSON.parse(key) : []),
        usage: total.value,
        event_count: total.event_count,
      }));
    };
    return {
      id: line.id,
      ...(await computeLineBreakdown(line, { ask, query, feature_id: features.get(meter.id) ?? '' })),
    };
  });
  return new Map(parts.flatMap((one) => (one ? [[one.id, one]] : [])));
}

/** A line that corrects or offsets another one is a difference of amounts and has no usage. */
function isMeasured({
  price_type,
  meter_id,
  subscription_id,
  parent_line_item_id,
  computed_from,
}: InvoiceLineItemModel) {
  const isOwn = price_type === 'USAGE' && meter_id && subscription_id && !parent_line_item_id;
  return Boolean(isOwn && computed_from?.window_start && computed_from.window_end);
}

type Ask = (group_by: GroupBy) => Promise<GroupUsage<ReturnType<typeof toAnalyticsGroup>>[]>;
type BreakdownParts = { readonly ask: Ask; readonly query: BreakdownQuery; readonly feature_id: string };

async function computeLineBreakdown(
  line: InvoiceLineItemModel,
  { ask, query, feature_id }: BreakdownParts,
): Promise<LineBreakdown> {
  const amount = new Decimal(line.amount);
  const { group_by, by_feature, by_source } = query;
  const groups = group_by && (await ask(group_by));
  const sources = by_source ? await ask(BY_SOURCE) : null;
  const named = groups?.map(({ group: { source, properties }, ...usage }) => ({
    ...usage,
    group: {
      ...(source === null ? {} : { source }),
      ...(by_feature ? { feature_id } : {}),
      ...properties,
    },
  }));
  return {
    usage_breakdown: named ? breakDown(amount, named, line.currency) : null,
    usage_analytics:
      sources &&
      breakDown(
        amount,
        sources.map((one) => ({ ...one, group: one.group.source ?? '' })),
        line.currency,
      ),
  };
}

/** Loads the oldest published feature of each meter. */
async function loadFeaturesByMeter(
  { postgres }: Stores,
  scope: Scope,
  meterIds: readonly (string | null | undefined)[],
) {
  const features = await FeatureModel.in(scope, postgres)
    .whereIn('meter_id', [...new Set(meterIds.flatMap((id) => id ?? []))])
    .where('status', 'published')
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ]);
  return new Map(features.map(({ meter_id, id }) => [meter_id!, id]));
}
