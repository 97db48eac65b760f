/**
 * The rows from which dashboards are answered: final invoices by the instant at which what they charge began to be served, and what
 * recurs by the month (docs/rules/revenue.md).
 */

import type { PricedItem } from '../billing/line-amount.ts';
import { yearlyCharge } from '../billing/yearly-charge.ts';
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import { groupBy } from '../group-by.ts';
import type { InvoiceStatus } from '../invoice/record.ts';
import { roundMoney } from '../money.ts';
import type { Milliseconds } from '../time/instant.ts';
import { deriveServicePeriod, type EarnedLine, toRevenueKind } from './line.ts';
import { isPrepayment } from './prepayment.ts';

/** What a charge of some instant comes to. */
export type RevenueCell = { readonly earned_at: Milliseconds; readonly usage: Decimal; readonly fixed: Decimal };

/** Of a customer, a currency and a year of UTC, in order of time; without a cell nothing was earned in it. */
export type RevenueRow = {
  readonly customer_id: string;
  readonly currency: string;
  readonly year: number;
  readonly cells: readonly RevenueCell[];
};

/** A line, and whose revenue it is: that of who has the subscription, whoever is invoiced. */
export type OwnedLine = EarnedLine & { readonly owner_id: string };

export function toRevenueKey({ customer_id, currency, year }: Omit<RevenueRow, 'cells'>): string {
  return JSON.stringify([customer_id, currency, year]);
}

/** One row for each customer, currency and year of the lines; only final and skipped invoices count in it. */
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

/** What is skipped has nothing to pay, and may give back what was charged: into the wallet. */
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

/** Beyond every period of an invoice, and within what the store can say. */
const NEVER: Milliseconds = Date.UTC(2200, 0, 1);

type RecurringTerms = {
  readonly customer_id: string;
  readonly currency: string;
  /** Whether the subscription is charged at all, now or in the past. */
  readonly is_charged: boolean;
  readonly end_ms: Milliseconds | null;
};

/** What a fixed line comes to by the month, rounded as a line is; 0 where it is never charged, and of what comes once. */
export function buildRecurringRow(
  item: PricedItem,
  { customer_id, currency, is_charged, end_ms }: RecurringTerms,
): RecurringRow {
  const starts_at = item.start_ms;
  const ends_at = Math.min(item.end_ms ?? NEVER, end_ms ?? NEVER);
  const isCharged = is_charged && item.price_type === 'FIXED' && starts_at < ends_at;
  const monthly = isCharged ? roundMoney(yearlyCharge(item).dividedBy(12), currency) : ZERO;
  return { line_item_id: item.id, customer_id, currency, starts_at, ends_at: Math.max(starts_at, ends_at), monthly };
}
