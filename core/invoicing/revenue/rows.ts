/**
 * Rows that dashboards read: amounts of final invoices by the start of their service period, and monthly recurring charges
 * (docs/rules/revenue.md).
 */

import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { groupBy } from '../../foundation/group-by.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { PricedItem } from '../../rating/line-amount.ts';
import { computeMonthlyCharge } from '../../rating/yearly-charge.ts';
import type { InvoiceStatus } from '../invoice/record.ts';
import { deriveServicePeriod, type EarnedLine, toRevenueKind } from './line.ts';
import { isPrepayment } from './prepayment.ts';

/** Sum of the charges whose service period starts at one instant. */
type RevenueCell = { readonly earned_at: Milliseconds; readonly usage: Decimal; readonly fixed: Decimal };

/** Revenue of a customer in a currency and UTC year. The cells are in time order; without cells there is no revenue. */
export type RevenueRow = {
  readonly customer_id: string;
  readonly currency: string;
  readonly year: number;
  readonly cells: readonly RevenueCell[];
};

/** A line with the customer that owns its revenue: the customer of the subscription, even if another one is invoiced. */
export type OwnedLine = EarnedLine & { readonly owner_id: string };

export function toRevenueKey({ customer_id, currency, year }: Omit<RevenueRow, 'cells'>): string {
  return JSON.stringify([customer_id, currency, year]);
}

/** One row for each customer, currency and year of the lines. Only finalized and skipped invoices count. */
export function buildRevenueRows(lines: readonly OwnedLine[]): RevenueRow[] {
  const counted = lines.filter(({ invoice }) => !isPrepayment(invoice));
  const placed = counted.map((one) => {
    const earned_at = deriveServicePeriod(one).start;
    const { currency } = one.line;
    return { one, earned_at, place: { customer_id: one.owner_id, currency, year: toYear(earned_at) } };
  });
  return Array.from(groupBy(placed, ({ place }) => toRevenueKey(place)).values(), (of) => ({
    ...of[0].place,
    cells: buildCells(of),
  }));
}

type PlacedLine = { readonly one: OwnedLine; readonly earned_at: Milliseconds };

/**
 * Statuses of invoices whose revenue counts. A skipped invoice counts too: nothing is to be paid, but it may credit earlier charges into
 * the wallet.
 */
const SETTLED: readonly InvoiceStatus[] = ['FINALIZED', 'SKIPPED'];

function buildCells(placed: readonly PlacedLine[]): RevenueCell[] {
  const settled = placed.filter(({ one }) => SETTLED.includes(one.invoice.invoice_status));
  const cells = Array.from(
    groupBy(settled, ({ earned_at }) => earned_at),
    ([earned_at, of]) => {
      const sumKind = (kind: 'usage' | 'fixed') =>
        sumDecimals(of.flatMap(({ one: { line } }) => (toRevenueKind(line) === kind ? new Decimal(line.amount) : [])));
      return { earned_at, usage: sumKind('usage'), fixed: sumKind('fixed') };
    },
  );
  return cells
    .filter(({ usage, fixed }) => !usage.isZero() || !fixed.isZero())
    .sort((a, b) => a.earned_at - b.earned_at);
}

export function toYear(at: Milliseconds): number {
  return new Date(at).getUTCFullYear();
}

export type RecurringRow = {
  readonly line_item_id: string;
  readonly customer_id: string;
  readonly currency: string;
  readonly starts_at: Milliseconds;
  readonly ends_at: Milliseconds;
  readonly monthly: Decimal;
};

/** End of a charge that has no end date: later than every invoice period, and within the range of the store. */
const NEVER: Milliseconds = Date.UTC(2200, 0, 1);

type RecurringTerms = {
  readonly customer_id: string;
  readonly currency: string;
  /** True if the subscription is charged, now or in the past. */
  readonly is_charged: boolean;
  readonly end_ms: Milliseconds | null;
};

/** Monthly amount of a fixed line, rounded like a line; 0 for usage, for one-time charges and for lines that are never charged. */
export function buildRecurringRow(
  item: PricedItem,
  { customer_id, currency, is_charged, end_ms }: RecurringTerms,
): RecurringRow {
  const starts_at = item.start_ms;
  const ends_at = Math.min(item.end_ms ?? NEVER, end_ms ?? NEVER);
  const isCharged = is_charged && item.price_type === 'FIXED' && starts_at < ends_at;
  const monthly = isCharged ? computeMonthlyCharge(item, currency) : ZERO;
  return { line_item_id: item.id, customer_id, currency, starts_at, ends_at: Math.max(starts_at, ends_at), monthly };
}
