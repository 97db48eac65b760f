/**
 * Payment status of an invoice, and the amounts that belong to it. A user changes it by hand (docs/rules/invoices.md, "Payment"). A
 * payment, its failure and its refund change it as well (docs/rules/payments.md, "What becomes of the invoice").
 */

import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { buildStateError, invalid, notAllowed } from '../../foundation/error.ts';
import { minorUnits } from '../../foundation/money.ts';
import { computePaidTotal, computeRefundedByPayments } from '../credit-note/creditable.ts';
import type { Invoice, PaymentStatus } from './record.ts';

const TRANSITIONS: Partial<Record<PaymentStatus, readonly PaymentStatus[]>> = {
  PENDING: ['PENDING', 'SUCCEEDED', 'OVERPAID', 'FAILED'],
  FAILED: ['PENDING', 'FAILED', 'SUCCEEDED', 'OVERPAID'],
  SUCCEEDED: ['SUCCEEDED', 'OVERPAID'],
  OVERPAID: ['OVERPAID'],
};

export function canBecome(from: PaymentStatus, to: PaymentStatus): boolean {
  return TRANSITIONS[from]?.includes(to) ?? false;
}

type InvoicePaymentState = Pick<
  Invoice,
  'payment_status' | 'amount_paid' | 'amount_remaining' | 'overpaid_amount' | 'paid_at'
>;

type PayableInvoice = Pick<
  Invoice,
  'invoice_status' | 'payment_status' | 'amount_due' | 'amount_paid' | 'currency' | 'paid_at'
> &
  Partial<Pick<Invoice, 'total_credits_applied_after_tax'>>;

/** Fields that a manual change of the payment status writes. `amount` is the sum of all payments. */
export function planPaymentChange(
  invoice: PayableInvoice,
  request: { payment_status: PaymentStatus; amount?: string | null },
  now: Date,
): InvoicePaymentState {
  if (invoice.invoice_status !== 'FINALIZED') {
    throw notAllowed(`an invoice that is ${invoice.invoice_status} cannot be paid: finalize it first`);
  }
  const { payment_status } = request;
  if (!canBecome(invoice.payment_status, payment_status)) {
    throw buildStateError('payment_status', `cannot change from ${invoice.payment_status} to ${payment_status}`, {
      allowed: TRANSITIONS[invoice.payment_status] ?? [],
    });
  }
  const paid = computeTotalPaid(invoice, request);
  const credits = invoice.total_credits_applied_after_tax ?? '0';
  if (paid.lt(credits)) throw invalid('amount', `is less than credits have paid of the invoice, ${credits}`);
  return {
    ...derivePaymentState(invoice, { payment_status, paid }),
    paid_at: derivePaidAt(invoice, payment_status, now),
  };
}

/** Amounts that go with a status, checked against the amount due. */
export function derivePaymentState(
  invoice: Pick<Invoice, 'amount_due' | 'currency'>,
  { payment_status, paid }: { payment_status: PaymentStatus; paid: Decimal },
): Omit<InvoicePaymentState, 'paid_at'> {
  const due = new Decimal(invoice.amount_due);
  if (paid.isNegative()) throw invalid('amount', 'must not be negative');
  if (paid.decimalPlaces() > minorUnits(invoice.currency)) {
    throw invalid('amount', `has more decimals than ${invoice.currency}`);
  }
  checkStatusAmount(payment_status, paid, due);
  const over = paid.minus(due);
  return {
    payment_status,
    amount_paid: paid.toFixed(),
    amount_remaining: Decimal.max(ZERO, over.negated()).toFixed(),
    overpaid_amount: over.gt(0) ? over.toFixed() : null,
  };
}

/**
 * Payment of an invoice at finalization. Earlier payments are compared with the amount due now. An invoice below 0 has
 * nothing to pay and is settled by its credit.
 */
export function deriveFinalPayment(invoice: PaymentSums, at: Date): InvoicePaymentState {
  if (new Decimal(invoice.amount_due).isNegative()) {
    const settled = { payment_status: 'SUCCEEDED' as const, amount_remaining: '0', overpaid_amount: null };
    return { ...settled, amount_paid: invoice.amount_paid, paid_at: invoice.paid_at ?? at.toISOString() };
  }
  const payment = applyTotalPaid(invoice, new Decimal(invoice.amount_paid), at);
  const isFailed = payment.payment_status === 'PENDING' && invoice.payment_status === 'FAILED';
  return isFailed ? { ...payment, payment_status: 'FAILED' } : payment;
}

function computeTotalPaid(
  invoice: PayableInvoice,
  { payment_status, amount }: { payment_status: PaymentStatus; amount?: string | null },
): Decimal {
  if (amount !== null && amount !== undefined) return new Decimal(amount);
  if (payment_status === 'SUCCEEDED') return new Decimal(invoice.amount_due);
  if (payment_status === 'OVERPAID' && invoice.payment_status !== 'OVERPAID') {
    throw invalid('amount', 'is required for OVERPAID: what was paid in all');
  }
  return new Decimal(invoice.amount_paid);
}

