/** Calls the provider of a payment for its outcome. No transaction is open meanwhile; process-payment.ts applies the outcome. */
import type { FarthingError } from '../../../core/foundation/error.ts';
import type { PaymentOutcome, PaymentProvider, PaymentRequest } from '../../../integrations/payment-provider.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { buildPaymentRequest } from '../../payments/payment-request.ts';
import { createProvider } from '../../payments/providers.ts';

/**
 * Outcome of a payment. `unknown` means that no charge was requested, or that the provider was unreachable and may have
 * charged.
 */
export type ProviderOutcome =
  | PaymentOutcome
  | { readonly outcome: 'unknown'; readonly error: string; readonly failure: FarthingError | null };

export async function chargeOrFindOutcome(
  stores: Stores,
  payment: PaymentModel,
  { now, isFirst }: { now: Date; isFirst: boolean },
): Promise<ProviderOutcome> {
  const { payment_gateway, gateway_tracking_id: key } = payment;
  if (!payment_gateway || !key) return { outcome: 'unknown', error: 'no charge was requested yet', failure: null };
  try {
    const provider = createProvider(stores, payment_gateway);
    const request = buildPaymentRequest(payment, { key, now });
    const before = isFirst ? null : await provider.findOutcome(payment, request);
    return before ?? (await chargeProvider(provider, payment, request));
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return toUnknown(error as FarthingError);
  }
}

export function toUnknown(failure: FarthingError): ProviderOutcome {
  return { outcome: 'unknown', error: failure.message, failure };
}

function chargeProvider(
  provider: PaymentProvider,
  payment: PaymentModel,
  request: PaymentRequest,
): Promise<PaymentOutcome> {
  if (request.is_page) return provider.openLink(payment, request);
  return provider.charge(payment, { ...request, payment_method_id: payment.payment_method_id });
}

/** Cancels the charge at the provider; null if the provider has none. */
export async function cancelAtProvider(
  stores: Stores,
  payment: PaymentModel,
  by: ChangeAuthor,
): Promise<ProviderOutcome | null> {
  const { payment_gateway, gateway_tracking_id: key } = payment;
  try {
    const provider = createProvider(stores, payment_gateway!);
    const request = buildPaymentRequest(payment, { key: key!, now: by.now });
    const found = await provider.findOutcome(payment, request);
    if (found?.outcome !== 'processing') return found;
    const { gateway_payment_id } = found;
    await provider.cancel(payment, gateway_payment_id, by.now);
    return await provider.findOutcome(payment, { ...request, gateway_payment_id });
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return toUnknown(error as FarthingError);
  }
}
