/**
 * Customers that take part in a parent's subscription (docs/rules/subscriptions.md, "Families"). Each has an INHERITED subscription without
 * line items and invoices, which records the interval. The parent counts their usage.
 */

import { buildStateError, invalid, notFound } from '../../core/foundation/error.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../core/foundation/time/instant.ts';
import { checkCanHaveInherited, checkDistinct } from '../../core/subscriptions/hierarchy.ts';
import { hasContent, refuseUnsupported } from '../../core/subscriptions/not-yet.ts';
import type { CreateSubscription } from '../../core/subscriptions/record.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Database, Transaction } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { emit } from '../foundation/emit.ts';
import { checkKeepPlans } from './group.ts';
import { loadRequestedCustomer } from './load-requested-customer.ts';
import { checkBeginAfterFormerHolders, checkHasNoneOfTheirOwn, checkInheritsNothing } from './one-of-a-kind.ts';

/** Locks the customers with these external ids in the order of their ids, which prevents deadlocks. */
export async function lockCustomersByExternalId(
  scope: Scope,
  { external_ids, field }: { external_ids: readonly string[]; field: string },
  database: Database,
): Promise<CustomerModel[]> {
  checkDistinct(field, external_ids);
  const customers = await CustomerModel.in(scope, database)
    .whereIn('external_id', [...external_ids])
    .where('status', 'published')
    .orderBy('id')
    .forUpdate();
  const called = groupBy(customers, ({ external_id }) => external_id);
  return external_ids.map((external_id) => {
    const [customer] = called.get(external_id) ?? [];
    if (!customer) throw notFound('customer', external_id);
    return customer;
  });
}

type InheritInput = {
  readonly parent: SubscriptionModel;
  readonly customers: readonly CustomerModel[];
  readonly start_date: string;
  /** Fields that the request sets on the inherited subscription. */
  readonly requested?: Pick<CreateSubscription, 'end_date' | 'lookup_key' | 'metadata'>;
  readonly author: Author;
  readonly field: string;
};

/** Throws if these customers may not inherit the subscription. */
export async function checkInheritingCustomers(
  scope: Scope,
  { parent, customers, start_date, field }: Pick<InheritInput, 'parent' | 'customers' | 'start_date' | 'field'>,
  database: Database,
): Promise<void> {
  checkCanHaveInherited(parent);
  await checkKeepPlans(scope, { subscriptions: [parent], field }, database);
  const itself = customers.find(({ id }) => id === parent.customer_id);
  if (itself) throw invalid(field, `${itself.external_id} is the customer of the parent itself`);
  const beginning = { customers, from: toInstant(start_date), field };
  await checkInheritsNothing(scope, beginning, database);
  await checkHasNoneOfTheirOwn(scope, beginning, database);
  await checkBeginAfterFormerHolders(scope, beginning, database);
}

/** Creates inherited subscriptions. `transaction` holds the locks on the rows of the parent and of the customers. */
export async function createInheritedSubscriptions(
  scope: Scope,
  joining: InheritInput,
  transaction: Transaction,
): Promise<SubscriptionModel[]> {
  const { parent, customers, author } = joining;
  await checkInheritingCustomers(scope, joining, transaction);
  const records = customers.map((customer) => buildInheritedRecord(joining, customer));
  const conflict = `a subscription with lookup_key ${joining.requested?.lookup_key} exists already`;
  const inheritedSubscriptions = await SubscriptionModel.addAll(scope, records, { database: transaction, conflict });
  const name = parent.subscription_status === 'draft' ? 'subscription.draft.created' : 'subscription.created';
  for (const record of inheritedSubscriptions) await emit(transaction, name, { record, by: author });
  return inheritedSubscriptions;
}

/** Builds an inherited subscription. Its billing terms are copied from the parent; the type shows that the parent pays. */
function buildInheritedRecord({ parent, start_date, requested, author }: InheritInput, customer: CustomerModel) {
  const { version: _version, ...terms } = parent;
  return {
    ...terms,
    ...createdBy(author),
    id: newId('subscription', author.now.getTime()),
    customer_id: customer.id,
    invoicing_customer_id: null,
    subscription_type: 'INHERITED',
    parent_subscription_id: parent.id,
    start_date,
    end_date: requested?.end_date ?? null,
    lookup_key: requested?.lookup_key ?? null,
    metadata: requested?.metadata ?? null,
    commitment_amount: null,
    commitment_duration: null,
    overage_factor: null,
    enable_true_up: false,
    auto_invoice_threshold: null,
    synced_price_sequence: null,
    version: 1,
  };
}

/** Promotes a subscription to a PARENT when it gets its first inherited subscription. */
export async function promoteToParent(
  parent: SubscriptionModel,
  author: Author,
  transaction: Transaction,
): Promise<SubscriptionModel> {
  if (parent.subscription_type === 'PARENT') return parent;
  const options = { by: author, database: transaction };
  const changed = await SubscriptionModel.change(parent, { subscription_type: 'PARENT' }, options);
  await emit(transaction, 'subscription.updated', { record: changed, by: author });
  return changed;
}

const OF_THE_PARENT = [
  'line_items',
  'override_line_items',
  'addons',
  'phases',
  'override_entitlements',
  'credit_grants',
  'commitment_amount',
  'line_item_commitments',
  'trial_period_days',
  'trial_start',
  'trial_end',
] as const;
const SAME_AS_THE_PARENT = ['plan_id', 'currency', 'billing_period'] as const;

/** Adds one customer to an existing subscription; the caller has checked that the join date is not in an invoiced period. */
export async function inheritSubscription(
  scope: Scope,
  {
    request,
    parent_subscription_id,
    field,
    author,
  }: {
    request: CreateSubscription;
    parent_subscription_id: string;
    field: string;
    author: Author;
  },
  transaction: Transaction,
): Promise<SubscriptionModel> {
  const holding = { database: transaction, lock: true };
  const parent = await SubscriptionModel.fetch(scope, parent_subscription_id, holding);
  if (parent.subscription_status === 'cancelled')
    throw buildStateError(field, `subscription ${parent.id} is cancelled`);
  // The check uses the current type, because the subscription becomes a parent below.
  checkCanHaveInherited(parent);
  refuseUnsupported(request);
  for (const own of OF_THE_PARENT)
    if (hasContent(request[own]))
      throw invalid(own, 'is stated for the parent: an inherited subscription has nothing of its own');
  for (const same of SAME_AS_THE_PARENT)
    if (request[same].toLowerCase() !== parent[same].toLowerCase())
      throw invalid(same, `is ${parent[same]} of the parent, and so of every subscription that inherits it`);
  const start_date = deriveJoinDate(request, parent, author);
  const customer = await loadRequestedCustomer(scope, request, transaction);
  const [inherited] = await createInheritedSubscriptions(
    scope,
    {
      parent: await promoteToParent(parent, author, transaction),
      customers: [customer],
      start_date,
      requested: request,
      author,
      field: 'customer_id',
    },
    transaction,
  );
  return inherited!;
}

function deriveJoinDate(
  { start_date, end_date }: CreateSubscription,
  parent: SubscriptionModel,
  { now }: Author,
): string {
  const earliest = toInstant(parent.current_period_start);
  const start = start_date ? toInstant(start_date) : Math.max(now.getTime(), toInstant(parent.start_date));
  if (start < earliest)
    throw invalid('start_date', 'must not be before the running period of the parent', {
      current_period_start: parent.current_period_start,
    });
  if (end_date && toInstant(end_date) <= start) throw invalid('end_date', 'must be after start_date');
  return formatMs(start);
}
