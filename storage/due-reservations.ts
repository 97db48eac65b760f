/** Reservations whose time is over, and those that were committed by who has ended before the log had their events. */
import type { Knex } from 'knex';
import type { Scope } from '../core/scope.ts';
import { type Asked, type Due, earliest, type Instant, inTurns, ofWhom } from './due-billing.ts';
import type { Database } from './stores.ts';

function held(database: Database): Knex.QueryBuilder {
  return database('reservations').where({ reservation_status: 'held' });
}

/** Those that expired first. */
export async function expiredReservations(
  database: Database,
  { now, ...asked }: Asked & { now: Date },
): Promise<Due[]> {
  const due = held(database).where('expires_at', '<=', now);
  return inTurns(database, ofWhom(due, 'reservations', asked), { by: ['expires_at'], ...asked });
}

/** In the order in which they were committed. */
export async function unsentReservations(database: Database, asked: Asked): Promise<Due[]> {
  const due = database('reservations').whereRaw('not is_sent');
  return inTurns(database, ofWhom(due, 'reservations', asked), { by: ['ended_at'], ...asked });
}

/** When the first of this environment expires, or now, where events are to be sent. */
export function nextReservationDue(database: Database, scope: Scope, { from }: { from: Date }): Instant {
  const { tenant_id, environment_id } = scope;
  const expiry = earliest(database, scope, { of: () => held(database), columns: ['expires_at'] });
  const unsent = database('reservations').where({ tenant_id, environment_id }).whereRaw('not is_sent').select('id');
  return database.raw('least(?, case when exists ? then ?::timestamptz end)', [
    expiry,
    unsent as never,
    from.toISOString(),
  ]);
}
