/**
 * Hierarchy of a new subscription: its payer, the customers that inherit it, and the subscriptions invoiced with it
 * (docs/rules/subscriptions.md, "Families"; core/subscriptions/hierarchy.ts).
 */
import { invalid } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import { type Milliseconds, toInstant } from '../../core/foundation/time/instant.ts';
import { deriveAddressee } from '../../core/subscriptions/addressee.ts';
import { checkNoThreshold, type GroupChild, type SubscriptionHierarchy } from '../../core/subscriptions/hierarchy.ts';
import { findRequestedStart } from '../../core/subscriptions/phases.ts';
import type { CreateSubscription, Subscription } from '../../core/subscriptions/record.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { addToGroup, loadLockedSubscriptions } from './group.ts';
import { createInheritedSubscriptions, lockCustomersByExternalId } from './inherited-subscriptions.ts';
import { checkInheritsNothing } from './one-of-a-kind.ts';

export type GatheredHierarchy = {
  readonly terms: Pick<Subscription, 'subscription_type' | 'invoicing_customer_id' | 'parent_subscription_id'>;
  readonly inheriting: readonly CustomerModel[];
  readonly grouped: readonly SubscriptionModel[];
  readonly children: readonly GroupChild[];
};

const NOBODY = { inheriting: [], grouped: [], children: [] };
const NO_PARENT = { invoicing_customer_id: null, parent_subscription_id: null };

/** Builds the hierarchy of a child that is created with its group. */
export function buildGroupHierarchy(parent: SubscriptionModel): GatheredHierarchy {
  const subscription_type = 'grouped_invoicing';
  return { ...NOBODY, terms: { ...NO_PARENT, subscription_type, parent_subscription_id: parent.id } };
}

type GatherHierarchyInput = {
  readonly hierarchy: Exclude<SubscriptionHierarchy, { kind: 'inherited' }>;
  readonly customer: CustomerModel;
  readonly request: CreateSubscription;
  readonly now: Milliseconds;
};

export async function gatherHierarchy(
  scope: Scope,
  { hierarchy, customer, request, now }: GatherHierarchyInput,
  transaction: Transaction,
): Promise<GatheredHierarchy> {
  checkNoThreshold(request.auto_invoice_threshold, hierarchy.kind);
  const requested = findRequestedStart(request);
  const from = requested ? toInstant(requested) : now;
  await checkInheritsNothing(scope, { customers: [customer], from, field: 'customer_id' }, transaction);
  if (hierarchy.kind === 'delegated') {
    const invoicing_customer_id = (await loadDelegatedPayer(scope, { hierarchy, customer }, transaction)).id;
    return { ...NOBODY, terms: { ...NO_PARENT, subscription_type: 'DELEGATED_INVOICING', invoicing_customer_id } };
  }
  if (hierarchy.kind === 'alone') return { ...NOBODY, terms: { ...NO_PARENT, subscription_type: 'STANDALONE' } };
  const terms = { ...NO_PARENT, subscription_type: 'PARENT' } as const;
  if (hierarchy.kind === 'parent') {
    const field = 'inheritance.external_customer_ids_to_inherit_subscription';
    const external_ids = hierarchy.external_customer_ids;
    return {
      ...NOBODY,
      terms,
      inheriting: await lockCustomersByExternalId(scope, { external_ids, field }, transaction),
    };
  }
  if (request.subscription_status === 'draft')
    throw invalid('inheritance', 'a draft is not invoiced: a group needs a parent that is active');
  const grouped = await loadLockedSubscriptions(scope, hierarchy.subscription_ids, transaction);
  return { ...NOBODY, terms, grouped, children: hierarchy.children };
}

type Delegated = Extract<SubscriptionHierarchy, { kind: 'delegated' }>;

async function loadDelegatedPayer(
  scope: Scope,
  { hierarchy, customer }: { hierarchy: Delegated; customer: CustomerModel },
  transaction: Transaction,
): Promise<CustomerModel> {
  const [field, id] =
    'parent_subscription_id' in hierarchy
      ? ([
          'parent_subscription_id',
          await loadParentAddressee(scope, hierarchy.parent_subscription_id, transaction),
        ] as const)
      : ([
          'inheritance.invoicing_customer_external_id',
          (await CustomerModel.fetchExternal(scope, hierarchy.invoicing_customer_external_id, transaction)).id,
        ] as const);
  if (id === customer.id) throw invalid(field, 'the customer who pays is the customer who uses: leave it out');
  return CustomerModel.fetchPublished(scope, id, { database: transaction, lock: 'shared' });
}

async function loadParentAddressee(scope: Scope, id: string, database: Transaction): Promise<string> {
  return deriveAddressee(await SubscriptionModel.fetchPublished(scope, id, { database }));
}

/** Adds the inherited subscriptions and the grouped ones after the parent is created. */
export async function createHierarchy(
  scope: Scope,
  { parent, family, author }: { parent: SubscriptionModel; family: GatheredHierarchy; author: Author },
  transaction: Transaction,
): Promise<void> {
  const { inheriting: customers, grouped } = family;
  if (customers.length > 0) {
    const field = 'inheritance.external_customer_ids_to_inherit_subscription';
    const { start_date } = parent;
    await createInheritedSubscriptions(scope, { parent, customers, start_date, author, field }, transaction);
  }
  if (grouped.length === 0) return;
  const field = 'inheritance.subscriptions_ids_for_grouped_invoicing';
  await addToGroup({ parent, children: grouped, author, field }, transaction);
}

/** Builds the request for a child that is created with its group; the parent's values are the defaults. */
export function buildChildRequest(
  child: GroupChild,
  { request, parent }: { request: CreateSubscription; parent: SubscriptionModel },
): CreateSubscription {
  const { start_date, end_date, billing_cycle, billing_anchor, timezone } = parent;
  return {
    ...request,
    ...child,
    customer_id: null,
    lookup_key: null,
    metadata: null,
    inheritance: null,
    start_date,
    end_date: end_date ?? null,
    billing_anchor: billing_cycle === 'anniversary' ? billing_anchor : null,
    timezone,
  };
}
