/**
 * Revenue of one currency, and the parts that explain how it differs from the invoice totals (docs/rules/costs.md, "Revenue and invoices
 * agree").
 */
import { type Decimal, ZERO } from '../../foundation/decimal.ts';
import type { InvoiceStatus } from '../invoice/record.ts';

export const REVENUE_PARTS = [
  'usage',
  'fixed',
  'finalized',
  'drafts',
  'open',
  'minimums',
  'discounts',
  'credits',
  'taxes',
] as const;

export type RevenuePart = (typeof REVENUE_PARTS)[number];
export type RevenueParts = Readonly<Record<RevenuePart, Decimal>>;

export const NO_REVENUE: RevenueParts = Object.fromEntries(REVENUE_PARTS.map((part) => [part, ZERO])) as RevenueParts;

type EarnedRevenue = {
  readonly kind: 'usage' | 'fixed';
  readonly amount: Decimal;
  /** Status of the invoice; null if the amount is on no invoice yet. */
  readonly invoice_status: InvoiceStatus | null;
};

export function sumRevenue({ usage, fixed }: RevenueParts): Decimal {
  return usage.plus(fixed);
}

export class RevenueSums {
  readonly byCurrency = new Map<string, RevenueParts>();

  add(currency: string, { kind, amount, invoice_status }: EarnedRevenue): void {
    this.addPart(currency, kind, amount);
    this.addPart(currency, toRevenuePart(invoice_status), amount);
  }

  addPart(currency: string, part: RevenuePart, amount: Decimal): void {
    const before = this.byCurrency.get(currency) ?? NO_REVENUE;
    this.byCurrency.set(currency, { ...before, [part]: before[part].plus(amount) });
  }
}

/** A skipped invoice counts as finalized: nothing is to be paid, and it never changes by itself. */
function toRevenuePart(status: EarnedRevenue['invoice_status']): RevenuePart {
  if (status === null) return 'open';
  return status === 'DRAFT' ? 'drafts' : 'finalized';
}
