/** Answer shape of checkout sessions, which several operations return (docs/rules/checkout.md). */
import { z } from 'zod';
import { metadata, timestampText } from '../../core/foundation/record.ts';
import { CheckoutSession, OPEN_CHECKOUTS, PaymentAction } from '../../core/payments/checkout/record.ts';
import type { CheckoutSessionModel } from '../../storage/models/payments/checkout-session.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';
import type { Context } from '../http/route.ts';

const CheckoutResult = z.object({
  create_subscription_result: z
    .object({
      subscription_id: z.string().meta({ description: 'Id of the subscription.' }),
      invoice_id: z.string().nullable().meta({ description: 'Id of the opening invoice; null without one.' }),
      payment_id: z.string().nullable().meta({ description: 'Id of the payment; null if there was nothing to pay.' }),
    })
    .nullable()
    .meta({ description: 'Result of the action `create_subscription`; else null.' }),
});

const payment_action = PaymentAction.nullable().meta({ description: 'The open page; null if it cannot be paid.' });

const CheckoutProviderResult = z.object({
  next_action: payment_action,
  provider_session_id: z.string().nullable().meta({ description: 'Id of the page at the provider; null before.' }),
  provider_payment_intent_id: z.string().nullable().meta({ description: 'Always null.' }),
  expires_at: timestampText.nullable().meta({ description: 'Time at which the page is closed.' }),
  provider_metadata: metadata.nullable().meta({ description: 'Data of the provider; null without any.' }),
});

export const CheckoutSessionAnswer = CheckoutSession.extend({
  result: CheckoutResult.nullable().meta({ description: 'Result of a completed session; else null.' }),
  provider_result: CheckoutProviderResult.nullable().meta({
    description: 'State of the page; null if there is nothing to pay.',
  }),
  payment_action,
}).meta({ id: 'CheckoutSessionResponse' });

export async function showCheckoutSession(session: CheckoutSessionModel, { scope, services }: Context) {
  const { checkout_payment_id: id, checkout_status } = session;
  const payment = id ? await PaymentModel.fetch(scope, id, { database: services.postgres }) : null;
  const url = OPEN_CHECKOUTS.includes(checkout_status) ? payment?.payment_url : null;
  const next_action = url ? { type: 'checkout_url' as const, url } : null;
  const provider_result = payment && {
    next_action,
    provider_session_id: payment.gateway_payment_id ?? null,
    provider_payment_intent_id: null,
    expires_at: session.expires_at,
    provider_metadata: payment.gateway_metadata ?? null,
  };
  return { ...session, result: showResult(session), provider_result, payment_action: next_action };
}

function showResult({ action, checkout_status, subscription_id, ...session }: CheckoutSessionModel) {
  if (checkout_status !== 'completed') return null;
  const { checkout_invoice_id: invoice_id = null, checkout_payment_id: payment_id = null } = session;
  const isSubscription = action === 'create_subscription' && subscription_id !== null;
  return { create_subscription_result: isSubscription ? { subscription_id, invoice_id, payment_id } : null };
}
