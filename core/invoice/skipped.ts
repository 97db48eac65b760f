/** What comes to nothing is no invoice (docs/rules/invoices.md, "Nothing to pay"). */
import { computeNetTotal } from '../billing/line-adjustments.ts';
import type { Totals } from '../billing/totals.ts';
import type { Invoice } from './record.ts';

type SkipTotals = Pick<Totals, 'subtotal' | 'total_discount' | 'total_prepaid_credits_applied' | 'total_tax'>;

/**
 * A subscription's invoice of 0 that gives nothing back is skipped. What somebody wrote by hand is there, whatever it comes to; and the
 * customer is shown that a trial began, and that nothing is owed for it.
 */
export function deriveDraftStatus(
  { invoice_type, billing_reason }: Pick<Invoice, 'invoice_type' | 'billing_reason'>,
  totals: SkipTotals,
): 'DRAFT' | 'SKIPPED' {
  const isShown = invoice_type !== 'SUBSCRIPTION' || billing_reason === 'SUBSCRIPTION_TRIAL_START';
  return !isShown && totals.subtotal.isZero() && computeNetTotal(totals).isZero() ? 'SKIPPED' : 'DRAFT';
}
