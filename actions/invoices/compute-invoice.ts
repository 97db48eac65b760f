/**
 * Computes an invoice anew from the usage as it is now; may be repeated as long as the invoice is not final. One that comes
 * to nothing is skipped, and may be computed again later (docs/rules/invoices.md, "Nothing to pay").
 */
import type { ReferencePoint } from '../../core/billing/charges.ts';
import { notAllowed } from '../../core/error.ts';
import type { BillingReason, InvoiceWithLines } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import { instantOf } from '../../core/time/instant.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel, takeLinesAway } from '../../storage/models/invoice-line-item.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';
import { type Planned, planFromStores } from '../billing/gather-billing.ts';
import { computedFields, lineRecords, withLines } from '../billing/invoice-records.ts';
import { billingTransaction } from '../billing/transaction.ts';
import { emit, wasTold } from '../system-events/emit.ts';
import { isComplete } from './draft-invoice.ts';

export type Computation = {
  invoice: InvoiceWithLines;
  skipped: boolean;
  /** Whether the usage held every event from before the period's end. */
  complete: boolean;
};

export async function computeInvoice(
  stores: Stores,
  scope: Scope,
  invoice_id: string,
  now: Date,
): Promise<Computation> {
  return billingTransaction(stores, (transaction) => computeWithin(stores, transaction, { scope, invoice_id, now }));
}

/** With `untilComplete` nothing is written while events from before the period's end are on their way. */
type How = { readonly now: Date; readonly untilComplete?: boolean };

/** For a caller that has a transaction open. */
export async function computeWithin(
  stores: Stores,
  transaction: Transaction,
  { scope, invoice_id, ...how }: { scope: Scope; invoice_id: string } & How,
): Promise<Computation> {
  const { subscription_id } = await InvoiceModel.fetch(scope, invoice_id, { database: transaction });
  // The subscription first, then the invoice: every writer of a subscription's invoices takes them in this order.
  const subscription = subscription_id
    ? await SubscriptionModel.fetch(scope, subscription_id, { database: transaction, lock: true })
    : null;
  const invoice = await InvoiceModel.fetch(scope, invoice_id, { database: transaction, lock: true });
  checkComputable(invoice);
  const reference = REFERENCE_BY_REASON[invoice.billing_reason];
  if (subscription === null || reference === undefined || (await hasGivenLines(invoice, transaction)))
    return keepLines(invoice, transaction, how.now);
  return replaceLines(stores, transaction, { invoice, subscription, reference, ...how });
}

/** Only what is not final yet: a draft, or what came to nothing (docs/rules/invoices.md, "From draft to final"). */
export function checkComputable({ id, invoice_status }: InvoiceModel): void {
  if (invoice_status !== 'DRAFT' && invoice_status !== 'SKIPPED')
    throw notAllowed(`an invoice that is ${invoice_status} cannot be computed`, { id });
}

/** Reasons whose lines follow from the subscription; the lines of all others were given by whoever made the invoice. */
export const REFERENCE_BY_REASON: Partial<Record<BillingReason, ReferencePoint>> = {
  SUBSCRIPTION_CREATE: 'period_start',
  SUBSCRIPTION_TRIAL_END: 'period_start',
  SUBSCRIPTION_CYCLE: 'period_end',
  PRORATION: 'cancel',
};

type Subject = How & { invoice: InvoiceModel; subscription: SubscriptionModel; reference: ReferencePoint };

async function replaceLines(stores: Stores, transaction: Transaction, subject: Subject): Promise<Computation> {
  const { invoice, subscription, reference, now } = subject;
  const period = { start: instantOf(invoice.period_start ?? ''), end: instantOf(invoice.period_end ?? '') };
  const planned = await planFromStores(stores, transaction, {
    subscription,
    period,
    reference,
    invoice_id: invoice.id,
    now,
  });
  const complete = isComplete(planned, period);
  if (subject.untilComplete && !complete)
    return { invoice: Object.assign(invoice, { line_items: [] }), skipped: false, complete };
  const attributes = { invoice_id: invoice.id, lines: planned.plan.lines.length };
  const computed = await inSpan('invoice.write', { attributes }, () =>
    writePlan(transaction, { invoice, planned, now }),
  );
  return {
    invoice: computed,
    skipped: computed.invoice_status === 'SKIPPED',
    complete,
  };
}

async function writePlan(
  transaction: Transaction,
  { invoice, planned, now }: { invoice: InvoiceModel; planned: Planned; now: Date },
): Promise<InvoiceWithLines> {
  await takeLinesAway(invoice, invoice.id, transaction);
  const changes = computedFields(planned.plan, now);
  const computed = await InvoiceModel.change(invoice, changes, { by: { now }, database: transaction });
  const lines = lineRecords(planned.plan, computed, now);
  const line_items = await InvoiceLineItemModel.addAll(invoice, lines, { database: transaction });
  const written = Object.assign(computed, { line_items });
  await emit(transaction, await nameOf({ before: invoice, computed }, transaction), { record: written, by: { now } });
  return written;
}

/** What had come to nothing, and was no draft so far, becomes one: that is told once. */
async function nameOf(
  { before, computed }: { before: InvoiceModel; computed: InvoiceModel },
  transaction: Transaction,
): Promise<'invoice.drafted' | 'invoice.update'> {
  if (before.invoice_status !== 'SKIPPED' || computed.invoice_status !== 'DRAFT') return 'invoice.update';
  return (await wasTold(transaction, 'invoice.drafted', before)) ? 'invoice.update' : 'invoice.drafted';
}

/** Lines that a client wrote name no line item of the subscription, and are not ours to replace. */
async function hasGivenLines(invoice: InvoiceModel, transaction: Transaction): Promise<boolean> {
  const lines = await InvoiceLineItemModel.listOf(invoice, { column: 'invoice_id', value: invoice.id }, transaction);
  return lines.some((line) => !line.subscription_line_item_id && !line.computed_from);
}

async function keepLines(invoice: InvoiceModel, transaction: Transaction, now: Date): Promise<Computation> {
  const computed = await InvoiceModel.change(
    invoice,
    { last_computed_at: now.toISOString() },
    { by: { now }, database: transaction },
  );
  return { invoice: await withLines(computed, transaction), skipped: false, complete: true };
}
