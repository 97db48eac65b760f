/**
 * Previews a correction of an event (docs/rules/events.md, "What a correction would change"): meters, open drafts and next invoices, as they
 * are and as they would be. Both are planned by the functions of the invoices themselves; the second reads usage with the corrected event.
 * Nothing is written.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Milliseconds, toMs } from '../../../core/foundation/time/instant.ts';
import { type Period, periodContaining } from '../../../core/foundation/time/period.ts';
import { windowAt } from '../../../core/foundation/time/window.ts';
import { type ChangedLine, listChangedLines } from '../../../core/invoicing/invoice/changed-lines.ts';
import type { Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import { matches } from '../../../core/metering/match.ts';
import type { CorrectedEvent, PlannedCorrection } from '../../../core/metering/planned-correction.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { type BilledUsage, readUsage } from '../../../storage/usage/usage.ts';
import { type PlannedInvoice, planLateInvoice } from '../../invoicing/billing/plan-invoices.ts';
import { planDraft } from '../../invoicing/invoices/compute-invoice.ts';
import { toComputedFields, toInvoiceParts, toInvoiceRecord } from '../../invoicing/records/invoice-records.ts';
import { type PlanCorrectionInput, planCorrection } from '../../metering/events/plan-correction.ts';
import { readUncorrected } from '../../metering/events/uncorrected-read.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';
import { findLatePeriod } from '../billing/bill-late-usage.ts';
import { previewInvoice } from './preview-invoice.ts';

export type CorrectedMeter = {
  readonly meter: MeterModel;
  readonly external_customer_id: string;
  readonly customer: CustomerModel | null;
  readonly period: Period;
  readonly before: BilledUsage;
  readonly after: BilledUsage;
};

export type CorrectedInvoice = {
  readonly subscription: SubscriptionModel;
  /** An open draft; null for the next invoice of the subscription. */
  readonly invoice_id: string | null;
  readonly currency: string;
  readonly total_before: string;
  readonly total_after: string;
  readonly lines: readonly ChangedLine[];
};

export type CorrectionPreview = {
  readonly correction: PlannedCorrection;
  readonly meters: readonly CorrectedMeter[];
  readonly invoices: readonly CorrectedInvoice[];
};

export async function previewCorrection(
  stores: Stores,
  scope: Scope,
  { now, ...input }: PlanCorrectionInput & { readonly now: Date },
): Promise<CorrectionPreview> {
  const { correction, corrections } = await planCorrection(stores, scope, input);
  const subject = { event_id: input.event_id, corrections };
  return readUncorrected(stores, scope, subject, () => compareEffects(stores, scope, { correction, now }));
}

async function compareEffects(
  stores: Stores,
  scope: Scope,
  { correction, now }: { readonly correction: PlannedCorrection; readonly now: Date },
): Promise<CorrectionPreview> {
  const both = { before: stores, after: { ...stores, planned_correction: correction }, now };
  const parties = await gatherSubscriptions(stores, scope, correction);
  const meters = await compareMeters(both, scope, { correction, ...parties });
  const invoices: CorrectedInvoice[] = [];
  for (const subscription of parties.billed) {
    const drafts = await compareDrafts(both, subscription);
    const next = await compareNext(both, subscription);
    invoices.push(...drafts, ...(next ? [next] : []));
  }
  return { correction, meters, invoices: invoices.filter(hasChanged) };
}

/** Stores before and after the correction. */
type BothStores = { readonly before: Stores; readonly after: Stores; readonly now: Date };

type AffectedParties = {
  readonly customers: ReadonlyMap<string, CustomerModel>;
  /** Subscriptions of the customers, and those whose invoices include them. */
  readonly own: readonly SubscriptionModel[];
  readonly billed: readonly SubscriptionModel[];
};

function listContents({ before, after }: PlannedCorrection): CorrectedEvent[] {
  return [before, after].flatMap((content) => content ?? []);
}

async function gatherSubscriptions(
  { postgres: database }: Stores,
  scope: Scope,
  correction: PlannedCorrection,
): Promise<AffectedParties> {
  const ids = listContents(correction).map(({ external_customer_id }) => external_customer_id);
  const found = await CustomerModel.in(scope, database).whereIn('external_id', ids).where({ status: 'published' });
  const customers = new Map(found.map((customer) => [customer.external_id, customer]));
  const customer_ids = found.map(({ id }) => id);
  const own = await SubscriptionModel.in(scope, database)
    .whereIn('customer_id', customer_ids)
    .where({ status: 'published' })
    .whereNot('subscription_status', 'draft')
    .orderBy(['start_date', 'id']);
  const parents = await SubscriptionModel.byId(
    scope,
    own.map(({ parent_subscription_id }) => parent_subscription_id),
    database,
  );
  const billed = new Map(
    own.map((one) => {
      const payer = parents.get(one.parent_subscription_id ?? '') ?? one;
      return [payer.id, payer];
    }),
  );
  return { customers, own, billed: [...billed.values()] };
}

