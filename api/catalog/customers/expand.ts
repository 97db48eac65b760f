/** Builds the answers of customers, with their parent customers, and loads the customers of other records. */
import { groupBy } from '../../../core/foundation/group-by.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import type { Context } from '../../http/route.ts';

export async function showCustomers(customers: readonly CustomerModel[], { scope, services }: Context) {
  const ids = customers.map(({ parent_customer_id }) => parent_customer_id);
  const parents = await CustomerModel.byId(scope, ids, services.postgres);
  return customers.map((customer) => ({
    ...customer,
    parent_customer: parents.get(customer.parent_customer_id ?? '') ?? null,
  }));
}

export async function showCustomer(customer: CustomerModel, context: Context) {
  const [shown] = await showCustomers([customer], context);
  return shown!;
}

export async function showExpandedCustomer(
  customer: CustomerModel,
  expand: readonly string[] | undefined,
  context: Context,
) {
  const shown = await showCustomer(customer, context);
  const [expanded] = expand?.includes('integrations') ? await withIntegrations([shown], context) : [shown];
  return expanded;
}

/** Adds to each customer its mappings to customers at connected providers. */
export async function withIntegrations<Shown extends { readonly id: string }>(
  customers: readonly Shown[],
  { scope, services }: Context,
) {
  const mappings = await IntegrationMappingModel.in(scope, services.postgres)
    .where({ entity_type: 'customer', status: 'published' })
    .whereIn(
      'entity_id',
      customers.map(({ id }) => id),
    )
    .orderBy('id');
  const by_customer = groupBy(mappings, ({ entity_id }) => entity_id);
  return customers.map((customer) => ({ ...customer, integrations: by_customer.get(customer.id) ?? [] }));
}

export async function loadCustomersById(
  records: readonly { readonly customer_id: string }[],
  { scope, services }: Context,
) {
  const ids = records.map(({ customer_id }) => customer_id);
  return CustomerModel.byId(scope, ids, services.postgres);
}
