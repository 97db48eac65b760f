/** Records of the invoice pages, and the state of an invoice in the words of the list. */
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import type { components } from '../../client/openapi.d.ts';
import { isZero } from './decimals.ts';

export type InvoiceRecord = components['schemas']['InvoiceResponse'];
export type InvoiceLine = NonNullable<InvoiceRecord['line_items']>[number];

export const INVOICE_FILTERS = ['all', 'draft', 'outstanding', 'overdue', 'paid', 'void'] as const;
export type InvoiceListFilter = (typeof INVOICE_FILTERS)[number];

type InvoiceQuery = {
  invoice_status?: ('DRAFT' | 'FINALIZED' | 'VOIDED')[];
  payment_status?: ('SUCCEEDED' | 'OVERPAID' | 'OVERDUE')[];
  amount_remaining_gt?: string;
};

/** Conditions of the API for a quick filter. */
export const FILTER_QUERIES: Record<InvoiceListFilter, InvoiceQuery> = {
  all: {},
  draft: { invoice_status: ['DRAFT'] },
  outstanding: { invoice_status: ['FINALIZED'], amount_remaining_gt: '0' },
  overdue: { payment_status: ['OVERDUE'] },
  paid: { invoice_status: ['FINALIZED'], payment_status: ['SUCCEEDED', 'OVERPAID'] },
  void: { invoice_status: ['VOIDED'] },
};

export type InvoiceState =
  | {
      readonly kind: 'draft' | 'void' | 'skipped' | 'failed' | 'processing' | 'refunded' | 'paid' | 'overpaid' | 'open';
    }
  | { readonly kind: 'due' | 'overdue'; readonly days: number };

type InvoiceDates = Pick<InvoiceRecord, 'invoice_status' | 'payment_status' | 'amount_remaining' | 'due_date'>;

/** State of an invoice at an instant, in milliseconds since 1970. */
export function deriveState(
  { invoice_status, payment_status, amount_remaining, due_date }: InvoiceDates,
  now_ms: number,
): InvoiceState {
  if (invoice_status === 'DRAFT') return { kind: 'draft' };
  if (invoice_status === 'VOIDED') return { kind: 'void' };
  if (invoice_status === 'SKIPPED') return { kind: 'skipped' };
  if (payment_status === 'REFUNDED' || payment_status === 'PARTIALLY_REFUNDED') return { kind: 'refunded' };
  if (payment_status === 'OVERPAID') return { kind: 'overpaid' };
  if (payment_status === 'SUCCEEDED' || isZero(amount_remaining)) return { kind: 'paid' };
  if (payment_status === 'PROCESSING') return { kind: 'processing' };
  if (payment_status === 'FAILED') return { kind: 'failed' };
  if (!due_date) return { kind: 'open' };
  const left_ms = new Date(due_date).getTime() - now_ms;
  return left_ms < 0
    ? { kind: 'overdue', days: Math.floor(-left_ms / DAY_MS) }
    : { kind: 'due', days: Math.ceil(left_ms / DAY_MS) };
}

/** The calendar month of a filter (`2026-11`) as bounds on the start of the period; undefined for a text that is no month. */
export function toMonthBounds(month: string): { period_start_gte: string; period_start_lte: string } | undefined {
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? [];
  if (year === undefined || number === undefined) return undefined;
  const end = new Date(Date.UTC(Number(year), Number(number), 1) - 1);
  return { period_start_gte: `${month}-01T00:00:00.000Z`, period_start_lte: end.toISOString() };
}

/** Midnights (UTC) of the days of a half-open range; the first may lie before its start. */
export function listDays(start: string, end: string): string[] {
  const end_ms = new Date(end).getTime();
  const days: string[] = [];
  for (let at = Math.floor(new Date(start).getTime() / DAY_MS) * DAY_MS; at < end_ms; at += DAY_MS)
    days.push(new Date(at).toISOString());
  return days;
}

/** The month of an instant and those before it, newest first. */
export function listMonths(now_ms: number, count: number): string[] {
  const now = new Date(now_ms);
  return Array.from({ length: count }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  );
}
