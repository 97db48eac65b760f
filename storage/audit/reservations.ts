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

const QUESTIONS: Readonly<Record<ReservationFault['kind'], string>> = {
  pool_differs: `
    select concat_ws(' ', p.customer_id, p.subject_id) as id, format('%s in %s', p.held, p.held_count) as stated,
           format('%s in %s', coalesce(r.held, 0), coalesce(r.held_count, 0)) as found
      from reservation_pools p
      full join (select tenant_id, environment_id, customer_id, subject_id, sum(quantity) as held, count(*) as held_count
                   from reservations where reservation_status = 'held'
                  group by tenant_id, environment_id, customer_id, subject_id) r
     using (tenant_id, environment_id, customer_id, subject_id)
     where coalesce(p.held, 0) <> coalesce(r.held, 0) or coalesce(p.held_count, 0) <> coalesce(r.held_count, 0)`,
  reservation_differs: `
    select r.id, format('%s committed', r.committed_quantity) as stated,
           coalesce(e.units, t.credit_amount, 0)::text as found
      from reservations r
      left join (select reservation_id, sum(units) as units from reservation_events group by reservation_id) e
        on e.reservation_id = r.id
      left join wallet_transactions t on t.id = r.wallet_transaction_id
     where r.reservation_status = 'committed' and r.is_sent
       and r.committed_quantity <> coalesce(e.units, t.credit_amount, 0)`,
};

/** The first so many of each kind. */
export async function reservationFaults(database: Database, limit: number): Promise<ReservationFault[]> {
  const found: ReservationFault[] = [];
  for (const [kind, question] of Object.entries(QUESTIONS) as [ReservationFault['kind'], string][]) {
    const { rows } = await database.raw(`${question} order by 1 limit ?`, [limit]);
    found.push(...rows.map((row: Omit<ReservationFault, 'kind'>) => ({ kind, ...row })));
  }
  return found;
}

export type ReservationSums = { readonly reservations: number; readonly pools: number; readonly held: number };

export async function reservationSums(database: Database): Promise<ReservationSums> {
  const { rows } = await database.raw(
    `select (select count(*) from reservations)::int as reservations, (select count(*) from reservation_pools)::int as pools,
            (select count(*) from reservations where reservation_status = 'held')::int as held`,
  );
  return rows[0];
}
