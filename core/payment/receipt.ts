/** How much of what was received its invoice takes (docs/rules/payments.md, "What becomes of the invoice"). */
import { Decimal, ZERO } from '../decimal.ts';
import type { Invoice } from '../invoice/record.ts';
import type { Payment } from './record.ts';

/** What was received elsewhere may be more than remains. What a provider took beyond that, or for an invoice that is void, goes back. */
export function computeAppliedAmount(
  { amount, payment_method_type }: Pick<Payment, 'amount' | 'payment_method_type'>,
  { invoice_status, amount_remaining }: Pick<Invoice, 'invoice_status' | 'amount_remaining'>,
): Decimal {
  if (payment_method_type === 'OFFLINE') return new Decimal(amount);
  return invoice_status === 'FINALIZED' ? Decimal.min(amount, amount_remaining) : ZERO;
}

type ProviderPageTerms = Pick<Payment, 'payment_method_type' | 'gateway_tracking_id'>;

/** A page that its provider has, or is about to have: it is paid there and nowhere else, and has to be closed there. */
export function hasPage({ payment_method_type, gateway_tracking_id }: ProviderPageTerms): boolean {
  return payment_method_type === 'PAYMENT_LINK' && Boolean(gateway_tracking_id);
}
