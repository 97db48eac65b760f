/**
 * Customers join a subscription or leave it, at the instant of the request (docs/rules/subscriptions.md, "Families"). The inherited
 * subscription of a leaving customer is cancelled; usage until then is counted.
 */
import { buildStateError, invalid } from '../../../core/foundation/error.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { checkCanHaveInherited, checkDistinct } from '../../../core/subscriptions/hierarchy.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { buildChildrenQuery, SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emit } from '../../foundation/emit.ts';
import { toScope } from '../../rating/billable-items.ts';
import {
  checkInheritingCustomers,
  createInheritedSubscriptions,
  lockCustomersByExternalId,
} from '../../subscriptions/inherited-subscriptions.ts';
import { type ChangedResources, toChangedSubscriptions } from './changed-resources.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

const ADDED = 'external_customer_ids_to_inherit_subscription';
const REMOVED = 'external_customer_ids_to_remove';
const toParamsField = (name: string) => `inheritance_params.${name}`;

/** Plans an inheritance. A request without an action may add and remove at once. */
export async function planInheritance(input: ModifyInput<'inheritance'>): Promise<PlannedModification> {
  const { subscription, params } = input;
  const added = params[ADDED] ?? [];
  const removed = params[REMOVED] ?? [];
  if (params.action === 'add' && removed.length > 0)
    throw invalid(toParamsField(REMOVED), 'does not go with action add');
  if (params.action === 'remove' && added.length > 0)
    throw invalid(toParamsField(ADDED), 'does not go with action remove');
  if (added.length + removed.length === 0)
    throw invalid(toParamsField(params.action === 'remove' ? REMOVED : ADDED), 'names nobody');
  if (subscription.subscription_status === 'cancelled')
    throw buildStateError('subscription_status', `subscription ${subscription.id} is cancelled`);
  checkCanHaveInherited(subscription);
  const leaving = await loadLeavingSubscriptions(input, removed);
  const joining = await loadJoiningCustomers(input, added);
  const changes = added.length > 0 && subscription.subscription_type === 'STANDALONE' ? PARENT : {};
  return {
    preview: buildInheritancePreview(input, { leaving, joining }),
    changes,
    apply: async (transaction) => {
      const gone = await leave(transaction, input, leaving);
      const come = await joinCustomers(transaction, input, joining);
      return toChangedSubscriptions([
        ...gone.map((record) => ({ record, action: 'updated' as const })),
        ...come.map((record) => ({ record, action: 'created' as const })),
      ]);
    },
  };
}

const PARENT = { subscription_type: 'PARENT' } as const;

function buildInheritancePreview(
  input: ModifyInput<'inheritance'>,
  { leaving, joining }: { leaving: readonly SubscriptionModel[]; joining: readonly CustomerModel[] },
): ChangedResources {
  const { subscription } = input;
  return toChangedSubscriptions([
    ...leaving.map((inherited) => ({
      record: { ...inherited, ...buildLeftFields(input) },
      action: 'updated' as const,
    })),
    ...joining.map(() => ({ record: { ...subscription, id: '' }, action: 'created' as const })),
  ]);
}

function joinCustomers(
  transaction: Transaction,
  input: ModifyInput<'inheritance'>,
  customers: readonly CustomerModel[],
): Promise<SubscriptionModel[]> {
  const { subscription: parent, author } = input;
  const joining = { parent, customers, start_date: deriveJoinDate(input), author, field: toParamsField(ADDED) };
  return createInheritedSubscriptions(toScope(parent), joining, transaction);
}

/** Returns the date of joining: now, or the start of the parent if it begins later. */
function deriveJoinDate({ subscription, author }: ModifyInput<'inheritance'>): string {
  return formatMs(Math.max(author.now.getTime(), toInstant(subscription.start_date)));
}

async function loadJoiningCustomers(input: ModifyInput<'inheritance'>, external_ids: readonly string[]) {
  const { database, subscription: parent } = input;
  const field = toParamsField(ADDED);
  if (external_ids.length === 0) return [];
  const customers = await lockCustomersByExternalId(toScope(parent), { external_ids, field }, database);
  await checkInheritingCustomers(
    toScope(parent),
    { parent, customers, start_date: deriveJoinDate(input), field },
    database,
  );
  return customers;
}

async function loadLeavingSubscriptions(
  { database, subscription }: ModifyInput<'inheritance'>,
  external_ids: readonly string[],
) {
  checkDistinct(toParamsField(REMOVED), external_ids);
  const inheritedSubscriptions = await buildChildrenQuery(
    subscription,
    { parents: [subscription], type: 'INHERITED' },
    database,
  ).whereNot('subscription_status', 'cancelled');
  const ids = inheritedSubscriptions.map(({ customer_id }) => customer_id);
  const customers = await CustomerModel.byId(subscription, ids, database);
  return external_ids.map((external_id) => {
    const inherited = inheritedSubscriptions.find(
      ({ customer_id }) => customers.get(customer_id)?.external_id === external_id,
    );
    if (!inherited)
      throw invalid(toParamsField(REMOVED), `${external_id} does not take part in subscription ${subscription.id}`);
    return inherited;
  });
}

function buildLeftFields({ author }: ModifyInput<'inheritance'>) {
  const at = author.now.toISOString();
  return { subscription_status: 'cancelled', cancel_at: at, cancelled_at: at } as const;
}

async function leave(
  transaction: Transaction,
  input: ModifyInput<'inheritance'>,
  leaving: readonly SubscriptionModel[],
): Promise<SubscriptionModel[]> {
  const by = input.author;
  const gone: SubscriptionModel[] = [];
  for (const inherited of leaving) {
    // If the customer has not joined yet, the inherited subscription ends at its start.
    const end_date = formatMs(Math.max(by.now.getTime(), toInstant(inherited.start_date)));
    const record = await SubscriptionModel.change(
      inherited,
      { ...buildLeftFields(input), end_date },
      { by, database: transaction },
    );
    await emit(transaction, 'subscription.cancelled', { record, by });
    gone.push(record);
  }
  return gone;
}
