/**
 * Table `reservations`, and what is kept beside it. What is held of one feature or one wallet of a customer is a pool: whoever decides about it holds
 * its row, and a trigger writes its sum (sql/postgres/0175-reservations.sql).
 */
import { Decimal, ZERO } from '../../core/decimal.ts';
import { type Reservation, reservationShape } from '../../core/reservation/record.ts';
import type { Scope } from '../../core/scope.ts';
import { formatMs, type Milliseconds, toInstant } from '../../core/time/instant.ts';
import type { PromisedCredits } from '../../core/wallet/promises.ts';
import type { Database, Transaction } from '../stores.ts';
import { ScopedModel } from './model.ts';

const UNSENT_MAX = 100;

export interface ReservationModel extends Reservation {}

export class ReservationModel extends ScopedModel {
  static override tableName = 'reservations';
  static override recordName = 'reservation';
  /** It says itself who made it and how it ended, and is made in front of requests of others, a thousand in a second. */
  static override isAudited = false as const;
  static override record = reservationShape;

  /** Some that the log may not have yet, of these customers. */
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

/** Of which feature, or which wallet, of whom. */
export type ReservationPool = Scope & { readonly customer_id: string; readonly subject_id: string };
export type HeldAmount = { readonly held: Decimal; readonly held_count: number };

/** Of the credits of a wallet. */
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
 * Until the transaction ends nobody else decides about this pool, nor about any of a family that the customer is in: all of one hold the row of its parent
 * first (docs/decisions/0013-reservations.md). The rows are taken by a statement of its own: the next one sees what whoever had them has committed.
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

/** Which reservation somebody ends, and when that was asked. */
export type ReservationEnd = { readonly id: string; readonly at: string };

/**
 * What is held in it, once what has expired is released. What is charged when it expires is held until that is done; and so is what somebody ends who asked
 * in time, however long he had to wait.
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

/** What is held of a wallet, by which of these expiries it ends before, in order, or at (docs/rules/reservations.md, "Credits"). */
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

/** The same for who only asks, and changes nothing. */
export async function loadHeld(database: Database, pool: ReservationPool, now: Date): Promise<HeldAmount> {
  const { rows } = await database.raw(
    `select coalesce(sum(quantity), 0)::text as held, count(*)::int as held_count from reservations
      where ${IS_POOL} and reservation_status = 'held' and not (on_expiry = 'release' and expires_at <= ?)`,
    [...toPoolKey(pool), now],
  );
  return { held: new Decimal(rows[0].held), held_count: rows[0].held_count };
}

/** What is held by each of these customers, without what has expired and nobody has ended yet. */
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

/** A customer whose usage counts against a limit, from when on and until when; null is always. */
export type Sharer = { readonly customer_id: string; readonly joined: string | null; readonly left: string | null };

/** Between two instants, of what the reader of usage had come so far in the log (exclusive). */
export type UncountedRange = {
  readonly start: Date;
  readonly end: Date | null;
  /** Of every partition. */
  readonly high_water: Readonly<Record<string, string>>;
  /** Whose. */
  readonly sharers: readonly Sharer[];
};

/**
 * What was committed between these instants, and is not in an answer of the reader of usage: it stands behind the places in the log that
 * the answer knows, or nobody can say yet that the log has it. Doubtful is what may be in it nevertheless: rows of usage become
 * visible as soon as they are written, and an answer that was read meanwhile may have some of a later place.
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

/** Which of these are no events yet. */
export async function findUncommitted(scope: Scope, ids: readonly string[], database: Database): Promise<Set<string>> {
  const found = await ReservationModel.in(scope, database)
    .select('id')
    .whereRaw('id = any(?)', [[...ids]])
    .whereRaw(`not (reservation_status = 'committed' and is_sent)`);
  return new Set(found.map(({ id }) => id));
}

/** What ends them, each in its own way. */
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

/** In one statement, and as they are then. */
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

/** A part of the events of a reservation, where it stands in the log. */
export type PlacedEvents = {
  readonly reservation: ReservationModel;
  readonly partition: number;
  readonly offset: bigint;
  readonly units: Decimal;
};

/** The log has them: of those that were sent twice the first counts. */
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
 * Forgets where the events of reservations stand that were all noted before this instant, and that the pipeline has counted: no answer
 * of a reader of usage ends before them any more. Answers of how many reservations.
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

/** When they are received: by the clock of the machines, whatever time it is in the environment. */
export async function loadReceivedTime(database: Database): Promise<Date> {
  const { rows } = await database.raw('select now() as at');
  return new Date(rows[0].at);
}
