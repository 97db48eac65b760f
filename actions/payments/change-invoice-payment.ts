/**
 * What was paid of an invoice is written, whoever says so: a payment, a refund, or somebody by hand. One that is paid ends what else
 * would pay it, and activates a subscription that waits for it (docs/rules/payments.md, "What becomes of the invoice").
 */
import { Decimal } from '../../core/decimal.ts';
import type { BillingReason } from '../../core/invoice/record.ts';
import { OPEN } from '../../core/payment/moves.ts';
import { stateAfter } from '../../core/subscription/moves.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { familyFollows } from '../subscriptions/follow-parent.ts';
import { type Change, emit } from '../system-events/emit.ts';
import type { HeldInvoice } from './hold.ts';

export type By = Change['by'];

export async function changeInvoicePayment(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, changes, by }: HeldInvoice & { changes: Partial<InvoiceModel>; by: By },
): Promise<InvoiceModel> {
  const changed = await InvoiceModel.change(invoice, changes, { by, database: transaction });
  if (changed !== invoice) await emit(transaction, 'invoice.update.payment', { record: changed, by });
  const isPaid = new Decimal(changed.amount_remaining).lte(0);
  if (!isPaid) return changed;
  await voidOpenPayments(transaction, { invoice: changed, by });
  if (subscription && (await isWaitedFor(transaction, { invoice: changed, subscription })))
    await activateWaiting(stores, transaction, { subscription, by });
  return changed;
}

/** What waits to pay an invoice of which nothing remains, or that is void, pays nothing. */
export async function voidOpenPayments(
  transaction: Transaction,
  { invoice, by }: { invoice: InvoiceModel; by: By },
): Promise<void> {
  const open = await PaymentModel.in(invoice, transaction)
    .where({ destination_id: invoice.id, status: 'published' })
    .whereIn('payment_status', [...OPEN])
    .orderBy('id')
    .forUpdate();
  const now = by.now.toISOString();
  for (const payment of open) {
    // A page that is open is closed at its provider, outside of this transaction.
    const next_attempt_at = payment.payment_method_type === 'PAYMENT_LINK' && payment.gateway_payment_id ? now : null;
    const changes = { payment_status: 'VOIDED' as const, voided_at: now, next_attempt_at, payment_url: null };
    const record = await PaymentModel.change(payment, changes, { by, database: transaction });
    await emit(transaction, 'payment.updated', { record, by });
  }
}

/** What a subscription that is incomplete waits for: an invoice that opened it, or the last one that a renewal left unpaid. */
const OPENS: readonly BillingReason[] = ['SUBSCRIPTION_CREATE', 'SUBSCRIPTION_TRIAL_END', 'SUBSCRIPTION_UPDATE'];
const RENEWS: readonly BillingReason[] = ['SUBSCRIPTION_CYCLE', 'THRESHOLD_BILLING'];

async function isWaitedFor(
  transaction: Transaction,
  { invoice, subscription }: { invoice: InvoiceModel; subscription: SubscriptionModel },
): Promise<boolean> {
  if (subscription.subscription_status !== 'incomplete') return false;
  if (OPENS.includes(invoice.billing_reason)) return true;
  if (!RENEWS.includes(invoice.billing_reason)) return false;
  const [unpaid] = await InvoiceModel.in(subscription, transaction)
    .where({ subscription_id: subscription.id, invoice_status: 'FINALIZED', status: 'published' })
    .where('amount_remaining', '>', 0)
    .limit(1);
  return unpaid === undefined;
}

async function activateWaiting(
  stores: Stores,
  transaction: Transaction,
  { subscription, by }: { subscription: SubscriptionModel; by: By },
): Promise<void> {
  const subscription_status = stateAfter('pay', subscription.subscription_status);
  if (subscription_status === undefined) return;
  const activated = await SubscriptionModel.change(
    subscription,
    { subscription_status },
    { by, database: transaction },
  );
  await emit(transaction, 'subscription.activated', { record: activated, by });
  await familyFollows(stores, transaction, { parent: activated, by });
}
