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
import { CustomerModel } from '../../storage/models/customer.ts';
import type { MeterModel } from '../../storage/models/meter.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { mapConcurrently } from '../../storage/together.ts';
import { billedSubscription, CHARGES_AT_ONCE, currentPeriod } from '../billing/billable-items.ts';
import { type AnalyticsItem, gatherAnalyticsItems } from './analytics-items.ts';
import { type ChainedCharge, chargeChains } from './chained-charges.ts';
import type { ExportAsked } from './export-asked.ts';
import { invoicedOnce } from './invoiced-once.ts';
import { type Cut, measureCuts } from './measure-cuts.ts';
import { type SaidLine, type SaidLines, saidByPreview, saidOnInvoices } from './said-lines.ts';

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
  readonly invoice: SaidLine['invoice'];
};

export type ChargedUsage = ChargeInterval & {
  readonly external_customer_id: string;
  readonly meter: MeterModel;
  readonly usage: Decimal;
  readonly event_count: number;
  readonly charge: ExportedCharge;
};

export type BatchCharges = {
  readonly records: readonly ChargedUsage[];
  /** When somebody charges for the usage of a meter, by `usageKey`. */
  readonly charged: ReadonlyMap<string, readonly ChargeInterval[]>;
  /** Of these line items every charge that meets the range is said, here or in `others`. */
  readonly item_ids: ReadonlySet<string>;
  /** What stands on invoices for other times than the service periods of its line item, as it may be written by hand. */
  readonly others: readonly OtherCharge[];
  /** By `chargeKey`: what was said by the preview. */
  readonly previewed: ReadonlySet<string>;
};

export type OtherCharge = { readonly item: AnalyticsItem; readonly line: SaidLine };

export function usageKey(external_customer_id: string, meter_id: string): string {
  return JSON.stringify([external_customer_id, meter_id]);
}

export async function chargesOfBatch(
  stores: Stores,
  scope: Scope,
  { asked, customers }: { asked: ExportAsked; customers: readonly CustomerModel[] },
): Promise<BatchCharges> {
  const { start_us, end_us, meter_ids } = asked;
  const all = await gatherAnalyticsItems(stores.postgres, scope, {
    customers: [...customers, ...(await chargedForThem(stores.postgres, scope, customers))],
    start_us,
    end_us,
    now: asked.now,
  });
  const items = all.filter(({ meter }) => meter_ids?.includes(meter.id) ?? true);
  const services = items.flatMap((item) => startedServices(item, asked));
  const since = Math.min(toMs(start_us), ...services.map(({ period }) => period.start));
  const said = await saidOnInvoices(stores.postgres, scope, { items, since, end_us });
  const previewed = await saidByPreview(stores, { services, said, now: asked.now });
  const chained = await chainsOfServices(stores, services, asked.now);
  const both = services.flatMap((one) => chargeOf(one, { said, previewed, chained, asked }));
  const ids = new Set(customers.map(({ id }) => id));
  const charges = both.filter(({ item }) => ids.has(item.subscription.customer_id));

  const measured = await measureCuts(stores, scope, { asked, cuts: charges.flatMap(cutsOf) });
  const records = charges.flatMap((charge) => recordsOf(charge, { asked, measured }));
  const own = items.filter(({ subscription }) => ids.has(subscription.customer_id));
  return {
    records,
    charged: timesOf(both),
    item_ids: new Set(own.map(({ id }) => id)),
    others: othersOf(own, { services, said }),
    previewed: new Set(previewed.keys()),
  };
}

function othersOf(
  items: readonly AnalyticsItem[],
  { services, said }: { services: readonly Service[]; said: SaidLines },
): OtherCharge[] {
  const keys = new Set(services.map(({ item, period }) => chargeKey(item.id, period)));
  const periods = groupBy(services, ({ item }) => item.id);
  const isPart = (id: string, { service: { start } }: SaidLine) =>
    (periods.get(id) ?? []).some(({ period }) => start >= period.start && start < period.end);
  const byItem = groupBy(
    [...said.byCharge].filter(([key]) => !keys.has(key)),
    ([key]) => key.split('/', 1)[0]!,
  );
  return items.flatMap((item) => [
    ...(byItem.get(item.id) ?? []).flatMap(([, lines]) => lines.map((line) => ({ item, line }))),
    ...(said.partial.get(item.id) ?? []).flatMap((line) => (isPart(item.id, line) ? [] : [{ item, line }])),
  ]);
}

