/** Usage and cost analytics: an item per usage line and group, measured and rated as invoices are (docs/rules/usage.md, "Analytics"). */

import { indexById } from '../../../core/foundation/by-id.ts';
import { type Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import { type WindowSize } from '../../../core/foundation/time/window.ts';
import { type AnalyticsGroup, hasEventGroups, NO_GROUP } from '../../../core/metering/analytics/group-by.ts';
import { derivePointSize } from '../../../core/metering/analytics/point-size.ts';
import type { WindowAnswer } from '../../../core/metering/usage.ts';
import { countingStart } from '../../../core/rating/charges.ts';
import type { CommitmentInfo } from '../../../core/rating/commitments/info.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { TimeSlicer } from '../../../storage/concurrency/time-slicer.ts';
import { selectEventNames } from '../../../storage/events/event-names.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import type { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { loadFreshness } from '../../../storage/usage/usage.ts';
import { buildEmptyAnswer, needsUsageQuery, type PricedRange, priceRange, type TimesOfDay } from './analytics-costs.ts';
import { type AnalyticsItem, gatherAnalyticsItems } from './analytics-items.ts';
import { type AnalyticsPoint, compareByFeature, computePoints, listEmptyWindows } from './analytics-points.ts';
import { loadAnalyticsRecords } from './analytics-records.ts';
import { type ChainedCharge, chargeChainsWithin } from './chained-charges.ts';
import { createInvoicedUsageReader, type InvoicedUsageReader } from './invoiced-once.ts';
import {
  type AnalyticsSubject,
  isFiltered,
  type MeasuredSubject,
  measureAll,
  toGrid,
  type UsageAnalyticsQuery,
} from './measure-analytics.ts';

export type AnalyticsRow = {
  /** Item of the line; null for usage that no line item bills. */
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
  /** Null unless windows are requested. */
  readonly points: readonly AnalyticsPoint[] | null;
  readonly window_size: WindowSize | null;
};

type UsageAnalyticsReport = {
  readonly rows: readonly AnalyticsRow[];
  /** All events durable in the log before this instant are in all rows. */
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
  const meters = customers === null ? [] : await MeterModel.in(scope, database).where('status', 'published');
  const all = await gatherAnalyticsItems(database, scope, { ...query, customers, loaded_meters: indexById(meters) });
  const isRequested = (meter: { id: string }) =>
    (query.meter_ids?.includes(meter.id) ?? true) && (query.feature_ids === null || features.has(meter.id));
  const measured = await measureAll(stores, scope, {
    query,
    subjects: [
      ...all.filter((item) => isRequested(item.meter)).map(toSubject),
      ...(await gatherUnbilled(stores, scope, { query, customers, meters, items: all, isRequested })),
    ],
  });
  const invoiced = createInvoicedUsageReader(database);
  const items = measured.flatMap(({ subject: { item } }) => item ?? []);
  const chained = isWhole(query) ? await chargeChainsWithin(stores, items, { ...query, invoiced }) : new Map();
  const costing = { query, invoiced, chained };
  const ahead = await priceAhead(stores, measured, costing);
  const slicer = new TimeSlicer(query.bounds?.asker);
  const rows: AnalyticsRow[] = [];
  for (const one of measured) {
    for await (const row of buildRows(stores, one, { ...costing, features, slicer, ahead })) rows.push(row);
  }
  return { rows: rows.sort(compareByFeature), as_of };
}

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
  /** Published meters of the environment. */
  meters: readonly MeterModel[];
  items: readonly AnalyticsItem[];
  isRequested: (meter: { id: string }) => boolean;
};

/**
 * Meters with events of the customers that no line item bills, with or without a feature. A query of all customers excludes them, because
 * the result would be unreadable. Event names are read before customers are combined with meters: an environment may have a thousand of
 * each.
 */
async function gatherUnbilled(
  stores: Stores,
  scope: Scope,
  { query, customers, meters, items, isRequested }: UnbilledInput,
): Promise<AnalyticsSubject[]> {
  if (customers === null) return [];
  const billed = new Set(items.map((item) => `${item.external_customer_id}/${item.meter.id}`));
  const withoutItem = (meter: MeterModel) =>
    customers.filter(({ external_id }) => !billed.has(`${external_id}/${meter.id}`));
  const unbilled = meters.filter((meter) => isRequested(meter) && withoutItem(meter).length > 0);
  const names = await findNamesToMeasure(stores, scope, { query, customers, count: unbilled.length });
  const seen = names === null ? unbilled : unbilled.filter(({ event_name }) => names.has(event_name));
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

/** Number of unbilled meters up to which all are measured directly. Above it, only meters whose event name occurred are measured. */
const MEASURED_UNSEEN_MAX = 20;

/**
 * Returns the names of the events that occurred. Null means that all meters are measured: for few meters, this costs less than the query of
 * the names.
 */
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

/** Whether the query is cheap: it has no filter, no group and no windows. Filters and groups need the raw events. */
function isSmall(query: UsageAnalyticsQuery): boolean {
  return !isFiltered(query) && !hasEventGroups(query.group_by) && query.window_size === null;
}

function pick({ tenant_id, environment_id }: Scope): Scope {
  return { tenant_id, environment_id };
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

/**
 * Maximum number of pricing queries at a time, so that billing does not wait for them. Like those of billing, they run without
 * the bounds on queries of tenants (storage/concurrency/query-bounds.ts).
 */
const PRICED_AT_ONCE = 16;

/**
 * The cost of a line may need queries of its own: for the free units of its period, or for earlier draws from its commitment. These queries
 * are batched.
 */
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

/** Whether the query covers all usage of a line. */
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
  // A line without usage is shown, unless a filter selects used ones (docs/rules/usage.md, "Analytics"). Its cost is the shortfall of its
  // commitment.
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
    // Pricing groups in memory waits for no query, so without this pause thousands of groups would block other work.
    if (slicer.isOver()) await slicer.next(query.bounds?.signal);
  }
}
