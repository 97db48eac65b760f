/**
 * Payment status of an invoice set by hand: which status may follow which, and how what was paid and what remains go with
 * it (docs/rules/invoices.md, "Payment").
 */

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

export function mayBecome(from: PaymentStatus, to: PaymentStatus): boolean {
  return TRANSITIONS[from]?.includes(to) ?? false;
}

export type Payment = Pick<
  Invoice,
  'payment_status' | 'amount_paid' | 'amount_remaining' | 'overpaid_amount' | 'paid_at'
>;

type Payable = Pick<
  Invoice,
  'invoice_status' | 'payment_status' | 'amount_due' | 'amount_paid' | 'currency' | 'paid_at'
>;

/** What a change of payment status writes; `amount` is what was paid in all. */
export function paymentChange(
  invoice: Payable,
  request: { payment_status: PaymentStatus; amount?: string | null },
  now: Date,
): Payment {
  if (invoice.invoice_status !== 'FINALIZED') {
    throw notAllowed(`an invoice that is ${invoice.invoice_status} cannot be paid: finalize it first`);
  }
  const { payment_status } = request;
  if (!mayBecome(invoice.payment_status, payment_status)) {
    throw invalid('payment_status', `cannot change from ${invoice.payment_status} to ${payment_status}`, {
      allowed: TRANSITIONS[invoice.payment_status] ?? [],
    });
  }
  const paid = paidInAll(invoice, request);
  return { ...paymentOf(invoice, { payment_status, paid }), paid_at: paidAt(invoice, payment_status, now) };
}

/** The amounts that go with a status, checked against what is due. */
export function paymentOf(
  invoice: Pick<Invoice, 'amount_due' | 'currency'>,
  { payment_status, paid }: { payment_status: PaymentStatus; paid: Decimal },
): Omit<Payment, 'paid_at'> {
  const due = new Decimal(invoice.amount_due);
  if (paid.isNegative()) throw invalid('amount', 'must not be negative');
  if (paid.decimalPlaces() > minorUnits(invoice.currency)) {
    throw invalid('amount', `has more decimals than ${invoice.currency}`);
  }
  checkAgreement(payment_status, paid, due);
  const over = paid.minus(due);
  return {
    payment_status,
    amount_paid: paid.toFixed(),
    amount_remaining: Decimal.max(ZERO, over.negated()).toFixed(),
    overpaid_amount: payment_status === 'OVERPAID' ? over.toFixed() : null,
  };
}

/** Of an invoice on which something was paid before it was taxed: what tax adds is still to be paid. */
export function paymentAfter(
  { payment_status, amount_paid }: Pick<Invoice, 'payment_status' | 'amount_paid'>,
  amount_due: string,
): Partial<Payment> {
  if (payment_status !== 'SUCCEEDED' && payment_status !== 'OVERPAID') return {};
  const over = new Decimal(amount_paid).minus(amount_due);
  if (over.isNegative()) return { payment_status: 'PENDING', overpaid_amount: null, paid_at: null };
  return over.isZero()
    ? { payment_status: 'SUCCEEDED', overpaid_amount: null }
    : { payment_status: 'OVERPAID', overpaid_amount: over.toFixed() };
}

function paidInAll(
  invoice: Payable,
  { payment_status, amount }: { payment_status: PaymentStatus; amount?: string | null },
): Decimal {
  if (amount !== null && amount !== undefined) return new Decimal(amount);
  if (payment_status === 'SUCCEEDED') return new Decimal(invoice.amount_due);
  if (payment_status === 'OVERPAID' && invoice.payment_status !== 'OVERPAID') {
    throw invalid('amount', 'is required for OVERPAID: what was paid in all');
  }
  return new Decimal(invoice.amount_paid);
}

function checkAgreement(status: PaymentStatus, paid: Decimal, due: Decimal): void {
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

function paidAt(invoice: Payable, status: PaymentStatus, now: Date): string | null {
  if (status !== 'SUCCEEDED' && status !== 'OVERPAID') return null;
  return invoice.paid_at ?? now.toISOString();
}
