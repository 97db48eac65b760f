/**
 * The single lock order for changes of several rows, which prevents deadlocks. It applies to hierarchies, payments and drafts that become
 * final in one transaction. Subscriptions come before customers, then invoices, then payments, wallets, the counter of credit notes and
 * the counter of invoices. Parents come before subscriptions without a hierarchy, and these before children, because a billing run of a
 * parent locks them so. Rows of one kind are locked by id. Missing rows are reported by the caller.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { deriveAddressee } from '../../core/subscriptions/addressee.ts';
import type { SubscriptionHierarchy } from '../../core/subscriptions/hierarchy.ts';
import type { CreateSubscription } from '../../core/subscriptions/record.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';

const RANK = `case when subscription_type = 'PARENT' then 0 when parent_subscription_id is null then 1 else 2 end`;

/** Locks subscriptions in this order. Postgres locks rows as it returns them, so one statement locks any number of them. */
export async function lockSubscriptions(scope: Scope, ids: readonly string[], transaction: Transaction): Promise<void> {
  if (ids.length === 0) return;
  await SubscriptionModel.in(scope, transaction)
    .select('id')
    .whereRaw('id = any(?)', [[...new Set(ids)]])
    .orderByRaw(RANK)
    .orderBy('id')
    .forUpdate();
}

/** Locks a subscription and its customer before a payment. */
export async function lockParties(
  scope: Scope,
  { subscription_id, customer_id }: { subscription_id: string | null; customer_id: string },
  transaction: Transaction,
): Promise<void> {
  if (subscription_id) await lockSubscriptions(scope, [subscription_id], transaction);
  await CustomerModel.in(scope, transaction).select('id').where('id', customer_id).forUpdate();
}

type HierarchyParties = { readonly hierarchy: SubscriptionHierarchy; readonly request: CreateSubscription };

/** Locks the parties of a new subscription in a hierarchy; a standalone one locks only its own customer. */
export async function lockHierarchy(
  scope: Scope,
  { hierarchy, request }: HierarchyParties,
  transaction: Transaction,
): Promise<void> {
  if (hierarchy.kind === 'alone') return;
  if (hierarchy.kind === 'group') await lockSubscriptions(scope, hierarchy.subscription_ids, transaction);
  if (hierarchy.kind === 'inherited') await lockSubscriptions(scope, [hierarchy.parent_subscription_id], transaction);
  const { customer_id, external_customer_id } = request;
  const external_ids = [
    external_customer_id,
    ...(hierarchy.kind === 'group' ? hierarchy.children.map((child) => child.external_customer_id) : []),
    ...(hierarchy.kind === 'parent' ? hierarchy.external_customer_ids : []),
    'invoicing_customer_external_id' in hierarchy ? hierarchy.invoicing_customer_external_id : null,
  ];
  const payer_id = 'parent_subscription_id' in hierarchy ? await findParentPayer(scope, hierarchy, transaction) : null;
  const customers = await CustomerModel.in(scope, transaction)
    .select('id', 'external_id')
    .where('status', 'published')
    .where(
      (one) =>
        void one
          .whereIn('id', [customer_id, payer_id].filter(isNamed))
          .orWhereIn('external_id', external_ids.filter(isNamed)),
    );
  // The row of a customer who only pays gets a shared lock, because many subscriptions may have the same payer.
  const isOwn = (one: CustomerModel) => one.id === customer_id || one.external_id === external_customer_id;
  for (const one of customers.sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const lockedRows = CustomerModel.in(scope, transaction).select('id').where('id', one.id);
    await (hierarchy.kind === 'delegated' && !isOwn(one) ? lockedRows.forShare() : lockedRows.forUpdate());
  }
}

function isNamed(name: string | null | undefined): name is string {
  return Boolean(name);
}

async function findParentPayer(
  scope: Scope,
  { kind, parent_subscription_id }: Extract<SubscriptionHierarchy, { parent_subscription_id: string }>,
  database: Transaction,
): Promise<string | null> {
  if (kind !== 'delegated') return null;
  const parent = (await SubscriptionModel.byId(scope, [parent_subscription_id], database)).get(parent_subscription_id);
  return parent ? deriveAddressee(parent) : null;
}
