/**
 * Audits reservations: a pool must equal the sum of the held reservations of one customer and one feature or wallet, and a committed
 * reservation must equal its events or its wallet charge. Each query is one statement, so it reads one snapshot.
 */

import type { CommittedEvents } from '../../core/credits/reservations/event.ts';
import type { Reservation } from '../../core/credits/reservations/record.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { RESERVED_ID } from '../../core/metering/event/accept.ts';
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import type { IdentityRow } from '../events/identities.ts';
import type { Database } from '../foundation/stores.ts';
import { type AuditFault, findFaults } from './questions.ts';

export type ReservationFault = AuditFault<'pool_differs' | 'reservation_differs'>;

/** Null selects all reservations and pools; otherwise these reservations and their pools. */
export type Reservations = readonly string[] | null;

/** SQL condition: the pool of `row` is selected. */
const isSelectedPool = (
  row: string,
) => `(:ids::text[] is null or (${row}.tenant_id, ${row}.environment_id, ${row}.customer_id, ${row}.subject_id) in (
  select tenant_id, environment_id, customer_id, subject_id from reservations where id = any(:ids::text[])))`;

const QUESTIONS: Readonly<Record<ReservationFault['kind'], string>> = {
  pool_differs: `
    select concat_ws(' ', customer_id, subject_id) as id, format('%s in %s', p.held, p.held_count) as stored,
           format('%s in %s', coalesce(r.held, 0), coalesce(r.held_count, 0)) as found
      from (select * from reservation_pools p where ${isSelectedPool('p')}) p
      full join (select tenant_id, environment_id, customer_id, subject_id, sum(quantity) as held, count(*) as held_count
                   from reservations r where reservation_status = 'held' and ${isSelectedPool('r')}
                  group by tenant_id, environment_id, customer_id, subject_id) r
     using (tenant_id, environment_id, customer_id, subject_id)
     where coalesce(p.held, 0) <> coalesce(r.held, 0) or coalesce(p.held_count, 0) <> coalesce(r.held_count, 0)`,
  reservation_differs: `
    select r.id, format('%s committed', r.committed_quantity) as stored,
           coalesce(r.counted_units, e.units, t.credit_amount, 0)::text as found
      from reservations r
      left join lateral (select sum(units) as units from reservation_events e
                          where e.tenant_id = r.tenant_id and e.environment_id = r.environment_id and e.reservation_id = r.id) e on true
      left join wallet_transactions t on t.id = r.wallet_transaction_id
     where r.reservation_status = 'committed' and r.is_sent and (:ids::text[] is null or r.id = any(:ids::text[]))
       and r.committed_quantity <> coalesce(r.counted_units, e.units, t.credit_amount, 0)`,
};

/** Finds the first `limit` faults of each kind. */
export function findReservationFaults(
  database: Database,
  selection: { ids: Reservations; limit: number },
): Promise<ReservationFault[]> {
  return findFaults(database, QUESTIONS, selection);
}

export type AuditedReservation = Scope & CommittedEvents & Pick<Reservation, 'id' | 'reservation_status'>;

/** Loads reservations of any tenant, with their committed events. */
export async function loadReservations(
  database: Database,
  ids: readonly string[],
): Promise<Map<string, AuditedReservation>> {
  const { rows } = await database.raw(
    `select id, tenant_id, environment_id, reservation_status, event_text, event_count from reservations where id = any(?)`,
    [[...new Set(ids)]],
  );
  return new Map(rows.map((row: AuditedReservation) => [row.id, row]));
}

/** Finds which of the events were voided or replaced, whatever their original content was. */
export async function findCorrectedEvents(database: Database, events: readonly IdentityRow[]): Promise<Set<string>> {
  const { rows } = await database.raw(
    `select distinct tenant_id, environment_id, event_id from event_corrections where event_id = any(?)`,
    [events.map(({ event_id }) => event_id)],
  );
  return new Set(rows.map(toEventKey));
}

export function toEventKey({ tenant_id, environment_id, event_id }: Scope & { event_id: string }): string {
  return JSON.stringify([tenant_id, environment_id, event_id]);
}

/** Lists the next events whose ids have the form of reservation ids, after the hash `after`, in the order of hashes. */
export async function listReservedIdentities(
  clickhouse: ClickHouseClient,
  { after, limit }: { after: bigint; limit: number },
): Promise<(IdentityRow & { readonly id_hash: bigint })[]> {
  const rows = await loadRows<IdentityRow & { id_hash: string }>(clickhouse, 'events of reservations', {
    query: `select toString(id_hash) as id_hash, tenant_id, environment_id, event_id, partition, offset, position, content_crc, content_hash
              from event_identities
             where event_identities.id_hash > {after:UInt64} and startsWith(event_id, {prefix:String})
             order by event_identities.id_hash limit ${limit} with ties`,
    params: { after, prefix: RESERVED_ID },
  });
  return rows.map((row) => ({ ...row, id_hash: BigInt(row.id_hash) }));
}

export type ReservationSums = { readonly reservations: number; readonly pools: number; readonly held: number };

export async function loadReservationSums(database: Database): Promise<ReservationSums> {
  const { rows } = await database.raw(
    `select (select count(*) from reservations)::int as reservations, (select count(*) from reservation_pools)::int as pools,
            (select count(*) from reservations where reservation_status = 'held')::int as held`,
  );
  return rows[0];
}
