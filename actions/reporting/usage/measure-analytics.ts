/** Measures usage for analytics: subjects with the same meter, range and windows are one query of the usage reader. */

import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { ceilToMs, type Microseconds, type Milliseconds, toMs } from '../../../core/foundation/time/instant.ts';
import { type WindowSize, windowCount } from '../../../core/foundation/time/window.ts';
import {
  type AnalyticsGroup,
  type GroupBy,
  hasEventGroups,
  toGroupValues,
} from '../../../core/metering/analytics/group-by.ts';
import { derivePointSize } from '../../../core/metering/analytics/point-size.ts';
import { compilePropertyFilters, type PropertyFilters } from '../../../core/metering/analytics/property-filter.ts';
import type { SubscriptionMember } from '../../../core/subscriptions/members.ts';
import { BATCH_SIZE_MAX, hasMany, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { checkAnswer, checkCells, type QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import { mapYielding } from '../../../storage/concurrency/time-slicer.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { readUsageReport, type UsageReport } from '../../../storage/usage/usage.ts';
import type { MeterUsageQuery } from '../../../storage/usage/usage-query.ts';
import { buildCustomerFilter } from '../../rating/members.ts';
import { type AnalyticsItem } from './analytics-items.ts';
import { type CountedUsage, canCostWithoutEvents } from './analytics-points.ts';
import { type AnalyticsRecordIds, deriveDividing, parseAnalyticsKey } from './analytics-records.ts';

export type UsageAnalyticsQuery = AnalyticsRecordIds & {
  readonly sources: readonly string[] | null;
  readonly property_filters: PropertyFilters | null;
  readonly group_by: GroupBy;
  readonly window_size: WindowSize | null;
  readonly billing_anchor_ms: Milliseconds | null;
  /** Whether each time of day of a commitment is a separate result. */
  readonly by_time_of_day?: boolean;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};

/** A measured unit: a line item in its active interval, or a meter that is not billed in the whole range. */
export type AnalyticsSubject = {
  readonly item: AnalyticsItem | null;
  readonly meter: MeterModel;
  readonly external_customer_id: string;
  /** Set for a line item that counts several customers as one; otherwise null. */
  readonly members: readonly SubscriptionMember[] | null;
  /**
   * Instant from which usage counts. For a meter that never resets, it is the start of the subscription, as on an
   * invoice.
   */
  readonly since_us: Microseconds;
  /** Start of the windows. */
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly timezone: string;
  readonly anchor_ms: Milliseconds | null;
};

export function isFiltered({ sources, property_filters }: UsageAnalyticsQuery): boolean {
  return sources !== null || property_filters !== null;
}

export type MeasuredSubject = {
  subject: AnalyticsSubject;
  report: UsageReport;
  usage: readonly { group: AnalyticsGroup; of: CountedUsage }[];
};

/** Measures the usage. Customers with the same meter, range and clock share one query, and so do lines of one customer. */
export async function measureAll(
  stores: Stores,
  scope: Scope,
  { query, subjects }: { query: UsageAnalyticsQuery; subjects: readonly AnalyticsSubject[] },
): Promise<MeasuredSubject[]> {
  const questions = groupBy(subjects, (subject) => {
    const { item, meter, members, since_us, start_us, end_us } = subject;
    return JSON.stringify([meter.id, since_us, start_us, end_us, ...deriveClock(subject, query), members && item?.id]);
  });
  if (query.bounds)
    checkCells([...questions.values()].reduce((sum, [one]) => sum + countQueriedWindows(one, query), 0));
  const answer = { items: 0, points: 0 };
  const measured = await mapConcurrently(BATCH_SIZE_MAX, [...questions.values()], async (same) => {
    const some = await measureBatch(stores, scope, { query, same, is_of_many: hasMany(questions.size) });
    for (const { usage } of some) {
      answer.items += usage.length;
      for (const { of } of usage) answer.points += of.windows.length;
    }
    if (query.bounds) checkAnswer(answer, deriveDividing(query));
    return some;
  });
  // Restores the order of the line items.
  const order = new Map(subjects.map((subject, index) => [subject, index]));
  return measured.flat().sort((a, b) => order.get(a.subject)! - order.get(b.subject)!);
}

/** Time zone and anchor of the windows. Without windows the time zone does not matter, and only months depend on the anchor. */
function deriveClock(
  { meter, timezone, anchor_ms }: AnalyticsSubject,
  { window_size, billing_anchor_ms }: UsageAnalyticsQuery,
) {
  const sizes = [window_size, meter.aggregation.bucket_size].filter((size) => size);
  const anchor = sizes.includes('MONTH') ? (billing_anchor_ms ?? anchor_ms) : null;
  return [sizes.length > 0 ? timezone : null, anchor];
}

export function toGrid({ timezone, anchor_ms }: AnalyticsSubject, { billing_anchor_ms }: UsageAnalyticsQuery) {
  return { timezone, billing_anchor: billing_anchor_ms ?? anchor_ms };
}

/** Counts the windows of a query, including those without events. */
function countQueriedWindows(
  { meter, start_us, end_us }: AnalyticsSubject,
  { window_size }: UsageAnalyticsQuery,
): number {
  return windowCount({ start_us, end_us }, derivePointSize(window_size, meter.aggregation.bucket_size));
}

async function measureBatch(
  stores: Stores,
  scope: Scope,
  {
    query,
    same,
    is_of_many,
  }: { query: UsageAnalyticsQuery; same: readonly [AnalyticsSubject, ...AnalyticsSubject[]]; is_of_many: boolean },
): Promise<MeasuredSubject[]> {
  const [{ meter, members, since_us, start_us }] = same;
  const question = {
    ...buildUsageQuery(same, query),
    is_of_many,
    ...(members ? buildMembersQuery(same[0], query) : {}),
  };
  const window_size = derivePointSize(query.window_size, meter.aggregation.bucket_size) ?? undefined;
  const every_window = window_size !== undefined && same.some(({ item }) => canCostWithoutEvents(meter, item));
  const windows = { window_size, every_window };
  const hasLead = since_us !== start_us;
  // The weighted sum of a customer who left differs between a window and the whole range, so both are queried.
  const isOne = window_size === undefined || (!hasLead && !question.clipped?.size);
  const report = await readUsageReport(stores, scope, {
    ...question,
    start_us: since_us,
    ...(isOne ? { ...windows, running_values: true } : {}),
  });
  const windowed = isOne
    ? report
    : await readUsageReport(stores, scope, { ...question, ...windows, start_us, running_values: !hasLead });
  // A meter that never resets has a cost before its windows begin.
  const led = { ...question, ...windows, start_us: since_us, windows_from_us: start_us, running_values: true };
  const running = hasLead && window_size !== undefined ? await readUsageReport(stores, scope, led) : windowed;
  const [own, until] = [windowed, running].map(({ usage }) => new Map(usage.map((of) => [of.key, of.windows])));
  const counted = await mapYielding(scope.tenant_id, report.usage, (of) => ({
    ...parseAnalyticsKey(query, members && !hasEventGroups(query.group_by) ? same[0].external_customer_id : of.key),
    of: { ...of, windows: own!.get(of.key) ?? [], running: until!.get(of.key) ?? [] },
  }));
  const byCustomer = groupBy(counted, ({ customer }) => customer);
  return same.map((subject) => ({ subject, report, usage: byCustomer.get(subject.external_customer_id) ?? [] }));
}

/** Builds the query for several customers that are measured as one; the result has the key of the paying customer. */
function buildMembersQuery(
  { external_customer_id, members, since_us, start_us, end_us }: AnalyticsSubject,
  { group_by }: UsageAnalyticsQuery,
): Partial<MeterUsageQuery> {
  const window = { start: toMs(since_us), end: ceilToMs(end_us) };
  return {
    ...buildCustomerFilter(members!, window, toMs(start_us)),
    by_customer: false,
    key_of: hasEventGroups(group_by)
      ? (event) => JSON.stringify([external_customer_id, ...toGroupValues(group_by, event)])
      : undefined,
  };
}

function buildUsageQuery(
  same: readonly [AnalyticsSubject, ...AnalyticsSubject[]],
  query: UsageAnalyticsQuery,
): Omit<MeterUsageQuery, 'start_us'> {
  const [{ meter, end_us, timezone, anchor_ms }] = same;
  const { group_by, sources, property_filters } = query;
  return {
    meter,
    external_customer_ids: [...new Set(same.map((subject) => subject.external_customer_id))],
    end_us,
    timezone,
    billing_anchor_ms: query.billing_anchor_ms ?? anchor_ms ?? undefined,
    by_customer: true,
    only: isFiltered(query)
      ? {
          sources: sources ?? undefined,
          passes: property_filters ? compilePropertyFilters(property_filters) : undefined,
        }
      : undefined,
    key_of: hasEventGroups(group_by)
      ? (event) => JSON.stringify([event.external_customer_id, ...toGroupValues(group_by, event)])
      : undefined,
    is_grouped: hasEventGroups(group_by),
    now_ms: query.now.getTime(),
    bounds: query.bounds,
  };
}
