/**
 * Saved payment methods at Razorpay: tokens that may be charged again
 * (razorpay.com/docs/api/payments/recurring-payments).
 */
import type { Tokens } from 'razorpay/dist/types/tokens.js';
import type { SavedPaymentMethod } from '../account-payments.ts';

const METHOD_TYPES: Readonly<Record<string, SavedPaymentMethod['payment_method_type']>> = {
  card: 'CARD',
  upi: 'UPI',
  // Mandates for a debit of the bank account.
  emandate: 'ACH',
  nach: 'ACH',
};

/** Selects tokens with a confirmed mandate; others cannot be charged. Razorpay has no default method. */
export function toSavedPaymentMethods(tokens: readonly Tokens.RazorpayToken[]): SavedPaymentMethod[] {
  return tokens.filter(({ recurring_details }) => recurring_details?.status === 'confirmed').flatMap(toSavedMethod);
}

function toSavedMethod({ id, method, card }: Tokens.RazorpayToken): SavedPaymentMethod[] {
  const payment_method_type = METHOD_TYPES[method];
  if (payment_method_type === undefined) return [];
  const common = { provider_payment_method_id: id, payment_method_type, is_default: false };
  if (card === undefined || card === null) return [{ ...common, card: null }];
  const { network, last4, expiry_month, expiry_year } = card;
  const shown = { brand: network.toLowerCase(), last4 };
  return [{ ...common, card: { ...shown, exp_month: Number(expiry_month), exp_year: toFullYear(expiry_year) } }];
}

/** Completes a year, which some answers give with two digits. */
function toFullYear(year: string | number): number {
  const number = Number(year);
  return number < 100 ? 2_000 + number : number;
}
