/**
 * What the usage of a batch of customers was or will be charged, for the usage export (docs/rules/usage.md, "Amounts in the
 * export"). What stands on an invoice is taken from there. What does not is measured and priced as a preview does it, and
 * so is what is cut: by the range, by days or by months (docs/rules/usage.md, "What a day adds to a charge").
 */
import { type BilledSubscription, countedSince, servicesWithin } from '../../core/billing/charges.ts';
import { chargeKey } from '../../core/billing/plan-invoice.ts';
import {
  addedSince,
  type Charged,
  cutTo,
  isNothing,
  NOTHING_CHARGED,
  type Stretch,
  stretchesOf,
} from '../../core/billing/stretches.ts';
import { Decimal } from '../../core/decimal.ts';
import type { InvoiceStatus } from '../../core/invoice/record.ts';
import { type PriceTerms, priceText } from '../../core/pricing/charge.ts';
import type { Scope } from '../../core/scope.ts';
import { formatMs, instantOf, type Microseconds, msNotBefore, msOf, usOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import type { MeterModel } from '../../storage/models/meter.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { billedSubscription } from '../billing/billable-items.ts';
import { type AnalyticsItem, gatherAnalyticsItems } from './analytics-items.ts';
import type { ExportAsked } from './export-asked.ts';
import { type Cut, measureCuts } from './measure-cuts.ts';

/** Who charges for the usage of a record, and how much. */
export type ExportedCharge = {
  readonly subscription_id: string;
  readonly plan: string;
  readonly line: string;
  readonly price: string;
  readonly amount: Decimal;
  readonly currency: string;
  /** Null where it stands on no invoice yet; a draft has no number yet. */
  readonly invoice: { readonly id: string; readonly number: string | null; readonly status: InvoiceStatus } | null;
};

export type ChargedUsage = Stretch & {
  readonly external_customer_id: string;
  readonly meter: MeterModel;
  readonly usage: Decimal;
  readonly event_count: number;
  readonly charge: ExportedCharge;
};

export type BatchCharges = {
  readonly records: readonly ChargedUsage[];
  /** When somebody charges for the usage of a meter, by `usageKey`. */
  readonly charged: ReadonlyMap<string, readonly Stretch[]>;
};

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
  const invoiced = await invoicedLines(stores.postgres, scope, { items, asked });
  const both = items.flatMap((item) => chargesOf(item, invoiced, asked));
  const ids = new Set(customers.map(({ id }) => id));
  const charges = both.filter(({ item }) => ids.has(item.subscription.customer_id));

  const measured = await measureCuts(stores, scope, { asked, cuts: charges.flatMap(cutsOf) });
  const records = charges.flatMap((charge) => recordsOf(charge, { asked, measured }));
  return { records, charged: timesOf(both) };
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

type InvoicedLine = {
  readonly line: InvoiceLineItemModel;
  readonly invoice: NonNullable<ExportedCharge['invoice']>;
  /** How many events it adds to those of the lines before it. */
  readonly event_count: number;
};

/** By `chargeKey`, oldest first: a charge's own line, and those that correct it. */
async function invoicedLines(
  database: Database,
  scope: Scope,
  { items, asked }: { items: readonly AnalyticsItem[]; asked: ExportAsked },
): Promise<Map<string, InvoicedLine[]>> {
  const lines = await InvoiceLineItemModel.in(scope, database)
    .whereIn('subscription_line_item_id', [...new Set(items.map(({ id }) => id))])
    .where({ status: 'published', price_type: 'USAGE' })
    .where('period_start', '<', formatMs(msNotBefore(asked.end_us)))
    .where('period_end', '>', formatMs(msOf(asked.start_us)))
    .orderBy(['created_at', 'invoice_id', 'position', 'id']);
  const invoices = await InvoiceModel.in(scope, database)
    .whereIn('id', [...new Set(lines.map(({ invoice_id }) => invoice_id))])
    .where('status', 'published')
    .whereNot('invoice_status', 'VOIDED');
  const byId = new Map(invoices.map((invoice) => [invoice.id, invoice]));
  const byCharge = new Map<string, InvoicedLine[]>();
  // A charge that was computed again is younger than what corrected it.
  const [own, corrections] = [lines.filter(isOwn), lines.filter((line) => !isOwn(line))];
  for (const line of [...own, ...corrections]) {
    const invoice = byId.get(line.invoice_id);
    if (!invoice) continue;
    const service = { start: instantOf(line.period_start!), end: instantOf(line.period_end!) };
    const key = chargeKey(line.subscription_line_item_id!, service);
    const before = byCharge.get(key) ?? [];
    byCharge.set(key, [...before, invoicedLine(line, invoice, before.at(-1)?.line)]);
  }
  return byCharge;
}

function isOwn({ parent_line_item_id }: InvoiceLineItemModel): boolean {
  return !parent_line_item_id;
}

function invoicedLine(line: InvoiceLineItemModel, invoice: InvoiceModel, before: InvoiceLineItemModel | undefined) {
  const counted = (of: InvoiceLineItemModel | undefined) => of?.computed_from?.event_count ?? 0;
  const { id, invoice_number, invoice_status: status } = invoice;
  return {
    line,
    invoice: { id, number: invoice_number ?? null, status },
    event_count: counted(line) - counted(before),
  };
}

/** A service period of a line item that shares time with the range. */
type Charge = {
  readonly item: AnalyticsItem;
  readonly service: Stretch;
  readonly subscription: BilledSubscription;
  /** What of it lies in the range, cut as the file is. */
  readonly stretches: readonly Stretch[];
  /** Its own line first, where it stands on an invoice, then what corrects it. */
  readonly lines: readonly InvoicedLine[];
};

/**
 * Those of periods that have begun: what never resets would be charged for in all that are to come. What a cancelled subscription
 * has not invoiced, it never will: such usage is exported without an amount.
 */
function chargesOf(item: AnalyticsItem, invoiced: ReadonlyMap<string, InvoicedLine[]>, asked: ExportAsked): Charge[] {
  const subscription = billedSubscription(item.subscription);
  const range = { start: msOf(asked.start_us), end: msNotBefore(asked.end_us) };
  const isOver = item.subscription.subscription_status === 'cancelled';
  const parts = stretchesOf(asked, asked.split, asked.timezone ?? 'UTC');
  return servicesWithin(range, item, subscription).flatMap((period) => {
    if (period.start > asked.now.getTime()) return [];
    const lines = invoiced.get(chargeKey(item.id, period)) ?? [];
    if (isOver && lines.length === 0) return [];
    const service = stretchOf(period);
    return [{ item, service, subscription, stretches: cutTo(parts, service), lines }];
  });
}

function stretchOf({ start, end }: Period): Stretch {
  return { start_us: usOf(start), end_us: usOf(end) };
}

/** At these instants the charge is measured: nothing is, where the invoice says all that is asked. */
function cutsOf(charge: Charge): Cut[] {
  if (isWhole(charge) && charge.lines.length > 0) return [];
  const { service, stretches, lines } = charge;
  const first = stretches[0]!.start_us;
  const bounds = [
    ...(first > service.start_us ? [first] : []),
    ...stretches.map(({ end_us }) => end_us),
    ...(lines.length > 0 ? [service.end_us] : []),
  ];
  return [...new Set(bounds)].map((at_us) => cutAt(charge, at_us));
}

function cutAt({ item, service, subscription }: Charge, at_us: Microseconds): Cut {
  const since_us = countedSince(item.reset_usage, service.start_us, usOf(subscription.start_ms));
  return { item, since_us, at_us, service };
}

function isWhole({ service, stretches }: Charge): boolean {
  const [only] = stretches;
  return stretches.length === 1 && only!.start_us === service.start_us && only!.end_us === service.end_us;
}

type Answers = { readonly asked: ExportAsked; readonly measured: (cut: Cut) => Charged };

function recordsOf(charge: Charge, { asked, measured }: Answers): ChargedUsage[] {
  const { service, stretches, lines } = charge;
  const at = (at_us: Microseconds) => (at_us === service.start_us ? NOTHING_CHARGED : measured(cutAt(charge, at_us)));
  const [own, ...corrections] = lines;
  const wholes = (some: readonly InvoicedLine[]) => {
    const endsHere = service.end_us > asked.start_us && service.end_us <= asked.end_us;
    return endsHere ? some.flatMap((one) => recordOf(charge, { ...service, added: saidBy(one), invoiced: one })) : [];
  };
  if (own && (isWhole(charge) || !isSame(saidBy(own), at(service.end_us)))) return wholes(lines);
  const parts = stretches.flatMap((stretch) => {
    const added = addedSince(at(stretch.start_us), at(stretch.end_us));
    return recordOf(charge, { ...stretch, added, invoiced: own ?? null });
  });
  return [...parts, ...wholes(corrections)];
}

function saidBy({ line, event_count }: InvoicedLine): Charged {
  return { quantity: new Decimal(line.quantity), amount: new Decimal(line.amount), event_count };
}

/** Only then are the parts of what is measured now parts of what the invoice says. */
function isSame(invoiced: Charged, measured: Charged): boolean {
  return invoiced.amount.eq(measured.amount) && invoiced.quantity.eq(measured.quantity);
}

type Added = Stretch & { added: Charged; invoiced: InvoicedLine | null };

function recordOf({ item }: Charge, { start_us, end_us, added, invoiced }: Added): ChargedUsage[] {
  if (isNothing(added)) return [];
  const { external_customer_id, meter, subscription, record } = item;
  const { quantity: usage, amount, event_count } = added;
  const charge = {
    subscription_id: subscription.id,
    plan: invoiced?.line.plan_display_name ?? record.plan_display_name ?? '',
    line: invoiced?.line.display_name ?? item.display_name,
    price: priceText((invoiced?.line.computed_from?.price as PriceTerms | null | undefined) ?? item.price),
    amount,
    currency: subscription.currency,
    invoice: invoiced?.invoice ?? null,
  };
  return [{ external_customer_id, meter, usage, event_count, start_us, end_us, charge }];
}

/** Of everybody whose usage a charge counts, while it does. */
function timesOf(charges: readonly Charge[]): Map<string, Stretch[]> {
  const times = new Map<string, Stretch[]>();
  for (const { item, service } of charges) {
    for (const { external_customer_id, joined_ms, left_ms } of item.members) {
      const start_us = Math.max(service.start_us, usOf(joined_ms));
      const end_us = Math.min(service.end_us, usOf(left_ms ?? Number.POSITIVE_INFINITY));
      if (start_us >= end_us) continue;
      const key = usageKey(external_customer_id, item.meter.id);
      times.set(key, [...(times.get(key) ?? []), { start_us, end_us }]);
    }
  }
  return times;
}
