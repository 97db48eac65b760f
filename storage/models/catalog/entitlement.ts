import { type Entitlement, entitlementShape } from '../../../core/catalog/entitlement/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { listBatched } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import { prepareQuery } from '../foundation/prepared.ts';
import { toBatchKey } from '../foundation/statements.ts';

export interface EntitlementModel extends Entitlement {}

export class EntitlementModel extends ScopedModel {
  static override tableName = 'entitlements';
  static override recordName = 'entitlement';
  static override record = entitlementShape;

  /** Published entitlements of these plans, add-ons and subscriptions, in display order. */
  static buildPublishedQuery(scope: Scope, entity_ids: readonly string[], database: Database) {
    return EntitlementModel.in(scope, database)
      .where('status', 'published')
      .whereIn('entity_id', [...entity_ids])
      .orderBy(['display_order', 'created_at', 'id']);
  }

  /** Published entitlements of these entities. Concurrent calls in a batched transaction run as one statement. */
  static listPublished(scope: Scope, entity_ids: readonly string[], database: Database): Promise<EntitlementModel[]> {
    const key = toBatchKey('published of', this, scope.tenant_id, scope.environment_id);
    const getEntityId = ({ entity_id }: EntitlementModel) => entity_id;
    return listBatched(
      database,
      { key, values: entity_ids, getKey: getEntityId },
      async (ids) => await prepareQuery(EntitlementModel.buildPublishedQuery(scope, ids, database)),
    );
  }
}
