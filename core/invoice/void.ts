/**
 * Which invoices may be voided (docs/rules/invoices.md, "Voiding"). What was paid on one would have to be given back to a
 * wallet, and there are none yet: until then an invoice with money on it is refused, so that no payment disappears.
 */

import { Decimal } from '../decimal.ts';
import { invalid, notAllowed } from '../error.ts';
import type { Invoice, InvoiceStatus, PaymentStatus } from './record.ts';

const STATUSES: readonly InvoiceStatus[] = ['DRAFT', 'FINALIZED', 'SKIPPED'];
const PAYMENT_STATUSES: readonly PaymentStatus[] = ['PENDING', 'FAILED', 'SUCCEEDED', 'PARTIALLY_REFUNDED', 'OVERPAID'];

export function checkVoidable(invoice: Invoice): void {
  if (!STATUSES.includes(invoice.invoice_status)) {
    throw invalid('invoice_status', `an invoice that is ${invoice.invoice_status} cannot be voided`, {
      allowed: STATUSES,
    });
  }
  if (!PAYMENT_STATUSES.includes(invoice.payment_status)) {
    throw invalid('payment_status', `an invoice whose payment is ${invoice.payment_status} cannot be voided`, {
      allowed: PAYMENT_STATUSES,
    });
  }
  const refund = refundOf(invoice);
  if (refund.gt(0)) {
    throw notAllowed(`voiding would refund ${refund.toFixed()} to a wallet, and wallets are not supported yet`, {
      refund: refund.toFixed(),
    });
  }
}

/** What the customer gets back: paid and credited, less what was refunded before. */
export function refundOf(
  invoice: Pick<Invoice, 'amount_paid' | 'total_prepaid_credits_applied' | 'refunded_amount'>,
): Decimal {
  const given = new Decimal(invoice.amount_paid).plus(invoice.total_prepaid_credits_applied);
  return Decimal.max(0, given.minus(invoice.refunded_amount));
}
