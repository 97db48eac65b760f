/**
 * What a new subscription belongs to: who pays for it, who takes part in it and which others are invoiced with it
 * (docs/rules/subscriptions.md, "Families"; core/subscription/hierarchy.ts).
 */
import { invalid } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { checkNoThreshold, type GroupChild, type SubscriptionHierarchy } from '../../core/subscription/hierarchy.ts';
import { findRequestedStart } from '../../core/subscription/phases.ts';
import type { CreateSubscription, Subscription } from '../../core/subscription/record.ts';
import { type Milliseconds, toInstant } from '../../core/time/instant.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Transaction } from '../../storage/stores.ts';
import { addresseeOf } from '../billing/invoice-records.ts';
import { addToGroup, heldSubscriptions } from './group.ts';
import { addHeirs, customersCalled } from './heirs.ts';
import { checkInheritsNothing } from './one-of-a-kind.ts';

export type Family = {
  readonly terms: Pick<Subscription, 'subscription_type' | 'invoicing_customer_id' | 'parent_subscription_id'>;
  readonly heirs: readonly CustomerModel[];
  readonly grouped: readonly SubscriptionModel[];
  readonly children: readonly GroupChild[];
};

const NOBODY = { heirs: [], grouped: [], children: [] };
const OF_NOBODY = { invoicing_customer_id: null, parent_subscription_id: null };

/** Of a child that is made with its group. */
export function inGroupOf(parent: SubscriptionModel): Family {
  const subscription_type = 'grouped_invoicing';
  return { ...NOBODY, terms: { ...OF_NOBODY, subscription_type, parent_subscription_id: parent.id } };
}

type Question = {
  readonly hierarchy: Exclude<SubscriptionHierarchy, { kind: 'inherited' }>;
  readonly customer: CustomerModel;
  readonly request: CreateSubscription;
  readonly now: Milliseconds;
};

export async function gatherFamily(
  scope: Scope,
  { hierarchy, customer, request, now }: Question,
  transaction: Transaction,
): Promise<Family> {
  checkNoThreshold(request.auto_invoice_threshold, hierarchy.kind);
  const stated = findRequestedStart(request);
  const from = stated ? toInstant(stated) : now;
  await checkInheritsNothing(scope, { customers: [customer], from, field: 'customer_id' }, transaction);
  if (hierarchy.kind === 'delegated') {
    const invoicing_customer_id = (await delegatedPayer(scope, { hierarchy, customer }, transaction)).id;
    return { ...NOBODY, terms: { ...OF_NOBODY, subscription_type: 'DELEGATED_INVOICING', invoicing_customer_id } };
  }
  if (hierarchy.kind === 'alone') return { ...NOBODY, terms: { ...OF_NOBODY, subscription_type: 'STANDALONE' } };
  const terms = { ...OF_NOBODY, subscription_type: 'PARENT' } as const;
  if (hierarchy.kind === 'parent') {
    const field = 'inheritance.external_customer_ids_to_inherit_subscription';
    const external_ids = hierarchy.external_customer_ids;
    return { ...NOBODY, terms, heirs: await customersCalled(scope, { external_ids, field }, transaction) };
  }
  if (request.subscription_status === 'draft')
    throw invalid('inheritance', 'a draft is not invoiced: a group needs a parent that is active');
  const grouped = await heldSubscriptions(scope, hierarchy.subscription_ids, transaction);
  return { ...NOBODY, terms, grouped, children: hierarchy.children };
}

type Delegated = Extract<SubscriptionHierarchy, { kind: 'delegated' }>;

async function delegatedPayer(
  scope: Scope,
  { hierarchy, customer }: { hierarchy: Delegated; customer: CustomerModel },
  transaction: Transaction,
): Promise<CustomerModel> {
  const [field, id] =
    'parent_subscription_id' in hierarchy
      ? ([
          'parent_subscription_id',
          await addresseeOfParent(scope, hierarchy.parent_subscription_id, transaction),
        ] as const)
      : ([
          'inheritance.invoicing_customer_external_id',
          (await CustomerModel.fetchExternal(scope, hierarchy.invoicing_customer_external_id, transaction)).id,
        ] as const);
  if (id === customer.id) throw invalid(field, 'the customer who pays is the customer who uses: leave it out');
  return CustomerModel.fetchPublished(scope, id, { database: transaction, lock: 'shared' });
}

async function addresseeOfParent(scope: Scope, id: string, database: Transaction): Promise<string> {
  return addresseeOf(await SubscriptionModel.fetchPublished(scope, id, { database }));
}

/** Who takes part, and who is invoiced with it, once the parent is there. */
export async function addFamily(
  scope: Scope,
  { parent, family, author }: { parent: SubscriptionModel; family: Family; author: Author },
  transaction: Transaction,
): Promise<void> {
  const { heirs: customers, grouped } = family;
  if (customers.length > 0) {
    const field = 'inheritance.external_customer_ids_to_inherit_subscription';
    const { start_date } = parent;
    await addHeirs(scope, { parent, customers, start_date, author, field }, transaction);
  }
  const field = 'inheritance.subscriptions_ids_for_grouped_invoicing';
  await addToGroup({ parent, children: grouped, author, field }, transaction);
}

/** What is asked for a child that is made with its group: what it does not say itself is the parent's. */
export function requestOfChild(
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
