/** Usage and cost analytics: an item per usage line and group, measured and rated as invoices are (docs/rules/usage.md, "Analytics"). */
import {
  type AnalyticsGroup,
  type GroupBy,
  hasEventGroups,
  NO_GROUP,
  toGroupValues,
} from '../../core/analytics/group-by.ts';
import { derivePointSize } from '../../core/analytics/point-size.ts';
import { compilePropertyFilters, type PropertyFilters } from '../../core/analytics/property-filter.ts';
import { countingStart } from '../../core/billing/charges.ts';
import type { CommitmentInfo } from '../../core/commitment/info.ts';
import { type Decimal, ZERO } from '../../core/decimal.ts';
import { groupBy } from '../../core/group-by.ts';
import type { WindowAnswer } from '../../core/metering/usage.ts';
import type { Scope } from '../../core/scope.ts';
import type { SubscriptionMember } from '../../core/subscription/members.ts';
import { ceilToMs, type Microseconds, type Milliseconds, toInstant, toMs, toUs } from '../../core/time/instant.ts';
import { type WindowSize, windowCount } from '../../core/time/window.ts';
import { BATCH_SIZE_MAX, hasMany, mapConcurrently } from '../../storage/batch-loader.ts';
import { selectEventNames } from '../../storage/events/event-names.ts';
import type { CustomerModel } from '../../storage/models/customer.ts';
import type { FeatureModel } from '../../storage/models/feature.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import type { Stores } from '../../storage/stores.ts';
import { mapYielding, TimeSlicer } from '../../storage/time-slicer.ts';
import { checkAnswer, checkCells, type QueryBounds } from '../../storage/usage/question.ts';
import { loadFreshness, readUsageReport, type UsageReport } from '../../storage/usage/usage.ts';
import type { MeterUsageQuery } from '../../storage/usage/usage-query.ts';
import { buildCustomerFilter } from '../billing/members.ts';
import { buildEmptyAnswer, needsUsageQuery, type PricedRange, priceRange, type TimesOfDay } from './analytics-costs.ts';
import { type AnalyticsItem, gatherAnalyticsItems } from './analytics-items.ts';
import {
  type AnalyticsPoint,
  type CountedUsage,
  canCostWithoutEvents,
  compareByFeature,
  computePoints,
  listEmptyWindows,
} from './analytics-points.ts';
import {
  type AnalyticsRecordIds,
  deriveDividing,
  loadAnalyticsRecords,
  parseAnalyticsKey,
} from './analytics-records.ts';
import { type ChainedCharge, chargeChainsWithin } from './chained-charges.ts';
import { createInvoicedUsageReader, type InvoicedUsageReader } from './invoiced-once.ts';

export type UsageAnalyticsQuery = AnalyticsRecordIds & {
  readonly sources: readonly string[] | null;
  readonly property_filters: PropertyFilters | null;
  readonly group_by: GroupBy;
  readonly window_size: WindowSize | null;
  readonly billing_anchor_ms: Milliseconds | null;
  /** Whether each time of day of a commitment is shown by itself. */
  readonly by_time_of_day?: boolean;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};

export type AnalyticsRow = {
  /** Null for usage that no line item bills. */
  readonly item: AnalyticsItem | null;
  readonly external_customer_id: string;
  readonly meter: MeterModel;
  readonly feature: FeatureModel | null;
  readonly group: AnalyticsGroup;
  readonly usage: Decimal;
  readonly cost: Decimal;
  readonly commitment_info: CommitmentInfo | null;
  readonly times_of_day: TimesOfDay | null;
  readonly event_count: number;
  /** Null unless windows were asked for. */
  readonly points: readonly AnalyticsPoint[] | null;
  readonly window_size: WindowSize | null;
};

export type UsageAnalyticsReport = {
  readonly rows: readonly AnalyticsRow[];
  /** Everything that was durable in the log before this instant is in all of the rows. */
  readonly as_of: string;
};

