/** Finalizes a draft on request, without another computation (docs/rules/invoices.md, "From draft to final"). */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { BILL_DELAY_SECONDS, recordSubscriptionLateUsage } from '../../../storage/progress/late-usage.ts';
import { finalizeWithin } from '../../invoicing/invoices/finalize-invoice.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { toScope } from '../../rating/billable-items.ts';
import { activateAfterLowered, activateIfNothingDue } from '../effects.ts';

export async function finalizeInvoice(
  stores: Stores,
  scope: Scope,
  invoice_id: string,
  now: Date,
): Promise<InvoiceWithLines> {
  const finalize = async (transaction: Transaction) => {
    await lockInvoice(transaction, scope, invoice_id);
    const { invoice, lowered } = await finalizeWithin(transaction, scope, { invoice_id, now });
    await enqueueLateUsageChecks(transaction, invoice, now);
    await activateAfterLowered(stores, transaction, { lowered, by: { now } });
    await activateIfNothingDue(stores, transaction, { scope, invoice_id, by: { now } });
    return invoice;
  };
  return retryTransaction(stores, finalize);
}

/**
 * Enqueues a check of late usage for cancelled subscriptions: the draft is not recomputed, and no later invoice would contain that usage.
 */
async function enqueueLateUsageChecks(
  transaction: Transaction,
  { line_items, ...invoice }: InvoiceWithLines,
  now: Date,
) {
  const ids = [invoice.subscription_id, ...line_items.map(({ subscription_id }) => subscription_id)];
  const ended = await SubscriptionModel.in(invoice, transaction)
    .whereIn('id', [...new Set(ids)].filter(isNamed))
    .where({ subscription_status: 'cancelled', status: 'published' })
    .orderBy('id')
    .select('id');
  const due_at = new Date(now.getTime() + BILL_DELAY_SECONDS * 1000);
  for (const { id } of ended)
    await recordSubscriptionLateUsage(transaction, { ...toScope(invoice), subscription_id: id }, due_at);
}

function isNamed(id: string | null | undefined): id is string {
  return Boolean(id);
}
