/** Part of a received payment that is applied to its invoice (docs/rules/payments.md, "What becomes of the invoice"). */
import { Decimal, ZERO } from '../foundation/decimal.ts';
import type { Invoice } from '../invoicing/invoice/record.ts';
import type { Payment } from './record.ts';

/**
 * Computes the applied amount. OFFLINE money is applied in full, even above the remaining amount. For other payments
 * the excess, or all of it if the invoice is void, is refunded.
 */
export function computeAppliedAmount(
  { amount, payment_method_type }: Pick<Payment, 'amount' | 'payment_method_type'>,
  { invoice_status, amount_remaining }: Pick<Invoice, 'invoice_status' | 'amount_remaining'>,
): Decimal {
  if (payment_method_type === 'OFFLINE') return new Decimal(amount);
  return invoice_status === 'FINALIZED' ? Decimal.min(amount, amount_remaining) : ZERO;
}

/** Describes a received amount that differs from the amount of the payment; null if they are equal. */
export function describeReceived(
  { amount, currency }: Pick<Payment, 'amount' | 'currency'>,
  received_amount: string | undefined,
): string | null {
  if (received_amount === undefined || new Decimal(received_amount).eq(amount)) return null;
  return `${amount} ${currency} was requested, and ${received_amount} ${currency} was received`;
}

type ProviderPageTerms = Pick<Payment, 'payment_method_type' | 'gateway_tracking_id'>;

/** Whether the payment has a page at the provider, or is about to get one, on which the customer pays. */
export function hasPaymentPage({ payment_method_type, gateway_tracking_id }: ProviderPageTerms): boolean {
  return payment_method_type === 'PAYMENT_LINK' && Boolean(gateway_tracking_id);
}
