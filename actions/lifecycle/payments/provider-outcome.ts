/** Calls the provider of a payment for its outcome. No transaction is open meanwhile; process-payment.ts applies the outcome. */
import type { FarthingError } from '../../../core/foundation/error.ts';
import type { PaymentOutcome, PaymentProvider, PaymentRequest } from '../../../integrations/payment-provider.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { BeingSent } from '../../foundation/connections/push-claims.ts';
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

/** Queries the outcome of the last request. It charges nothing; null if there was no request, or the provider does not have it. */
export async function findProviderOutcome(
  stores: Stores,
  payment: PaymentModel,
  { now }: ChangeAuthor,
): Promise<ProviderOutcome | null> {
  const { payment_gateway, gateway_tracking_id: key } = payment;
  if (!payment_gateway || !key) return null;
  return await catchUnavailable(() =>
    createProvider(stores, payment_gateway).findOutcome(payment, buildPaymentRequest(payment, { key, now })),
  );
}

/** Charges the payment. A repeated call queries the outcome first, and charges only if the provider does not have the charge. */
export async function chargeOrFindOutcome(
  stores: Stores,
  payment: PaymentModel,
  { now, isFirst }: { now: Date; isFirst: boolean },
): Promise<ProviderOutcome> {
  const { payment_gateway, gateway_tracking_id: key } = payment;
  if (!payment_gateway || !key) return describeUnrequested('no charge was requested yet');
  return await catchUnavailable(async () => {
    const provider = createProvider(stores, payment_gateway);
    const request = buildPaymentRequest(payment, { key, now });
    const before = isFirst ? null : await provider.findOutcome(payment, request);
    if (before) return before;
    if (!(await isInProgress(stores, payment))) return describeUnrequested('the attempt has ended meanwhile');
    return await chargeProvider(provider, payment, request);
  });
}

/**
 * Whether the payment still waits for the result of this request. A person or another process may have recorded an outcome since the
 * payment was read; it must not be charged then.
 */
async function isInProgress({ postgres }: Stores, payment: PaymentModel): Promise<boolean> {
  return await postgres.transaction(async (database) => {
    const current = await PaymentModel.fetch(payment, payment.id, { database, lock: true });
    const isOpen = current.payment_status === 'INITIATED' || current.payment_status === 'PROCESSING';
    return isOpen && current.status === 'published' && current.gateway_tracking_id === payment.gateway_tracking_id;
  });
}

function describeUnrequested(error: string): ProviderOutcome {
  return { outcome: 'unknown', error, failure: null };
}

async function catchUnavailable<Found extends ProviderOutcome | null>(
  call: () => Promise<Found>,
): Promise<Found | ProviderOutcome> {
  try {
    return await call();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return toUnknown(error as FarthingError);
  }
}

export function toUnknown(failure: FarthingError): ProviderOutcome {
  return { outcome: 'unknown', error: failure.message, failure };
}

/**
 * Derives the class of a failed query: `missing` if the provider no longer has the charge, `person` if it reports a state that a person has
 * to resolve, and null if a later query may find the outcome.
 */
export function deriveQueryFailure(failure: FarthingError | null): PaymentModel['query_failure'] {
  const cause = failure?.cause;
  if (!(cause instanceof ProviderError) || cause.is_unauthorized || cause instanceof BeingSent) return null;
  if (cause.is_missing) return 'missing';
  return cause.error_class === 'person' || cause.is_of_record ? 'person' : null;
}

function chargeProvider(
  provider: PaymentProvider,
  payment: PaymentModel,
  request: PaymentRequest,
): Promise<PaymentOutcome> {
  if (request.is_page) return provider.openLink(payment, request);
  return provider.charge(payment, { ...request, payment_method_id: payment.payment_method_id });
}

/** Cancels a charge in progress at the provider, and returns its outcome; null if the provider has no charge. */
export async function cancelAtProvider(
  stores: Stores,
  payment: PaymentModel,
  by: ChangeAuthor,
): Promise<ProviderOutcome | null> {
  const { payment_gateway, gateway_tracking_id: key } = payment;
  return await catchUnavailable(async () => {
    const provider = createProvider(stores, payment_gateway!);
    const request = buildPaymentRequest(payment, { key: key!, now: by.now });
    const found = await provider.findOutcome(payment, request);
    if (found?.outcome !== 'processing') return found;
    const { gateway_payment_id } = found;
    await provider.cancel(payment, gateway_payment_id, by.now);
    return await provider.findOutcome(payment, { ...request, gateway_payment_id });
  });
}
