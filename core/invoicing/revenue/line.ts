/** Revenue of an invoice line: its service period, its kind and its status (docs/rules/costs.md, "What is revenue"). */

import { toInstant } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { type LineAdjustmentField } from '../../rating/adjustment-fields.ts';
import type { Invoice, InvoiceLineItem } from '../invoice/record.ts';

export type EarnedLine = {
  readonly line: Pick<
    InvoiceLineItem,
    | 'id'
    | 'invoice_id'
    | 'customer_id'
    | 'subscription_id'
    | 'subscription_line_item_id'
    | 'parent_line_item_id'
    | 'price_type'
    | 'amount'
    | 'currency'
    | 'period_start'
    | 'period_end'
    | LineAdjustmentField
    | 'tax_amount'
  >;
  readonly invoice: Pick<
    Invoice,
    | 'id'
    | 'invoice_status'
    | 'billing_reason'
    | 'idempotency_key'
    | 'period_start'
    | 'period_end'
    | 'finalized_at'
    | 'created_at'
  >;
};

/**
 * Service period of the line. Fallbacks: the period of the invoice, then the instant of its finalization, then the instant of its creation.
 */
export function deriveServicePeriod({ line, invoice }: Pick<EarnedLine, 'line' | 'invoice'>): Period {
  const timed = [line, invoice].find(({ period_start, period_end }) => period_start || period_end);
  const at = invoice.finalized_at ?? invoice.created_at;
  const start = toInstant(timed?.period_start ?? timed?.period_end ?? at);
  return { start, end: toInstant(timed?.period_end ?? timed?.period_start ?? at) };
}

/** Kind of the revenue. Usage was measured by a meter. Everything else is fixed, including the true-up of a commitment. */
export function toRevenueKind({ price_type }: Pick<InvoiceLineItem, 'price_type'>): 'usage' | 'fixed' {
  return price_type === 'USAGE' ? 'usage' : 'fixed';
}
