/**
 * Checks that at any instant one subscription counts the usage of a customer: its own, or the one that it inherits
 * (docs/rules/subscriptions.md, "Families"). The caller has locked the customers.
 */
import { checkStartAfterFormerHolder } from '../../core/catalog/customer/former-holder.ts';
import { invalid } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { formatMs, type Milliseconds } from '../../core/foundation/time/instant.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import type { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { GivenUpExternalIdModel } from '../../storage/models/subscriptions/given-up-external-id.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';

type SubscriptionStartCheck = {
  readonly customers: readonly CustomerModel[];
  /** Start of the requested subscription. */
  readonly from: Milliseconds;
  readonly field: string;
};

/** Throws if one of the customers inherits a subscription: such a customer has no other subscription and inherits no second one. */
export async function checkInheritsNothing(
  scope: Scope,
  { customers, from, field }: SubscriptionStartCheck,
  database: Database,
): Promise<void> {
  const [inherited] = await filterLastingAfter(listSubscriptions(scope, customers, database), from)
    .where('subscription_type', 'INHERITED')
    .limit(1);
  if (inherited)
    throw invalid(
      field,
      `customer ${inherited.customer_id} takes part in subscription ${inherited.parent_subscription_id} already`,
      { subscription_id: inherited.id, ...toEndDetails(inherited) },
    );
}

/** Types of subscriptions that count the usage of their customer, regardless of the payer. */
const OF_THEIR_OWN = ['STANDALONE', 'PARENT', 'grouped_invoicing', 'DELEGATED_INVOICING'];

/** Refuses a customer with a subscription of its own, because such a customer inherits no other. A draft is checked at its activation. */
export async function checkHasNoneOfTheirOwn(
  scope: Scope,
  { customers, from, field }: SubscriptionStartCheck,
  database: Database,
): Promise<void> {
  const [own] = await filterLastingAfter(listSubscriptions(scope, customers, database), from)
    .whereIn('subscription_type', OF_THEIR_OWN)
    .whereNot('subscription_status', 'draft')
    .limit(1);
  if (own)
    throw invalid(field, `customer ${own.customer_id} has a subscription of their own`, {
      subscription_id: own.id,
      ...toEndDetails(own),
    });
}

/**
 * Checks that the subscriptions begin after former holders of the external ids. Usage sent under an external id before the customer had it
 * was charged to the former holder.
 */
export async function checkBeginAfterFormerHolders(
  scope: Scope,
  { customers, from }: Pick<SubscriptionStartCheck, 'customers' | 'from'>,
  database: Database,
): Promise<void> {
  for (const customer of customers)
    checkStartAfterFormerHolder(await GivenUpExternalIdModel.formerHolder(scope, customer, database), formatMs(from));
}

function listSubscriptions(scope: Scope, customers: readonly CustomerModel[], database: Database) {
  const ids = customers.map(({ id }) => id);
  return SubscriptionModel.in(scope, database).whereIn('customer_id', ids).where('status', 'published');
}

const ENDS = `least(end_date, cancel_at, case when subscription_status = 'cancelled' then cancelled_at end)`;

/** Filters the subscriptions that end after an instant and have any active time. */
function filterLastingAfter(subscriptions: ReturnType<typeof listSubscriptions>, from: Milliseconds) {
  return subscriptions.whereRaw(`coalesce(${ENDS} > greatest(?::timestamptz, start_date), true)`, [formatMs(from)]);
}

function toEndDetails({ end_date, cancel_at }: SubscriptionModel) {
  return { end_date: end_date ?? cancel_at ?? null };
}
