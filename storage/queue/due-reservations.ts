/**
 * Reservations that have expired, and committed ones whose events are not in the log because their process ended first.
 */
import type { Knex } from 'knex';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';

function buildHeldReservationsQuery(database: Database): Knex.QueryBuilder {
  return database('reservations').where({ reservation_status: 'held' });
}

/** Lists expired reservations, earliest expiry first. */
export async function listExpiredReservations(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = buildHeldReservationsQuery(database).where('expires_at', '<=', now);
  return listRoundRobin(database, narrowToEnvironments(due, 'reservations', filter), { by: ['expires_at'], ...filter });
}

/** Lists committed reservations without events in the log, in the order of their commits. */
export async function listUnsentReservations(database: Database, filter: DueQuery): Promise<DueRecord[]> {
  const due = database('reservations').whereRaw('not is_sent');
  return listRoundRobin(database, narrowToEnvironments(due, 'reservations', filter), { by: ['ended_at'], ...filter });
}

/** Finds the earliest expiry in this environment, or `from` if events are still to be sent. */
export function nextReservationDue(database: Database, scope: Scope, { from }: { from: Date }): Instant {
  const { tenant_id, environment_id } = scope;
  const expiry = buildEarliestQuery(database, scope, {
    of: () => buildHeldReservationsQuery(database),
    columns: ['expires_at'],
  });
  const unsent = database('reservations').where({ tenant_id, environment_id }).whereRaw('not is_sent').select('id');
  return database.raw('least(?, case when exists ? then ?::timestamptz end)', [
    expiry,
    unsent as never,
    from.toISOString(),
  ]);
}
