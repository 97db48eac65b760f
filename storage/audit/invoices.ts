/**
 * Invoices against the sums of their lines, payments, refunds and credit notes, and against the issued numbers. Each query is one
 * statement, so it reads one snapshot while invoices change. Queries are for all tenants or for some invoices.
 */

import type { Scope } from '../../core/foundation/scope.ts';
import { DISCOUNT_FIELDS } from '../../core/rating/adjustment-fields.ts';
import type { Database } from '../foundation/stores.ts';
import { type AuditFault, findFaults } from './questions.ts';

export type InvoiceFault = AuditFault<InvoiceFaultKind>;
type InvoiceFaultKind =
  | 'invoice_lines_differ'
  | 'invoice_total_differs'
  | 'invoice_paid_differs'
  | 'invoice_refunded_differs'
  | 'invoice_adjusted_differs'
  | 'payment_refunded_differs'
  | 'line_credited_too_much'
  | 'invoice_number_gap'
  | 'credit_note_number_gap';

/** Null selects all invoices. */
export type Invoices = readonly string[] | null;

/** SQL with which each query begins. It includes the scope, so that indexes are used for a selection of invoices. */
const SELECTED_INVOICES = `asked as (
    select tenant_id, environment_id, id from invoices
     where status = 'published' and (:invoices::text[] is null or id = any(:invoices::text[]))
  )`;
const joinsSelected = (table: string, column: string) =>
  `${table}.tenant_id = asked.tenant_id and ${table}.environment_id = asked.environment_id and ${table}.${column} = asked.id`;

/** Payments with which money was received, even if it was refunded later (core/payments/moves.ts). */
const RECEIVED = `('SUCCEEDED', 'PARTIALLY_REFUNDED', 'REFUNDED')`;
/** SQL condition for refunds that count: pending ones do, because they are booked before the provider is called. */
const MADE = `r.refund_status <> 'failed'`;
/** Refunds of an overpayment, which the invoice does not contain (actions/lifecycle/payments/refund-payment.ts). */
const OVERPAYMENT_REFUND = `starts_with(r.idempotency_key, 'surplus/' || r.payment_id)`;

/**
 * Money of each invoice: `received` by payments without refunded overpayments, other `refunds` of these payments, and `noted`, which is
 * returned by credit notes. A refund that `refunded_amount` does not contain returned a partial payment and lowers `amount_paid`.
 */
const MONEY = `${SELECTED_INVOICES}, receipts as (
    select asked.id, sum(p.amount) as amount from asked join payments p on ${joinsSelected('p', 'destination_id')}
     where p.payment_status in ${RECEIVED} group by 1
  ), given as (
    select asked.id, coalesce(sum(r.amount) filter (where ${OVERPAYMENT_REFUND} and p.payment_status in ${RECEIVED}), 0) as surplus,
           coalesce(sum(r.amount) filter (where not ${OVERPAYMENT_REFUND}), 0) as refunds
      from asked join payments p on ${joinsSelected('p', 'destination_id')}
      join payment_refunds r on r.tenant_id = p.tenant_id and r.environment_id = p.environment_id and r.payment_id = p.id
     where ${MADE} group by 1
  ), notes as (
    select asked.id, coalesce(sum(n.total_amount) filter (where n.credit_note_type = 'REFUND'), 0) +
           coalesce(sum(n.total_prepaid_credits_returned) filter (where n.credit_note_type = 'ADJUSTMENT'), 0) as refunded,
           coalesce(sum(n.total_amount - n.total_prepaid_credits_returned) filter (where n.credit_note_type = 'ADJUSTMENT'), 0) as adjusted
      from asked join credit_notes n on ${joinsSelected('n', 'invoice_id')}
     where n.credit_note_status = 'FINALIZED' and n.status = 'published' group by 1
  ), money as (
    select i.id, i.invoice_status, i.amount_paid, i.refunded_amount, i.adjustment_amount, i.amount_paid - i.paid_by_hand - i.total_credits_applied_after_tax as paid,
           greatest(0, i.total_prepaid_credits_applied) as credits, coalesce(receipts.amount, 0) - coalesce(given.surplus, 0) as received,
           coalesce(given.refunds, 0) as refunds, coalesce(notes.refunded, 0) as noted, coalesce(notes.adjusted, 0) as adjusted
      from asked join invoices i on i.id = asked.id
      left join receipts on receipts.id = i.id
      left join given on given.id = i.id
      left join notes on notes.id = i.id
  )`;

const DISCOUNTS = DISCOUNT_FIELDS.map((field) => `l.${field}`).join(' + ');

