/** Decides whether a draft of a subscription is skipped because nothing is to be paid (docs/rules/invoices.md, "Nothing to pay"). */
import { computeNetTotal } from '../../rating/line-adjustments.ts';
import type { Totals } from '../../rating/totals.ts';
import type { Invoice } from './record.ts';

type SkipTotals = Pick<Totals, 'subtotal' | 'total_discount' | 'total_prepaid_credits_applied' | 'total_tax'>;

/**
 * A subscription's invoice of 0 without credits is skipped. A manual invoice is never skipped. The invoice at the start
 * of a trial is shown to the customer, although nothing is owed.
 */
export function deriveDraftStatus(
  { invoice_type, billing_reason }: Pick<Invoice, 'invoice_type' | 'billing_reason'>,
  totals: SkipTotals,
): 'DRAFT' | 'SKIPPED' {
  const isShown = invoice_type !== 'SUBSCRIPTION' || billing_reason === 'SUBSCRIPTION_TRIAL_START';
  return !isShown && totals.subtotal.isZero() && computeNetTotal(totals).isZero() ? 'SKIPPED' : 'DRAFT';
}
