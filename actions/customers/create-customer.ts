/** A new customer; one that belongs to another belongs to a published one. */
import { type CustomerFields, newCustomer } from '../../core/customer/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { newId } from '../../storage/new-id.ts';
import type { Stores } from '../../storage/stores.ts';
import { type NamedParent, parentOf } from './parent-customer.ts';

export type NewCustomer = { fields: Parameters<typeof newCustomer>[0]; parent: NamedParent; author: Author };

export async function createCustomer(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { fields, parent, author }: NewCustomer,
): Promise<CustomerModel> {
  const made: CustomerFields = newCustomer(fields);
  return stores.postgres.transaction(async (database) => {
    const id = newId('customer', author.now.getTime());
    const parent_customer_id = (await parentOf({ id, is_new: true }, parent, { scope, database })) ?? null;
    const conflict = `a customer with external_id ${made.external_id} exists already`;
    return CustomerModel.add(scope, { id, ...made, parent_customer_id, ...createdBy(author) }, { database, conflict });
  });
}
