/**
 * Opens a subscription and sets its state: active, trialing, or waiting for payment of its opening invoice (docs/rules/subscriptions.md,
 * "The opening"). A subscription that starts later is opened at its start ("A start that lies ahead").
 */
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { deriveStatusAfterInvoice, deriveStatusAfterOpening } from '../../../core/subscriptions/payment-settings.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { findPendingCollectionPayment } from '../../invoicing/collection/create-collection.ts';
import { openSubscription } from '../../invoicing/invoices/draft-invoice.ts';
import { loadWithLines } from '../../invoicing/records/invoice-records.ts';

export type OpenedSubscription = { subscription: SubscriptionModel; latest_invoice: InvoiceWithLines | null };

type OpenSubscriptionInput = {
  readonly subscription: SubscriptionModel;
  /** All lines of the subscription, if the caller has read them. */
  readonly line_items?: readonly SubscriptionLineItemModel[];
  readonly by: ChangeAuthor;
};

/** Opens the subscription, whose row `transaction` has locked. */
export async function openAndActivate(
  stores: Stores,
  transaction: Transaction,
  { subscription, line_items, by }: OpenSubscriptionInput,
): Promise<OpenedSubscription> {
  if (subscription.opens_at) return { subscription, latest_invoice: null };
  await openSubscription(stores, transaction, { subscription, line_items, now: by.now });
  // A trial opens with an invoice of 0, which counts as paid.
  if (subscription.subscription_status === 'trialing')
    return { subscription, latest_invoice: await findNewestInvoice(subscription, transaction) };
  return activateIfPaid(transaction, { subscription, by });
}

/** Sets the subscription active, or waiting for payment of the invoice just created. */
export async function activateIfPaid(
  transaction: Transaction,
  { subscription, by }: { subscription: SubscriptionModel; by: ChangeAuthor },
): Promise<OpenedSubscription> {
  const latest_invoice = await findNewestInvoice(subscription, transaction);
  // If the invoice is collected automatically, its payment sets the state after the commit (actions/lifecycle/payments/collect-opening.ts).
  const isCollected =
    latest_invoice && (await findPendingCollectionPayment(transaction, { ...subscription, id: latest_invoice.id }));
  const isRefused = 'user_id' in by && !isCollected;
  const statusAfter = isRefused ? deriveStatusAfterOpening : deriveStatusAfterInvoice;
  const status = statusAfter(subscription.payment_behavior, latest_invoice?.amount_remaining ?? null);
  if (status === subscription.subscription_status) return { subscription, latest_invoice };
  const changes = { subscription_status: status };
  const settled = await SubscriptionModel.change(subscription, changes, { by, database: transaction });
  return { subscription: settled, latest_invoice };
}

async function findNewestInvoice(
  subscription: SubscriptionModel,
  database: Database,
): Promise<InvoiceWithLines | null> {
  const [invoice] = await InvoiceModel.in(subscription, database)
    .where({ subscription_id: subscription.id, status: 'published' })
    .whereNot('invoice_status', 'SKIPPED')
    .orderBy('billing_sequence', 'desc')
    .limit(1);
  return invoice ? loadWithLines(invoice, database) : null;
}
