/**
 * Converts states of payments and refunds at Stripe to outcomes (docs.stripe.com/payments/paymentintents/lifecycle,
 * docs.stripe.com/refunds).
 */
import type { Stripe } from 'stripe';
import { DAY_SECONDS } from '../../core/foundation/time/durations.ts';
import type { RequestedPayment } from '../account-payments.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { fromMinorUnits, toMinorUnits } from './amounts.ts';

/**
 * Time for the customer to confirm a charge, after which it has failed; the next attempt requests a new confirmation.
 */
const CONFIRMATION_SECONDS = DAY_SECONDS;

/** Whether the bank declined a charge that it would accept with the customer's confirmation. */
export function isWaitingForCustomer({ status, last_payment_error }: Stripe.PaymentIntent): boolean {
  return status === 'requires_payment_method' && last_payment_error?.code === 'authentication_required';
}

/**
 * Converts a payment intent to its outcome. If the intent still requires an action and the outcome is `failed`, the
 * caller has to cancel the intent.
 */
export function toIntentOutcome(intent: Stripe.PaymentIntent, payment: RequestedPayment, now: Date): PaymentOutcome {
  const { id: gateway_payment_id, status } = intent;
  switch (status) {
    case 'succeeded':
      return {
        outcome: 'succeeded',
        gateway_payment_id,
        ...toReceivedAmount(intent, payment),
        ...toSavedMethod(intent),
      };
    case 'processing':
      return { outcome: 'processing', gateway_payment_id, url: null, check_at: null };
    case 'requires_action': {
      const { url, is_limited } = readAction(intent);
      const isLate = is_limited && now.getTime() / 1_000 - intent.created > CONFIRMATION_SECONDS;
      if (url !== null && !isLate) return { outcome: 'processing', gateway_payment_id, url, check_at: null };
      return { outcome: 'failed', gateway_payment_id, error: NOT_CONFIRMED };
    }
    case 'requires_payment_method':
    case 'canceled':
      return { outcome: 'failed', gateway_payment_id, error: describeFailure(intent) };
    default:
      throw new ProviderError('wait', `the payment ${gateway_payment_id} is ${status} at Stripe`, {
        is_of_record: true,
      });
  }
}

const NOT_CONFIRMED = 'authentication_required: the customer has not confirmed the charge';

/**
 * Reads the received amount, which may differ from the requested one if a person changed either. Money in another
 * currency would be booked wrongly, so it throws; with class `wait`, because the payment has not failed.
 */
function toReceivedAmount(intent: Stripe.PaymentIntent, { amount, currency }: RequestedPayment) {
  const isUsable = intent.currency === currency && intent.amount_received > 0;
  if (isUsable && intent.amount_received === toMinorUnits(amount, currency)) return {};
  if (isUsable) return { received_amount: fromMinorUnits(intent.amount_received, currency) };
  const received = `${fromMinorUnits(intent.amount_received, intent.currency)} ${intent.currency}`;
  throw new ProviderError(
    'wait',
    `${amount} ${currency} was requested, but Stripe received ${received} (${intent.id})`,
    { is_of_record: true },
  );
}

/**
 * Reads the page on which the customer acts. Micro-deposits and vouchers (OXXO, Konbini, bank transfers) take days, so their pages have no
 * time limit here; a voucher expires at Stripe.
 */
function readAction({ next_action }: Stripe.PaymentIntent): { url: string | null; is_limited: boolean } {
  const redirect = next_action?.redirect_to_url?.url ?? null;
  if (next_action === null || redirect !== null) return { url: redirect, is_limited: true };
  const details = Object.values(next_action).filter((value) => typeof value === 'object' && value !== null);
  for (const name of UNLIMITED_PAGES) {
    const page = details.map((value) => (value as Record<string, unknown>)[name]).find(Boolean);
    if (typeof page === 'string') return { url: page, is_limited: false };
  }
  return { url: null, is_limited: true };
}

/** Fields of a next action whose page has no time limit (docs.stripe.com/api/payment_intents/object, `next_action`). */
const UNLIMITED_PAGES = ['hosted_verification_url', 'hosted_voucher_url', 'hosted_instructions_url'] as const;

/** Describes a failure by its code, or by its status, because not every error has a code. */
function describeFailure({ status, last_payment_error, cancellation_reason }: Stripe.PaymentIntent): string {
  if (last_payment_error === null)
    return status === 'canceled'
      ? `cancelled: ${cancellation_reason ?? 'it was taken back before it was paid'}`
      : 'declined: Stripe names no reason';
  const { code, decline_code, type, message } = last_payment_error;
  const reason = [code ?? type, decline_code].filter(Boolean).join(', ');
  return `${reason}: ${message ?? 'the charge was declined'}`;
}

const BANK_DEBITS: readonly string[] = ['us_bank_account', 'sepa_debit', 'bacs_debit', 'acss_debit', 'au_becs_debit'];

/** Converts the type of a payment method: every type that is not a bank debit counts as CARD. */
export function toMethodType({ type }: Pick<Stripe.PaymentMethod, 'type'>): 'CARD' | 'ACH' {
  return BANK_DEBITS.includes(type) ? 'ACH' : 'CARD';
}

function toSavedMethod({ setup_future_usage, payment_method }: Stripe.PaymentIntent) {
  if (setup_future_usage !== 'off_session' || payment_method === null || typeof payment_method === 'string') return {};
  return { saved_payment_method: { id: payment_method.id, type: toMethodType(payment_method) } };
}

export function toRefundOutcome({ id, status, failure_reason }: Stripe.Refund): RefundOutcome {
  if (status === 'succeeded') return { outcome: 'succeeded', gateway_refund_id: id };
  if (status === 'failed' || status === 'canceled')
    return { outcome: 'failed', error: `Stripe: the refund ${id} is ${status} (${failure_reason ?? 'no reason'})` };
  return { outcome: 'pending', gateway_refund_id: id };
}
