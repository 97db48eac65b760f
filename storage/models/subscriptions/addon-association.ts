import { type AddonAssociation, addonAssociationShape } from '../../../core/catalog/addon/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { listBatched } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import { narrow } from '../foundation/page.ts';
import { prepareQuery } from '../foundation/prepared.ts';
import { toBatchKey } from '../foundation/statements.ts';

export interface AddonAssociationModel extends AddonAssociation {}

export class AddonAssociationModel extends ScopedModel {
  static override tableName = 'addon_associations';
  static override recordName = 'add-on association';
  static override record = addonAssociationShape;

  /** Associations that have not ended at this instant, including those that start later. */
  static notEnded(scope: Scope, now: Date, database: Database) {
    return narrow(AddonAssociationModel.in(scope, database), [
      ['status', 'published'],
      ['addon_status', ['active', 'pending', 'paused']],
      ['end_date', 'open at', now],
    ]);
  }

  /** Associations in force at this instant, whatever their status is now. */
  static activeAt(scope: Scope, at: Date, database: Database) {
    return narrow(AddonAssociationModel.in(scope, database), [
      ['status', 'published'],
      ['start_date', '<=', at],
      ['end_date', 'open at', at],
    ]).where((held) => {
      // An association that was detached later was in force until its end.
      void held.where('addon_status', 'active').orWhere({ addon_status: 'cancelled' }).whereNotNull('end_date');
    });
  }

  /** Associations of these subscriptions in force at `at`, in the order in which they were attached. */
  static listActive(
    scope: Scope,
    { subscription_ids, at }: { subscription_ids: readonly string[]; at: Date },
    database: Database,
  ): Promise<AddonAssociationModel[]> {
    const key = toBatchKey('held', this, scope.tenant_id, scope.environment_id, at);
    const getEntityId = ({ entity_id }: AddonAssociationModel) => entity_id;
    return listBatched(
      database,
      { key, values: subscription_ids, getKey: getEntityId },
      async (ids) =>
        await prepareQuery(
          AddonAssociationModel.activeAt(scope, at, database)
            .whereIn('entity_id', [...ids])
            .orderBy(['created_at', 'id']),
        ),
    );
  }
}
