/**
 * Applies the setting `after_last_try` to the subscription after the last failed collection of its invoice (docs/rules/payments.md, "After
 * the last try"). `next_attempt_at` of the payment stays set until this is done. A payment by a request has no retries, so it changes no
 * subscription.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { OPEN_SUBSCRIPTIONS } from '../../../core/payments/schedule.ts';
import type { PaymentConfig } from '../../../core/payments/setting.ts';
import { SYSTEM_USER } from '../../../core/platform/audit/record.ts';
import { findStateAfter } from '../../../core/subscriptions/moves.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { lockPayment } from '../../payments/lock-payment.ts';
import { cancelWithin } from '../subscriptions/cancel-subscription.ts';
import { lockWithParent } from '../subscriptions/lock-with-parent.ts';
import { propagateToChildren } from '../subscriptions/propagate-to-children.ts';

export async function handleRetriesExhausted(
  stores: Stores,
  { id, ...scope }: PaymentModel,
  by: ChangeAuthor,
): Promise<PaymentModel> {
  const { after_last_try } = await loadSetting(scope, 'payment_config', stores.postgres);
  const { destination_id } = await PaymentModel.fetch(scope, id, { database: stores.postgres });
  const isDue = async (transaction: Transaction) =>
    isExhausted(await PaymentModel.fetch(scope, id, { database: transaction }));
  if (after_last_try === 'cancel') await cancelUnpaid(stores, scope, { invoice_id: destination_id, by, isDue });
  return retryTransaction(stores, async (transaction) => {
    const { payment, invoice, subscription } = await lockPayment(transaction, scope, id);
    // Another process has already handled this payment.
    if (!isPending(payment)) return payment;
    if (subscription && isExhausted(payment) && isUnpaid(invoice))
      await markIncomplete(stores, transaction, { subscription, after_last_try, by });
    return PaymentModel.change(payment, { next_attempt_at: null }, { by, database: transaction });
  });
}

function isPending({ payment_status, next_attempt_at }: PaymentModel): boolean {
  return payment_status === 'FAILED' && next_attempt_at !== null;
}

function isExhausted(payment: PaymentModel): boolean {
  return isPending(payment) && payment.is_automatic;
}

/** Whether the invoice is unpaid and no charge is in progress that may still pay it. */
function isUnpaid({ invoice_status, payment_status, amount_remaining }: InvoiceModel): boolean {
  const isOpen = invoice_status === 'FINALIZED' && payment_status !== 'PROCESSING';
  return isOpen && new Decimal(amount_remaining).gt(0);
}

/**
 * Cancels the subscription at once and puts the usage until now on its last invoice. Does nothing if the invoice was paid or the
 * subscription has ended. Returns whether it was cancelled. `isDue` repeats the caller's condition under the locks of subscription and
 * invoice.
 */
export async function cancelUnpaid(
  stores: Stores,
  scope: Scope,
  {
    invoice_id,
    by,
    isDue,
  }: { invoice_id: string; by: ChangeAuthor; isDue: (transaction: Transaction) => Promise<boolean> },
): Promise<boolean> {
  const { subscription_id: id } = await InvoiceModel.fetch(scope, invoice_id, { database: stores.postgres });
  if (!id) return false;
  const request = {
    id,
    cancellation_type: 'immediate',
    cancel_at: null,
    invoice_policy: 'generate_invoice',
    proration_behavior: 'none',
    reason: 'its invoices were not paid',
    author: { user_id: SYSTEM_USER, now: by.now },
  } as const;
  return runBillingTransaction(stores, async (transaction) => {
    const { subscription_status } = await lockWithParent(scope, id, transaction);
    const invoice = await InvoiceModel.fetch(scope, invoice_id, { database: transaction, lock: true });
    if (!OPEN_SUBSCRIPTIONS.includes(subscription_status) || !isUnpaid(invoice)) return false;
    if (!(await isDue(transaction))) return false;
    await cancelWithin(stores, transaction, { scope, request });
    return true;
  });
}

type MarkIncompleteInput = {
  subscription: SubscriptionModel;
  after_last_try: PaymentConfig['after_last_try'];
  by: ChangeAuthor;
};

async function markIncomplete(
  stores: Stores,
  transaction: Transaction,
  { subscription, after_last_try, by }: MarkIncompleteInput,
): Promise<void> {
  const subscription_status = findStateAfter('await_payment', subscription.subscription_status);
  if (after_last_try !== 'mark_incomplete' || subscription_status === undefined) return;
  const record = await SubscriptionModel.change(subscription, { subscription_status }, { by, database: transaction });
  await emit(transaction, 'subscription.updated', { record, by });
  await propagateToChildren(stores, transaction, { parent: record, by });
}
