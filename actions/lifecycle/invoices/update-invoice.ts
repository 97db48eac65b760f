/**
 * Manual changes of an invoice: shown dates, the document's address, metadata (docs/rules/invoices.md, "Changes by hand"), and its payment
 * status if no payment determines it. Amounts never change here.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { planPaymentChange } from '../../../core/invoicing/invoice/payment-status.ts';
import type { UpdateInvoice, UpdateInvoicePayment } from '../../../core/invoicing/invoice/record.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import { refuseUsed } from '../../../core/subscriptions/not-yet.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { emit } from '../../foundation/emit.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { changeInvoicePayment } from '../payments/change-invoice-payment.ts';

type InvoiceUpdate = { id: string; request: UpdateInvoice; author: Author };

export async function updateInvoice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, request, author }: InvoiceUpdate,
): Promise<InvoiceModel> {
  refuseUsed(request, ['apply_discount']);
  if (request.due_date && toInstant(request.due_date) < author.now.getTime()) {
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

type PaymentUpdate = { id: string; request: UpdateInvoicePayment; author: Author };

export async function updateInvoicePayment(
  stores: Stores,
  scope: Scope,
  { id, request, author }: PaymentUpdate,
): Promise<InvoiceModel> {
  return retryTransaction(stores, async (transaction) => {
    const locked = await lockInvoice(transaction, scope, id);
    await checkNoPayments(locked.invoice, transaction);
    const paid = planPaymentChange(locked.invoice, request, author.now);
    const paid_by_hand = new Decimal(paid.amount_paid).minus(locked.invoice.total_credits_applied_after_tax).toFixed();
    const changes = { ...paid, paid_by_hand };
    return changeInvoicePayment(stores, transaction, { ...locked, changes, by: author });
  });
}

/** Refuses a manual change of a payment status that payments determine. */
async function checkNoPayments(invoice: InvoiceModel, transaction: Transaction): Promise<void> {
  const [payment] = await PaymentModel.in(invoice, transaction)
    .where({ destination_id: invoice.id, status: 'published' })
    .whereIn('payment_status', [...RECEIVED])
    .limit(1);
  if (payment)
    throw notAllowed('payments of this invoice have succeeded: what was paid is what they say', {
      payment_id: payment.id,
    });
}
