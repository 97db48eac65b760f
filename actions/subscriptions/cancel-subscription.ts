/**
 * Cancels a subscription now, at the end of its period or on a date. An immediate cancellation ends the line items and
 * invoices the arrears, unless the request says skip; a scheduled one is carried out by the scheduler
 * (docs/rules/subscriptions.md, "Cancellation"; core/subscription/cancellation.ts).
 */
import type { InvoiceWithLines } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { type CancellationRequest, cancellationOf } from '../../core/subscription/cancellation.ts';
import type { CANCEL_INVOICE_POLICIES } from '../../core/subscription/record.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { billingTransaction } from '../billing/transaction.ts';
import { draftFinalInvoice } from '../invoices/draft-invoice.ts';
import { emit } from '../system-events/emit.ts';

export type CancelRequest = CancellationRequest & {
  id: string;
  invoice_policy: (typeof CANCEL_INVOICE_POLICIES)[number];
  author: Author;
};

export type Cancelled = { subscription: SubscriptionModel; effective_date: string; invoice: InvoiceWithLines | null };

export async function cancelSubscription(stores: Stores, scope: Scope, request: CancelRequest): Promise<Cancelled> {
  const { id, author } = request;
  return billingTransaction(stores, async (transaction) => {
    const running = await SubscriptionModel.fetch(scope, id, { database: transaction, lock: true });
    const { effective_date, changes } = cancellationOf(running, request, author.now.getTime());
    const isOver = changes.subscription_status === 'cancelled';
    const invoice =
      isOver && request.invoice_policy === 'generate_invoice'
        ? await draftFinalInvoice(stores, transaction, { subscription: running, effective_date, now: author.now })
        : null;
    const subscription = await SubscriptionModel.change(running, changes, { by: author, database: transaction });
    if (isOver) await endLineItems(scope, { subscription, author }, transaction);
    await emit(transaction, 'subscription.updated', { record: subscription, by: author });
    if (isOver) await emit(transaction, 'subscription.cancelled', { record: subscription, by: author });
    return { subscription, effective_date, invoice };
  });
}

async function endLineItems(
  scope: Scope,
  { subscription, author }: { subscription: SubscriptionModel; author: Author },
  transaction: Transaction,
): Promise<void> {
  const { id, end_date } = subscription;
  await SubscriptionLineItemModel.endAll(scope, { subscription_id: id, at: end_date!, by: author }, transaction);
}
