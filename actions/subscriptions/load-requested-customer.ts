/** The customer whom a request for a subscription names, by its id or by the external one, which must be of one customer. */
import { invalid } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import type { CreateSubscription } from '../../core/subscription/record.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import type { Database } from '../../storage/stores.ts';

/** Its row is held, so that it is not archived meanwhile. */
export async function loadRequestedCustomer(
  scope: Scope,
  { customer_id, external_customer_id }: Pick<CreateSubscription, 'customer_id' | 'external_customer_id'>,
  database: Database,
): Promise<CustomerModel> {
  if (!customer_id && !external_customer_id)
    throw invalid('customer_id', 'is required, or external_customer_id instead of it');
  const id = customer_id ?? (await CustomerModel.fetchExternal(scope, external_customer_id!, database)).id;
  const customer = await CustomerModel.fetchPublished(scope, id, { database, lock: true });
  if (external_customer_id && customer.external_id !== external_customer_id) {
    throw invalid('external_customer_id', `is not the external id of customer ${id}`);
  }
  return customer;
}