export async function loadUsageAnalytics(
  stores: Stores,
  scope: Scope,
  query: UsageAnalyticsQuery,
): Promise<UsageAnalyticsReport> {
  const database = stores.postgres;
  const [as_of, { features, customers }] = await Promise.all([
    loadFreshness(stores, scope, query.now.getTime()),
    loadAnalyticsRecords(database, scope, query),
  ]);
  const all = await gatherAnalyticsItems(database, scope, { ...query, customers });
  const isRequested = (meter: { id: string }) =>
    (query.meter_ids?.includes(meter.id) ?? true) && (query.feature_ids === null || features.has(meter.id));
  const measured = await measureAll(stores, scope, {
    query: query,
    subjects: [
      ...all.filter((item) => isRequested(item.meter)).map(toSubject),
      ...(await gatherUnbilled(stores, scope, { query: query, customers, items: all, isRequested: isRequested })),
    ],
  });
  const invoiced = createInvoicedUsageReader(database);
  const items = measured.flatMap(({ subject: { item } }) => item ?? []);
  const chained = isWhole(query) ? await chargeChainsWithin(stores, items, { ...query, invoiced }) : new Map();
  const costing = { query: query, invoiced, chained };
  const ahead = await priceAhead(stores, measured, costing);
  const slicer = new TimeSlicer(query.bounds?.asker);
  const rows: AnalyticsRow[] = [];
  for (const one of measured) {
    for await (const row of buildRows(stores, one, { ...costing, features, slicer: slicer, ahead })) rows.push(row);
  }
  return { rows: rows.sort(compareByFeature), as_of };
}

/** What is measured: a line item in its life, or a meter that nothing bills in the whole range. */
type AnalyticsSubject = {
  readonly item: AnalyticsItem | null;
  readonly meter: MeterModel;
  readonly external_customer_id: string;
  /** Of a line item that counts the usage of several customers as one; null of every other. */
  readonly members: readonly SubscriptionMember[] | null;
  /** What is counted since then, as an invoice does: of a meter that never resets since the subscription began. */
  readonly since_us: Microseconds;
  /** Where its windows begin. */
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly timezone: string;
  readonly anchor_ms: Milliseconds | null;
};

function toSubject(item: AnalyticsItem): AnalyticsSubject {
  const { meter, external_customer_id, start_us, end_us, subscription } = item;
  const anchor_ms = toInstant(subscription.billing_anchor);
  const since_us = countingStart(meter.reset_usage, start_us, toUs(toInstant(subscription.start_date)));
  const members = item.members.length > 1 ? item.members : null;
  const { timezone } = subscription;
  return { item, meter, external_customer_id, members, since_us, start_us, end_us, timezone, anchor_ms };
}

type UnbilledInput = {
  query: UsageAnalyticsQuery;
  customers: readonly CustomerModel[] | null;
  items: readonly AnalyticsItem[];
  isRequested: (meter: { id: string }) => boolean;
};

/**
 * Meters of the customers' events that none of their line items bills, with a feature or without; of all customers at once nobody can read them.
 * Which events there are is asked before customers are put beside meters: an environment may have a thousand of each.
 */
async function gatherUnbilled(
  stores: Stores,
  scope: Scope,
  { query, customers, items, isRequested }: UnbilledInput,
): Promise<AnalyticsSubject[]> {
  if (customers === null) return [];
  const billed = new Set(items.map((item) => `${item.external_customer_id}/${item.meter.id}`));
  const withoutItem = (meter: MeterModel) =>
    customers.filter(({ external_id }) => !billed.has(`${external_id}/${meter.id}`));
  const published = await MeterModel.in(scope, stores.postgres).where('status', 'published');
  const meters = published.filter((meter) => isRequested(meter) && withoutItem(meter).length > 0);
  const names = await findNamesToMeasure(stores, scope, { query: query, customers, count: meters.length });
  const seen = names === null ? meters : meters.filter(({ event_name }) => names.has(event_name));
  const { start_us, end_us } = query;
  return seen.flatMap((meter) =>
    withoutItem(meter).map(({ external_id, timezone }) => ({
      item: null,
      meter,
      external_customer_id: external_id,
      members: null,
      since_us: start_us,
      start_us,
      end_us,
      timezone,
      anchor_ms: null,
    })),
  );
}

