/** Credit grants of a subscription itself: created with it, and adjusted when the start of a draft changes (docs/rules/credits.md). */
import { defineSubscriptionGrant, type OwnCreditGrant } from '../../core/catalog/credit-grant/record.ts';
import { prefixField } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../core/foundation/stamp.ts';
import { toInstant } from '../../core/foundation/time/instant.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { CreditGrantModel } from '../../storage/models/catalog/credit-grant.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';

export async function addGrants(
  subscription: SubscriptionModel,
  requested: readonly OwnCreditGrant[],
  { scope, database, author }: { scope: Scope; database: Transaction; author: Author },
): Promise<void> {
  const records = requested.map((one, index) => {
    try {
      const grant = defineSubscriptionGrant(one, subscription);
      return { ...grant, ...createdBy(author), id: newId('credit_grant', author.now.getTime()) };
    } catch (error) {
      throw prefixField(error, `credit_grants[${index}]`);
    }
  });
  if (records.length > 0) await CreditGrantModel.addAll(scope, records, { database });
}

/**
 * Adjusts the start of grants to a new start of their draft. Grants that began with the draft, or would begin before the new start, begin
 * with the new start; so do their periods.
 */
export async function moveGrants(
  { draft, started, author }: { draft: SubscriptionModel; started: SubscriptionModel; author: Author },
  transaction: Transaction,
): Promise<void> {
  const { start_date } = started;
  for (const grant of await CreditGrantModel.buildPublishedQuery(draft, ['subscription_id', [draft.id]], transaction)) {
    const starts = toInstant(grant.start_date!);
    if (starts !== toInstant(draft.start_date) && starts >= toInstant(start_date)) continue;
    const isAnchored = toInstant(grant.credit_grant_anchor!) > Math.max(starts, toInstant(start_date));
    const changes = isAnchored ? { start_date } : { start_date, credit_grant_anchor: start_date };
    await CreditGrantModel.change(grant, changes, { by: author, database: transaction });
  }
}
