import { type AlertSetting, alertSettingShape } from '../../../core/catalog/alert/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface AlertSettingModel extends AlertSetting {}

export class AlertSettingModel extends ScopedModel {
  static override tableName = 'alert_settings';
  static override recordName = 'alert setting';
  static override record = alertSettingShape;

  /** Enabled settings of these subscriptions, in the order of their creation. */
  static watching(scope: Scope, subscription_ids: readonly string[], database: Database) {
    return AlertSettingModel.in(scope, database)
      .where({ status: 'published', enabled: true })
      .whereRaw('coalesce(parent_entity_id, entity_id) = any(?)', [[...subscription_ids] as never])
      .orderBy(['created_at', 'id']);
  }
}
