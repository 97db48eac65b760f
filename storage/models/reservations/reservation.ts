/**
 * Table `reservations` and its pools. The holds on one feature or one wallet of a customer form a pool. A decision about a pool
 * locks its row, and a trigger maintains its sum (sql/postgres/0175-reservations.sql).
 */

import { type Reservation, reservationShape } from '../../../core/credits/reservations/record.ts';
import { Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { PromisedCredits } from '../../../core/rating/wallet/promises.ts';
import type { Database, Transaction } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

const UNSENT_MAX = 100;

export interface ReservationModel extends Reservation {}

export class ReservationModel extends ScopedModel {
  static override tableName = 'reservations';
  static override recordName = 'reservation';
  /** Reservations are not audited: the record itself names its creator and its end, and there are up to a thousand per second. */
  static override isAudited = false as const;
  static override record = reservationShape;

  /** Some reservations of these customers whose events may not be in the log yet. */
  static listUnsent(
    { subject_id, tenant_id, environment_id }: ReservationPool,
    customer_ids: readonly string[],
    database: Database,
  ): Promise<ReservationModel[]> {
    const unsent = ReservationModel.in({ tenant_id, environment_id }, database)
      .where({ subject_id, is_sent: false })
      .whereIn('customer_id', [...customer_ids]);
    return unsent.limit(UNSENT_MAX) as unknown as Promise<ReservationModel[]>;
  }
}

/** The holds on one feature or one wallet (`subject_id`) of one customer. */
export type ReservationPool = Scope & { readonly customer_id: string; readonly subject_id: string };
export type HeldAmount = { readonly held: Decimal; readonly held_count: number };

/** The pool of a wallet's credits. */
export function toWalletPool({
  id,
  customer_id,
  tenant_id,
  environment_id,
}: Scope & { id: string; customer_id: string }): ReservationPool {
  return { tenant_id, environment_id, customer_id, subject_id: id };
}

const IS_POOL = 'tenant_id = ? and environment_id = ? and customer_id = ? and subject_id = ?';

const NOTHING: HeldAmount = { held: ZERO, held_count: 0 };

function toPoolKey({ tenant_id, environment_id, customer_id, subject_id }: ReservationPool): string[] {
  return [tenant_id, environment_id, customer_id, subject_id];
}

/**
 * Serializes decisions about this pool until the transaction ends, and about any pool of the customer's hierarchy: all members lock
 * the row of the parent first (docs/decisions/0013-reservations.md). The locks take a statement of their own, so that the next
 * statement sees the commits of their earlier holders.
 */
export async function lockPool(transaction: Transaction, pool: ReservationPool, now: Date): Promise<void> {
  const { tenant_id, environment_id, customer_id, subject_id } = pool;
  const { rows } = await transaction.raw(
    `with heads as (
       select parent.customer_id from subscriptions part
         join subscriptions parent on parent.tenant_id = part.tenant_id and parent.environment_id = part.environment_id
                                  and parent.id = part.parent_subscription_id
        where part.tenant_id = :tenant_id and part.environment_id = :environment_id and part.customer_id = :customer_id
          and part.subscription_type = 'INHERITED' and (part.end_date is null or part.end_date > :now)
     ), made as (
       insert into reservation_pools (tenant_id, environment_id, customer_id, subject_id)
       select :tenant_id, :environment_id, customer_id, :subject_id
         from (select customer_id from heads union select :customer_id) as of order by customer_id
           on conflict do nothing
     )
     select customer_id from heads`,
    { tenant_id, environment_id, customer_id, subject_id, now },
  );
  const heads = rows.map((head: { customer_id: string }) => head.customer_id);
  await transaction.raw(
    `select held from reservation_pools
      where tenant_id = ? and environment_id = ? and customer_id = any(?) and subject_id = ?
      order by customer_id = ?, customer_id for update`,
    [tenant_id, environment_id, [...heads, customer_id], subject_id, customer_id],
  );
}

/** A reservation that is being ended, and when the end was requested. */
type ReservationEnd = { readonly id: string; readonly at: string };

/**
 * Amount held in the pool after expired holds are released. A hold that is charged at expiry counts until it is charged. A hold in
 * `ends` counts, too, if its end was requested before the expiry, however long the request waited.
 */
export async function loadHeldAfterExpiry(
  transaction: Transaction,
  pool: ReservationPool,
  now: Date,
  ends: readonly ReservationEnd[] = [],
): Promise<HeldAmount> {
  await transaction.raw(
    `update reservations set reservation_status = 'expired', ended_at = expires_at, ended_by = 'expiry', updated_at = ?
      where ${IS_POOL} and reservation_status = 'held' and on_expiry = 'release' and expires_at <= ?
        and not exists (select from jsonb_to_recordset(?::jsonb) as e (id text, at timestamptz)
                         where e.id = reservations.id and e.at < expires_at)`,
    [now, ...toPoolKey(pool), now, JSON.stringify(ends)],
  );
  const { rows } = await transaction.raw(
    `select held::text, held_count from reservation_pools where ${IS_POOL}`,
    toPoolKey(pool),
  );
  const [row] = rows;
  return row ? { held: new Decimal(row.held), held_count: row.held_count } : NOTHING;
}

/**
 * Loads the reserved credits of a wallet, grouped by `expiries`, which are sorted. A hold counts to the first expiry at
 * or after its end (docs/rules/reservations.md, "Credits").
 */
export async function loadPromised(
  database: Database,
  pool: ReservationPool,
  { now, expiries }: { now: Date; expiries: readonly Milliseconds[] },
): Promise<PromisedCredits[]> {
  const { rows } = await database.raw(
    `select max(expires_at) as until, sum(quantity)::text as credits from reservations
      where ${IS_POOL} and reservation_status = 'held' and not (on_expiry = 'release' and expires_at <= ?)
      group by width_bucket(expires_at - interval '1 microsecond', ?::timestamptz[])`,
    [...toPoolKey(pool), now, expiries.map(formatMs)],
  );
  return rows.map(({ until, credits }: { until: Date | string; credits: string }) => ({
    until: new Date(until).getTime(),
    credits: new Decimal(credits),
  }));
}

/** Amount held in the pool, without changing anything. */
export async function loadHeld(database: Database, pool: ReservationPool, now: Date): Promise<HeldAmount> {
  const { rows } = await database.raw(
    `select coalesce(sum(quantity), 0)::text as held, count(*)::int as held_count from reservations
      where ${IS_POOL} and reservation_status = 'held' and not (on_expiry = 'release' and expires_at <= ?)`,
    [...toPoolKey(pool), now],
  );
  return { held: new Decimal(rows[0].held), held_count: rows[0].held_count };
}

/** Amounts held by each of these customers, without expired holds that are not ended yet. */
export async function loadHeldByCustomer(
  database: Database,
  { tenant_id, environment_id, subject_id }: ReservationPool,
  { customer_ids, now }: { customer_ids: readonly string[]; now: Date },
): Promise<Map<string, Decimal>> {
  if (customer_ids.length === 0) return new Map();
  const { rows } = await database.raw(
    `select customer_id, (held - (
              select coalesce(sum(quantity), 0) from reservations
               where tenant_id = pool.tenant_id and environment_id = pool.environment_id and customer_id = pool.customer_id
                 and subject_id = pool.subject_id and reservation_status = 'held' and on_expiry = 'release' and expires_at <= ?))::text as held
       from reservation_pools pool
      where tenant_id = ? and environment_id = ? and customer_id = any(?) and subject_id = ? and held > 0`,
    [now, tenant_id, environment_id, [...customer_ids], subject_id],
  );
  return new Map(
    rows.map((row: { customer_id: string; held: string }) => [row.customer_id, new Decimal(row.held)] as const),
  );
}

/** A customer whose usage counts against a limit, from `joined` until `left`; null is unlimited. */
export type Sharer = { readonly customer_id: string; readonly joined: string | null; readonly left: string | null };

/** Time range, and the exclusive log offsets up to which the usage reader has counted. */
type UncountedRange = {
  readonly start: Date;
  readonly end: Date | null;
  /** Log offset by partition; events at or after it are not counted yet. */
  readonly high_water: Readonly<Record<string, string>>;
  /** Customers whose usage counts. */
  readonly sharers: readonly Sharer[];
};

/**
 * Loads the usage committed between these instants that is not in the answer of the usage reader: its log offset is after the answer's
 * offsets, or it is not known yet to be in the log. The `doubtful` part may be in the answer nevertheless: rows of usage are visible as
 * soon as they are written, so a concurrent answer may include some of a later offset.
 */
export async function loadUncountedCommitted(
  database: Database,
  { tenant_id, environment_id, subject_id }: ReservationPool,
  { start, end, high_water, sharers }: UncountedRange,
): Promise<{ committed: Decimal; doubtful: Decimal }> {
  const { rows } = await database.raw(
    `with counted as (select key::int as partition, value::bigint as next from jsonb_each_text(cast(:high_water as jsonb))),
          sharers as (select customer_id, greatest(joined, cast(:start as timestamptz)) as since, least("left", cast(:end as timestamptz)) as until
                        from jsonb_to_recordset(cast(:sharers as jsonb)) as s (customer_id text, joined timestamptz, "left" timestamptz)),
          placed as (
            select e.units, coalesce(e.log_offset < greatest(s.next_offset, s.slice_to), false) as may_be_there
              from counted c cross join sharers of
              join reservation_events e
                on e.tenant_id = :tenant_id and e.environment_id = :environment_id and e.customer_id = of.customer_id and e.subject_id = :subject_id
               and e.partition = c.partition and e.log_offset >= c.next
              left join slices s on s.partition = c.partition
             where e.event_at >= of.since and (of.until is null or e.event_at < of.until)
            union all
            select r.committed_quantity, true from sharers of
              join reservations r
                on r.tenant_id = :tenant_id and r.environment_id = :environment_id and r.customer_id = of.customer_id and r.subject_id = :subject_id
             where not r.is_sent and r.event_at >= of.since and (of.until is null or r.event_at < of.until))
     select coalesce(sum(units), 0)::text as committed,
            coalesce(sum(units) filter (where may_be_there), 0)::text as doubtful from placed`,
    {
      high_water: JSON.stringify(high_water),
      sharers: JSON.stringify(sharers),
      start,
      end,
      tenant_id,
      environment_id,
      subject_id,
    },
  );
  return { committed: new Decimal(rows[0].committed), doubtful: new Decimal(rows[0].doubtful) };
}

/** Filters the ids of reservations whose events are not in the log yet. */
export async function findUncommitted(scope: Scope, ids: readonly string[], database: Database): Promise<Set<string>> {
  const found = await ReservationModel.in(scope, database)
    .select('id')
    .whereRaw('id = any(?)', [[...ids]])
    .whereRaw(`not (reservation_status = 'committed' and is_sent)`);
  return new Set(found.map(({ id }) => id));
}

/** The end of a reservation, with the values of its columns. */
export type EndOf = {
  readonly id: string;
  readonly reservation_status: Reservation['reservation_status'];
  readonly committed_quantity: string | null;
  readonly ended_at: string;
  readonly ended_by: Reservation['ended_by'];
  readonly event_text: string | null;
  readonly event_count: number;
  readonly event_at: string | null;
  readonly is_sent: boolean;
  readonly wallet_transaction_id: string | null;
  readonly updated_at: string;
  readonly updated_by: string;
};

/** Ends the given reservations in one statement, and returns them in their new state. */
export async function endReservations(
  transaction: Transaction,
  scope: Scope,
  ends: readonly EndOf[],
): Promise<Map<string, ReservationModel>> {
  if (ends.length === 0) return new Map();
  const { tenant_id, environment_id } = scope;
  await transaction.raw(
    `update reservations r
        set reservation_status = e.reservation_status, committed_quantity = e.committed_quantity, ended_at = e.ended_at,
            ended_by = e.ended_by, event_text = e.event_text, event_count = e.event_count, event_at = e.event_at,
            is_sent = e.is_sent, wallet_transaction_id = e.wallet_transaction_id, updated_at = e.updated_at,
            updated_by = e.updated_by
       from jsonb_to_recordset(?::jsonb) as e (id text, reservation_status text, committed_quantity numeric, ended_at timestamptz,
                                               ended_by text, event_text text, event_count int, event_at timestamptz, is_sent boolean,
                                               wallet_transaction_id text, updated_at timestamptz, updated_by text)
      where r.tenant_id = ? and r.environment_id = ? and r.id = e.id`,
    [JSON.stringify(ends), tenant_id, environment_id],
  );
  return ReservationModel.byId(
    scope,
    ends.map(({ id }) => id),
    transaction,
  );
}

/** A part of a reservation's events, with its offset in the log. */
export type PlacedEvents = {
  readonly reservation: ReservationModel;
  readonly partition: number;
  readonly offset: bigint;
  readonly units: Decimal;
};

/** Records that the log has the events; if events were sent twice, the lower offset counts. */
export async function recordSent(
  transaction: Transaction,
  scope: Scope,
  placed: readonly PlacedEvents[],
): Promise<void> {
  const { tenant_id, environment_id } = scope;
  const rows = placed.map(({ reservation, partition, offset, units }) => ({
    reservation_id: reservation.id,
    customer_id: reservation.customer_id,
    subject_id: reservation.subject_id,
    partition,
    log_offset: String(offset),
    units: units.toFixed(),
    event_at: formatMs(toInstant(reservation.event_at!)),
  }));
  await transaction.raw(
    `insert into reservation_events as known (tenant_id, environment_id, reservation_id, customer_id, subject_id, partition,
                                              log_offset, units, event_at)
     select ?::text, ?::text, e.reservation_id, e.customer_id, e.subject_id, e.partition, e.log_offset, e.units, e.event_at
       from jsonb_to_recordset(?::jsonb) as e (reservation_id text, customer_id text, subject_id text, partition int,
                                               log_offset bigint, units numeric, event_at timestamptz)
         on conflict (tenant_id, environment_id, reservation_id, partition)
         do update set log_offset = least(known.log_offset, excluded.log_offset)`,
    [tenant_id, environment_id, JSON.stringify(rows)],
  );
  const ids = [...new Set(placed.map(({ reservation }) => reservation.id))];
  await transaction.raw(
    `update reservations set is_sent = true where tenant_id = ? and environment_id = ? and id = any(?)`,
    [tenant_id, environment_id, ids],
  );
}

const PURGE_BATCH_SIZE = 1_000;

/**
 * Deletes the log offsets of reservations whose events were all recorded before this instant and are counted by the pipeline: no
 * answer of a usage reader ends before them any more. Returns the number of reservations.
 */
export async function purgeReservationEvents(database: Database, before: Date): Promise<number> {
  let forgotten = 0;
  for (;;) {
    const { rows } = await database.raw(PURGE_SQL, [before, before, PURGE_BATCH_SIZE]);
    forgotten += rows[0].count;
    if (rows[0].count < PURGE_BATCH_SIZE) return forgotten;
  }
}

const PURGE_SQL = `
  with old as (
    select tenant_id, environment_id, reservation_id, sum(units) as units
      from reservation_events e
     where noted_at < ? and not exists (
       select from reservation_events o left join slices s on s.partition = o.partition
        where o.tenant_id = e.tenant_id and o.environment_id = e.environment_id and o.reservation_id = e.reservation_id
          and (o.noted_at >= ? or s.next_offset is null or s.next_offset <= o.log_offset))
     group by tenant_id, environment_id, reservation_id
     limit ?
  ), said as (
    update reservations r set counted_units = old.units
      from old
     where r.tenant_id = old.tenant_id and r.environment_id = old.environment_id and r.id = old.reservation_id
    returning r.tenant_id, r.environment_id, r.id
  ), gone as (
    delete from reservation_events e using said
     where e.tenant_id = said.tenant_id and e.environment_id = said.environment_id and e.reservation_id = said.id
  )
  select count(*)::int as count from said`;

/** Receipt time of the events: by the database's clock, even in an environment with a test clock. */
export async function loadReceivedTime(database: Database): Promise<Date> {
  const { rows } = await database.raw('select now() as at');
  return new Date(rows[0].at);
}
