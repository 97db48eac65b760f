/**
 * Payment status of an invoice: which may follow which where it is set by hand, how what was paid and what remains go with it
 * (docs/rules/invoices.md, "Payment"), and what a payment, its failure and its refund make of it (docs/rules/payments.md,
 * "What becomes of the invoice").
 */

import { computePaidTotal } from '../credit-note/creditable.ts';
import { Decimal, ZERO } from '../decimal.ts';
import { invalid, notAllowed } from '../error.ts';
import { minorUnits } from '../money.ts';
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

export type InvoicePaymentState = Pick<
  Invoice,
  'payment_status' | 'amount_paid' | 'amount_remaining' | 'overpaid_amount' | 'paid_at'
>;

type PayableInvoice = Pick<
  Invoice,
  'invoice_status' | 'payment_status' | 'amount_due' | 'amount_paid' | 'currency' | 'paid_at'
> &
  Partial<Pick<Invoice, 'total_credits_applied_after_tax'>>;

/** What a change of payment status writes; `amount` is what was paid in all. */
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
    throw invalid('payment_status', `cannot change from ${invoice.payment_status} to ${payment_status}`, {
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

/** The amounts that go with a status, checked against what is due. */
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
 * Of what becomes final: from now on it can be paid, and what was paid before is held against what is due now. Of a credit nothing is: it
 * is settled by what it gives.
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

/** Money has come in on top of what was paid before: part of it, all of it, or more. */
export function applyReceipt(invoice: PaymentSums, amount: string, at: Date): InvoicePaymentState {
  return applyTotalPaid(invoice, new Decimal(invoice.amount_paid).plus(amount), at);
}

/** As if it had never come: it was recorded by mistake. */
export function revertReceipt(invoice: PaymentSums, amount: string, at: Date): InvoicePaymentState {
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

/** What the sums of an invoice say, where nobody sets it by hand. */
export function derivePaymentStatus(invoice: PaymentStatusSums): PaymentStatus {
  const due = new Decimal(invoice.amount_due);
  const paid = new Decimal(invoice.amount_paid);
  // A charge of it is on its way: until that has ended nobody else begins one.
  if (paid.lt(due) && invoice.payment_status === 'PROCESSING') return 'PROCESSING';
  const refunded = new Decimal(invoice.refunded_amount);
  // An adjustment returns prepaid credits of what is still to be paid.
  if (paid.lt(due) && refunded.lte(invoice.prepaid_credits_returned ?? '0')) return 'PENDING';
  // Of which something remains to be paid is not done with, however much of it was given back.
  const given = computePaidTotal(invoice);
  if (refunded.gt(0)) return refunded.gte(given) && paid.gte(due) ? 'REFUNDED' : 'PARTIALLY_REFUNDED';
  return paid.lt(due) ? 'PENDING' : paid.eq(due) ? 'SUCCEEDED' : 'OVERPAID';
}

/** What was tried has ended without money: unless nothing of the invoice remains by now, that is said. */
export function applyDecline(invoice: PaymentSums, at: Date): Partial<InvoicePaymentState> {
  if (invoice.payment_status !== 'PROCESSING') return {};
  const ended = applyTotalPaid({ ...invoice, payment_status: 'PENDING' }, new Decimal(invoice.amount_paid), at);
  return { ...ended, payment_status: ended.payment_status === 'PENDING' ? 'FAILED' : ended.payment_status };
}

/**
 * A payment is given back. While something remains to be paid it is as if that had never come, and is owed again; of what was too much
 * first that; only beyond that something of the invoice itself is given back. A refund that was not made is taken back by its negative.
 */
export function applyRefund(
  invoice: PaymentSums,
  refunded: string,
  at: Date,
): InvoicePaymentState & Pick<Invoice, 'refunded_amount'> {
  const amount = new Decimal(refunded);
  const paid = new Decimal(invoice.amount_paid);
  const before = new Decimal(invoice.refunded_amount);
  const over = paid.minus(invoice.amount_due);
  const ofInvoice = amount.isNegative()
    ? Decimal.max(amount, before.negated())
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
