/** Builds the answers of customers, with their parent customers, and loads the customers of other records. */
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
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

export async function loadCustomersById(
  records: readonly { readonly customer_id: string }[],
  { scope, services }: Context,
) {
  const ids = records.map(({ customer_id }) => customer_id);
  return CustomerModel.byId(scope, ids, services.postgres);
}
