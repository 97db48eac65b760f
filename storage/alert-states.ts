/** In which state each alert is (docs/rules/alerts.md, "Told once"): the database says who has changed it. */
import type { AlertType } from '../core/alert/record.ts';
import type { AlertState } from '../core/alert/state.ts';
import type { Scope } from '../core/scope.ts';
import type { Milliseconds } from '../core/time/instant.ts';
import type { Database, Transaction } from './stores.ts';

/** Of what: a feature is alerted for each wallet, a group for each subscription. */
export type AlertSubject = {
  readonly alert_type: AlertType;
  readonly entity_id: string;
  readonly parent_entity_id: string | null;
};

/** Advisory locks of this kind, told from those of others by this number. */
const ALERTS = 14_101;

/** Until the transaction ends nobody else compares what is alerted of this: a value that was read before does not win later. */
export async function lockAlerts(transaction: Transaction, id: string): Promise<void> {
  await transaction.raw('select pg_advisory_xact_lock(?, hashtext(?))', [ALERTS, id]);
}

/** When it is told, behind what was told before: the instant of its entry in the log, and the milliseconds of the id, which no other entry of it has. */
export type AlertLogPosition = { readonly at: Date; readonly ms: Milliseconds };

/** Null where it was the same before. What was never in a state was ok. `spent_from`: of spending, when the latest of the periods began that were compared. */
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

export type ReachedSpend = { readonly state: AlertState; readonly spent_from: Milliseconds };

/** Of spending what has been reached, and in which periods: in those that had begun by then. Null where nothing has. */
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

/** The states in which this is, and none of its parts: what is never mentioned is ok. */
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

/** Who begins to be watched anew begins with ok. */
export async function deleteAlertState(transaction: Transaction, scope: Scope, alerted: AlertSubject): Promise<void> {
  await transaction('alert_states').where(toAlertStateKey(scope, alerted)).delete();
}

/** The same of many that nobody watches now, whatever they belong to. */
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
