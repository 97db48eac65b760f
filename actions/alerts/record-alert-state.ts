/** Compares a value with the levels of an alert, and tells what has changed: one row of the log and one event for each change of state. */
import type { AlertEntityType } from '../../core/alert/record.ts';
import {
  type AlertDirection,
  type AlertState,
  applyDirection,
  deriveAlertState,
  findThreshold,
} from '../../core/alert/state.ts';
import type { Decimal } from '../../core/decimal.ts';
import type { AlertSettings } from '../../core/feature/record.ts';
import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import { type AlertSubject, moveAlertState } from '../../storage/alert-states.ts';
import { AlertLogModel } from '../../storage/models/alert-log.ts';
import { newId } from '../../storage/new-id.ts';
import type { Transaction } from '../../storage/stores.ts';
import type { SystemEventChange } from '../system-events/emit.ts';

export type AlertComparison = AlertSubject & {
  readonly entity_type: AlertEntityType;
  readonly parent_entity_type: AlertEntityType | null;
  readonly customer_id: string | null;
  readonly settings: AlertSettings;
  /** In which direction levels look that do not say so. */
  readonly unless: AlertDirection;
  readonly value: Decimal;
  /** Of spending: when the latest of the periods began that it was spent in. */
  readonly spent_from?: Date;
};

/** Of what has changed: what it is now, and which threshold says so. */
export type AlertStateChange = {
  readonly state: AlertState;
  readonly threshold: string | null;
  /** As they were gone by. */
  readonly settings: AlertSettings;
};

/** Null where nothing has changed. Who tells the event is the caller, in the same transaction. */
export async function recordAlertState(
  transaction: Transaction,
  scope: Scope,
  { compared, by }: { compared: AlertComparison; by: SystemEventChange['by'] },
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
