/** Table `given_up_external_ids`; the database writes it (sql/postgres/0098-given-up-external-ids.sql). */
import type { FormerHolder } from '../../../core/catalog/customer/former-holder.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import { prepareQuery } from '../foundation/prepared.ts';
import { SubscriptionModel } from './subscription.ts';

export interface GivenUpExternalIdModel extends FormerHolder {}

export class GivenUpExternalIdModel extends ScopedModel {
  static override tableName = 'given_up_external_ids';
  static override recordName = 'given up external id';
  static override isAudited = false;

  /** The last customer that had this external id before, and had a subscription that is no draft. */
  static async formerHolder(
    scope: Scope,
    customer: { id: string; external_id: string },
    database: Database,
  ): Promise<FormerHolder | null> {
    const charged = SubscriptionModel.in(scope, database)
      .select('customer_id')
      .whereNot('subscription_status', 'draft');
    const query = GivenUpExternalIdModel.in(scope, database)
      .where('external_id', customer.external_id)
      .whereNot('customer_id', customer.id)
      .whereIn('customer_id', charged)
      .orderBy('given_up_at', 'desc')
      .limit(1);
    const [former] = await prepareQuery(query);
    return former ?? null;
  }
}
