/**
 * What may change on an invoice by hand: dates shown, the document's address, metadata
 * (docs/rules/invoices.md, "Changes by hand"), and its payment status. Amounts never change here. A paid invoice activates
 * a subscription that waits for it (docs/rules/subscriptions.md, "States").
 */

import { invalid, notAllowed } from '../../core/error.ts';
import { paymentChange } from '../../core/invoice/payment-status.ts';
import type { UpdateInvoice, UpdatePayment } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { refuseUsed } from '../../core/subscription/not-yet.ts';
import { instantOf } from '../../core/time/instant.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import type { Stores } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';
import { activateWhenPaid } from './activate-paid.ts';
import { holdInvoice } from './hold-invoice.ts';

export type InvoiceUpdate = { id: string; request: UpdateInvoice; author: Author };

export async function updateInvoice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, request, author }: InvoiceUpdate,
): Promise<InvoiceModel> {
  refuseUsed(request, ['apply_discount']);
  if (request.due_date && instantOf(request.due_date) < author.now.getTime()) {
    throw invalid('due_date', 'must not lie in the past');
  }
  return stores.postgres.transaction(async (transaction) => {
    const invoice = await InvoiceModel.fetch(scope, id, { database: transaction, lock: true });
    if (invoice.invoice_status !== 'DRAFT' && invoice.invoice_status !== 'FINALIZED') {
      throw notAllowed(`an invoice that is ${invoice.invoice_status} cannot be changed`);
    }
    const { apply_discount: _refused, ...given } = request;
    const changes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    const changed = await InvoiceModel.change(invoice, changes, { by: author, database: transaction });
    if (changed !== invoice) await emit(transaction, 'invoice.update', { record: changed, by: author });
    return changed;
  });
}

export type PaymentUpdate = { id: string; request: UpdatePayment; author: Author };

export async function updateInvoicePayment(
  stores: Stores,
  scope: Scope,
  { id, request, author }: PaymentUpdate,
): Promise<InvoiceModel> {
  return stores.postgres.transaction(async (transaction) => {
    const { subscription, invoice } = await holdInvoice(transaction, scope, id);
    const changes = paymentChange(invoice, request, author.now);
    const changed = await InvoiceModel.change(invoice, changes, { by: author, database: transaction });
    if (changed !== invoice) await emit(transaction, 'invoice.update.payment', { record: changed, by: author });
    await activateWhenPaid(stores, transaction, { invoice: changed, subscription, author });
    return changed;
  });
}
