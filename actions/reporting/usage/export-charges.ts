/**
 * Past and expected charges for the usage of a batch of customers, for the usage export (docs/rules/usage.md, "Amounts in the export").
 * Invoiced charges are taken from the invoice. All others, and charges that are cut by the range, by days or by months, are measured and
 * priced as in a preview (docs/rules/usage.md, "What a day adds to a charge").
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { ceilToMs, toMs, toUs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { periodsWithin } from '../../../core/rating/chains/levels.ts';
import { type ChargeInterval, cutTo, splitRange } from '../../../core/rating/charge-intervals.ts';
import { computeServicesWithin, hasOwnPeriods } from '../../../core/rating/charges.ts';
import { chargeKey } from '../../../core/rating/plan-invoice.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { CHARGES_AT_ONCE, currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { type AnalyticsItem, gatherAnalyticsItems } from './analytics-items.ts';
import { type ChainedCharge, chargeChains } from './chained-charges.ts';
import {
  buildRecords,
  type CountedInvoiceLine,
  canBeCut,
  cutAt,
  type ExportedChargeUsage,
  type ExportServiceCharge,
  isFullyInvoiced,
} from './export-records.ts';
import { createInvoicedUsageReader } from './invoiced-once.ts';
import {
  type InvoicedUsageLine,
  type InvoicedUsageLines,
  loadInvoicedUsageLines,
  planPreviewedLines,
} from './invoiced-usage-lines.ts';
import { measureCuts, type UsageCut } from './measure-cuts.ts';
import type { UsageExportQuery } from './usage-export-query.ts';

export type BatchCharges = {
  readonly records: readonly ExportedChargeUsage[];
  /** Intervals in which the usage of a meter is charged, by `usageKey`. */
  readonly charged: ReadonlyMap<string, readonly ChargeInterval[]>;
  /** Line items whose charges in the range are all in `records` or `others`. */
  readonly item_ids: ReadonlySet<string>;
  /** Invoiced charges for an interval that is no service period of their line item, e.g. on manual invoices. */
  readonly others: readonly OtherCharge[];
  /** Charges taken from the preview, by `chargeKey`. */
  readonly previewed: ReadonlySet<string>;
};

type OtherCharge = { readonly item: AnalyticsItem; readonly line: InvoicedUsageLine };

export function usageKey(external_customer_id: string, meter_id: string): string {
  return JSON.stringify([external_customer_id, meter_id]);
}

export async function loadBatchCharges(
  stores: Stores,
  scope: Scope,
  { query, customers }: { query: UsageExportQuery; customers: readonly CustomerModel[] },
): Promise<BatchCharges> {
  const { start_us, end_us, meter_ids } = query;
  const all = await gatherAnalyticsItems(stores.postgres, scope, {
    customers: [...customers, ...(await loadPayingCustomers(stores.postgres, scope, customers))],
    start_us,
    end_us,
    now: query.now,
  });
  const items = all.filter(({ meter }) => meter_ids?.includes(meter.id) ?? true);
  const services = items.flatMap((item) => startedServices(item, query));
  const since = Math.min(toMs(start_us), ...services.map(({ period }) => period.start));
  const invoiced = await loadInvoicedUsageLines(stores.postgres, scope, { items, since, end_us });
  const previewed = await planPreviewedLines(stores, { services, invoiced, now: query.now });
  const chained = await chargeServiceChains(stores, services, query.now);
  const both = services.flatMap((one) => buildCharges(one, { invoiced, previewed, chained, query }));
  const ids = new Set(customers.map(({ id }) => id));
  const charges = both.filter(({ item }) => ids.has(item.subscription.customer_id));

  const measured = await measureCuts(stores, scope, { query, cuts: charges.flatMap(listCuts) });
  const records = charges.flatMap((charge) => buildRecords(charge, { query, measured }));
  const own = items.filter(({ subscription }) => ids.has(subscription.customer_id));
  return {
    records,
    charged: collectChargedTimes(both),
    item_ids: new Set(own.map(({ id }) => id)),
    others: listOtherCharges(own, { services, invoiced }),
    previewed: new Set(previewed.keys()),
  };
}

