/**
 * The invoices of a thread: the final invoice that bills the event, and the next invoice that charges it or a later correction of it
 * (docs/rules/events.md, "The thread of an event").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Microseconds, toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import type { ComputedFrom } from '../../../core/rating/computed-from.ts';
import { hasCounted } from '../../../core/rating/counted-until.ts';
import { chargeKey } from '../../../core/rating/plan-invoice.ts';
import { loadHistories } from '../../../storage/events/corrections.ts';
import type { PositionedRawEvent } from '../../../storage/events/raw-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { type CountingLine, listChargeLines } from '../../../storage/models/invoicing/closed-usage-lines.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { type Correction, toLogPosition } from '../../../storage/progress/corrections.ts';
import { gatherInvoicedLines, isCorrection } from '../../invoicing/billing/gather-closed-charges.ts';
import type { SubscriptionUsageCharge } from '../../invoicing/billing/subscription-usage.ts';
import { previewInvoice } from '../../lifecycle/invoices/preview-invoice.ts';

type BillingInvoice = {
  readonly invoice_id: string;
  readonly invoice_number: string | null;
  /** Line that counts the event. */
  readonly invoice_line_item_id: string;
  readonly subscription_id: string;
  readonly amount: string;
  readonly currency: string;
  readonly period_end: string | null;
};

type NextThreadInvoice = Omit<BillingInvoice, 'invoice_id' | 'invoice_number' | 'invoice_line_item_id'> & {
  /** Null for an invoice that does not exist yet. */
  readonly invoice_id: string | null;
};

export type ThreadInvoices = {
  readonly invoice: BillingInvoice | null;
  readonly next_invoice: NextThreadInvoice | null;
};

type InvoicesInput = {
  readonly event: PositionedRawEvent;
  /** First charge of the thread. */
  readonly charge: { readonly charge: SubscriptionUsageCharge; readonly subscription: SubscriptionModel } | null;
  readonly corrections: readonly Correction[];
  readonly now: Date;
};

export async function loadThreadInvoices(
  stores: Stores,
  scope: Scope,
  { event, charge: first, corrections, now }: InvoicesInput,
): Promise<ThreadInvoices> {
  if (!first) return { invoice: null, next_invoice: null };
  const { subscription, charge } = first;
  const lines = await loadChargeLines(stores, first);
  const versions = await listVersions(stores, scope, { event, corrections });
  const isCounted = ({ computed_from }: CountingLine, { position }: EventVersion) =>
    hasCounted(computed_from, position);
  const final = lines.filter(({ invoice_status }) => invoice_status === 'FINALIZED');
  // A correction may have moved the event into the usage window.
  const version = versions.find(
    ({ external_customer_id, event_name, timestamp_us }) =>
      external_customer_id === event.external_customer_id &&
      event_name === event.event_name &&
      isInWindow(timestamp_us, charge.computed_from),
  );
  const billing = version && final.find((line) => isCounted(line, version));
  const invoice = billing ? await loadBillingInvoice(stores, scope, { line: billing, subscription }) : null;
  const last = versions.at(-1)!;
  if (final.some((line) => isCounted(line, last))) return { invoice, next_invoice: null };
  const draft = lines.find(({ invoice_status }) => invoice_status === 'DRAFT');
  return { invoice, next_invoice: await loadNextInvoice(stores, scope, { draft, subscription, now }) };
}

/** Loads the lines of the charge, and their corrections. Threshold invoices are left out: they bill the charge before its period ends. */
async function loadChargeLines(
  { postgres }: Stores,
  { charge, subscription }: NonNullable<InvoicesInput['charge']>,
): Promise<CountingLine[]> {
  const key = chargeKey(charge.item.id, charge.service);
  const invoiced = await gatherInvoicedLines(postgres, subscription);
  const own = invoiced.filter((one) => one.key === key && !one.is_partial && !isCorrection(one));
  return listChargeLines(
    postgres,
    subscription,
    own.map(({ line }) => line.id),
  );
}

type EventVersion = {
  readonly external_customer_id: string;
  readonly event_name: string;
  readonly timestamp_us: Microseconds;
  /** Position in the log from which this content counts. */
  readonly position: { readonly partition: number; readonly offset: number; readonly received_at_us: Microseconds };
};

/** Lists the contents that the event has had, oldest first, each with the position in the log from which it counted. */
async function listVersions(
  { clickhouse }: Stores,
  scope: Scope,
  { event, corrections }: Pick<InvoicesInput, 'event' | 'corrections'>,
): Promise<EventVersion[]> {
  const { log_position } = event;
  const applied = corrections.filter(({ state }) => state === 'applied');
  if (applied.length === 0) return [{ ...event, position: log_position }];
  const history = (await loadHistories(clickhouse, scope, [event.event_id])).get(event.event_id);
  const contents = new Map(history?.corrections.map((one) => [String(one.sequence), one]));
  const replaced = applied.flatMap((correction) => {
    const content = contents.get(correction.id);
    const position = toLogPosition(correction) ?? content?.log_position;
    const received_at_us = toUs(toInstant(correction.requested_at));
    return content && position ? [{ ...content, position: { ...position, received_at_us } }] : [];
  });
  return [{ ...(history?.original ?? event), position: log_position }, ...replaced];
}

function isInWindow(
  timestamp_us: Microseconds,
  { window_start, window_end }: Pick<ComputedFrom, 'window_start' | 'window_end'>,
): boolean {
  if (!window_start || !window_end) return false;
  return timestamp_us >= toUs(toInstant(window_start)) && timestamp_us < toUs(toInstant(window_end));
}

type BillingInput = { readonly line: CountingLine; readonly subscription: SubscriptionModel };

async function loadBillingInvoice(
  { postgres }: Stores,
  scope: Scope,
  { line, subscription }: BillingInput,
): Promise<BillingInvoice> {
  const invoice = await InvoiceModel.fetch(scope, line.invoice_id, { database: postgres });
  const { id: invoice_id, total: amount, currency, period_end = null, invoice_number = null } = invoice;
  const { id: subscription_id } = subscription;
  return { invoice_id, invoice_number, invoice_line_item_id: line.id, subscription_id, amount, currency, period_end };
}

type NextInput = {
  readonly draft: CountingLine | undefined;
  readonly subscription: SubscriptionModel;
  readonly now: Date;
};

/** Loads the draft with the charge, which is recomputed before it is final; without a draft it previews the next invoice. */
async function loadNextInvoice(
  stores: Stores,
  scope: Scope,
  { draft, subscription, now }: NextInput,
): Promise<NextThreadInvoice | null> {
  const { id: subscription_id } = subscription;
  if (draft) {
    const invoice = await InvoiceModel.fetch(scope, draft.invoice_id, { database: stores.postgres });
    const { total: amount, currency, period_end = null, id } = invoice;
    return { subscription_id, amount, currency, period_end, invoice_id: id };
  }
  if (subscription.subscription_status === 'cancelled') return null;
  const next = await previewInvoice(stores, scope, { subscription_id }, now);
  const { total: amount, currency, period_end = null } = next;
  return { subscription_id, amount, currency, period_end, invoice_id: null };
}
