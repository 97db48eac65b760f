/** State transitions of a payment, and its first state (docs/rules/payments.md, "States"). */
import { buildStateError } from '../foundation/error.ts';
import type { PaymentStatus } from '../invoicing/invoice/record.ts';
import type { PaymentMethodType } from './record.ts';

const MOVES: Partial<Record<PaymentStatus, readonly PaymentStatus[]>> = {
  INITIATED: ['PENDING', 'PROCESSING', 'SUCCEEDED', 'FAILED', 'VOIDED'],
  PENDING: ['PROCESSING', 'SUCCEEDED', 'FAILED', 'VOIDED'],
  // A declined payment returns to PENDING and is retried on another day.
  PROCESSING: ['PENDING', 'SUCCEEDED', 'FAILED'],
  SUCCEEDED: ['PARTIALLY_REFUNDED', 'REFUNDED', 'VOIDED'],
  PARTIALLY_REFUNDED: ['PARTIALLY_REFUNDED', 'REFUNDED'],
};

export function canMove(from: PaymentStatus, to: PaymentStatus): boolean {
  return MOVES[from]?.includes(to) ?? false;
}

/** Rejects a transition that is not allowed, with the name of the field. */
export function checkMove(from: PaymentStatus, to: PaymentStatus): void {
  if (!canMove(from, to))
    throw buildStateError('payment_status', `cannot change from ${from} to ${to}`, { allowed: MOVES[from] ?? [] });
}

/** Statuses of payments that are not processed yet, so that no money was received. */
export const OPEN: readonly PaymentStatus[] = ['INITIATED', 'PENDING'];
/** Statuses of payments whose money was received, even if it was refunded later. */
export const RECEIVED: readonly PaymentStatus[] = ['SUCCEEDED', 'PARTIALLY_REFUNDED', 'REFUNDED'];

/**
 * Derives the first status. INITIATED: a payment page waits for the customer, and a charge without `process_payment` for the request
 * `process`.
 */
export function deriveFirstStatus(method: PaymentMethodType, process_payment: boolean): PaymentStatus {
  if (method === 'PAYMENT_LINK') return 'INITIATED';
  return method === 'OFFLINE' || process_payment ? 'PENDING' : 'INITIATED';
}