/** Compares the usage of each meter that counts the event before or after, in the period of the customer that contains it. */
async function compareMeters(
  both: BothStores,
  scope: Scope,
  { correction, customers, own }: AffectedParties & { correction: PlannedCorrection },
): Promise<CorrectedMeter[]> {
  const contents = listContents(correction);
  const names = contents.map(({ event_name }) => event_name);
  const meters = await MeterModel.in(scope, both.before.postgres)
    .whereIn('event_name', names)
    .where({ status: 'published' })
    .orderBy(['created_at', 'id']);
  const compared = new Map<string, CorrectedMeter>();
  for (const meter of meters) {
    const compiled = compileMeter(meter);
    for (const content of contents) {
      if (content.event_name !== meter.event_name || !matches(compiled, content.properties)) continue;
      const { external_customer_id } = content;
      const customer = customers.get(external_customer_id) ?? null;
      const subscription = own.find(({ customer_id }) => customer_id === customer?.id);
      const period = findPeriod(subscription, toMs(content.timestamp_us));
      const key = JSON.stringify([meter.id, external_customer_id, period.start]);
      if (compared.has(key)) continue;
      const query = {
        meter,
        external_customer_ids: [external_customer_id],
        start_ms: period.start,
        end_ms: period.end,
        now_ms: both.now.getTime(),
        ...(subscription ? toWindows(subscription) : {}),
      };
      const before = await readUsage(both.before, scope, query);
      const after = await readUsage(both.after, scope, query);
      compared.set(key, { meter, external_customer_id, customer, period, before, after });
    }
  }
  return [...compared.values()];
}

function toWindows(subscription: SubscriptionModel) {
  const { timezone, billing_anchor_ms } = toBilledSubscription(subscription);
  return { timezone, billing_anchor_ms };
}

/** Finds the billing period that contains an instant; without one, the calendar month in UTC. */
function findPeriod(subscription: SubscriptionModel | undefined, at: Milliseconds): Period {
  const month = windowAt(at, 'MONTH', { timezone: 'UTC' });
  if (!subscription) return month;
  const { start_ms, billing_anchor_ms: billing_anchor, timezone } = toBilledSubscription(subscription);
  const { billing_period, billing_period_count } = subscription;
  return periodContaining(at, start_ms, { billing_anchor, billing_period, billing_period_count, timezone }) ?? month;
}

/** Compares the open drafts of the subscription, which are computed again before they become final. */
async function compareDrafts(both: BothStores, subscription: SubscriptionModel): Promise<CorrectedInvoice[]> {
  const { postgres: database } = both.before;
  const drafts = await InvoiceModel.in(subscription, database)
    .where({ subscription_id: subscription.id, invoice_status: 'DRAFT', status: 'published' })
    .orderBy('id');
  const compared: CorrectedInvoice[] = [];
  for (const invoice of drafts) {
    const draft = { invoice, subscription, now: both.now };
    const before = await planDraft(both.before, database, draft);
    const after = await planDraft(both.after, database, draft);
    if (before && after) compared.push(comparePlans({ of: invoice, subscription, now: both.now }, { before, after }));
  }
  return compared;
}

type ComparedSubject = {
  readonly subscription: SubscriptionModel;
  /** An open draft, or the period of an invoice that is not created yet. */
  readonly of: InvoiceModel | Period;
  readonly now: Date;
};

function comparePlans(
  subject: ComparedSubject,
  { before, after }: { before: PlannedInvoice; after: PlannedInvoice },
): CorrectedInvoice {
  const { subscription, of } = subject;
  return compareInvoices(subscription, of instanceof InvoiceModel ? of.id : null, {
    before: toContent(before, subject),
    after: toContent(after, subject),
  });
}

function toContent({ plan }: PlannedInvoice, { subscription, of, now }: ComparedSubject): InvoiceContent {
  const record: Invoice =
    of instanceof InvoiceModel
      ? { ...of, ...toComputedFields(plan, of, now) }
      : toInvoiceRecord({ subscription, period: of, reason: 'SUBSCRIPTION_CYCLE', plan }, '', now);
  return { total: record.total, line_items: toInvoiceParts(plan, record, now).lines };
}

type InvoiceContent = { readonly total: string; readonly line_items: readonly InvoiceLineItem[] };

function compareInvoices(
  subscription: SubscriptionModel,
  invoice_id: string | null,
  { before, after }: { before: InvoiceContent; after: InvoiceContent },
): CorrectedInvoice {
  return {
    subscription,
    invoice_id,
    currency: subscription.currency,
    total_before: before.total,
    total_after: after.total,
    lines: listChangedLines(before.line_items, after.line_items),
  };
}

/** Compares the next invoice of the subscription; after its end, the invoice of late usage. */
async function compareNext(both: BothStores, subscription: SubscriptionModel): Promise<CorrectedInvoice | null> {
  const { now } = both;
  if (subscription.subscription_status === 'cancelled') return compareLate(both, subscription);
  const request = { subscription_id: subscription.id };
  const before = await previewInvoice(both.before, subscription, request, now);
  const after = await previewInvoice(both.after, subscription, request, now);
  return compareInvoices(subscription, null, { before, after });
}

async function compareLate(both: BothStores, subscription: SubscriptionModel): Promise<CorrectedInvoice | null> {
  const { now } = both;
  const { postgres: database } = both.before;
  const period = await findLatePeriod(database, { subscription, now });
  if (period === null) return null;
  const subject = { subscription, period, now };
  const before = await planLateInvoice(both.before, database, subject);
  const after = await planLateInvoice(both.after, database, subject);
  return comparePlans({ subscription, of: period, now }, { before, after });
}

function hasChanged({ lines, total_before, total_after }: CorrectedInvoice): boolean {
  return lines.length > 0 || total_before !== total_after;
}
