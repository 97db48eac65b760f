import { deriveAddressee, findInvoicingParentId } from '../../core/subscriptions/addressee.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { toScope } from '../rating/billable-items.ts';

/** Returns the id of the customer who pays for a subscription. A grouped subscription is paid by the payer of its parent. */
export async function loadPayer(subscription: SubscriptionModel, database: Database): Promise<string> {
  const parent_id = findInvoicingParentId(subscription);
  const charged = parent_id
    ? await SubscriptionModel.fetch(toScope(subscription), parent_id, { database })
    : subscription;
  return deriveAddressee(charged);
}
