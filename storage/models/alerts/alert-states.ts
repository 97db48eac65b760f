/** The current state of each alert (docs/rules/alerts.md). The database decides which transaction changed a state. */
import type { AlertType } from '../../../core/catalog/alert/record.ts';
import type { AlertState } from '../../../core/catalog/alert/state.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { Database, Transaction } from '../../foundation/stores.ts';

/**
 * Identifies the state of an alert. `parent_entity_id` is the wallet of an alert on a feature, and the subscription of an alert on a line
 * item, a group of lines or an entitlement grant: each has its own state. It is null for an alert on a wallet or a subscription.
 */
export type AlertSubject = {
  readonly alert_type: AlertType;
  readonly entity_id: string;
  readonly parent_entity_id: string | null;
};

/** First key of the advisory locks for alerts, distinct from other kinds of locks. */
const ALERTS = 14_101;

/**
 * Serializes the comparisons for this id until the transaction ends, so that an older value does not overwrite the result of a newer one.
 */
export async function lockAlerts(transaction: Transaction, id: string): Promise<void> {
  await transaction.raw('select pg_advisory_xact_lock(?, hashtext(?))', [ALERTS, id]);
}

/**
 * Position of a change in the alert log: the instant of its entry, and the milliseconds of the id. `at` is never before those of
 * the alert's earlier entries, and `ms` is always greater.
 */
type AlertLogPosition = { readonly at: Date; readonly ms: Milliseconds };

/**
 * Changes the state of an alert; null if it did not change. An alert without a row is `ok`. `spent_from`: for alerts on
 * spending, the latest start of the compared periods.
 */
export async function moveAlertState(
  transaction: Transaction,
  scope: Scope,
  {
    alerted,
    state,
    now,
    spent_from = null,
  }: { alerted: AlertSubject; state: AlertState; now: Date; spent_from?: Date | null | undefined },
): Promise<AlertLogPosition | null> {
  const key = toAlertStateKey(scope, alerted);
  const ms = now.getTime();
  const move = async (): Promise<AlertLogPosition | null> => {
    const [moved] = await transaction('alert_states')
      .where(key)
      .whereNot('alert_status', state)
      .update({
        alert_status: state,
        updated_at: now,
        spent_from,
        told_at: transaction.raw('greatest(told_at, updated_at, ?::timestamptz)', [now]),
        told_ms: transaction.raw('greatest(told_ms + 1, ?::bigint)', [ms]),
      })
      .returning(['told_at', 'told_ms']);
    return moved ? { at: new Date(moved.told_at), ms: Number(moved.told_ms) } : null;
  };
  const moved = await move();
  if (moved || state === 'ok') return moved;
  const first = { ...key, alert_status: state, updated_at: now, spent_from, told_at: now, told_ms: ms };
  const made = await transaction('alert_states').insert(first).onConflict().ignore().returning('entity_id');
  return made.length > 0 ? { at: now, ms } : move();
}

type ReachedSpend = { readonly state: AlertState; readonly spent_from: Milliseconds };

/** Finds the reached state of a spend alert. It counts for the periods that had begun by `spent_from`. Null if no threshold is reached. */
export async function findReachedSpend(
  database: Database,
  scope: Scope,
  alerted: AlertSubject,
): Promise<ReachedSpend | null> {
  const [reached] = await database('alert_states')
    .where(toAlertStateKey(scope, alerted))
    .whereNot('alert_status', 'ok')
    .select('alert_status', database.raw('coalesce(spent_from, updated_at) as spent_from'));
  return reached ? { state: reached.alert_status, spent_from: new Date(reached.spent_from).getTime() } : null;
}

function toAlertStateKey(
  { tenant_id, environment_id }: Scope,
  { alert_type, entity_id, parent_entity_id }: AlertSubject,
) {
  return { tenant_id, environment_id, alert_type, entity_id, parent_entity_id: parent_entity_id ?? '' };
}

/** States of the alerts on this entity itself, not of those that have it as parent. An alert without a row is ok and not listed. */
export async function listAlertStates(
  database: Database,
  { tenant_id, environment_id }: Scope,
  entity_id: string,
): Promise<AlertState[]> {
  const found: { alert_status: AlertState }[] = await database('alert_states')
    .where({ tenant_id, environment_id, entity_id, parent_entity_id: '' })
    .select('alert_status');
  return found.map(({ alert_status }) => alert_status);
}

/** Deletes the state of an alert. If it is watched again, it starts as ok. */
export async function deleteAlertState(transaction: Transaction, scope: Scope, alerted: AlertSubject): Promise<void> {
  await transaction('alert_states').where(toAlertStateKey(scope, alerted)).delete();
}

/** Deletes the states of many alerts that are no longer watched, for all their parents. */
export async function deleteAlertStates(
  transaction: Transaction,
  { tenant_id, environment_id }: Scope,
  { alert_type, entity_ids }: { alert_type: AlertType; entity_ids: readonly string[] },
): Promise<void> {
  if (entity_ids.length === 0) return;
  const key = { tenant_id, environment_id, alert_type };
  await transaction('alert_states')
    .where(key)
    .whereIn('entity_id', [...entity_ids])
    .delete();
}
