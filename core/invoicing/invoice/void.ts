/** Checks whether an invoice may be voided and plans its refund (docs/rules/invoices.md, "Voiding"). */

import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { buildStateError } from '../../foundation/error.ts';
import { computePaidTotal } from '../credit-note/creditable.ts';
import { derivePaymentState } from './payment-status.ts';
import type { Invoice, InvoiceStatus, PaymentStatus } from './record.ts';

const STATUSES: readonly InvoiceStatus[] = ['DRAFT', 'FINALIZED', 'SKIPPED'];
const PAYMENT_STATUSES: readonly PaymentStatus[] = ['PENDING', 'FAILED', 'SUCCEEDED', 'PARTIALLY_REFUNDED', 'OVERPAID'];

export function checkVoidable(invoice: Invoice): void {
  if (!STATUSES.includes(invoice.invoice_status)) {
    throw buildStateError('invoice_status', `an invoice that is ${invoice.invoice_status} cannot be voided`, {
      allowed: STATUSES,
    });
  }
  if (!PAYMENT_STATUSES.includes(invoice.payment_status)) {
    throw buildStateError('payment_status', `an invoice whose payment is ${invoice.payment_status} cannot be voided`, {
      allowed: PAYMENT_STATUSES,
    });
  }
}

/** Payment fields that a void writes. An invoice without payments and credits does not change. */
export function planVoidedPayment(invoice: Invoice): Partial<Invoice> {
  const given = computePaidTotal(invoice);
  if (given.lte(0)) return {};
  const { total_prepaid_credits_applied: credits } = invoice;
  return {
    payment_status: 'REFUNDED',
    refunded_amount: Decimal.max(given, invoice.refunded_amount).toFixed(),
    ...(new Decimal(credits).gt(0) ? { prepaid_credits_returned: credits } : {}),
  };
}

/**
 * Payment fields of a void invoice whose refund has failed. The failed refund is credited to the wallet, so the invoice stays REFUNDED in
 * full. `uncounted`: received money that `amount_paid` lacks; the refunded part of it is added to `amount_paid`.
 */
export function planFailedRefund(
  invoice: Invoice,
  { refunded, uncounted }: { readonly refunded: Decimal; readonly uncounted: Decimal },
): Partial<Invoice> {
  const paid = Decimal.min(refunded, Decimal.max(uncounted, ZERO)).plus(invoice.amount_paid);
  const state = derivePaymentState(invoice, { payment_status: 'REFUNDED', paid });
  return { ...state, ...planVoidedPayment({ ...invoice, ...state }) };
}
