import { type Customer, customerShape } from '../../../core/catalog/customer/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { joinBatch } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CustomerModel extends Customer {}

export class CustomerModel extends ScopedModel {
  static override tableName = 'customers';
  static override recordName = 'customer';
  static override record = customerShape;

  /** The published customer with the client's own id; an archived customer no longer holds its external id. */
  static async fetchExternal(scope: Scope, external_id: string, database: Database): Promise<CustomerModel> {
    const [customer] = await CustomerModel.in(scope, database).where({ external_id, status: 'published' });
    if (!customer) throw notFound('customer', external_id);
    return customer;
  }

  /** As `fetchExternal`, and locks the row until the end of the transaction. */
  static async lockExternal(scope: Scope, external_id: string, transaction: Database): Promise<CustomerModel> {
    const found = CustomerModel.in(scope, transaction).where({ external_id, status: 'published' });
    const [customer] = await found.forUpdate();
    if (!customer) throw notFound('customer', external_id);
    return customer;
  }

  static publishedBy(scope: Scope, external_ids: readonly string[], database: Database): Promise<CustomerModel[]> {
    return Promise.resolve(
      CustomerModel.in(scope, database)
        .whereIn('external_id', [...external_ids])
        .where('status', 'published'),
    );
  }

  static async hasChildren(scope: Scope, parent_customer_id: string, database: Database): Promise<boolean> {
    const [child] = await CustomerModel.in(scope, database)
      .select('id')
      .where({ parent_customer_id, status: 'published' })
      .limit(1);
    return child !== undefined;
  }

  /**
   * Ids of all customers that have or had this external id, including archived ones, whose records remain in the history. Undefined
   * without an external id.
   */
  static async idsCalled(
    scope: Scope,
    external_id: string | undefined,
    database: Database,
  ): Promise<string[] | undefined> {
    if (!external_id) return undefined;
    const customers = await CustomerModel.in(scope, database).select('id').where('external_id', external_id);
    return customers.map(({ id }) => id);
  }
}

/**
 * The external id by which events name a customer; undefined if the customer does not exist. Concurrent calls in a batched
 * transaction run as one statement.
 */
export function findNameInEvents(
  { tenant_id, environment_id }: Scope,
  customer_id: string,
  database: Database,
): Promise<string | undefined> {
  const key = `names in events ${tenant_id} ${environment_id}`;
  return joinBatch(database, { key, query: customer_id }, async (ids) => {
    const found = await CustomerModel.in({ tenant_id, environment_id }, database)
      .whereIn('id', [...ids])
      .select('id', 'external_id');
    const names = new Map(found.map(({ id, external_id }) => [id, external_id]));
    return ids.map((id) => names.get(id));
  });
}
