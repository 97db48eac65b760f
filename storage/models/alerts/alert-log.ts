import { type AlertLog, alertLogShape } from '../../../core/catalog/alert/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface AlertLogModel extends AlertLog {}

export class AlertLogModel extends ScopedModel {
  static override tableName = 'alert_logs';
  static override recordName = 'alert log';
  /** The table is a log itself, so its rows need no audit entries. */
  static override isAudited = false as const;
  static override record = alertLogShape;
}
