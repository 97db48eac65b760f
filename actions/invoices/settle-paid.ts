/**
 * What follows when less of an invoice remains to be paid, or nothing: what else would pay it is void, credits that were bought
 * with it come, and a subscription that waits for it becomes active (docs/rules/subscriptions.md, "States"; docs/rules/payments.md, "What becomes of the invoice").
 */
import { Decimal } from '../../core/decimal.ts';
import type { BillingReason } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import { findStateAfter } from '../../core/subscription/moves.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { voidOpenPayments } from '../payments/void-open-payments.ts';
import { propagateToChildren } from '../subscriptions/propagate-to-children.ts';
import { emit, type SystemEventChange } from '../system-events/emit.ts';
import { completePurchase } from '../wallets/pending-credits.ts';
import type { LockedInvoice } from './lock-invoice.ts';

/** Whatever has brought down what remains of the invoice: a payment, or a credit note. */
export async function completeIfPaid(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, by }: LockedInvoice & { by: SystemEventChange['by'] },
): Promise<void> {
  await voidOpenPayments(transaction, { invoice, by });
  if (new Decimal(invoice.amount_remaining).gt(0)) return;
  await completePurchase(transaction, { invoice, by });
  await activateAwaiting(stores, transaction, { invoice, subscription, by });
}

/** Nobody has to pay the invoice any more: it is paid, or void. */
export async function activateAwaiting(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, by }: LockedInvoice & { by: SystemEventChange['by'] },
): Promise<void> {
  if (!subscription || !(await isAwaited(transaction, { invoice, subscription }))) return;
  const subscription_status = findStateAfter('pay', subscription.subscription_status);
  if (subscription_status === undefined) return;
  const activated = await SubscriptionModel.change(
    subscription,
    { subscription_status },
    { by, database: transaction },
  );
  await emit(transaction, 'subscription.activated', { record: activated, by });
  await propagateToChildren(stores, transaction, { parent: activated, by });
}

/** An invoice that was computed again may have come to nothing: then nothing has to be paid for it. */
export async function activateIfNothingDue(
  stores: Stores,
  transaction: Transaction,
  { scope, invoice_id, by }: { scope: Scope; invoice_id: string; by: SystemEventChange['by'] },
): Promise<void> {
  const invoice = await InvoiceModel.fetch(scope, invoice_id, { database: transaction });
  const isMade = invoice.invoice_status === 'SKIPPED' || invoice.invoice_status === 'FINALIZED';
  if (!isMade || !invoice.subscription_id || new Decimal(invoice.amount_remaining).gt(0)) return;
  const holding = { database: transaction, lock: true };
  const subscription = await SubscriptionModel.fetch(scope, invoice.subscription_id, holding);
  if (subscription.subscription_status === 'incomplete')
    await completeIfPaid(stores, transaction, { invoice, subscription, by });
}

/** Of these reasons are the invoices that a subscription waits for when it is incomplete; and of any, where its collection has failed. */
const WAITED_FOR: readonly BillingReason[] = [
  'SUBSCRIPTION_CREATE',
  'SUBSCRIPTION_TRIAL_END',
  'SUBSCRIPTION_UPDATE',
  'SUBSCRIPTION_CYCLE',
  'THRESHOLD_BILLING',
];

/** One of those is settled, and none of them is unpaid any more. */
async function isAwaited(
  transaction: Transaction,
  { invoice, subscription }: { invoice: InvoiceModel; subscription: SubscriptionModel },
): Promise<boolean> {
  if (subscription.subscription_status !== 'incomplete') return false;
  const unpaid = await InvoiceModel.in(subscription, transaction)
    .where({ subscription_id: subscription.id, invoice_status: 'FINALIZED', status: 'published' })
    .where('amount_remaining', '>', 0);
  const failed = await failedCollections([invoice, ...unpaid], transaction);
  const isOne = ({ id, billing_reason }: InvoiceModel) => WAITED_FOR.includes(billing_reason) || failed.has(id);
  return isOne(invoice) && !unpaid.some(isOne);
}

/** Those that could not be collected, however they were paid afterwards. */
async function failedCollections(invoices: readonly InvoiceModel[], transaction: Transaction): Promise<Set<string>> {
  const [first] = invoices;
  const failed = await PaymentModel.in(first!, transaction)
    .whereIn(
      'destination_id',
      invoices.map(({ id }) => id),
    )
    .where({ is_automatic: true, payment_status: 'FAILED', status: 'published' });
  return new Set(failed.map(({ destination_id }) => destination_id));
}