const QUESTIONS: Readonly<Record<InvoiceFaultKind, string>> = {
  invoice_lines_differ: `
    with ${SELECTED_INVOICES}
    select i.id, format('subtotal %s, discounts %s, credits %s, tax %s', trim_scale(i.subtotal), trim_scale(i.total_discount),
                        trim_scale(i.total_prepaid_credits_applied), trim_scale(i.total_tax)) as stored,
           format('subtotal %s, discounts %s, credits %s, tax %s', trim_scale(coalesce(l.amount, 0)), trim_scale(coalesce(l.discount, 0)),
                  trim_scale(coalesce(l.credits, 0)), trim_scale(coalesce(l.tax, 0))) || ' on its lines' as found
      from asked join invoices i on i.id = asked.id
      left join (select asked.id, sum(l.amount) as amount, sum(${DISCOUNTS}) as discount,
                        sum(l.prepaid_credits_applied) as credits, sum(l.tax_amount) as tax
                   from asked join invoice_line_items l on ${joinsSelected('l', 'invoice_id')} where l.status = 'published' group by 1) l on l.id = i.id
     where (i.subtotal, i.total_discount, i.total_prepaid_credits_applied, i.total_tax)
           is distinct from (coalesce(l.amount, 0), coalesce(l.discount, 0), coalesce(l.credits, 0), coalesce(l.tax, 0))`,
  invoice_total_differs: `
    with ${SELECTED_INVOICES}
    select i.id, format('total %s, due %s, remaining %s', trim_scale(i.total), trim_scale(i.amount_due), trim_scale(i.amount_remaining)) as stored,
           format('total %s, due %s, remaining %s by its sums', trim_scale(t.total), trim_scale(t.total - i.adjustment_amount),
                  trim_scale(greatest(0, t.total - i.adjustment_amount - i.amount_paid))) as found
      from asked join invoices i on i.id = asked.id
     cross join lateral (
       select i.subtotal - i.total_discount - i.total_prepaid_credits_applied + i.total_tax as net) n
     cross join lateral (select case when i.invoice_type = 'CREDIT' then n.net else greatest(0, n.net) end as total) t
     where (i.total <> t.total or i.amount_due <> t.total - i.adjustment_amount
            or (i.amount_due >= 0 and i.amount_remaining <> greatest(0, i.amount_due - i.amount_paid)))`,
  // The refunded_amount of a void invoice includes everything that was returned, so it does not show how much of that were refunds of
  // payments.
  invoice_paid_differs: `
    with ${MONEY}
    select id, trim_scale(paid)::text as stored, format('%s came in by its payments', trim_scale(came)) as found
      from money cross join lateral (
        select received - case when invoice_status = 'VOIDED' then least(greatest(received - paid, 0), refunds)
                               else refunds - (refunded_amount - noted) end as came) c
     where paid <> came`,
  invoice_refunded_differs: `
    with ${MONEY}
    select id, format('%s refunded', trim_scale(refunded_amount)) as stored,
           format('%s by credit notes, %s by refunds, of %s paid and %s of credits', trim_scale(noted), trim_scale(refunds),
                  trim_scale(amount_paid), trim_scale(credits)) as found
      from money
     where refunded_amount > amount_paid + credits or (invoice_status <> 'VOIDED' and (refunded_amount < noted or refunded_amount > noted + refunds))`,
  invoice_adjusted_differs: `
    with ${MONEY}
    select id, trim_scale(adjustment_amount)::text as stored, format('%s by credit notes', trim_scale(adjusted)) as found
      from money where adjustment_amount <> adjusted`,
  payment_refunded_differs: `
    with ${SELECTED_INVOICES}
    select p.id, format('%s refunded of %s', trim_scale(p.refunded_amount), trim_scale(p.amount)) as stored,
           format('%s by its refunds', trim_scale(coalesce(r.amount, 0))) as found
      from asked join payments p on ${joinsSelected('p', 'destination_id')}
      left join lateral (select sum(r.amount) as amount from payment_refunds r
                          where r.tenant_id = p.tenant_id and r.environment_id = p.environment_id and r.payment_id = p.id and ${MADE}) r on true
     where (p.refunded_amount <> coalesce(r.amount, 0) or p.refunded_amount > p.amount)`,
  line_credited_too_much: `
    with ${SELECTED_INVOICES}
    select l.id, format('%s charged and %s tax', trim_scale(l.amount - (${DISCOUNTS})), trim_scale(l.tax_amount)) as stored,
           format('%s and %s tax by credit notes', trim_scale(n.amount), trim_scale(n.tax)) as found
      from invoice_line_items l
      join (select c.invoice_line_item_id as id, sum(c.amount) as amount, sum(c.tax_amount) as tax
              from asked join credit_notes n on ${joinsSelected('n', 'invoice_id')}
              join credit_note_line_items c on c.tenant_id = n.tenant_id and c.environment_id = n.environment_id and c.credit_note_id = n.id
             where n.credit_note_status = 'FINALIZED' and n.change_invoice_id is null group by 1) n on n.id = l.id
     where n.amount > l.amount - (${DISCOUNTS}) or n.tax > l.tax_amount`,
  invoice_number_gap: buildGapQuery({ counters: 'invoice_numbers', records: 'invoices', noun: 'invoice' }),
  credit_note_number_gap: buildGapQuery({
    counters: 'credit_note_numbers',
    records: 'credit_notes',
    noun: 'credit_note',
  }),
};