function listOtherCharges(
  items: readonly AnalyticsItem[],
  { services, invoiced }: { services: readonly ExportService[]; invoiced: InvoicedUsageLines },
): OtherCharge[] {
  const keys = new Set(services.map(({ item, period }) => chargeKey(item.id, period)));
  const periods = groupBy(services, ({ item }) => item.id);
  const isPart = (id: string, { service: { start } }: InvoicedUsageLine) =>
    (periods.get(id) ?? []).some(({ period }) => start >= period.start && start < period.end);
  const byItem = groupBy(
    [...invoiced.byCharge].filter(([key]) => !keys.has(key)),
    ([key]) => key.split('/', 1)[0]!,
  );
  return items.flatMap((item) => [
    ...(byItem.get(item.id) ?? []).flatMap(([, lines]) => lines.map((line) => ({ item, line }))),
    ...(invoiced.partial.get(item.id) ?? []).flatMap((line) => (isPart(item.id, line) ? [] : [{ item, line }])),
  ]);
}

/**
 * Loads the customers of the parent subscriptions that these customers inherit, because the parents' charges include the usage of these
 * customers.
 */
async function loadPayingCustomers(
  database: Database,
  scope: Scope,
  customers: readonly CustomerModel[],
): Promise<CustomerModel[]> {
  const ids = customers.map(({ id }) => id);
  const inheritedSubscriptions = await SubscriptionModel.in(scope, database)
    .select('parent_subscription_id')
    .whereIn('customer_id', ids)
    .where({ subscription_type: 'INHERITED', status: 'published' });
  const parentIds = inheritedSubscriptions.map(({ parent_subscription_id }) => parent_subscription_id);
  const parents = await SubscriptionModel.byId(scope, parentIds, database);
  const payers = Array.from(parents.values(), ({ customer_id }) => customer_id);
  const found = await CustomerModel.byId(
    scope,
    payers.filter((id) => !ids.includes(id)),
    database,
  );
  return [...found.values()];
}

type ExportService = { readonly item: AnalyticsItem; readonly period: Period };

/**
 * Lists the service periods that have begun. Without this limit, a meter that never resets would be charged in all future periods. A line
 * that begins later in the running period is included.
 */
function startedServices(item: AnalyticsItem, query: UsageExportQuery): ExportService[] {
  const range = { start: toMs(query.start_us), end: ceilToMs(query.end_us) };
  const billed = toBilledSubscription(item.subscription);
  const now = query.now.getTime();
  const begun = hasOwnPeriods(item, billed) ? now : Math.max(now, currentPeriod(item.subscription).end - 1);
  return computeServicesWithin(range, item, billed)
    .filter(({ start }) => start <= begun)
    .map((period) => ({ item, period }));
}

type ChainedChargesByKey = ReadonlyMap<string, ChainedCharge>;

/**
 * Computes the charges of chained lines (docs/rules/proration.md, "Usage over a change") per service period, by `chargeKey`. The lines of a
 * chain are priced in one call, because the charge of each depends on the usage of the others.
 */
async function chargeServiceChains(
  stores: Stores,
  services: readonly ExportService[],
  now: Date,
): Promise<ChainedChargesByKey> {
  const linked = services.filter(({ item }) => item.chain_terms);
  const groups = groupBy(linked, ({ item, period }) => {
    const [whole] = periodsWithin(period, item, toBilledSubscription(item.subscription));
    return `${item.subscription.id}/${item.chain_terms!.key}/${whole?.start}/${whole?.end}`;
  });
  const several = [...groups.values()].filter((of) => of.length > 1 || of[0].item.chain_terms!.rule === 'integral');
  const invoiced = createInvoicedUsageReader(stores.postgres);
  const charges = await mapConcurrently(CHARGES_AT_ONCE, several, (of) => {
    const periods = new Map(of.map(({ item, period }) => [item, period]));
    return chargeChains(stores, {
      queried: Array.from(periods, ([item, period]) => ({ item, period })),
      now,
      loadRecorded: ({ subscription }) => invoiced(subscription),
    });
  });
  return new Map(charges.flat().map((charge) => [chargeKey(charge.item.id, charge.service), charge]));
}

