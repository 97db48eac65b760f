/** Writes the progress of a checkout session in the transaction that opens its page or pays its invoice (docs/rules/checkout.md). */
import type { SystemEventName } from '../../../core/platform/system-event/catalogue.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';

/** Marks the session as pending after its page was opened. `transaction` has locked the payment and its invoice. */
export async function markPageOpen(transaction: Transaction, payment: PaymentModel, by: ChangeAuthor): Promise<void> {
  const { checkout_session_id: id, payment_url: url } = payment;
  if (!id || !url) return;
  const session = await CheckoutSessionModel.fetch(payment, id, { database: transaction, lock: true });
  if (session.checkout_status !== 'initiated') return;
  const changes = { checkout_status: 'pending' as const };
  const record = await CheckoutSessionModel.change(session, changes, { by, database: transaction });
  await emitCheckout(transaction, 'checkout.session.initiated', { record, url, by });
}

/** Completes the open session of an invoice of which nothing remains to be paid. `transaction` has locked the invoice. */
export async function completeCheckout(
  transaction: Transaction,
  { invoice, by }: { invoice: InvoiceModel; by: ChangeAuthor },
): Promise<void> {
  if (invoice.invoice_status !== 'FINALIZED') return;
  const session = await CheckoutSessionModel.findOpen(invoice, { checkout_invoice_id: invoice.id }, transaction);
  if (session) await markCompleted(transaction, session, { by });
}

export async function markCompleted(
  transaction: Transaction,
  session: CheckoutSessionModel,
  { by, ...fields }: { by: ChangeAuthor } & Partial<CheckoutSessionModel>,
): Promise<CheckoutSessionModel> {
  const changes = { ...fields, checkout_status: 'completed' as const, completed_at: by.now.toISOString() };
  const record = await CheckoutSessionModel.change(session, changes, { by, database: transaction });
  await emitCheckout(transaction, 'checkout.session.completed', { record, by });
  return record;
}

type CheckoutEvent = Extract<SystemEventName, `checkout.session.${string}`>;

/** Emits an event of a checkout session. `url` is the payment page, given only while the customer can still pay. */
export async function emitCheckout(
  transaction: Transaction,
  name: CheckoutEvent,
  { record, url, by }: { record: CheckoutSessionModel; url?: string; by: ChangeAuthor },
): Promise<void> {
  const payment_action = url ? { type: 'checkout_url', url } : null;
  await emit(transaction, name, { record: Object.assign(record.$clone(), { payment_action }), by });
}