/** More meters than these are asked for only where there are events of their name; a few are measured, and have rows or not. */
const MEASURED_UNSEEN_MAX = 20;

/** Null where all may be measured: a few that answer from buckets cost less than to ask which events there are. */
async function findNamesToMeasure(
  stores: Stores,
  scope: Scope,
  { query, customers, count }: { query: UsageAnalyticsQuery; customers: readonly CustomerModel[]; count: number },
): Promise<ReadonlySet<string> | null> {
  if (count === 0 || (count <= MEASURED_UNSEEN_MAX && isSmall(query))) return null;
  const { start_us, end_us } = query;
  const external_ids = customers.map(({ external_id }) => external_id);
  const names = await selectEventNames.run(stores.clickhouse, {
    ...pick(scope),
    customers: external_ids,
    start_us,
    end_us,
  });
  return new Set(names.map(({ event_name }) => event_name));
}

/** Sources, properties and groups of the question's own are in no bucket, and every window is counted and costs. */
function isSmall(query: UsageAnalyticsQuery): boolean {
  return !isFiltered(query) && !hasEventGroups(query.group_by) && query.window_size === null;
}

function isFiltered({ sources, property_filters }: UsageAnalyticsQuery): boolean {
  return sources !== null || property_filters !== null;
}

function pick({ tenant_id, environment_id }: Scope): Scope {
  return { tenant_id, environment_id };
}

type MeasuredSubject = {
  subject: AnalyticsSubject;
  report: UsageReport;
  usage: readonly { group: AnalyticsGroup; of: CountedUsage }[];
};

/** Customers who share a meter, a range and a clock share one question, and so do the lines of one customer. */
async function measureAll(
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
    const some = await measureBatch(stores, scope, { query: query, same, is_of_many: hasMany(questions.size) });
    for (const { usage } of some) {
      answer.items += usage.length;
      for (const { of } of usage) answer.points += of.windows.length;
    }
    if (query.bounds) checkAnswer(answer, deriveDividing(query));
    return some;
  });
  // In the order of the line items again.
  const order = new Map(subjects.map((subject, index) => [subject, index]));
  return measured.flat().sort((a, b) => order.get(a.subject)! - order.get(b.subject)!);
}

/** By what it is cut into windows; what is not cut is the same on every clock, and of an anchor months alone know. */
function deriveClock(
  { meter, timezone, anchor_ms }: AnalyticsSubject,
  { window_size, billing_anchor_ms }: UsageAnalyticsQuery,
) {
  const sizes = [window_size, meter.aggregation.bucket_size].filter((size) => size);
  const anchor = sizes.includes('MONTH') ? (billing_anchor_ms ?? anchor_ms) : null;
  return [sizes.length > 0 ? timezone : null, anchor];
}

function toGrid({ timezone, anchor_ms }: AnalyticsSubject, { billing_anchor_ms }: UsageAnalyticsQuery) {
  return { timezone, billing_anchor: billing_anchor_ms ?? anchor_ms };
}

/** A question is cut into its windows, whether or not there are events in them. */
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
  // A weighted sum of who left is another one in a window than in the whole range.
  const every_window = window_size !== undefined && same.some(({ item }) => canCostWithoutEvents(meter, item));
  const windows = { window_size, every_window };
  const hasLead = since_us !== start_us;
  // A weighted sum of who left is another one in a window than in the whole range.
  const isOne = window_size === undefined || (!hasLead && !question.clipped?.size);
  const report = await readUsageReport(stores, scope, {
    ...question,
    start_us: since_us,
    ...(isOne ? { ...windows, running_values: true } : {}),
  });
  const windowed = isOne
    ? report
    : await readUsageReport(stores, scope, { ...question, ...windows, start_us, running_values: !hasLead });
  // A meter that never resets has cost something before its windows begin.
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

