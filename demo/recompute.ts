/**
 * Recomputes the bill from the rows of the file alone, with its own plain integer arithmetic, so that a mistake in the service's rating is
 * found. Amounts are in 10⁻¹² dollars.
 */
import { type DemoMeasure, type DemoTerms, type DemoTier, MEASURES, type SoldItem, TERMS } from './catalogue.ts';
import type { UsageRow } from './usage-file.ts';

type ExpectedLine = { readonly sold: SoldItem; readonly quantity: bigint; readonly cents: bigint };
export type ExpectedInvoice = {
  readonly period_start: string;
  readonly period_end: string;
  readonly reason: 'SUBSCRIPTION_CREATE' | 'SUBSCRIPTION_CYCLE';
  readonly lines: readonly ExpectedLine[];
};

/** The months [start, end) as half-open periods; `end` may cut the last one short. */
function listMonths(start: string, end: string): { start: string; end: string }[] {
  const months: { start: string; end: string }[] = [];
  for (let from = iso(start); Date.parse(from) < Date.parse(end); ) {
    const next = monthAfter(from);
    const to = Date.parse(next) < Date.parse(end) ? next : iso(end);
    months.push({ start: from, end: to });
    from = to;
  }
  return months;
}

export function monthAfter(instant: string): string {
  const date = new Date(instant);
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)).toISOString();
}

function iso(instant: string): string {
  return new Date(instant).toISOString();
}

/** The fee of each month in advance, its usage afterwards: the opening invoice, then one at the end of each month. */
export function expectedInvoices(rows: readonly UsageRow[], start: string, end: string): ExpectedInvoice[] {
  const months = listMonths(start, end);
  const first = months[0]!;
  const span = (month: { start: string; end: string }) => ({ period_start: month.start, period_end: month.end });
  const opening = { ...span(first), reason: 'SUBSCRIPTION_CREATE' as const, lines: [line('fee', 1n)] };
  const cycles = months.map((month, index) => {
    const totals = sumUsage(rows.filter((row) => isWithin(row, month)));
    const usage = MEASURES.map((measure) => line(measure, totals[measure]));
    const fee = index + 1 < months.length ? [line('fee', 1n)] : [];
    return { ...span(month), reason: 'SUBSCRIPTION_CYCLE' as const, lines: [...usage, ...fee] };
  });
  return [opening, ...cycles];
}

function isWithin(row: UsageRow, month: { start: string; end: string }): boolean {
  const instant = Date.parse(row.timestamp);
  return instant >= Date.parse(month.start) && instant < Date.parse(month.end);
}

export function sumUsage(rows: readonly UsageRow[]): Record<DemoMeasure, bigint> {
  const totals = { calls: 0n, context_tokens: 0n, generated_tokens: 0n };
  for (const row of rows) {
    totals.calls += 1n;
    totals.context_tokens += row.context_tokens;
    totals.generated_tokens += row.generated_tokens;
  }
  return totals;
}

function line(sold: SoldItem, quantity: bigint): ExpectedLine {
  return { sold, quantity, cents: roundedToCents(computeCost(TERMS[sold], quantity)) };
}

function computeCost(terms: DemoTerms, quantity: bigint): bigint {
  if (quantity === 0n) return 0n;
  switch (terms.model) {
    case 'fee':
      return quantity * scaled(terms.amount);
    case 'package':
      return ((quantity + BigInt(terms.size) - 1n) / BigInt(terms.size)) * scaled(terms.amount);
    case 'volume':
      return tierCost(terms.tiers.find(({ up_to }) => up_to === null || quantity <= BigInt(up_to))!, quantity);
    case 'slab':
      return slabCost(terms.tiers, quantity);
  }
}

function slabCost(tiers: readonly DemoTier[], quantity: bigint): bigint {
  let cost = 0n;
  let below = 0n;
  for (const tier of tiers) {
    if (quantity <= below) break;
    const top = tier.up_to === null || quantity < BigInt(tier.up_to) ? quantity : BigInt(tier.up_to);
    cost += tierCost(tier, top - below);
    below = top;
  }
  return cost;
}

function tierCost({ unit_amount, flat_amount = '0' }: DemoTier, units: bigint): bigint {
  return units * scaled(unit_amount) + scaled(flat_amount);
}

const FRACTION_DIGITS = 12;

function scaled(amount: string): bigint {
  const [whole = '', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(FRACTION_DIGITS, '0'));
}

const CENT = 10n ** BigInt(FRACTION_DIGITS - 2);

/** Half a cent rounds up; no amount here is negative. */
function roundedToCents(cost: bigint): bigint {
  return (cost + CENT / 2n) / CENT;
}

/** Cents in the format of an invoice. */
export function formatDollars(cents: bigint): string {
  const digits = cents.toString().padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** The decimal text in hundredths; null if it has finer digits or is no decimal. */
export function parseCents(amount: string): bigint | null {
  const parts = /^(\d+)(?:\.(\d{0,2})0*)?$/.exec(amount);
  return parts ? BigInt(parts[1]! + (parts[2] ?? '').padEnd(2, '0')) : null;
}
