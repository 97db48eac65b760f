import { deriveAddressee, findInvoicingParentId } from '../../core/subscriptions/addressee.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database } from '../../storage/stores.ts';
import { toScope } from '../rating/billable-items.ts';

/** The customer who pays for a subscription: of grouped invoicing, the one of its parent. */
export async function loadPayer(subscription: SubscriptionModel, database: Database): Promise<string> {
  const parent_id = findInvoicingParentId(subscription);
  const charged = parent_id
    ? await SubscriptionModel.fetch(toScope(subscription), parent_id, { database })
    : subscription;
  return deriveAddressee(charged);
}
