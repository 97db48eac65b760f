import type { Scope } from '../../../core/foundation/scope.ts';
import { PaymentMethod } from '../../../core/payments/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PaymentMethodModel extends PaymentMethod {}

export class PaymentMethodModel extends ScopedModel {
  static override tableName = 'payment_methods';
  static override recordName = 'payment method';
  static override record = PaymentMethod;
}

/** Selects those of these customers that have an active payment method. */
export async function withMethods(
  scope: Scope,
  customer_ids: readonly string[],
  database: Database,
): Promise<Set<string>> {
  const found = await PaymentMethodModel.in(scope, database)
    .whereIn('customer_id', [...customer_ids])
    .where({ status: 'published', payment_method_status: 'ACTIVE' })
    .distinct('customer_id');
  return new Set(found.map(({ customer_id }) => customer_id));
}