function checkStatusAmount(status: PaymentStatus, paid: Decimal, due: Decimal): void {
  if (status === 'SUCCEEDED' && !paid.eq(due)) {
    throw invalid('amount', `must be the amount due, ${due.toFixed()}, for SUCCEEDED`);
  }
  if (status === 'OVERPAID' && paid.lte(due)) {
    throw invalid('amount', `must be more than the amount due, ${due.toFixed()}, for OVERPAID`);
  }
  if ((status === 'PENDING' || status === 'FAILED') && paid.gte(due) && due.gt(0)) {
    throw invalid('amount', `must be less than the amount due, ${due.toFixed()}, for ${status}`);
  }
}

function derivePaidAt(invoice: PayableInvoice, status: PaymentStatus, now: Date): string | null {
  if (status !== 'SUCCEEDED' && status !== 'OVERPAID') return null;
  return invoice.paid_at ?? now.toISOString();
}

type PaymentSums = PaymentStatusSums & Pick<Invoice, 'currency' | 'paid_at'>;

/** Adds a payment, which may be partial, exact or too much. */
export function applyPaidAmount(invoice: PaymentSums, amount: string, at: Date): InvoicePaymentState {
  return applyTotalPaid(invoice, new Decimal(invoice.amount_paid).plus(amount), at);
}

/** Reverts a payment that was recorded by mistake. */
export function revertPaidAmount(invoice: PaymentSums, amount: string, at: Date): InvoicePaymentState {
  return applyTotalPaid(invoice, new Decimal(invoice.amount_paid).minus(amount), at);
}

function applyTotalPaid(invoice: PaymentSums, paid: Decimal, at: Date): InvoicePaymentState {
  const payment_status = derivePaymentStatus({ ...invoice, amount_paid: paid.toFixed() });
  const isPaid = paid.gte(invoice.amount_due);
  return {
    ...derivePaymentState(invoice, { payment_status, paid }),
    paid_at: isPaid ? (invoice.paid_at ?? at.toISOString()) : null,
  };
}

type PaymentStatusSums = Pick<
  Invoice,
  'payment_status' | 'amount_due' | 'amount_paid' | 'refunded_amount' | 'total_prepaid_credits_applied'
> &
  Partial<Pick<Invoice, 'prepaid_credits_returned'>>;

/** Status that follows from the sums of an invoice, without a change by hand. */
export function derivePaymentStatus(invoice: PaymentStatusSums): PaymentStatus {
  const due = new Decimal(invoice.amount_due);
  const paid = new Decimal(invoice.amount_paid);
  // A charge is in progress, so no other one may start.
  if (paid.lt(due) && invoice.payment_status === 'PROCESSING') return 'PROCESSING';
  const refunded = new Decimal(invoice.refunded_amount);
  // `refunded_amount` includes prepaid credits that an adjustment of the unpaid part returned. If it has nothing else, no payment was
  // refunded.
  if (paid.lt(due) && refunded.lte(invoice.prepaid_credits_returned ?? '0')) return 'PENDING';
  // An invoice with an unpaid remainder is never fully REFUNDED.
  const given = computePaidTotal(invoice);
  if (refunded.gt(0)) return refunded.gte(given) && paid.gte(due) ? 'REFUNDED' : 'PARTIALLY_REFUNDED';
  return paid.lt(due) ? 'PENDING' : paid.eq(due) ? 'SUCCEEDED' : 'OVERPAID';
}

/** A payment attempt ended without money. The invoice is FAILED, unless nothing remains to be paid by now. */
export function applyFailedPayment(invoice: PaymentSums, at: Date): Partial<InvoicePaymentState> {
  if (invoice.payment_status !== 'PROCESSING') return {};
  const ended = applyTotalPaid({ ...invoice, payment_status: 'PENDING' }, new Decimal(invoice.amount_paid), at);
  return { ...ended, payment_status: ended.payment_status === 'PENDING' ? 'FAILED' : ended.payment_status };
}

/**
 * Refunds a payment. While the invoice is not fully paid, the refunded amount becomes due again. A refund first returns the overpaid part,
 * and then the paid part of the invoice. A negative amount reverts a failed refund. `by_notes`: part of `refunded_amount` that credit notes
 * returned; reverting a refund leaves it unchanged.
 */
export function applyRefund(
  invoice: PaymentSums,
  { refunded, by_notes, at }: { refunded: string; by_notes: Decimal; at: Date },
): InvoicePaymentState & Pick<Invoice, 'refunded_amount'> {
  const amount = new Decimal(refunded);
  const paid = new Decimal(invoice.amount_paid);
  const before = new Decimal(invoice.refunded_amount);
  const over = paid.minus(invoice.amount_due);
  const ofInvoice = amount.isNegative()
    ? Decimal.max(amount, computeRefundedByPayments(invoice, by_notes).negated())
    : amount.minus(computeRefundOfPaid(amount, over));
  const refunded_amount = before.plus(ofInvoice).toFixed();
  return {
    ...applyTotalPaid({ ...invoice, refunded_amount }, paid.minus(amount.minus(ofInvoice)), at),
    refunded_amount,
  };
}

function computeRefundOfPaid(amount: Decimal, over: Decimal): Decimal {
  return over.isNegative() ? amount : Decimal.min(amount, over);
}
