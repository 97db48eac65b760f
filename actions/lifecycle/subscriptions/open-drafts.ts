/** Draft invoices that a change of a subscription's lines recomputes. */
import { formatMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { findInvoicingParentId } from '../../../core/subscriptions/addressee.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { computeWithin } from '../../invoicing/invoices/compute-invoice.ts';
import { currentPeriod, toScope } from '../../rating/billable-items.ts';

/** Lists the open drafts. Drafts of the previous period contain the advance charges of the running one. */
export async function listOpenDrafts(
  database: Database,
  subscription: SubscriptionModel,
  current: Period,
): Promise<readonly string[]> {
  const parent_id = findInvoicingParentId(subscription);
  const drafts = await InvoiceModel.in(subscription, database)
    .select('id')
    .whereIn('subscription_id', parent_id ? [subscription.id, parent_id] : [subscription.id])
    .where({
      invoice_status: 'DRAFT',
      status: 'published',
      billing_reason: 'SUBSCRIPTION_CYCLE',
      period_end: formatMs(current.start),
    })
    .orderBy('id');
  return drafts.map(({ id }) => id);
}

/** Recomputes the open drafts after the end of the running period was changed, and before the drafts become final. */
export async function computeOpenDrafts(
  stores: Stores,
  transaction: Transaction,
  { subscription, now }: { subscription: SubscriptionModel; now: Date },
): Promise<void> {
  const drafts = await listOpenDrafts(transaction, subscription, currentPeriod(subscription));
  await computeDrafts(stores, transaction, { subscription, drafts, now });
}

export async function computeDrafts(
  stores: Stores,
  transaction: Transaction,
  { subscription, drafts, now }: { subscription: SubscriptionModel; drafts: readonly string[]; now: Date },
): Promise<void> {
  for (const invoice_id of drafts)
    await computeWithin(stores, transaction, { scope: toScope(subscription), invoice_id, now });
}
