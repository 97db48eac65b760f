/** Changes what is given of a published credit grant; the end is one of a grant of a subscription. */
import { archivedFrom, type CreditGrant, checkInside } from '../../core/credit-grant/record.ts';
import { invalid, notAllowed } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { instantOf } from '../../core/time/instant.ts';
import { CreditGrantModel } from '../../storage/models/credit-grant.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores } from '../../storage/stores.ts';

type Change = {
  id: string;
  changes: Partial<Pick<CreditGrant, 'name' | 'metadata' | 'end_date'>>;
  author: Author;
};

export async function changeCreditGrant(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, changes, author }: Change,
): Promise<CreditGrantModel> {
  return stores.postgres.transaction(async (database) => {
    const grant = await CreditGrantModel.fetchPublished(scope, id, { database, lock: true });
    if (changes.end_date) {
      if (grant.scope !== 'SUBSCRIPTION') throw invalid('end_date', `is not allowed for scope ${grant.scope}`);
      const subscription = await SubscriptionModel.fetch(scope, grant.subscription_id!, { database });
      checkInside({ ...grant, ...changes }, subscription);
    }
    return CreditGrantModel.change(grant, changes, { by: author, database });
  });
}

/** From `effective_date` on, now unless stated. */
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
    const changes = archivedFrom(grant, effective_date === null ? now : instantOf(effective_date), now);
    return CreditGrantModel.change(grant, changes, { by: author, database });
  });
}
