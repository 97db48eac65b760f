/** Unpaid amounts of final invoices by age, over all customers, summed by the database. */
import { z } from 'zod';
import { formatCursor, parseCursor } from '../../../core/foundation/cursor.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Database } from '../../foundation/stores.ts';
import { UNPAID_INVOICE } from './unpaid.ts';

type AgedAmounts = {
  currency: string;
  not_due: string;
  overdue_1_to_30: string;
  overdue_31_to_60: string;
  overdue_61_to_90: string;
  overdue_over_90: string;
  total_overdue: string;
  total_unpaid: string;
  invoice_count: number;
};
type ReceivablesTotal = AgedAmounts & { customer_count: number };
type CustomerReceivables = AgedAmounts & {
  customer_id: string;
  external_customer_id: string;
  customer_name: string;
  oldest_due_date: string | null;
};
type Receivables = {
  /** Instant by which invoices are overdue: that of the first page. */
  as_of: string;
  totals: ReceivablesTotal[];
  items: CustomerReceivables[];
  pagination: { total: number; limit: number; offset: number; next_cursor: string | null };
};

type ReceivablesInput = {
  readonly currency: string | null;
  readonly now: Date;
  readonly limit: number;
  readonly offset: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
};

/**
 * Place of a cursor. The instant belongs to it, because a customer's overdue amount, which decides the order, grows with time. The texts are
 * those of `owing`.
 */
const Place = z.tuple([
  z.iso.datetime(),
  z.string().regex(/^\d+(\.\d+)?$/),
  z.string().regex(/^\d+(\.\d+)?$/),
  z.string().regex(/^[^\0]*$/),
  z.string().regex(/^[^\0]*$/),
]);

const AGES = {
  not_due: 'overdue_days is null',
  overdue_1_to_30: 'overdue_days <= 30',
  overdue_31_to_60: 'overdue_days > 30 and overdue_days <= 60',
  overdue_61_to_90: 'overdue_days > 60 and overdue_days <= 90',
  overdue_over_90: 'overdue_days > 90',
  total_overdue: 'overdue_days is not null',
  total_unpaid: 'true',
};
const SUMS = Object.entries(AGES)
  .map(([name, age]) => `trim_scale(coalesce(sum(amount_remaining) filter (where ${age}), 0))::text as ${name}`)
  .join(', ');

const ORDER = 'total_overdue::numeric desc, total_unpaid::numeric desc, customer_id, currency';
const AMOUNTS = '(o.total_overdue::numeric, o.total_unpaid::numeric)';

/** All parts of the answer in one statement, so that they are of one moment. A begun day counts. */
const RECEIVABLES = `
  with unpaid as materialized (
    select i.customer_id, i.currency, i.amount_remaining, i.due_date,
           case when i.due_date < :now
                then ceil(extract(epoch from :now::timestamptz - i.due_date) / 86400) end as overdue_days
      from invoices i
     where i.tenant_id = :tenant_id and i.environment_id = :environment_id and ${UNPAID_INVOICE} and (:currency::text is null or i.currency = :currency)
  ), totals as (
    select currency, ${SUMS}, count(*)::int as invoice_count, count(distinct customer_id)::int as customer_count
      from unpaid group by currency
  ), owing as (
    select customer_id, currency, ${SUMS}, count(*)::int as invoice_count, min(due_date) as oldest_due_date
      from unpaid group by customer_id, currency
  ), page as (
    select o.customer_id, c.external_id as external_customer_id, c.name as customer_name,
           ${['currency', ...Object.keys(AGES), 'invoice_count', 'oldest_due_date'].map((name) => `o.${name}`).join(', ')}
      from owing o
      join customers c on c.tenant_id = :tenant_id and c.environment_id = :environment_id and c.id = o.customer_id
     where :after_customer::text is null or ${AMOUNTS} < (:after_overdue::numeric, :after_unpaid::numeric)
        or (${AMOUNTS} = (:after_overdue::numeric, :after_unpaid::numeric)
            and (o.customer_id, o.currency) > (:after_customer::text, :after_currency::text))
     order by ${ORDER} limit :limit offset :offset
  )
  select (select coalesce(json_agg(totals order by currency), '[]') from totals)::text as totals,
         (select coalesce(json_agg(page order by ${ORDER}), '[]') from page)::text as items,
         (select count(*)::int from owing) as total`;

export async function loadReceivables(scope: Scope, input: ReceivablesInput, database: Database): Promise<Receivables> {
  const { currency, limit, offset, cursor } = input;
  if (cursor !== undefined && offset > 0) throw invalid('offset', 'must not be sent with a cursor');
  const place = cursor === undefined ? [] : parseCursor(cursor, (parts) => Place.parse(parts));
  const [as_of = formatMs(input.now.getTime()), after_overdue = null, after_unpaid = null, ...last] = place;
  const [after_customer = null, after_currency = null] = last;
  const after = { after_overdue, after_unpaid, after_customer, after_currency };
  // One more item is loaded, to know whether another page follows.
  const bindings = { ...scope, ...after, currency, now: as_of, limit: limit + 1, offset };
  const { rows } = await database.raw(RECEIVABLES, bindings);
  const found: CustomerReceivables[] = JSON.parse(rows[0].items);
  const items = found.slice(0, limit).map(toItem);
  const next_cursor = found.length > limit ? formatPlace(as_of, items.at(-1)!) : null;
  return {
    as_of,
    totals: JSON.parse(rows[0].totals),
    items,
    pagination: { total: rows[0].total, limit, offset, next_cursor },
  };
}

function toItem({ oldest_due_date: due, ...item }: CustomerReceivables): CustomerReceivables {
  return { ...item, oldest_due_date: due === null ? null : formatMs(toInstant(due)) };
}

function formatPlace(as_of: string, last: CustomerReceivables): string {
  return formatCursor([as_of, last.total_overdue, last.total_unpaid, last.customer_id, last.currency]);
}
