/**
 * Usage of a customer is counted by their own subscription or by the one in which they take part, at any instant by one of the two
 * (docs/rules/subscriptions.md, "Families"). Who asks holds the rows of the customers.
 */
import { checkStartAfterFormerHolder } from '../../core/customer/former-holder.ts';
import { invalid } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { formatMs, type Milliseconds } from '../../core/time/instant.ts';
import type { CustomerModel } from '../../storage/models/customer.ts';
import { GivenUpExternalIdModel } from '../../storage/models/given-up-external-id.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Database } from '../../storage/stores.ts';

type SubscriptionStartCheck = {
  readonly customers: readonly CustomerModel[];
  /** When what is asked for begins. */
  readonly from: Milliseconds;
  readonly field: string;
};

/** Who takes part in somebody's subscription has none of their own beside it, and takes part in no second one. */
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

/** Whoever pays for it: that the usage is counted twice is the same. */
const OF_THEIR_OWN = ['STANDALONE', 'PARENT', 'grouped_invoicing', 'DELEGATED_INVOICING'];

/** Who has a subscription of their own takes part in nobody's beside it. What is a draft is looked at when it is activated. */
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

/** What came under an external id before they had it was charged to who had it. */
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

/** Those that last beyond an instant, and have lasted at all. */
function filterLastingAfter(subscriptions: ReturnType<typeof listSubscriptions>, from: Milliseconds) {
  return subscriptions.whereRaw(`coalesce(${ENDS} > greatest(?::timestamptz, start_date), true)`, [formatMs(from)]);
}

function toEndDetails({ end_date, cancel_at }: SubscriptionModel) {
  return { end_date: end_date ?? cancel_at ?? null };
}
