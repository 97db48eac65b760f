/** Which state of a payment may follow which, and where it begins (docs/rules/payments.md, "States"). */
import { invalid } from '../error.ts';
import type { PaymentStatus } from '../invoice/record.ts';
import type { PaymentMethodType } from './record.ts';

const MOVES: Partial<Record<PaymentStatus, readonly PaymentStatus[]>> = {
  INITIATED: ['PENDING', 'PROCESSING', 'SUCCEEDED', 'FAILED', 'VOIDED'],
  PENDING: ['PROCESSING', 'SUCCEEDED', 'FAILED', 'VOIDED'],
  // Back to PENDING: what was declined is tried again on another day.
  PROCESSING: ['PENDING', 'SUCCEEDED', 'FAILED'],
  SUCCEEDED: ['PARTIALLY_REFUNDED', 'REFUNDED', 'VOIDED'],
  PARTIALLY_REFUNDED: ['PARTIALLY_REFUNDED', 'REFUNDED'],
};

export function canMove(from: PaymentStatus, to: PaymentStatus): boolean {
  return MOVES[from]?.includes(to) ?? false;
}

/** Refuses what may not follow, and names the field. */
export function checkMove(from: PaymentStatus, to: PaymentStatus): void {
  if (!canMove(from, to))
    throw invalid('payment_status', `cannot change from ${from} to ${to}`, { allowed: MOVES[from] ?? [] });
}

/** What waits to be processed, and is no money yet. */
export const OPEN: readonly PaymentStatus[] = ['INITIATED', 'PENDING'];
/** What brought money in, whatever became of it later. */
export const RECEIVED: readonly PaymentStatus[] = ['SUCCEEDED', 'PARTIALLY_REFUNDED', 'REFUNDED'];

/** A link waits for the customer, and what is not to be processed yet for whoever asks for that. */
export function deriveFirstStatus(method: PaymentMethodType, process_payment: boolean): PaymentStatus {
  if (method === 'PAYMENT_LINK') return 'INITIATED';
  return method === 'OFFLINE' || process_payment ? 'PENDING' : 'INITIATED';
}
