/**
 * Makes drafts final: writes number, due date and remaining amount, emits the events and creates automatic payments. Data shared by the
 * invoices is loaded once. The database writes one part of the invoices while this process prepares the next.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { deriveFinalPayment } from '../../../core/invoicing/invoice/payment-status.ts';
import type { InvoiceLineItem, InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { dueDate } from '../../../core/rating/due.ts';
import { mapPipelined } from '../../../storage/concurrency/batched.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emitAll } from '../../foundation/emit.ts';
import { createCollectionPayments } from '../collection/create-collection.ts';

/** A draft with its lines; this transaction holds the lock on its row. */
export type ReadyDraft = {
  readonly invoice: InvoiceModel;
  readonly line_items: readonly InvoiceLineItem[];
  readonly subscription: SubscriptionModel | null;
  /** Fields written only at finalization. */
  readonly changes?: Partial<InvoiceModel>;
};

type NumberedDraft = ReadyDraft & { readonly invoice_number: string };

type WriteFinalInput = { readonly due_date_days: number; readonly now: Date };
type CustomersById = ReadonlyMap<string, CustomerModel>;

/** Number of invoices per part: one part is written while the next is prepared. */
const PART = 50;

export async function writeFinal(
  transaction: Transaction,
  scope: Scope,
  { numbered, ...how }: { numbered: readonly NumberedDraft[] } & WriteFinalInput,
): Promise<InvoiceWithLines[]> {
  const customers = await loadCustomers(transaction, scope, numbered);
  const parts = Array.from({ length: Math.ceil(numbered.length / PART) }, (_, index) =>
    numbered.slice(index * PART, (index + 1) * PART),
  );
  const write = (part: readonly NumberedDraft[]) => writePart(transaction, scope, { part, customers, ...how });
  const finalized = (await mapPipelined(transaction, parts, write)).flat();
  // The payments are charged after the commit, because no provider is called inside a transaction.
  const all = finalized.map((invoice, index) => ({ invoice, subscription: numbered[index]!.subscription }));
  await createCollectionPayments(transaction, scope, { all, now: how.now });
  return finalized;
}

async function writePart(
  transaction: Transaction,
  scope: Scope,
  { part, customers, ...how }: { part: readonly NumberedDraft[]; customers: CustomersById } & WriteFinalInput,
): Promise<(InvoiceModel & InvoiceWithLines)[]> {
  const by = { now: how.now };
  const each = part.map((one) => {
    const customer = customers.get(one.invoice.customer_id)!;
    return { record: one.invoice, changes: toFinalFields(one, customer, how) };
  });
  const finals = await InvoiceModel.changeEach(scope, each, { by, database: transaction });
  const finalized = finals.map((final, index) => Object.assign(final, { line_items: [...part[index]!.line_items] }));
  const records = finalized.map((final) => ({ ...final, customer: customers.get(final.customer_id) }));
  await emitAll(transaction, 'invoice.finalized', { scope, records, by });
  return finalized;
}

function toFinalFields(
  { invoice, subscription, changes, invoice_number }: NumberedDraft,
  { tax_exempt }: CustomerModel,
  { due_date_days, now }: WriteFinalInput,
): Partial<InvoiceModel> {
  const isCredit = new Decimal(changes?.amount_due ?? invoice.amount_due).isNegative();
  const terms = subscription?.payment_terms;
  const due = isCredit ? null : formatMs(dueDate(deriveDueDateStart(invoice, now), terms, due_date_days));
  return {
    ...changes,
    invoice_status: 'FINALIZED',
    invoice_number,
    finalized_at: now.toISOString(),
    due_date: invoice.due_date ?? due,
    ...(tax_exempt === 'none' ? {} : { tax_exempt }),
    ...deriveFinalPayment(toPaymentFields(invoice, changes), now),
  };
}

function toPaymentFields(invoice: InvoiceModel, changes: Partial<InvoiceModel> = {}) {
  const { payment_status, amount_due, amount_paid, refunded_amount, total_prepaid_credits_applied } = invoice;
  const sums = { payment_status, amount_due, amount_paid, refunded_amount, total_prepaid_credits_applied };
  const { currency, paid_at } = invoice;
  return { ...sums, currency, paid_at, ...changes };
}

/**
 * The due date of an invoice without a period counts from its finalization. The due date of a change invoice does, too, because it is due
 * when the change is made and not at the end of its period (docs/rules/invoices.md, "Due date").
 */
function deriveDueDateStart(invoice: InvoiceModel, now: Date): number {
  if (invoice.billing_reason === 'SUBSCRIPTION_UPDATE') return now.getTime();
  return invoice.period_end ? toInstant(invoice.period_end) : now.getTime();
}

/** Loads the customers by id; every invoice has one. */
async function loadCustomers(
  transaction: Transaction,
  scope: Scope,
  numbered: readonly NumberedDraft[],
): Promise<CustomersById> {
  const ids = [...new Set(numbered.map(({ invoice }) => invoice.customer_id))];
  const found = await CustomerModel.byId(scope, ids, transaction);
  const lost = ids.find((id) => !found.has(id));
  if (lost !== undefined) throw notFound(CustomerModel.recordName, lost);
  return found;
}
