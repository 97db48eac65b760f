/**
 * Applies the effects that a lower remaining amount of an invoice has in other domains (docs/rules/subscriptions.md, "States";
 * docs/rules/payments.md, "What becomes of the invoice"). Payments, credit notes, voiding, credits of changes and recomputed invoices all
 * call these functions: open payments that are no longer needed are voided. If nothing remains to be paid, the credits that the invoice
 * sells are granted, the subscription that waits for it becomes active, and its checkout is completed. The effects of a finally failed
 * automatic payment are in `payments/retries-exhausted.ts`.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { BillingReason } from '../../core/invoicing/invoice/record.ts';
import { findStateAfter } from '../../core/subscriptions/moves.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { completePurchase } from '../credits/wallets/pending-credits.ts';
import { type ChangeAuthor, emit } from '../foundation/emit.ts';
import { voidOpenPayments } from '../invoicing/collection/void-open-payments.ts';
import type { LockedInvoice } from '../invoicing/invoices/lock-invoice.ts';
import { toScope } from '../rating/billable-items.ts';
import { completeCheckout } from './checkout/complete-checkout.ts';
import { propagateToChildren } from './subscriptions/propagate-to-children.ts';

/** Applies the effects of a lower remaining amount. Called after any decrease of it, by a payment or a credit note. */
export async function applyLowerRemaining(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, by }: LockedInvoice & { by: ChangeAuthor },
): Promise<void> {
  await voidOpenPayments(transaction, { invoice, by });
  if (new Decimal(invoice.amount_remaining).gt(0)) return;
  await completePurchase(transaction, { invoice, by });
  await activateIncompleteSubscription(stores, transaction, { invoice, subscription, by });
  await completeCheckout(transaction, { invoice, by });
}

/** Activates a subscription whose invoice needs no payment any more, because it is paid or void. */
export async function activateIncompleteSubscription(
  stores: Stores,
  transaction: Transaction,
  { invoice, subscription, by }: LockedInvoice & { by: ChangeAuthor },
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

/**
 * Activates subscriptions that waited for payment of one of these invoices, which a credit has lowered. The invoice may be that of a
 * parent. Only an incomplete subscription is locked, because the usual order locks subscriptions before invoices, and the invoices are
 * locked already.
 */
export async function activateAfterLowered(
  stores: Stores,
  transaction: Transaction,
  { lowered, by }: { lowered: readonly InvoiceModel[]; by: ChangeAuthor },
): Promise<void> {
  for (const { id: invoice_id, subscription_id, ...scope } of lowered) {
    if (!subscription_id) continue;
    const { subscription_status } = await SubscriptionModel.fetch(scope, subscription_id, { database: transaction });
    if (subscription_status === 'incomplete')
      await activateIfNothingDue(stores, transaction, { scope: toScope(scope), invoice_id, by });
  }
}

/** Activates the subscription if nothing remains to be paid: a recomputed invoice may be 0. */
export async function activateIfNothingDue(
  stores: Stores,
  transaction: Transaction,
  { scope, invoice_id, by }: { scope: Scope; invoice_id: string; by: ChangeAuthor },
): Promise<void> {
  const invoice = await InvoiceModel.fetch(scope, invoice_id, { database: transaction });
  const isMade = invoice.invoice_status === 'SKIPPED' || invoice.invoice_status === 'FINALIZED';
  if (!isMade || !invoice.subscription_id || new Decimal(invoice.amount_remaining).gt(0)) return;
  const holding = { database: transaction, lock: true };
  const subscription = await SubscriptionModel.fetch(scope, invoice.subscription_id, holding);
  if (subscription.subscription_status === 'incomplete')
    await applyLowerRemaining(stores, transaction, { invoice, subscription, by });
}

/** Reasons of invoices whose payment an incomplete subscription awaits. It also awaits payment of any invoice whose collection failed. */
const AWAITED_REASONS: readonly BillingReason[] = [
  'SUBSCRIPTION_CREATE',
  'SUBSCRIPTION_TRIAL_END',
  'SUBSCRIPTION_UPDATE',
  'SUBSCRIPTION_CYCLE',
  'THRESHOLD_BILLING',
];

/** True if an incomplete subscription waits for this invoice and for no other unpaid one. */
async function isAwaited(
  transaction: Transaction,
  { invoice, subscription }: { invoice: InvoiceModel; subscription: SubscriptionModel },
): Promise<boolean> {
  if (subscription.subscription_status !== 'incomplete') return false;
  const unpaid = await InvoiceModel.in(subscription, transaction)
    .where({ subscription_id: subscription.id, invoice_status: 'FINALIZED', status: 'published' })
    .where('amount_remaining', '>', 0);
  const failed = await failedCollections([invoice, ...unpaid], transaction);
  const isOne = ({ id, billing_reason }: InvoiceModel) => AWAITED_REASONS.includes(billing_reason) || failed.has(id);
  return isOne(invoice) && !unpaid.some(isOne);
}

/** Finds the invoices whose automatic collection failed, even if they were paid otherwise later. */
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
