/** Finds and locks the parent of a customer (docs/rules/records.md, "Customers"). */
import { checkParent } from '../../../core/catalog/customer/record.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';

/** The parent by its id or external id; null removes it, and an omitted field keeps it. */
export type ParentCustomerReference = {
  parent_customer_id?: string | null | undefined;
  parent_customer_external_id?: string | null | undefined;
};

/**
 * Returns the parent's id; undefined if the request names none. Both rows are locked, so that neither gets a parent or child meanwhile.
 * They are locked in order of their ids, which prevents deadlocks.
 */
export async function lockParent(
  child: { id: string; is_new: boolean },
  named: ParentCustomerReference,
  { scope, database }: { scope: Scope; database: Database },
): Promise<string | null | undefined> {
  const { parent_customer_id: id, parent_customer_external_id: external_id } = named;
  if (!id && !external_id) return id === undefined && external_id === undefined ? undefined : null;
  const wanted = id || (await CustomerModel.fetchExternal(scope, external_id!, database)).id;
  await CustomerModel.in(scope, database).select('id').whereIn('id', [child.id, wanted]).orderBy('id').forUpdate();
  const parent = await CustomerModel.fetchPublished(scope, wanted, { database });
  if (external_id && parent.external_id !== external_id)
    throw invalid('parent_customer_external_id', `is not the external id of customer ${wanted}`);
  const has_children = !child.is_new && (await CustomerModel.hasChildren(scope, child.id, database));
  checkParent({ id: child.id, has_children }, parent);
  return wanted;
}
