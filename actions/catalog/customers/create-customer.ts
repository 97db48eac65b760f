/** Creates a customer. Its external id is unique among published customers, and its parent must be published. */
import { buildCustomer } from '../../../core/catalog/customer/record.ts';
import type { TaxOverride } from '../../../core/catalog/tax/overrides.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { emit } from '../../foundation/emit.ts';
import { taxCustomer } from '../taxes/attach-rates.ts';
import { type CustomerLink, linkCustomer } from './link-customer.ts';
import { lockParent, type ParentCustomerReference } from './parent-customer.ts';

type NewCustomer = {
  fields: Parameters<typeof buildCustomer>[0];
  parent?: ParentCustomerReference;
  tax_rate_overrides?: readonly TaxOverride[] | null;
  links?: readonly CustomerLink[] | null | undefined;
  author: Author;
};

export async function createCustomer(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { fields, parent, tax_rate_overrides, links, author }: NewCustomer,
): Promise<CustomerModel> {
  const record = { id: newId('customer', author.now.getTime()), ...buildCustomer(fields), ...createdBy(author) };
  const conflict = `a customer with external_id ${fields.external_id} exists already`;
  return stores.postgres.transaction(async (database) => {
    const child = { id: record.id, is_new: true };
    const parent_customer_id = (await lockParent(child, parent ?? {}, { scope, database })) ?? null;
    const customer = await CustomerModel.add(scope, { ...record, parent_customer_id }, { database, conflict });
    await taxCustomer(customer.id, tax_rate_overrides ?? [], { scope, transaction: database, author });
    await linkCustomer(database, customer, { links: links ?? [], author });
    await emit(database, 'customer.created', { record: customer, by: author });
    return customer;
  });
}
