/** A new customer; its external id is its own among the published ones. */
import { newCustomer } from '../../core/customer/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { newId } from '../../storage/new-id.ts';
import type { Stores } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';

export async function createCustomer(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { fields, author }: { fields: Parameters<typeof newCustomer>[0]; author: Author },
): Promise<CustomerModel> {
  const record = { id: newId('customer', author.now.getTime()), ...newCustomer(fields), ...createdBy(author) };
  const conflict = `a customer with external_id ${fields.external_id} exists already`;
  return stores.postgres.transaction(async (transaction) => {
    const customer = await CustomerModel.add(scope, record, { database: transaction, conflict });
    await emit(transaction, 'customer.created', { record: customer, by: author });
    return customer;
  });
}
