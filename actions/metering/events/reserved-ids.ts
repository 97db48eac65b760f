/** Ids of reservations, which become events by their commit alone (docs/rules/reservations.md, "The event"). */

import type { Scope } from '../../../core/foundation/scope.ts';
import { parseReservationId } from '../../../core/metering/event/accept.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { findUncommitted } from '../../../storage/models/reservations/reservation.ts';

type ReservedId = { readonly field: 'event_id'; readonly why: string };

const RESERVED: ReservedId = {
  field: 'event_id',
  why: 'is the id of a reservation, which becomes an event by its commit',
};

/** Finds the faults of events with ids of uncommitted reservations, by their index. */
export async function findReservedIds(
  database: Database,
  scope: Scope,
  event_ids: readonly unknown[],
): Promise<Map<number, ReservedId>> {
  const named = event_ids.map(parseReservationId);
  const ids = named.flatMap((id) => id ?? []);
  if (ids.length === 0) return new Map();
  const open = await findUncommitted(scope, ids, database);
  return new Map(named.flatMap((id, index) => (id && open.has(id) ? [[index, RESERVED]] : [])));
}
