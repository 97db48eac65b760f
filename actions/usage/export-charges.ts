/**
 * What the usage of a batch of customers was or will be charged, for the usage export (docs/rules/usage.md, "Amounts in the
 * export"). What stands on an invoice is taken from there. What does not is measured and priced as a preview does it, and
 * so is what is cut: by the range, by days or by months (docs/rules/usage.md, "What a day adds to a charge").
 */
import { periodsWithin } from '../../core/billing/chains/levels.ts';
import {
  type ChargedAmounts,
  type ChargeInterval,
  computeAddedCharge,
  cutTo,
  isNothing,
  NOTHING_CHARGED,
  splitRange,
  toChargedAmounts,
} from '../../core/billing/charge-intervals.ts';
import {
  type BilledSubscription,
  computeServicesWithin,
  countingStart,
  hasOwnPeriods,
} from '../../core/billing/charges.ts';
import { chargeKey } from '../../core/billing/plan-invoice.ts';
import { Decimal } from '../../core/decimal.ts';
import { groupBy } from '../../core/group-by.ts';
import { type PriceTerms, priceText } from '../../core/pricing/charge.ts';
import type { Scope } from '../../core/scope.ts';
import { ceilToMs, type Microseconds, toMs, toUs } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { mapConcurrently } from '../../storage/batch-loader.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import type { MeterModel } from '../../storage/models/meter.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { billedSubscription, CHARGES_AT_ONCE, currentPeriod } from '../billing/billable-items.ts';
import { type AnalyticsItem, gatherAnalyticsItems } from './analytics-items.ts';
import { type ChainedCharge, chargeChains } from './chained-charges.ts';
import { createInvoicedUsageReader } from './invoiced-once.ts';
import {
  type InvoicedUsageLine,
  type InvoicedUsageLines,
  loadInvoicedUsageLines,
  planPreviewedLines,
} from './invoiced-usage-lines.ts';
import { measureCuts, type UsageCut } from './measure-cuts.ts';
import type { UsageExportQuery } from './usage-export-query.ts';

/** Who charges for the usage of a record, and how much. */
export type ExportedCharge = {
  readonly line_item_id: string;
  readonly subscription_id: string;
  readonly plan: string;
  readonly line: string;
  readonly price: string;
  readonly amount: Decimal;
  readonly currency: string;
  /** Null where it stands on no invoice yet; a draft has no number yet. */
  readonly invoice: InvoicedUsageLine['invoice'];
};

export type ExportedChargeUsage = ChargeInterval & {
  readonly external_customer_id: string;
  readonly meter: MeterModel;
  readonly usage: Decimal;
  readonly event_count: number;
  readonly charge: ExportedCharge;
};

export type BatchCharges = {
  readonly records: readonly ExportedChargeUsage[];
  /** When somebody charges for the usage of a meter, by `usageKey`. */
  readonly charged: ReadonlyMap<string, readonly ChargeInterval[]>;
  /** Of these line items every charge that meets the range is said, here or in `others`. */
  readonly item_ids: ReadonlySet<string>;
  /** What stands on invoices for other times than the service periods of its line item, as it may be written by hand. */
  readonly others: readonly OtherCharge[];
  /** By `chargeKey`: what was said by the preview. */
  readonly previewed: ReadonlySet<string>;
};

