/**
 * Stores a manual invoice of a client, as a draft or, if requested, finalized at once (docs/rules/invoices.md, "Invoices written by hand").
 * The database decides the order of equal requests: one idempotency_key is one invoice, except void ones.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import {
  computeManualAmounts,
  defineManualInvoice,
  type ManualInvoice,
} from '../../../core/invoicing/invoice/one-off.ts';
import type { CreateInvoice, InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { type AdjustedLines, applyLineAdjustments } from '../../../core/rating/line-adjustments.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { CouponApplicationModel } from '../../../storage/models/invoicing/coupon-application.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { lockNoClock } from '../../../storage/models/schedule/lock-no-clock.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { taxInvoice } from '../../catalog/taxes/attach-rates.ts';
import { deriveTaxInstant, loadRatesInForce } from '../../catalog/taxes/rates-in-force.ts';
import { emit } from '../../foundation/emit.ts';
import { type ChangePreview, previewChange } from '../../foundation/preview.ts';
import { countApplied } from '../../rating/coupons/redeem.ts';
import { lockSubscriptions } from '../../subscriptions/lock-in-order.ts';
import { applicationRecords } from '../records/application-records.ts';
import { formatLineAdjustments } from '../records/invoice-records.ts';
import { checkInvoiceReferences } from './check-invoice-references.ts';
import { finalizeWithin } from './finalize-invoice.ts';
import { listRequestedSubscriptions, loadInvoiceCoupons } from './requested-on-invoice.ts';

export async function createInvoice(
  stores: Stores,
  scope: Scope,
  request: CreateInvoice,
  author: Author,
): Promise<InvoiceWithLines> {
  const make = (transaction: Transaction) => createInvoiceWithin(transaction, scope, { request, author });
  return retryTransaction(stores, make);
}

/** Previews the invoice as `createInvoice` would return it. */
export async function previewManualInvoice<Answer>(
  stores: Stores,
  scope: Scope,
  { request, author, show }: ChangePreview<CreateInvoice, InvoiceWithLines, Answer>,
): Promise<Answer> {
  const change = (transaction: Transaction) => createInvoiceWithin(transaction, scope, { request, author });
  return previewChange(stores, { change, show });
}

/** Creates the invoice in the transaction of the caller. */
export async function createInvoiceWithin(
  transaction: Transaction,
  scope: Scope,
  { request, author }: { request: CreateInvoice; author: Author },
): Promise<InvoiceWithLines> {
  const written = defineManualInvoice(request);
  await lockNoClock(scope, transaction);
  // The subscriptions are locked before the customer, because inserting an invoice locks the row of its subscription.
  const requestedIds = await listRequestedSubscriptions(request, { scope, transaction });
  await lockSubscriptions(
    scope,
    [...requestedIds, ...(request.subscription_id ? [request.subscription_id] : [])],
    transaction,
  );
  await checkParties(scope, request, transaction);
  await checkInvoiceReferences(scope, request, transaction);
  const id = newId('invoice', author.now.getTime());
  const settled = await applyAdjustments({ scope, request, written, author, id }, transaction);
  const invoice = await addInvoice({ scope, request, written, author, id, settled }, transaction);
  await emit(transaction, 'invoice.drafted', { record: invoice, by: author });
  if (request.invoice_status !== 'FINALIZED') return invoice;
  return (await finalizeWithin(transaction, scope, { invoice_id: invoice.id, now: author.now })).invoice;
}

type CreateInvoiceParts = { scope: Scope; request: CreateInvoice; written: ManualInvoice; author: Author; id: string };

/**
 * Computes the coupon discounts. Taxes are added only if the invoice is final at once, because an amount already paid may cover its total.
 */
async function applyAdjustments({ scope, request, written, author, id }: CreateInvoiceParts, transaction: Transaction) {
  const { currency, lines } = written;
  const { customer_id, subscription_id, invoice_type } = request;
  const writing = { scope, transaction, author };
  await taxInvoice(id, request, currency, writing);
  const coupons = await loadInvoiceCoupons(request, { lines, currency, customer_id }, writing);
  const { period_start, period_end } = request;
  const written_as = { billing_reason: request.billing_reason ?? 'MANUAL', period_start, period_end };
  const when = { at: deriveTaxInstant(written_as, author.now), now: author.now.getTime() };
  const taxed = { ...scope, id, customer_id, subscription_id, currency, invoice_type, ...when };
  const rates = request.invoice_status === 'FINALIZED' ? await loadRatesInForce(transaction, taxed) : [];
  const charged = lines.map(({ amount, price_type }, index) => ({
    amount: new Decimal(amount),
    price_type,
    key: String(index),
    charged_ms: null,
  }));
  const settled = applyLineAdjustments(charged, { currency, coupons, rates });
  await countApplied(settled.coupons_applied, writing);
  return settled;
}

async function checkParties(scope: Scope, request: CreateInvoice, database: Database): Promise<void> {
  const customer = await CustomerModel.fetchPublished(scope, request.customer_id, { database, lock: true });
  if (!request.subscription_id) return;
  const subscription = await SubscriptionModel.fetch(scope, request.subscription_id, { database });
  if (subscription.customer_id !== customer.id && subscription.invoicing_customer_id !== customer.id) {
    throw invalid('subscription_id', `is not a subscription of customer ${customer.id}`);
  }
}

type InvoiceWriting = CreateInvoiceParts & { settled: AdjustedLines };

async function addInvoice(writing: InvoiceWriting, database: Database): Promise<InvoiceWithLines> {
  const { scope, request, written, author, id, settled } = writing;
  const { currency } = written;
  const amounts = computeManualAmounts(request, currency, settled);
  const { customer_id, subscription_id, invoice_type, description, billing_period, period_start, period_end } = request;
  const { due_date, issue_date, invoice_pdf_url, idempotency_key, metadata } = request;
  const record = {
    ...createdBy(author),
    ...amounts,
    paid_by_hand: amounts.amount_paid,
    id,
    currency,
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
    paid_at: ['SUCCEEDED', 'OVERPAID'].includes(amounts.payment_status) ? author.now.toISOString() : null,
    // A manual invoice needs no computation: its delay before finalization begins now.
    last_computed_at: author.now.toISOString(),
  };
  const conflict = idempotency_key
    ? `an invoice with idempotency_key ${idempotency_key} exists already`
    : 'an invoice for this subscription, period and billing reason exists already';
  const invoice = await InvoiceModel.add(scope, record, { database, conflict });
  const line_items = await addLines(writing, invoice, database);
  const line_ids = line_items.map((line) => line.id);
  const applications = applicationRecords(settled.coupons_applied, { invoice, line_ids, author });
  await CouponApplicationModel.addAll(scope, applications, { database });
  return Object.assign(invoice, { line_items });
}

async function addLines(
  { scope, written, author, settled }: InvoiceWriting,
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
    ...formatLineAdjustments(settled.adjustments[position]!),
  }));
  return InvoiceLineItemModel.addAll(scope, records, { database });
}
