/**
 * Opens a subscription's billing and says where it stands then: active when nothing of the opening invoice remains to be
 * paid or payment_behavior says so, else incomplete (docs/rules/subscriptions.md, "The opening").
 */
import type { InvoiceWithLines } from '../../core/invoice/record.ts';
import type { Author } from '../../core/stamp.ts';
import { statusAfterOpening } from '../../core/subscription/payment-settings.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { withLines } from '../billing/invoice-records.ts';
import { openSubscription } from './draft-invoice.ts';

export type Opened = { subscription: SubscriptionModel; latest_invoice: InvoiceWithLines | null };

/** `transaction` holds the subscription's row. */
export async function openAndSettle(
  stores: Stores,
  transaction: Transaction,
  { subscription, author }: { subscription: SubscriptionModel; author: Author },
): Promise<Opened> {
  await openSubscription(stores, transaction, subscription, author.now);
  const latest_invoice = await newestInvoice(subscription, transaction);
  const status = statusAfterOpening(subscription.payment_behavior, latest_invoice?.amount_remaining ?? null);
  if (status === subscription.subscription_status) return { subscription, latest_invoice };
  const changes = { subscription_status: status };
  const settled = await SubscriptionModel.change(subscription, changes, { by: author, database: transaction });
  return { subscription: settled, latest_invoice };
}

async function newestInvoice(subscription: SubscriptionModel, database: Database): Promise<InvoiceWithLines | null> {
  const [invoice] = await InvoiceModel.in(subscription, database)
    .where({ subscription_id: subscription.id, status: 'published' })
    .whereNot('invoice_status', 'SKIPPED')
    .orderBy('billing_sequence', 'desc')
    .limit(1);
  return invoice ? withLines(invoice, database) : null;
}