/** Others, in whose subscriptions some of these take part: their charges count the usage of these, too. */
async function chargedForThem(
  database: Database,
  scope: Scope,
  customers: readonly CustomerModel[],
): Promise<CustomerModel[]> {
  const ids = customers.map(({ id }) => id);
  const heirs = await SubscriptionModel.in(scope, database)
    .select('parent_subscription_id')
    .whereIn('customer_id', ids)
    .where({ subscription_type: 'INHERITED', status: 'published' });
  const parentIds = heirs.map(({ parent_subscription_id }) => parent_subscription_id);
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
type Said = { readonly line: SaidLine; readonly added: ChargedAmounts };

/** A service period of a line item that shares time with the range. */
type Charge = {
  readonly item: AnalyticsItem;
  readonly service: ChargeInterval;
  readonly subscription: BilledSubscription;
  /** The line's share of the cost of its chain; undefined if the line is charged by itself. */
  readonly chained: ChainedCharge | undefined;
  /** What of it lies in the range, cut as the file is. */
  readonly stretches: readonly ChargeInterval[];
  /** What was invoiced of it before it was over, oldest first. */
  readonly partial: readonly Said[];
  /** Its own line first, where it stands on an invoice or the preview says it, then what corrects it. */
  readonly lines: readonly Said[];
};

type Service = { readonly item: AnalyticsItem; readonly period: Period };

/**
 * Those of periods that have begun: what never resets would be charged for in all that are to come. In the period that runs a line may
 * begin later.
 */
function startedServices(item: AnalyticsItem, asked: ExportAsked): Service[] {
  const range = { start: toMs(asked.start_us), end: ceilToMs(asked.end_us) };
  const billed = billedSubscription(item.subscription);
  const now = asked.now.getTime();
  const begun = hasOwnPeriods(item, billed) ? now : Math.max(now, currentPeriod(item.subscription).end - 1);
  return computeServicesWithin(range, item, billed)
    .filter(({ start }) => start <= begun)
    .map((period) => ({ item, period }));
}

type Chained = ReadonlyMap<string, ChainedCharge>;

/** By `chargeKey`. Lines of one chain have one meter, and lie in one billing period. */
async function chainsOfServices(stores: Stores, services: readonly Service[], now: Date): Promise<Chained> {
  const linked = services.filter(({ item }) => item.chain_terms);
  const groups = groupBy(linked, ({ item, period }) => {
    const [whole] = periodsWithin(period, item, billedSubscription(item.subscription));
    return `${item.subscription.id}/${item.chain_terms!.key}/${whole?.start}/${whole?.end}`;
  });
  const several = [...groups.values()].filter((of) => of.length > 1 || of[0].item.chain_terms!.rule === 'integral');
  const invoiced = invoicedOnce(stores.postgres);
  const charges = await mapConcurrently(CHARGES_AT_ONCE, several, (of) => {
    const periods = new Map(of.map(({ item, period }) => [item, period]));
    return chargeChains(stores, {
      items: [...periods.keys()],
      periodOf: (item) => periods.get(item),
      now,
      recordedOf: ({ subscription }) => invoiced(subscription),
    });
  });
  return new Map(charges.flat().map((charge) => [chargeKey(charge.item.id, charge.service), charge]));
}

type Known = {
  readonly said: SaidLines;
  readonly previewed: ReadonlyMap<string, readonly SaidLine[]>;
  readonly chained: Chained;
  readonly asked: ExportAsked;
};

/** What a cancelled subscription has not invoiced, it never will: such usage is exported without an amount. */
function chargeOf({ item, period }: Service, { said, previewed, chained, asked }: Known): Charge[] {
  const key = chargeKey(item.id, period);
  const own = said.byCharge.get(key) ?? previewed.get(key) ?? [];
  const before = (said.partial.get(item.id) ?? []).filter(
    ({ service }) => service.start >= period.start && service.start < period.end,
  );
  const isOver = item.subscription.subscription_status === 'cancelled' && own.length === 0;
  if (isOver && before.length === 0) return [];
  const end = isOver ? before.at(-1)!.service.end : period.end;
  const service = stretchOf({ start: period.start, end });
  const all = withCounts([...before, ...own]);
  return [
    {
      item,
      service,
      subscription: billedSubscription(item.subscription),
      chained: chained.get(key),
      stretches: cutTo(splitRange(asked, asked.split, asked.timezone ?? 'UTC'), service),
      partial: all.slice(0, before.length),
      lines: all.slice(before.length),
    },
  ];
}

/** Each line says how many events were counted when it was made. */
function withCounts(lines: readonly SaidLine[]): Said[] {
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

function stretchOf({ start, end }: Period): ChargeInterval {
  return { start_us: toUs(start), end_us: toUs(end) };
}

/** At these instants the charge is measured: nothing is, where what is said is all that is asked. */
function cutsOf(charge: Charge): Cut[] {
  if (isSaidWhole(charge) || !canBeCut(charge)) return [];
  const { service, stretches, partial, lines } = charge;
  const first = stretches[0]?.start_us ?? service.end_us;
  const bounds = [
    ...(first > service.start_us ? [first] : []),
    ...stretches.map(({ end_us }) => end_us),
    ...partial.map(({ line }) => toUs(line.service.end)),
    ...(lines.length > 0 || partial.length > 0 ? [service.end_us] : []),
  ];
  return [...new Set(bounds)].map((at_us) => cutAt(charge, at_us));
}

/** Whether the file asks for all of it, and all of it is said. */
function isSaidWhole(charge: Charge): boolean {
  const { partial, lines, service } = charge;
  const isSaid = lines.length > 0 || toUs(partial.at(-1)?.line.service.end ?? 0) === service.end_us;
  return isWhole(charge) && isSaid;
}

/** A line that shares cost, free units or a commitment with its chain cannot be cut: its share is known when the chain is over. */
function canBeCut({ chained }: Charge): boolean {
  if (!chained) return true;
  const { rule, lines, level_since } = chained.chain;
  const isOwn =
    rule === 'additive' || (rule === 'integral' && lines.length === 1 && level_since === chained.service.start);
  return isOwn && lines.every(({ item }) => !item.allowances?.length && !item.commitment);
}

function cutAt({ item, service, subscription, chained }: Charge, at_us: Microseconds): Cut {
  const since_us = countingStart(item.reset_usage, service.start_us, toUs(subscription.start_ms));
  return { item, since_us, at_us, service, chained };
}

function isWhole({ service, stretches }: Charge): boolean {
  const [only] = stretches;
  return stretches.length === 1 && only!.start_us === service.start_us && only!.end_us === service.end_us;
}

type Answers = { readonly asked: ExportAsked; readonly measured: (cut: Cut) => ChargedAmounts };

function recordsOf(charge: Charge, { asked, measured }: Answers): ChargedUsage[] {
  const { service, stretches, partial, lines } = charge;
  const at = (at_us: Microseconds) => (at_us === service.start_us ? NOTHING_CHARGED : measured(cutAt(charge, at_us)));
  const [own, ...corrections] = lines;
  const wholes = (some: readonly Said[], start_us = service.start_us) =>
    some.flatMap(({ line, added }) => {
      const end_us = toUs(line.service.end);
      return endsIn(asked, end_us) ? recordOf(charge, { start_us, end_us, added, line }) : [];
    });
  if (isSaidWhole(charge)) return wholes([...partial, ...lines]);
  if (charge.chained && !canBeCut(charge)) {
    const until = toChargedAmounts(charge.chained);
    return [...wholes([...partial, ...lines]), ...restOf(charge, { asked, at: () => until })];
  }
  if (!isSame(charge, at)) return [...wholes([...partial, ...lines]), ...restOf(charge, { asked, at })];
  const parts = stretches
    .flatMap((stretch) => cutAtInvoices(stretch, partial))
    .flatMap((stretch) => {
      const added = computeAddedCharge(at(stretch.start_us), at(stretch.end_us));
      const invoiced = partial.find(({ line }) => toUs(line.service.end) >= stretch.end_us) ?? own;
      return recordOf(charge, { ...stretch, added, line: invoiced?.line ?? null });
    });
  return [...parts, ...wholes(corrections)];
}

function endsIn({ start_us, end_us }: ChargeInterval, at_us: Microseconds): boolean {
  return at_us > start_us && at_us <= end_us;
}

/** What was invoiced before the period was over ends where it was. */
function cutAtInvoices({ start_us, end_us }: ChargeInterval, partial: readonly Said[]): ChargeInterval[] {
  const ends = [...new Set(partial.map(({ line }) => toUs(line.service.end)))];
  const bounds = [start_us, ...ends.filter((at_us) => at_us > start_us && at_us < end_us), end_us];
  return bounds.slice(1).map((end_us, index) => ({ start_us: bounds[index]!, end_us }));
}

/** Only then are the parts of what is measured now parts of what the invoices say. */
function isSame({ service, partial, lines }: Charge, at: (at_us: Microseconds) => ChargedAmounts): boolean {
  let said = NOTHING_CHARGED;
  const [own] = lines;
  const ended = [
    ...partial.map((one) => [one, toUs(one.line.service.end)] as const),
    ...(own ? [[own, service.end_us] as const] : []),
  ];
  return ended.every(([{ added }, end_us], index) => {
    said = { ...said, quantity: said.quantity.plus(added.quantity), amount: said.amount.plus(added.amount) };
    if (ended[index + 1]?.[1] === end_us) return true;
    const measured = at(end_us);
    return said.amount.eq(measured.amount) && said.quantity.eq(measured.quantity);
  });
}

/** Of what was invoiced in parts, and of which neither an invoice nor the preview says the rest. */
function restOf(charge: Charge, { asked, at }: { asked: ExportAsked; at: (at_us: Microseconds) => ChargedAmounts }) {
  const { service, partial, lines } = charge;
  const until = toUs(partial.at(-1)?.line.service.end ?? 0);
  if (lines.length > 0 || until === service.end_us || !endsIn(asked, service.end_us)) return [];
  const added = partial.reduce((left, { added }) => computeAddedCharge(added, left), at(service.end_us));
  return recordOf(charge, { ...service, added, line: null });
}

type Added = ChargeInterval & { added: ChargedAmounts; line: SaidLine | null };

function recordOf({ item }: Charge, { start_us, end_us, added, line }: Added): ChargedUsage[] {
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
function timesOf(charges: readonly Charge[]): Map<string, ChargeInterval[]> {
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
