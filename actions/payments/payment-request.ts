/** Builds the request that asks a provider to make a payment. */
import { toInstant } from '../../core/foundation/time/instant.ts';
import { hasPaymentPage } from '../../core/payments/applied-amount.ts';
import type { PaymentRequest } from '../../integrations/payment-provider.ts';
import type { PaymentModel } from '../../storage/models/payments/payment.ts';

export function buildPaymentRequest(payment: PaymentModel, { key, now }: { key: string; now: Date }): PaymentRequest {
  const { amount, currency, customer_id, success_url = null, cancel_url = null } = payment;
  return {
    key,
    amount,
    currency,
    now,
    payment_id: payment.id,
    customer_id,
    invoice_id: payment.destination_id,
    invoice_number: payment.invoice_number ?? null,
    requested_at: new Date(toInstant(payment.requested_at ?? payment.created_at)),
    gateway_payment_id: payment.gateway_payment_id ?? null,
    is_page: hasPaymentPage(payment),
    is_closed: payment.payment_status === 'VOIDED' || payment.payment_status === 'FAILED',
    success_url,
    cancel_url,
    saves_payment_method: payment.save_card_and_make_default,
  };
}
