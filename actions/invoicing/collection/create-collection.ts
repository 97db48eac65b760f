/**
 * Creates the automatic payment ("collection") of a finalized invoice if its subscription requires one and there is something to charge.
 * The payment is created in the finalizing transaction and attempted after its commit (docs/rules/payments.md, "Collected by itself").
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { SYSTEM_USER } from '../../../core/platform/audit/record.ts';
import { mapBatched } from '../../../storage/concurrency/batched.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { withPostpaid } from '../../../storage/models/credits/wallet.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { withMethods } from '../../../storage/models/payments/payment-method.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadCoveredByCredits } from '../../credits/wallets/pay-with-credits.ts';
import { emit } from '../../foundation/emit.ts';
import { type CollectionTerms, loadCollection } from './find-payment-method.ts';

type CollectedInvoice = { readonly invoice: InvoiceModel; readonly subscription: SubscriptionModel | null };

/**
 * Creates the collections of the invoices that one transaction finalizes in one environment. One query finds the payers that can be
 * charged; most cannot.
 */
export async function createCollectionPayments(
  transaction: Transaction,
  scope: Scope,
  { all, now }: { all: readonly CollectedInvoice[]; now: Date },
): Promise<void> {
  const due = all.filter(shouldCollect);
  if (due.length < 2)
    return void (await Promise.all(due.map((one) => createCollectionPayment(transaction, { ...one, now }))));
  const payers = due.map(({ invoice }) => invoice.customer_id);
  const able = [await withMethods(scope, payers, transaction), await withPostpaid(scope, payers, transaction)];
  const hasPaymentMethod = ({ invoice, subscription }: CollectedInvoice) =>
    Boolean(subscription?.gateway_payment_method_id) || able.some((those) => those.has(invoice.customer_id));
  await mapBatched(transaction, due.filter(hasPaymentMethod), (one) =>
    createCollectionPayment(transaction, { ...one, now }),
  );
}

function shouldCollect({ invoice, subscription }: CollectedInvoice): boolean {
  // Top-ups are collected even without a subscription, because the wallet buys no further credits until its last purchase is paid.
  const isTopUp = invoice.billing_reason === 'WALLET_AUTO_TOPUP';
  const isAutomatic = subscription?.collection_method === 'charge_automatically' || isTopUp;
  return isAutomatic && new Decimal(invoice.amount_remaining).gt(0);
}

export async function createCollectionPayment(
  transaction: Transaction,
  { invoice, subscription, now }: CollectedInvoice & { readonly now: Date },
): Promise<PaymentModel | null> {
  if (await isPaidByCheckout(transaction, { invoice, subscription })) return null;
  const covered = await loadCoveredByCredits(transaction, invoice, now);
  const { collection } = await loadCollection(transaction, invoice, { subscription, covered });
  return collection && addCollectionPayment(transaction, { invoice, collection, now });
}

/** Whether the invoice is an opening invoice that the customer pays on an open checkout page. */
async function isPaidByCheckout(
  transaction: Transaction,
  { invoice, subscription }: CollectedInvoice,
): Promise<boolean> {
  if (!subscription || invoice.billing_reason !== 'SUBSCRIPTION_CREATE') return false;
  const target = { subscription_id: subscription.id };
  return (await CheckoutSessionModel.findOpen(subscription, target, transaction)) !== undefined;
}

/** Returns the automatic payment of the invoice if it waits for an attempt. */
export async function findPendingCollectionPayment(
  database: Database,
  invoice: Pick<InvoiceModel, 'id' | 'tenant_id' | 'environment_id'>,
): Promise<PaymentModel | undefined> {
  const [pending] = await PaymentModel.in(invoice, database).where({
    destination_id: invoice.id,
    is_automatic: true,
    payment_status: 'PENDING',
    status: 'published',
  });
  return pending;
}

type CollectionPaymentInput = {
  readonly invoice: InvoiceModel;
  readonly collection: CollectionTerms;
  readonly now: Date;
};

export async function addCollectionPayment(
  transaction: Transaction,
  { invoice, collection, now }: CollectionPaymentInput,
  payment_status: 'PENDING' | 'INITIATED' = 'PENDING',
): Promise<PaymentModel> {
  const id = newId('payment', now.getTime());
  const record = {
    ...collection,
    ...createdBy({ user_id: SYSTEM_USER, now }),
    id,
    idempotency_key: `collection of ${invoice.id}: ${id}`,
    customer_id: invoice.customer_id,
    destination_type: 'INVOICE',
    destination_id: invoice.id,
    invoice_number: invoice.invoice_number ?? null,
    currency: invoice.currency,
    payment_status,
    track_attempts: collection.payment_method_type !== 'CREDITS',
    is_automatic: true,
    next_attempt_at: now.toISOString(),
  };
  const conflict = 'this invoice is being collected already';
  const payment = await PaymentModel.add(invoice, record, { database: transaction, conflict });
  await emit(transaction, 'payment.created', { record: payment, by: { now } });
  return payment;
}
