/**
 * Archives a customer and frees its external id; refused while it has live subscriptions or children (docs/rules/records.md, "Archiving").
 */

import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emit } from '../../foundation/emit.ts';

export async function archiveCustomer(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (transaction) => {
    const customer = await CustomerModel.fetchPublished(scope, id, { database: transaction, lock: true });
    if (await hasLiveSubscription(scope, id, transaction))
      throw notAllowed(`customer ${id} has active subscriptions, cancel them first`);
    if (await CustomerModel.hasChildren(scope, id, transaction)) throw notAllowed(`customer ${id} has children`);
    const archived = await CustomerModel.change(
      customer,
      { status: 'archived' },
      { by: author, database: transaction },
    );
    await emit(transaction, 'customer.deleted', { record: archived, by: author });
  });
}

/** Whether the customer has, or pays for, a subscription that is not cancelled. */
export async function hasLiveSubscription(scope: Scope, customer_id: string, database: Database): Promise<boolean> {
  const [live] = await SubscriptionModel.in(scope, database)
    .select('id')
    .where('status', 'published')
    .whereNot('subscription_status', 'cancelled')
    .where((payer) => void payer.where('customer_id', customer_id).orWhere('invoicing_customer_id', customer_id))
    .limit(1);
  return live !== undefined;
}
