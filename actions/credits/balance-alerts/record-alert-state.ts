/** Compares a value with the thresholds of an alert. Each change of state adds one row to the alert log and emits one event. */
import type { AlertEntityType } from '../../../core/catalog/alert/record.ts';
import {
  type AlertDirection,
  type AlertState,
  applyDirection,
  deriveAlertState,
  findThreshold,
} from '../../../core/catalog/alert/state.ts';
import type { AlertSettings } from '../../../core/catalog/feature/record.ts';
import type { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { AlertLogModel } from '../../../storage/models/alerts/alert-log.ts';
import { type AlertSubject, moveAlertState } from '../../../storage/models/alerts/alert-states.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';

type AlertComparison = AlertSubject & {
  readonly entity_type: AlertEntityType;
  readonly parent_entity_type: AlertEntityType | null;
  readonly customer_id: string | null;
  readonly settings: AlertSettings;
  /** Default direction, for thresholds without one. */
  readonly unless: AlertDirection;
  readonly value: Decimal;
  /** For spend: start of the latest service period whose charges `value` includes. */
  readonly spent_from?: Date;
};

type AlertStateChange = {
  readonly state: AlertState;
  readonly threshold: string | null;
  /** Thresholds with their directions, as they were compared with the value. */
  readonly settings: AlertSettings;
};

/** Records the alert state; null if it did not change. The caller emits the event in the same transaction. */
export async function recordAlertState(
  transaction: Transaction,
  scope: Scope,
  { compared, by }: { compared: AlertComparison; by: ChangeAuthor },
): Promise<AlertStateChange | null> {
  const { settings, unless, value, spent_from, alert_type, entity_id, parent_entity_id, ...rest } = compared;
  const state = deriveAlertState(settings, value, unless);
  const alerted = { alert_type, entity_id, parent_entity_id };
  const position = await moveAlertState(transaction, scope, { alerted, state, now: by.now, spent_from });
  if (position === null) return null;
  const now = position.at;
  const directed = applyDirection(settings, unless);
  const alert_info = { alert_settings: directed, value_at_time: value.toFixed(), timestamp: now.toISOString() };
  const record = {
    ...createdBy({ user_id: 'user_id' in by ? by.user_id : '', now }),
    id: newId('alert_log', position.ms),
    ...alerted,
    ...rest,
    alert_status: state,
    alert_info,
  };
  await AlertLogModel.add(scope, record, { database: transaction });
  return { state, threshold: findThreshold(settings, state), settings: directed };
}