type ExportChargeSources = {
  readonly invoiced: InvoicedUsageLines;
  readonly previewed: ReadonlyMap<string, readonly InvoicedUsageLine[]>;
  readonly chained: ChainedChargesByKey;
  readonly query: UsageExportQuery;
};

/** Builds the charges. A cancelled subscription will not be invoiced again: its uninvoiced usage is exported without an amount. */
function buildCharges(
  { item, period }: ExportService,
  { invoiced, previewed, chained, query }: ExportChargeSources,
): ExportServiceCharge[] {
  const key = chargeKey(item.id, period);
  const own = invoiced.byCharge.get(key) ?? previewed.get(key) ?? [];
  const before = (invoiced.partial.get(item.id) ?? []).filter(
    ({ service }) => service.start >= period.start && service.start < period.end,
  );
  const isOver = item.subscription.subscription_status === 'cancelled' && own.length === 0;
  if (isOver && before.length === 0) return [];
  const end = isOver ? before.at(-1)!.service.end : period.end;
  const service = toInterval({ start: period.start, end });
  const all = withCounts([...before, ...own]);
  return [
    {
      item,
      service,
      subscription: toBilledSubscription(item.subscription),
      chained: chained.get(key),
      intervals: cutTo(splitRange(query, query.split, query.timezone ?? 'UTC'), service),
      partial: all.slice(0, before.length),
      lines: all.slice(before.length),
    },
  ];
}

/**
 * Adds to each line the number of events that it counts in addition to the lines before it. A line records its total event count at its
 * creation.
 */
function withCounts(lines: readonly InvoicedUsageLine[]): CountedInvoiceLine[] {
  let counted = 0;
  return lines.map((line) => {
    const event_count = line.computed_from?.event_count ?? 0;
    const added = {
      quantity: new Decimal(line.quantity),
      amount: new Decimal(line.amount),
      event_count: event_count - counted,
    };
    counted = event_count;
    return { line, added };
  });
}

function toInterval({ start, end }: Period): ChargeInterval {
  return { start_us: toUs(start), end_us: toUs(end) };
}

/** Lists the instants at which the charge is measured; none if the whole charge is exported as it was invoiced. */
function listCuts(charge: ExportServiceCharge): UsageCut[] {
  if (isFullyInvoiced(charge) || !canBeCut(charge)) return [];
  const { service, intervals, partial, lines } = charge;
  const first = intervals[0]?.start_us ?? service.end_us;
  const bounds = [
    ...(first > service.start_us ? [first] : []),
    ...intervals.map(({ end_us }) => end_us),
    ...partial.map(({ line }) => toUs(line.service.end)),
    ...(lines.length > 0 || partial.length > 0 ? [service.end_us] : []),
  ];
  return [...new Set(bounds)].map((at_us) => cutAt(charge, at_us));
}

/** Collects the intervals in which charges count the usage of a customer, by external customer id. */
function collectChargedTimes(charges: readonly ExportServiceCharge[]): Map<string, ChargeInterval[]> {
  const times = new Map<string, ChargeInterval[]>();
  for (const { item, service } of charges) {
    for (const { external_customer_id, joined_ms, left_ms } of item.members) {
      const start_us = Math.max(service.start_us, toUs(joined_ms));
      const end_us = Math.min(service.end_us, toUs(left_ms ?? Number.POSITIVE_INFINITY));
      if (start_us >= end_us) continue;
      const key = usageKey(external_customer_id, item.meter.id);
      times.set(key, [...(times.get(key) ?? []), { start_us, end_us }]);
    }
  }
  return times;
}
