/**
 * Audit of reservations: pools equal their holds, committed quantities equal their events or charges, and no other event uses their
 * ids (docs/decisions/0013-reservations.md).
 */

import { isCommitted } from '../../../core/credits/reservations/event.ts';
import { parseReservationId } from '../../../core/metering/event/accept.ts';
import { hashIdentity } from '../../../core/metering/event/identity.ts';
import { sampleIds } from '../../../storage/audit/questions.ts';
import {
  type AuditedReservation,
  findCorrectedEvents,
  findReservationFaults,
  listReservedIdentities,
  loadReservationSums,
  loadReservations,
  type ReservationFault,
  type ReservationSums,
  toEventKey,
} from '../../../storage/audit/reservations.ts';
import { findIdentities, type IdentityRow } from '../../../storage/events/identities.ts';
import type { AuditStores } from './findings.ts';
import { formatEventId, type OnFinding } from './findings.ts';

const FAULTS_MAX = 1_000;
const EVENTS_AT_ONCE = 1_000;
const SAMPLE = 200;
/** Number of events checked per reservation: with a meter that counts events, a reservation has up to a thousand. */
const EVENTS_SAMPLED = 10;
type ReservationAuditCounts = ReservationSums & { readonly events: number };

export async function auditReservations(stores: AuditStores, found: OnFinding): Promise<ReservationAuditCounts> {
  const { postgres, clickhouse } = stores;
  for (const fault of await findReservationFaults(postgres, { ids: null, limit: FAULTS_MAX }))
    found(toReservationFinding(fault));
  let events = 0;
  for (let after = 0n; ; ) {
    const some = await listReservedIdentities(clickhouse, { after, limit: EVENTS_AT_ONCE });
    await auditEvents(stores, some, found);
    events += some.length;
    if (some.length < EVENTS_AT_ONCE) return { ...(await loadReservationSums(postgres)), events };
    after = some.at(-1)!.id_hash;
  }
}

/** Audits some reservations and their pools, for the continuous audit. */
export async function sampleReservations(stores: AuditStores, found: OnFinding): Promise<void> {
  const { postgres, clickhouse } = stores;
  const ids = await sampleIds(postgres, 'reservations', SAMPLE);
  for (const fault of await findReservationFaults(postgres, { ids, limit: FAULTS_MAX }))
    found(toReservationFinding(fault));
  const names = [...(await loadReservations(postgres, ids)).values()].flatMap(listEventIds);
  const eventKeys = new Set(names.map(toEventKey));
  const stored = await findIdentities(clickhouse, names.map(hashIdentity));
  await auditEvents(
    stores,
    stored.filter((event) => eventKeys.has(toEventKey(event))),
    found,
  );
}

/** Lists the ids of some events of the reservation, and the first id after its last event, which must not exist. */
function listEventIds({ id, tenant_id, environment_id, event_count }: AuditedReservation) {
  const scope = { tenant_id, environment_id };
  const last = Math.max(2, event_count + 1);
  const numbers = [...Array(Math.min(last, EVENTS_SAMPLED)).keys()].map((index) => index + 1);
  return [...new Set([...numbers, last])].map((n) => ({ ...scope, event_id: n === 1 ? id : `${id}:${n}` }));
}

/** Audits the reservations of events. An event is stored after its commit, so the reservations are read after the events. */
async function auditEvents({ postgres }: AuditStores, events: readonly IdentityRow[], found: OnFinding): Promise<void> {
  const named = await loadReservations(
    postgres,
    events.map(({ event_id }) => parseReservationId(event_id)!),
  );
  const taken = events.flatMap((event) => {
    const of = named.get(parseReservationId(event.event_id)!);
    const isTheirs = of?.tenant_id === event.tenant_id && of.environment_id === event.environment_id;
    return of && isTheirs && !isCommitted(of, event) ? [{ event, of }] : [];
  });
  if (taken.length === 0) return;
  // A voided or replaced event is no finding: its content was checked when its correction was requested.
  const corrected = await findCorrectedEvents(
    postgres,
    taken.map(({ event }) => event),
  );
  for (const { event, of } of taken) {
    if (corrected.has(toEventKey(event))) continue;
    const what = `${formatEventId(event)} is no event that the reservation has become, which is ${of.reservation_status}`;
    found({ kind: 'reservation_id_taken', count: 1, what });
  }
}

function toReservationFinding({ kind, id, stored, found }: ReservationFault) {
  return { kind, count: 1, what: `${id} says ${stored}, and the rows ${found}` };
}
