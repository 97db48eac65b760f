/**
 * What pools say that is held, against the rows that are; and what committed reservations have become, against what was committed. Each
 * question is one statement, so of one moment.
 */
import type { Database } from '../stores.ts';

export type ReservationFault = {
  readonly kind: 'pool_differs' | 'reservation_differs';
  readonly id: string;
  readonly stated: string;
  readonly found: string;
};

/** Null: all reservations, and all pools; else these, and theirs. */
export type Reservations = readonly string[] | null;

/** Whether a row of this name is of a pool that is asked about. */
const OF_THOSE = (
  row: string,
) => `(:ids::text[] is null or (${row}.tenant_id, ${row}.environment_id, ${row}.customer_id, ${row}.subject_id) in (
  select tenant_id, environment_id, customer_id, subject_id from reservations where id = any(:ids::text[])))`;

const QUESTIONS: Readonly<Record<ReservationFault['kind'], string>> = {
  pool_differs: `
    select concat_ws(' ', customer_id, subject_id) as id, format('%s in %s', p.held, p.held_count) as stated,
           format('%s in %s', coalesce(r.held, 0), coalesce(r.held_count, 0)) as found
      from (select * from reservation_pools p where ${OF_THOSE('p')}) p
      full join (select tenant_id, environment_id, customer_id, subject_id, sum(quantity) as held, count(*) as held_count
                   from reservations r where reservation_status = 'held' and ${OF_THOSE('r')}
                  group by tenant_id, environment_id, customer_id, subject_id) r
     using (tenant_id, environment_id, customer_id, subject_id)
     where coalesce(p.held, 0) <> coalesce(r.held, 0) or coalesce(p.held_count, 0) <> coalesce(r.held_count, 0)`,
  reservation_differs: `
    select r.id, format('%s committed', r.committed_quantity) as stated,
           coalesce(r.counted_units, e.units, t.credit_amount, 0)::text as found
      from reservations r
      left join lateral (select sum(units) as units from reservation_events e
                          where e.tenant_id = r.tenant_id and e.environment_id = r.environment_id and e.reservation_id = r.id) e on true
      left join wallet_transactions t on t.id = r.wallet_transaction_id
     where r.reservation_status = 'committed' and r.is_sent and (:ids::text[] is null or r.id = any(:ids::text[]))
       and r.committed_quantity <> coalesce(r.counted_units, e.units, t.credit_amount, 0)`,
};

/** The first so many of each kind. */
export async function reservationFaults(
  database: Database,
  { ids, limit }: { ids: Reservations; limit: number },
): Promise<ReservationFault[]> {
  const found: ReservationFault[] = [];
  for (const [kind, question] of Object.entries(QUESTIONS) as [ReservationFault['kind'], string][]) {
    const { rows } = await database.raw(`${question} order by 1 limit :limit`, { ids, limit } as never);
    found.push(...rows.map((row: Omit<ReservationFault, 'kind'>) => ({ kind, ...row })));
  }
  return found;
}

/** Those that were made last, and some by chance. */
export async function someReservations(database: Database, count: number): Promise<string[]> {
  const { rows } = await database.raw(
    `(select id from reservations order by id desc limit ?) union (select id from reservations tablesample system (1) limit ?)`,
    [count, count],
  );
  return rows.map(({ id }: { id: string }) => id);
}

export type ReservationSums = { readonly reservations: number; readonly pools: number; readonly held: number };

export async function reservationSums(database: Database): Promise<ReservationSums> {
  const { rows } = await database.raw(
    `select (select count(*) from reservations)::int as reservations, (select count(*) from reservation_pools)::int as pools,
            (select count(*) from reservations where reservation_status = 'held')::int as held`,
  );
  return rows[0];
}