type NumberedTable = { readonly counters: string; readonly records: string; readonly noun: string };

/**
 * Compares the digits after the counter's token, because the prefix may have changed. If a setting raised the start, the numbers before it
 * were never issued.
 */
function buildGapQuery({ counters, records, noun }: NumberedTable): string {
  return `
    with counters as (
      select c.tenant_id, c.environment_id, c.token, c.last_number, coalesce((s.value ->> 'start_sequence')::bigint, 1) as start
        from ${counters} c
        left join settings s on s.tenant_id = c.tenant_id and s.environment_id = c.environment_id and s.key = '${noun}_config'
       where :invoices::text[] is null or concat_ws(' ', c.tenant_id, c.environment_id, c.token) = any(:counters::text[])
    ), numbers as (
      select distinct c.tenant_id, c.environment_id, c.token, c.last_number, c.start,
             substring(i.${noun}_number from c.token || '[^0-9]*([0-9]{1,18})$')::bigint as number
        from counters c
        join ${records} i on i.tenant_id = c.tenant_id and i.environment_id = c.environment_id and i.${noun}_number is not null
    ), steps as (
      select *, lag(number) over by_counter as before, lead(number) over by_counter as after
        from numbers where number is not null and number <= last_number
      window by_counter as (partition by tenant_id, environment_id, token order by number)
    )
    select format('%s %s %s', tenant_id, environment_id, token) as id, format('%s as the last number', last_number) as stored,
           format('no record has the numbers after %s', number) as found
      from steps
     where number < last_number and coalesce(after, last_number + 1) > number + 1
       and not (number < start and coalesce(after, last_number + 1) = start)
     union all
    select format('%s %s %s', c.tenant_id, c.environment_id, c.token), format('%s as the last number', c.last_number), 'no record has any of them'
      from counters c
     where c.last_number >= c.start and not exists (
       select 1 from steps s where s.tenant_id = c.tenant_id and s.environment_id = c.environment_id and s.token = c.token)`;
}

/** Finds the first `limit` faults of each kind. */
export function findInvoiceFaults(
  database: Database,
  { invoices, counters = [], limit }: { invoices: Invoices; counters?: readonly string[]; limit: number },
): Promise<InvoiceFault[]> {
  return findFaults(database, QUESTIONS, { invoices, counters, limit });
}

export type InvoiceSums = { invoices: number; invoice_lines: number; payments: number; credit_notes: number };

export async function loadInvoiceSums(database: Database): Promise<InvoiceSums> {
  const { rows } = await database.raw(
    `select (select count(*) from invoices)::int as invoices, (select count(*) from invoice_line_items)::int as invoice_lines,
            (select count(*) from payments)::int as payments, (select count(*) from credit_notes)::int as credit_notes`,
  );
  return rows[0];
}

/** Maximum number of a counter in the continuous audit, because all its numbers are read. Only the full audit checks larger counters. */
const NUMBERS_MAX = 50_000;

/** Lists some counters of numbers at random, in the form that the gap queries expect. */
export async function sampleNumberCounters(database: Database, count: number): Promise<string[]> {
  const { rows } = await database.raw(
    `select concat_ws(' ', tenant_id, environment_id, token) as id
       from (select * from invoice_numbers union all select * from credit_note_numbers) c
      where last_number <= ? order by random() limit ?`,
    [NUMBERS_MAX, count],
  );
  return rows.map(({ id }: { id: string }) => id);
}

/** Lists the most recently finalized invoices with usage, and their scopes. */
export async function listNewestFinalInvoices(database: Database, count: number): Promise<(Scope & { id: string })[]> {
  const { rows } = await database.raw(
    `select i.tenant_id, i.environment_id, i.id from invoices i
      where i.invoice_status = 'FINALIZED' and i.status = 'published'
        and exists (select from invoice_line_items l
                     where l.tenant_id = i.tenant_id and l.environment_id = i.environment_id and l.invoice_id = i.id
                       and l.status = 'published' and l.price_type = 'USAGE')
      order by i.id desc limit ?`,
    [count],
  );
  return rows;
}
