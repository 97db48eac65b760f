/** Payments of invoices: which status may follow which, what payments make of an invoice, and until when it is to be paid. */
import { z } from 'zod';
import { dueDate } from '../../core/billing/due.ts';
import { mayBecome, withReceipt } from '../../core/invoice/payment-status.ts';
import { PAYMENT_STATUSES } from '../../core/invoice/record.ts';
import { mayMove } from '../../core/payment/moves.ts';
import { decimalText } from '../../core/record.ts';
import { wholeSetting } from '../../core/setting/record.ts';
import { formatMs } from '../../core/time/instant.ts';
import type { Result } from './compare.ts';

const status = z.enum(PAYMENT_STATUSES);
const transition = z.object({ from_: status, to: status });

export function moveInvoicePayment(given: Result): Result {
  const { from_, to } = transition.parse(given);
  return { allowed: mayBecome(from_, to) };
}

export function movePayment(given: Result): Result {
  const { from_, to } = transition.parse(given);
  return { allowed: mayMove(from_, to) };
}

const paying = z.object({ total: decimalText, payments: z.array(decimalText) });

/** One payment after the other, of an invoice that is final. */
export function payInvoice(given: Result): Result {
  const { total, payments } = paying.parse(given);
  const at = new Date('2026-01-01T00:00:00Z');
  const about = { amount_due: total, currency: 'usd', refunded_amount: '0' };
  const start = { payment_status: 'PENDING' as const, amount_paid: '0', amount_remaining: total, paid_at: null };
  const { payment_status, overpaid_amount, amount_remaining } = payments.reduce(
    (invoice, amount) => ({ ...invoice, ...withReceipt({ ...about, ...invoice }, amount, at) }),
    { ...start, overpaid_amount: null } as ReturnType<typeof withReceipt>,
  );
  return { payment_status, overpaid_amount, amount_remaining };
}

const terms = z.object({
  period_end: z.string(),
  payment_terms: z.string().nullish(),
  due_date_days: z.coerce.number().nullish(),
});

export function dueDateOf(given: Result): Result {
  const { period_end, payment_terms, due_date_days } = terms.parse(given);
  const days = due_date_days ?? wholeSetting('invoice_config', {}).due_date_days;
  return { due_date: formatMs(dueDate(Date.parse(period_end), payment_terms, days)) };
}
