/**
 * The rows from which dashboards are answered: final invoices by the instant at which what they charge began to be served, and what
 * recurs by the month (docs/rules/revenue.md).
 */

import type { PricedItem } from '../billing/line-amount.ts';
import { yearlyCharge } from '../billing/yearly-charge.ts';
import { Decimal, ZERO } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import type { Milliseconds } from '../time/instant.ts';
import { type EarnedLine, revenueKind, serviceOf } from './line.ts';
import { isPrepayment } from './prepayment.ts';

export type RevenueRow = {
  readonly customer_id: string;
  readonly currency: string;
  readonly earned_at: Milliseconds;
  readonly usage: Decimal;
  readonly fixed: Decimal;
};

/** A line, and whose revenue it is: that of who has the subscription, whoever is invoiced. */
export type OwnedLine = EarnedLine & { readonly owner_id: string };

export function revenueKey({ customer_id, currency, earned_at }: Omit<RevenueRow, 'usage' | 'fixed'>): string {
  return JSON.stringify([customer_id, currency, earned_at]);
}

/** One row for each customer, currency and instant of the lines; only final invoices count in it. */
export function revenueRows(lines: readonly OwnedLine[]): RevenueRow[] {
  const rows = new Map<string, RevenueRow>();
  for (const one of lines) {
    if (isPrepayment(one.invoice)) continue;
    const { currency } = one.line;
    const place = { customer_id: one.owner_id, currency, earned_at: serviceOf(one).start };
    const key = revenueKey(place);
    const before = rows.get(key) ?? { ...place, usage: ZERO, fixed: ZERO };
    const kind = revenueKind(one.line);
    const amount = one.invoice.invoice_status === 'FINALIZED' ? new Decimal(one.line.amount) : ZERO;
    rows.set(key, { ...before, [kind]: before[kind].plus(amount) });
  }
  return [...rows.values()];
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

type Recurring = {
  readonly customer_id: string;
  readonly currency: string;
  /** Whether the subscription is charged at all, now or in the past. */
  readonly is_charged: boolean;
  readonly end_ms: Milliseconds | null;
};

/** What a fixed line comes to by the month, rounded as a line is; 0 where it is never charged, and of what comes once. */
export function recurringRow(item: PricedItem, { customer_id, currency, is_charged, end_ms }: Recurring): RecurringRow {
  const starts_at = item.start_ms;
  const ends_at = Math.min(item.end_ms ?? NEVER, end_ms ?? NEVER);
  const isCharged = is_charged && item.price_type === 'FIXED' && starts_at < ends_at;
  const monthly = isCharged ? roundMoney(yearlyCharge(item).dividedBy(12), currency) : ZERO;
  return { line_item_id: item.id, customer_id, currency, starts_at, ends_at: Math.max(starts_at, ends_at), monthly };
}
