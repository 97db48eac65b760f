/**
 * The invoices of a thread: the final invoice that bills the event, and the next invoice that charges it or a later correction of it
 * (docs/rules/events.md, "The thread of an event").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import { hasCounted } from '../../../core/rating/counted-until.ts';
import { chargeKey } from '../../../core/rating/plan-invoice.ts';
import { loadHistories } from '../../../storage/events/corrections.ts';
import type { PositionedRawEvent } from '../../../storage/events/raw-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { type CountingLine, listChargeLines } from '../../../storage/models/invoicing/closed-usage-lines.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { Correction } from '../../../storage/progress/corrections.ts';
import { gatherInvoicedLines, isCorrection } from '../../invoicing/billing/gather-closed-charges.ts';
import type { SubscriptionUsageCharge } from '../../invoicing/billing/subscription-usage.ts';
import { type LineCounting, loadCountings } from '../../invoicing/proof/gather.ts';
import { previewInvoice } from '../../lifecycle/invoices/preview-invoice.ts';
import { buildCountedCheck, buildVersions, type EventVersion } from './counted-versions.ts';

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
  const { subscription } = first;
  const lines = await loadChargeLines(stores, first);
  const versions = await listVersions(stores, scope, { event, corrections });
  const final = lines.filter(({ line }) => line.invoice_status === 'FINALIZED');
  const billing = final.find((one) => buildCountedCheck(one)(versions))?.line;
  const invoice = billing ? await loadBillingInvoice(stores, scope, { line: billing, subscription }) : null;
  const last = versions.at(-1)!;
  if (final.some(({ line }) => hasCounted(line.computed_from, last.place))) return { invoice, next_invoice: null };
  const draft = lines.find(({ line }) => line.invoice_status === 'DRAFT')?.line;
  return { invoice, next_invoice: await loadNextInvoice(stores, scope, { draft, subscription, now }) };
}

/** Loads the lines of the charge and their corrections, with the events that each counted. Lines of invoices before the end of the period are left out. */
async function loadChargeLines(
  { postgres }: Stores,
  { charge, subscription }: NonNullable<InvoicesInput['charge']>,
): Promise<{ readonly line: CountingLine; readonly counting: LineCounting | null }[]> {
  const key = chargeKey(charge.item.id, charge.service);
  const invoiced = await gatherInvoicedLines(postgres, subscription);
  const own = invoiced.filter((one) => one.key === key && !one.is_partial && !isCorrection(one));
  const lines = await listChargeLines(
    postgres,
    subscription,
    own.map(({ line }) => line.id),
  );
  return loadCountings(postgres, subscription, lines);
}

/** Lists the contents of the event with the positions from which on they counted, oldest first. */
async function listVersions(
  { clickhouse }: Stores,
  scope: Scope,
  { event, corrections }: Pick<InvoicesInput, 'event' | 'corrections'>,
): Promise<EventVersion[]> {
  const applied = corrections.filter(({ state }) => state === 'applied');
  const receipts = new Map(applied.map(({ id, requested_at }) => [id, toUs(toInstant(requested_at))]));
  const { event_id } = event;
  const history = receipts.size > 0 ? (await loadHistories(clickhouse, scope, [event_id])).get(event_id) : undefined;
  if (!history) return [{ content: event, place: event.log_position }];
  return buildVersions(event_id, history, (sequence) => receipts.get(sequence));
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
