/** Payments of invoices: which status may follow which, and what payments make of an invoice. */
import { z } from 'zod';
import { decimalText } from '../../core/foundation/record.ts';
import { applyPaidAmount } from '../../core/invoicing/invoice/payment-status.ts';
import { PAYMENT_STATUSES } from '../../core/invoicing/invoice/record.ts';
import { canMove } from '../../core/payments/moves.ts';
import type { Result } from './compare.ts';

const status = z.enum(PAYMENT_STATUSES);
const transition = z.object({ from_: status, to: status });

export function movePayment(given: Result): Result {
  const { from_, to } = transition.parse(given);
  return { allowed: canMove(from_, to) };
}

const paying = z.object({ total: decimalText, payments: z.array(decimalText) });

/** One payment after the other, of an invoice that is final. */
export function payInvoice(given: Result): Result {
  const { total, payments } = paying.parse(given);
  const at = new Date('2026-01-01T00:00:00Z');
  const about = { amount_due: total, currency: 'usd', refunded_amount: '0', total_prepaid_credits_applied: '0' };
  const start = { payment_status: 'PENDING' as const, amount_paid: '0', amount_remaining: total, paid_at: null };
  const { payment_status, overpaid_amount, amount_remaining } = payments.reduce(
    (invoice, amount) => ({ ...invoice, ...applyPaidAmount({ ...about, ...invoice }, amount, at) }),
    { ...start, overpaid_amount: null } as ReturnType<typeof applyPaidAmount>,
  );
  return { payment_status, overpaid_amount, amount_remaining };
}
