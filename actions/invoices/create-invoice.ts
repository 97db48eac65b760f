/**
 * Stores an invoice that a client wrote: a draft, or finalized at once when asked. The database decides who of two equal
 * requests is first: one idempotency_key is one invoice, voided ones aside
 * (docs/rules/invoices.md, "Invoices written by hand").
 */

import { invalid } from '../../core/error.ts';
import { type WrittenInvoice, writtenInvoice } from '../../core/invoice/one-off.ts';
import type { CreateInvoice, InvoiceWithLines } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { holdNoClock } from '../../storage/models/hold-no-clock.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';
import { checkInvoiceReferences } from './check-invoice-references.ts';
import { finalizeWithin } from './finalize-invoice.ts';

export async function createInvoice(
  stores: Stores,
  scope: Scope,
  request: CreateInvoice,
  author: Author,
): Promise<InvoiceWithLines> {
  const written = writtenInvoice(request);
  return stores.postgres.transaction(async (transaction) => {
    await holdNoClock(scope, transaction);
    await checkParties(scope, request, transaction);
    await checkInvoiceReferences(scope, request, transaction);
    const invoice = await addInvoice({ scope, request, written, author }, transaction);
    await emit(transaction, 'invoice.drafted', { record: invoice, by: author });
    if (request.invoice_status !== 'FINALIZED') return invoice;
    return finalizeWithin(transaction, scope, { invoice_id: invoice.id, now: author.now });
  });
}

async function checkParties(scope: Scope, request: CreateInvoice, database: Database): Promise<void> {
  const customer = await CustomerModel.fetchPublished(scope, request.customer_id, { database, lock: true });
  if (!request.subscription_id) return;
  const subscription = await SubscriptionModel.fetch(scope, request.subscription_id, { database });
  if (subscription.customer_id !== customer.id && subscription.invoicing_customer_id !== customer.id) {
    throw invalid('subscription_id', `is not a subscription of customer ${customer.id}`);
  }
}

type Writing = { scope: Scope; request: CreateInvoice; written: WrittenInvoice; author: Author };

async function addInvoice(writing: Writing, database: Database): Promise<InvoiceWithLines> {
  const { scope, request, written, author } = writing;
  const { lines: _lines, ...amounts } = written;
  const { customer_id, subscription_id, invoice_type, description, billing_period, period_start, period_end } = request;
  const { due_date, issue_date, invoice_pdf_url, idempotency_key, metadata } = request;
  const record = {
    ...createdBy(author),
    ...amounts,
    id: newId('invoice', author.now.getTime()),
    customer_id,
    subscription_id,
    invoice_type,
    invoice_status: 'DRAFT',
    billing_reason: request.billing_reason ?? 'MANUAL',
    idempotency_key,
    description,
    billing_period,
    period_start,
    period_end,
    due_date,
    issue_date,
    invoice_pdf_url,
    metadata,
    paid_at: ['SUCCEEDED', 'OVERPAID'].includes(written.payment_status) ? author.now.toISOString() : null,
    // What a client wrote is complete: it rests from now on until it is finalized.
    last_computed_at: author.now.toISOString(),
  };
  const conflict = idempotency_key
    ? `an invoice with idempotency_key ${idempotency_key} exists already`
    : 'an invoice for this subscription, period and billing reason exists already';
  const invoice = await InvoiceModel.add(scope, record, { database, conflict });
  return Object.assign(invoice, { line_items: await addLines(writing, invoice, database) });
}

async function addLines(
  { scope, written, author }: Writing,
  invoice: InvoiceModel,
  database: Database,
): Promise<InvoiceLineItemModel[]> {
  const records = written.lines.map(({ plan_id, ...line }, position) => ({
    ...createdBy(author),
    ...line,
    id: newId('invoice_line_item', author.now.getTime()),
    position,
    invoice_id: invoice.id,
    customer_id: invoice.customer_id,
    subscription_id: line.subscription_id ?? invoice.subscription_id,
    currency: written.currency,
    entity_id: line.entity_id ?? plan_id,
    entity_type: line.entity_type ?? (plan_id ? 'plan' : null),
    prepaid_credits_applied: '0',
    line_item_discount: '0',
    invoice_level_discount: '0',
    tax_amount: '0',
    included_tax_amount: '0',
  }));
  return InvoiceLineItemModel.addAll(scope, records, { database });
}