/** Several customers, who are answered as the one who pays. */
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

type AnalyticsCosting = {
  readonly query: UsageAnalyticsQuery;
  readonly invoiced: InvoicedUsageReader;
  readonly chained: ReadonlyMap<string, ChainedCharge>;
};
type PricedByMeasured = ReadonlyMap<MeasuredSubject, PricedRange>;
type RowParts = AnalyticsCosting & {
  features: ReadonlyMap<string, FeatureModel>;
  slicer: TimeSlicer;
  ahead: PricedByMeasured;
};

/** They are asked without the bounds of who waits for the answer, as billing asks: few at a time, so that nobody's bills wait for them. */
const PRICED_AT_ONCE = 16;

/** What a line costs may be a question of its own, about what is free of its period or drawn of its term: these are asked together. */
async function priceAhead(
  stores: Stores,
  measured: readonly MeasuredSubject[],
  costing: AnalyticsCosting,
): Promise<PricedByMeasured> {
  const costed = isWhole(costing.query)
    ? measured.filter(({ subject: { item } }) => item && needsUsageQuery(item))
    : [];
  const priced = await mapConcurrently(PRICED_AT_ONCE, costed, (one) => {
    costing.query.bounds?.signal.throwIfAborted();
    return priceRange(stores, toCosting(one, costing), one.usage[0]?.of.total ?? buildEmptyAnswer(one.subject));
  });
  return new Map(costed.map((one, index) => [one, priced[index]!]));
}

function toCosting({ subject: { item }, report }: MeasuredSubject, { query, invoiced, chained }: AnalyticsCosting) {
  const { by_time_of_day = false, now } = query;
  const charge = item ? chained.get(item.id) : undefined;
  return { item, report, isWhole: isWhole(query), by_time_of_day, now, invoiced, chained: charge };
}

/** All of a line's usage, not a part of it. */
function isWhole(query: UsageAnalyticsQuery): boolean {
  return !isFiltered(query) && !hasEventGroups(query.group_by);
}

async function* buildRows(stores: Stores, one: MeasuredSubject, parts: RowParts): AsyncGenerator<AnalyticsRow> {
  const { query, features, slicer, ahead, chained } = parts;
  const { subject, usage } = one;
  const { item, meter, external_customer_id } = subject;
  const window_size = derivePointSize(query.window_size, meter.aggregation.bucket_size);
  const row = { item, meter, external_customer_id, feature: features.get(meter.id) ?? null, window_size };
  const pointing = {
    range: subject,
    window_size: window_size!,
    grid: toGrid(subject, query),
    signal: query.bounds?.signal,
  };
  const priced = async (answer: WindowAnswer) => ahead.get(one) ?? priceRange(stores, toCosting(one, parts), answer);
  // What was not used is shown, unless a filter asks for what was (docs/rules/usage.md, "Analytics"): it costs what is lacking to a commitment.
  if (usage.length === 0 && item !== null && !isFiltered(query)) {
    const { costs, total } = await priced(buildEmptyAnswer(subject));
    const windows = window_size ? listEmptyWindows(subject, window_size, pointing.grid) : [];
    const of = { windows, running: windows };
    const points = window_size && (await computePoints({ ...pointing, of, costs, total }, slicer));
    yield { ...row, ...total, group: NO_GROUP, usage: ZERO, event_count: 0, points };
  }
  for (const { group, of } of usage) {
    const { costs, total } = await priced(of.total);
    const points = window_size && (await computePoints({ ...pointing, of, costs, total }, slicer));
    yield {
      ...row,
      ...total,
      group,
      usage: (item && chained.get(item.id)?.measured.get(item.id)?.quantity) ?? of.total.value,
      event_count: of.total.event_count,
      points,
    };
    // To have a value at once is no turn of others, and there may be thousands of groups.
    if (slicer.isOver()) await slicer.next(query.bounds?.signal);
  }
}
