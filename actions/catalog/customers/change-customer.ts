/** Updates a published customer; `metadata` replaces the map. */
import type { CustomerFields } from '../../../core/catalog/customer/record.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emit } from '../../foundation/emit.ts';
import { hasLiveSubscription } from './archive-customer.ts';
import { type CustomerLink, linkCustomer } from './link-customer.ts';
import { lockParent, type ParentCustomerReference } from './parent-customer.ts';

type CustomerChange = {
  id?: string | undefined;
  external_customer_id?: string | undefined;
  changes: Partial<CustomerFields>;
  parent?: ParentCustomerReference;
  links?: readonly CustomerLink[] | null | undefined;
  author: Author;
};

const AT_EXTERNAL_ID = { field: 'external_id' };

export async function changeCustomer(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  change: CustomerChange,
): Promise<CustomerModel> {
  return stores.postgres.transaction(async (transaction) => {
    const { changes, parent, external_customer_id } = change;
    const id = change.id ?? (await CustomerModel.fetchExternal(scope, external_customer_id!, transaction)).id;
    const parent_customer_id = await lockParent({ id, is_new: false }, parent ?? {}, { scope, database: transaction });
    const customer = await lockCustomer(scope, { id, external_customer_id }, transaction);
    const renamed = changes.external_id !== undefined && changes.external_id !== customer.external_id;
    // Usage is recorded under the external id: a new id would leave the usage of the running period unbilled.
    if (renamed && (await hasLiveSubscription(scope, customer.id, transaction)))
      throw notAllowed('external_id cannot change while the customer has active subscriptions', AT_EXTERNAL_ID);
    if (renamed && (await hasOpenUsage(scope, customer.id, transaction)))
      throw notAllowed('external_id cannot change while usage of the customer may still be invoiced', AT_EXTERNAL_ID);
    const conflict = `a customer with external_id ${changes.external_id} exists already`;
    const updates = { ...changes, ...(parent_customer_id === undefined ? {} : { parent_customer_id }) };
    const by = { by: change.author, database: transaction, conflict };
    const changed = await CustomerModel.change(customer, updates, by);
    await linkCustomer(transaction, changed, { links: change.links ?? [], author: change.author });
    if (changed !== customer) await emit(transaction, 'customer.updated', { record: changed, by: change.author });
    return changed;
  });
}

/**
 * Draft invoices of cancelled subscriptions still count usage by the external id. A live parent subscription counts the usage of the time
 * in which the customer inherited it, even of invoiced periods, because the next invoice adds late usage.
 */
async function hasOpenUsage(scope: Scope, customer_id: string, database: Database): Promise<boolean> {
  const subscriptions = await SubscriptionModel.in(scope, database)
    .where({ customer_id, status: 'published' })
    .select('id', 'parent_subscription_id');
  const parents = subscriptions.flatMap(({ parent_subscription_id }) => parent_subscription_id ?? []);
  const drafts = await InvoiceModel.in(scope, database)
    .whereIn('subscription_id', [...subscriptions.map(({ id }) => id), ...parents])
    .where({ invoice_status: 'DRAFT', status: 'published' })
    .select('id')
    .limit(1);
  const living = await SubscriptionModel.in(scope, database)
    .whereIn('id', parents)
    .whereNot('subscription_status', 'cancelled')
    .select('id')
    .limit(1);
  return drafts.length + living.length > 0;
}

/** Finds the customer by id; a given external id must agree. */
async function lockCustomer(
  scope: Scope,
  { id, external_customer_id }: { id: string; external_customer_id: string | undefined },
  transaction: Database,
): Promise<CustomerModel> {
  const customer = await CustomerModel.fetchChangeable(scope, id, transaction);
  if (external_customer_id && customer.external_id !== external_customer_id)
    throw invalid('external_customer_id', `is not the external id of customer ${id}`);
  return customer;
}
