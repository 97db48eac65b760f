/**
 * Customers whose usage a subscription counts: its own, and for a parent those of all inherited subscriptions (docs/rules/subscriptions.md,
 * "Families").
 */
import { FarthingError } from '../../core/foundation/error.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Milliseconds, toInstant, toUs } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import { computeCountedCustomers, type SubscriptionMember } from '../../core/subscriptions/members.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { buildChildrenQuery, type SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import type { MeterUsageQuery } from '../../storage/usage/usage-query.ts';

/**
 * Loads the customers by subscription id. Customers that have left are included, with the day on which they left. Customers in `loaded` are
 * not read again.
 */
export async function loadMembers(
  database: Database,
  scope: Scope,
  subscriptions: readonly SubscriptionModel[],
  loaded: ReadonlyMap<string, CustomerModel> = new Map(),
): Promise<ReadonlyMap<string, readonly SubscriptionMember[]>> {
  const parents = subscriptions.filter(({ subscription_type }) => subscription_type === 'PARENT');
  const inheritedSubscriptions =
    parents.length > 0 ? await buildChildrenQuery(scope, { parents, type: 'INHERITED' }, database) : [];
  const ids = [...subscriptions, ...inheritedSubscriptions].map(({ customer_id }) => customer_id);
  const others = ids.filter((id) => !loaded.has(id));
  const customers = await CustomerModel.byId(scope, others, database);
  const toExternalId = ({ id, customer_id }: SubscriptionModel) => {
    const customer = loaded.get(customer_id) ?? customers.get(customer_id);
    if (!customer) throw new FarthingError('system_error', `customer ${customer_id} of ${id} does not exist`);
    return customer.external_id;
  };
  const byParent = groupBy(inheritedSubscriptions, ({ parent_subscription_id }) => parent_subscription_id);
  return new Map(
    subscriptions.map((subscription) => {
      const own = {
        external_customer_id: toExternalId(subscription),
        joined_ms: Number.NEGATIVE_INFINITY,
        left_ms: null,
      };
      const joined = (byParent.get(subscription.id) ?? []).map((inherited) =>
        toMember(inherited, toExternalId(inherited)),
      );
      return [subscription.id, [own, ...joined]];
    }),
  );
}

/** Loads the customers of one subscription. */
export async function loadOwnMembers(
  database: Database,
  subscription: SubscriptionModel,
): Promise<readonly SubscriptionMember[]> {
  const { tenant_id, environment_id } = subscription;
  return (await loadMembers(database, { tenant_id, environment_id }, [subscription])).get(subscription.id)!;
}

function toMember({ start_date, end_date }: SubscriptionModel, external_customer_id: string): SubscriptionMember {
  return { external_customer_id, joined_ms: toInstant(start_date), left_ms: end_date ? toInstant(end_date) : null };
}

/** Converts customers and their counted intervals to the form of a usage query. */
export function buildCustomerFilter(
  members: readonly SubscriptionMember[],
  window: Period,
  service_start: Milliseconds,
  gaps: readonly Period[] = [],
): Pick<MeterUsageQuery, 'clipped'> & { external_customer_ids: readonly string[] } {
  const { external_customer_ids, clipped } = computeCountedCustomers(members, window, service_start, gaps);
  if (clipped.size === 0) return { external_customer_ids };
  const inUs = ({ start, end }: Period) => [toUs(start), toUs(end)] as const;
  return {
    external_customer_ids,
    clipped: new Map(Array.from(clipped, ([customer, times]) => [customer, times.map(inUs)])),
  };
}
