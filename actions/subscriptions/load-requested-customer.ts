/** Loads the customer of a subscription request by id or external id; if the request has both, they must name one customer. */
import { invalid } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { CreateSubscription } from '../../core/subscriptions/record.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';

/** Loads the requested customer. The lock on its row prevents its archival meanwhile. */
export async function loadRequestedCustomer(
  scope: Scope,
  { customer_id, external_customer_id }: Pick<CreateSubscription, 'customer_id' | 'external_customer_id'>,
  database: Database,
): Promise<CustomerModel> {
  if (!customer_id && !external_customer_id)
    throw invalid('customer_id', 'is required, or external_customer_id instead of it');
  if (!customer_id) return CustomerModel.lockExternal(scope, external_customer_id!, database);
  const customer = await CustomerModel.fetchPublished(scope, customer_id, { database, lock: true });
  if (external_customer_id && customer.external_id !== external_customer_id) {
    throw invalid('external_customer_id', `is not the external id of customer ${customer_id}`);
  }
  return customer;
}