export type OtherCharge = { readonly item: AnalyticsItem; readonly line: InvoicedUsageLine };

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
  const previewed = await planPreviewedLines(stores, { services, invoiced: invoiced, now: query.now });
  const chained = await chargeServiceChains(stores, services, query.now);
  const both = services.flatMap((one) => buildCharges(one, { invoiced: invoiced, previewed, chained, query: query }));
  const ids = new Set(customers.map(({ id }) => id));
  const charges = both.filter(({ item }) => ids.has(item.subscription.customer_id));

  const measured = await measureCuts(stores, scope, { query: query, cuts: charges.flatMap(listCuts) });
  const records = charges.flatMap((charge) => buildRecords(charge, { query: query, measured }));
  const own = items.filter(({ subscription }) => ids.has(subscription.customer_id));
  return {
    records,
    charged: collectChargedTimes(both),
    item_ids: new Set(own.map(({ id }) => id)),
    others: listOtherCharges(own, { services, invoiced: invoiced }),
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

/** Others, in whose subscriptions some of these take part: their charges count the usage of these, too. */
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

/** What a line says, and how many events it adds to those of the lines before it. */
type CountedInvoiceLine = { readonly line: InvoicedUsageLine; readonly added: ChargedAmounts };

/** A service period of a line item that shares time with the range. */
type ExportServiceCharge = {
  readonly item: AnalyticsItem;
  readonly service: ChargeInterval;
  readonly subscription: BilledSubscription;
  /** The line's share of the cost of its chain; undefined if the line is charged by itself. */
  readonly chained: ChainedCharge | undefined;
  /** What of it lies in the range, cut as the file is. */
  readonly intervals: readonly ChargeInterval[];
  /** What was invoiced of it before it was over, oldest first. */
  readonly partial: readonly CountedInvoiceLine[];
  /** Its own line first, where it stands on an invoice or the preview says it, then what corrects it. */
  readonly lines: readonly CountedInvoiceLine[];
};

type ExportService = { readonly item: AnalyticsItem; readonly period: Period };

/**
 * Those of periods that have begun: what never resets would be charged for in all that are to come. In the period that runs a line may
 * begin later.
 */
function startedServices(item: AnalyticsItem, query: UsageExportQuery): ExportService[] {
  const range = { start: toMs(query.start_us), end: ceilToMs(query.end_us) };
  const billed = billedSubscription(item.subscription);
  const now = query.now.getTime();
  const begun = hasOwnPeriods(item, billed) ? now : Math.max(now, currentPeriod(item.subscription).end - 1);
  return computeServicesWithin(range, item, billed)
    .filter(({ start }) => start <= begun)
    .map((period) => ({ item, period }));
}

type ChainedChargesByKey = ReadonlyMap<string, ChainedCharge>;

/** By `chargeKey`. Lines of one chain have one meter, and lie in one billing period. */
async function chargeServiceChains(
  stores: Stores,
  services: readonly ExportService[],
  now: Date,
): Promise<ChainedChargesByKey> {
  const linked = services.filter(({ item }) => item.chain_terms);
  const groups = groupBy(linked, ({ item, period }) => {
    const [whole] = periodsWithin(period, item, billedSubscription(item.subscription));
    return `${item.subscription.id}/${item.chain_terms!.key}/${whole?.start}/${whole?.end}`;
  });
  const several = [...groups.values()].filter((of) => of.length > 1 || of[0].item.chain_terms!.rule === 'integral');
  const invoiced = createInvoicedUsageReader(stores.postgres);
  const charges = await mapConcurrently(CHARGES_AT_ONCE, several, (of) => {
    const periods = new Map(of.map(({ item, period }) => [item, period]));
    return chargeChains(stores, {
      items: [...periods.keys()],
      findPeriod: (item) => periods.get(item),
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

/** What a cancelled subscription has not invoiced, it never will: such usage is exported without an amount. */
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
      subscription: billedSubscription(item.subscription),
      chained: chained.get(key),
      intervals: cutTo(splitRange(query, query.split, query.timezone ?? 'UTC'), service),
      partial: all.slice(0, before.length),
      lines: all.slice(before.length),
    },
  ];
}

/** Each line says how many events were counted when it was made. */
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

/** At these instants the charge is measured: nothing is, where what is said is all that is asked. */
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

/** Whether the file asks for all of it, and all of it is said. */
function isFullyInvoiced(charge: ExportServiceCharge): boolean {
  const { partial, lines, service } = charge;
  const isInvoiced = lines.length > 0 || toUs(partial.at(-1)?.line.service.end ?? 0) === service.end_us;
  return isWhole(charge) && isInvoiced;
}

/** A line that shares cost, free units or a commitment with its chain cannot be cut: its share is known when the chain is over. */
function canBeCut({ chained }: ExportServiceCharge): boolean {
  if (!chained) return true;
  const { rule, lines, level_since } = chained.chain;
  const isOwn =
    rule === 'additive' || (rule === 'integral' && lines.length === 1 && level_since === chained.service.start);
  return isOwn && lines.every(({ item }) => !item.allowances?.length && !item.commitment);
}

function cutAt({ item, service, subscription, chained }: ExportServiceCharge, at_us: Microseconds): UsageCut {
  const since_us = countingStart(item.reset_usage, service.start_us, toUs(subscription.start_ms));
  return { item, since_us, at_us, service, chained };
}

function isWhole({ service, intervals }: ExportServiceCharge): boolean {
  const [only] = intervals;
  return intervals.length === 1 && only!.start_us === service.start_us && only!.end_us === service.end_us;
}

type ExportAnswers = { readonly query: UsageExportQuery; readonly measured: (cut: UsageCut) => ChargedAmounts };

function buildRecords(charge: ExportServiceCharge, { query, measured }: ExportAnswers): ExportedChargeUsage[] {
  const { service, intervals, partial, lines } = charge;
  const at = (at_us: Microseconds) => (at_us === service.start_us ? NOTHING_CHARGED : measured(cutAt(charge, at_us)));
  const [own, ...corrections] = lines;
  const wholes = (some: readonly CountedInvoiceLine[], start_us = service.start_us) =>
    some.flatMap(({ line, added }) => {
      const end_us = toUs(line.service.end);
      return endsIn(query, end_us) ? buildRecord(charge, { start_us, end_us, added, line }) : [];
    });
  if (isFullyInvoiced(charge)) return wholes([...partial, ...lines]);
  if (charge.chained && !canBeCut(charge)) {
    const until = toChargedAmounts(charge.chained);
    return [...wholes([...partial, ...lines]), ...buildRestRecords(charge, { query: query, at: () => until })];
  }
  if (!isSame(charge, at))
    return [...wholes([...partial, ...lines]), ...buildRestRecords(charge, { query: query, at })];
  const parts = intervals
    .flatMap((interval) => cutAtInvoices(interval, partial))
    .flatMap((interval) => {
      const added = computeAddedCharge(at(interval.start_us), at(interval.end_us));
      const invoiced = partial.find(({ line }) => toUs(line.service.end) >= interval.end_us) ?? own;
      return buildRecord(charge, { ...interval, added, line: invoiced?.line ?? null });
    });
  return [...parts, ...wholes(corrections)];
}

function endsIn({ start_us, end_us }: ChargeInterval, at_us: Microseconds): boolean {
  return at_us > start_us && at_us <= end_us;
}

/** What was invoiced before the period was over ends where it was. */
function cutAtInvoices({ start_us, end_us }: ChargeInterval, partial: readonly CountedInvoiceLine[]): ChargeInterval[] {
  const ends = [...new Set(partial.map(({ line }) => toUs(line.service.end)))];
  const bounds = [start_us, ...ends.filter((at_us) => at_us > start_us && at_us < end_us), end_us];
  return bounds.slice(1).map((end_us, index) => ({ start_us: bounds[index]!, end_us }));
}

/** Only then are the parts of what is measured now parts of what the invoices say. */
function isSame(
  { service, partial, lines }: ExportServiceCharge,
  at: (at_us: Microseconds) => ChargedAmounts,
): boolean {
  let invoiced = NOTHING_CHARGED;
  const [own] = lines;
  const ended = [
    ...partial.map((one) => [one, toUs(one.line.service.end)] as const),
    ...(own ? [[own, service.end_us] as const] : []),
  ];
  return ended.every(([{ added }, end_us], index) => {
    invoiced = {
      ...invoiced,
      quantity: invoiced.quantity.plus(added.quantity),
      amount: invoiced.amount.plus(added.amount),
    };
    if (ended[index + 1]?.[1] === end_us) return true;
    const measured = at(end_us);
    return invoiced.amount.eq(measured.amount) && invoiced.quantity.eq(measured.quantity);
  });
}

/** Of what was invoiced in parts, and of which neither an invoice nor the preview says the rest. */
function buildRestRecords(
  charge: ExportServiceCharge,
  { query, at }: { query: UsageExportQuery; at: (at_us: Microseconds) => ChargedAmounts },
) {
  const { service, partial, lines } = charge;
  const until = toUs(partial.at(-1)?.line.service.end ?? 0);
  if (lines.length > 0 || until === service.end_us || !endsIn(query, service.end_us)) return [];
  const added = partial.reduce((left, { added }) => computeAddedCharge(added, left), at(service.end_us));
  return buildRecord(charge, { ...service, added, line: null });
}

type AddedCharge = ChargeInterval & { added: ChargedAmounts; line: InvoicedUsageLine | null };

function buildRecord(
  { item }: ExportServiceCharge,
  { start_us, end_us, added, line }: AddedCharge,
): ExportedChargeUsage[] {
  if (isNothing(added)) return [];
  const { external_customer_id, meter, subscription, record } = item;
  const { quantity: usage, amount, event_count } = added;
  const charge = {
    line_item_id: item.id,
    subscription_id: subscription.id,
    plan: line?.plan_display_name ?? record.plan_display_name ?? '',
    line: line?.display_name ?? item.display_name,
    price: priceText((line?.computed_from?.price as PriceTerms | null | undefined) ?? item.price),
    amount,
    currency: subscription.currency,
    invoice: line?.invoice ?? null,
  };
  return [{ external_customer_id, meter, usage, event_count, start_us, end_us, charge }];
}

/** Of everybody whose usage a charge counts, while it does. */
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
