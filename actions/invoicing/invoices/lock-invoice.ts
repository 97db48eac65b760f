/** An invoice and its subscription, locked for the rest of the transaction. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { lockSubscriptions } from '../../subscriptions/lock-in-order.ts';

export type LockedInvoice = { readonly invoice: InvoiceModel; readonly subscription: SubscriptionModel | null };

type InvoiceToLock = { readonly invoice_id: string; readonly subscription_id: string | null };

/** Locks all subscriptions, then all invoices. The caller holds no other lock yet. */
export async function lockInvoices(
  transaction: Transaction,
  scope: Scope,
  named: readonly InvoiceToLock[],
): Promise<void> {
  const subscriptionIds = named.flatMap(({ subscription_id }) => (subscription_id ? [subscription_id] : []));
  await lockSubscriptions(scope, subscriptionIds, transaction);
  const ids = named.map(({ invoice_id }) => invoice_id);
  await InvoiceModel.in(scope, transaction).select('id').whereIn('id', ids).orderBy('id').forUpdate();
}

export async function lockInvoice(transaction: Transaction, scope: Scope, id: string): Promise<LockedInvoice> {
  const { subscription_id = null } = await InvoiceModel.fetch(scope, id, { database: transaction });
  return lockInvoiceAndSubscription(transaction, scope, { id, subscription_id });
}

/** Locks the subscription first, then the invoice: all writers of a subscription's invoices use this order. */
export async function lockInvoiceAndSubscription(
  transaction: Transaction,
  scope: Scope,
  { id, subscription_id }: { id: string; subscription_id: string | null },
): Promise<LockedInvoice> {
  const holding = { database: transaction, lock: true };
  const subscription = subscription_id ? await SubscriptionModel.fetch(scope, subscription_id, holding) : null;
  return { subscription, invoice: await InvoiceModel.fetch(scope, id, holding) };
}
