/** Updates a published credit grant. */
import {
  type CreditGrant,
  checkWithinSubscription,
  planGrantArchive,
} from '../../../core/catalog/credit-grant/record.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { continueGrant } from './give-grants.ts';

type CreditGrantChange = {
  id: string;
  changes: Partial<Pick<CreditGrant, 'name' | 'metadata' | 'end_date'>>;
  author: Author;
};

export async function changeCreditGrant(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, changes, author }: CreditGrantChange,
): Promise<CreditGrantModel> {
  return stores.postgres.transaction(async (database) => {
    const subscription = 'end_date' in changes ? await lockGrantSubscription(scope, id, database) : null;
    const grant = await CreditGrantModel.fetchChangeable(scope, id, database);
    if (changes.end_date) {
      if (!subscription) throw invalid('end_date', `is not allowed for scope ${grant.scope}`);
      checkWithinSubscription({ ...grant, ...changes }, subscription);
    }
    const changed = await CreditGrantModel.change(grant, changes, { by: author, database });
    if (subscription) await continueGrant(database, { subscription, grant: changed, by: author });
    return changed;
  });
}

/** Locks the subscription before its grant, as a cancellation does. Null for a grant of a plan or an add-on. */
async function lockGrantSubscription(
  scope: Scope,
  id: string,
  database: Transaction,
): Promise<SubscriptionModel | null> {
  const { subscription_id } = await CreditGrantModel.fetch(scope, id, { database });
  return subscription_id === null ? null : SubscriptionModel.fetch(scope, subscription_id, { database, lock: true });
}

/** Archives from `effective_date` on. Default: now. */
export async function archiveCreditGrant(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; effective_date: string | null; author: Author },
): Promise<CreditGrantModel> {
  const { id, effective_date, author } = request;
  return stores.postgres.transaction(async (database) => {
    const grant = await CreditGrantModel.fetch(scope, id, { database, lock: true });
    if (grant.status !== 'published') throw notAllowed(`credit grant ${id} is ${grant.status} already`);
    const now = author.now.getTime();
    const changes = planGrantArchive(grant, effective_date === null ? now : toInstant(effective_date), now);
    return CreditGrantModel.change(grant, changes, { by: author, database });
  });
}
