/** Charges of attempts before the current one, which a bank may accept late (docs/rules/payments.md, "Tried again"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { PaymentGateway } from '../../../core/payments/record.ts';
import type { PaymentOutcome } from '../../../integrations/payment-provider.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentAttemptModel } from '../../../storage/models/payments/payment-attempt.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { buildPaymentRequest } from '../../payments/payment-request.ts';
import { createProvider } from '../../payments/providers.ts';
import { applySuccess } from './apply-outcome.ts';

type EarlierAttempt = { readonly attempt: PaymentAttemptModel; readonly payment: PaymentModel };

/** Stores the provider's id of the last attempt, because the next attempt overwrites it in the payment. */
export async function storeAttemptId(
  transaction: Transaction,
  { gateway_payment_id, attempt_count: attempt_number, ...payment }: PaymentModel,
  by: ChangeAuthor,
): Promise<void> {
  if (!gateway_payment_id) return;
  const [attempt] = await PaymentAttemptModel.in(payment, transaction).where({
    ...{ payment_id: payment.id, attempt_number },
  });
  if (attempt && attempt.gateway_payment_id !== gateway_payment_id)
    await PaymentAttemptModel.change(attempt, { gateway_payment_id }, { by, database: transaction });
}

/** Finds attempts by their ids at the provider, which the payments themselves lose when a later attempt begins. */
export async function findEarlierAttempts(
  scope: Scope,
  gateway_payment_ids: readonly string[],
  database: Database,
): Promise<EarlierAttempt[]> {
  if (gateway_payment_ids.length === 0) return [];
  const attempts = await PaymentAttemptModel.in(scope, database)
    .whereIn('gateway_payment_id', [...gateway_payment_ids])
    .orderBy('id');
  const payments = await PaymentModel.in(scope, database)
    .where({ status: 'published' })
    .whereIn(
      'id',
      attempts.map(({ payment_id }) => payment_id),
    );
  return attempts.flatMap((attempt) => {
    const payment = payments.find(({ id }) => id === attempt.payment_id);
    return payment ? { attempt, payment } : [];
  });
}

/** Queries the outcome of an earlier attempt and applies a success. Any other outcome changes nothing. */
export async function refreshEarlierAttempt(
  stores: Stores,
  { attempt, payment }: EarlierAttempt,
  { gateway, by }: { gateway: PaymentGateway; by: ChangeAuthor },
): Promise<void> {
  const { amount, attempt_number, gateway_payment_id } = attempt;
  const key = `${payment.id}/${attempt_number}`;
  const requested = Object.assign(payment.$clone(), { amount, gateway_payment_id });
  const request = buildPaymentRequest(requested, { key, now: by.now });
  const outcome = await createProvider(stores, gateway).findOutcome(payment, request);
  if (outcome?.outcome !== 'succeeded') return;
  await retryTransaction(stores, async (transaction) => {
    const current = await lockPayment(transaction, payment, payment.id);
    await applyEarlierSuccess(stores, transaction, { ...current, key, outcome, by });
  });
}

type EarlierSuccess = LockedPayment & {
  /** Idempotency key of the attempt whose charge has succeeded. */
  readonly key: string;
  readonly outcome: Extract<PaymentOutcome, { outcome: 'succeeded' }>;
  readonly by: ChangeAuthor;
};

/**
 * Applies a late success once. If the payment waits for its next attempt, the success pays it. Otherwise another attempt is in progress or
 * the payment has ended: the money is then not applied, and the payment's error message asks a person to refund it.
 */
export async function applyEarlierSuccess(
  stores: Stores,
  transaction: Transaction,
  { key, outcome, by, ...current }: EarlierSuccess,
): Promise<PaymentModel> {
  const { payment } = current;
  const attempts = await PaymentAttemptModel.in(payment, transaction).where({ payment_id: payment.id });
  const attempt = attempts.find(({ attempt_number }) => key === `${payment.id}/${attempt_number}`);
  if (!attempt || attempt.payment_status === 'SUCCEEDED') return payment;
  const received_amount = outcome.received_amount ?? attempt.amount;
  if (payment.payment_status === 'PENDING') {
    await storeAttemptId(transaction, payment, by);
    const restored = await PaymentModel.change(payment, { gateway_tracking_id: key }, { by, database: transaction });
    return applySuccess(stores, transaction, { ...current, ...outcome, payment: restored, received_amount, by });
  }
  const error_message = `${received_amount} ${payment.currency} was received late for attempt ${attempt.attempt_number}, as ${outcome.gateway_payment_id}, and is not counted: refund it at the provider`;
  await PaymentAttemptModel.change(
    attempt,
    { payment_status: 'SUCCEEDED', error_message },
    { by, database: transaction },
  );
  const record = await PaymentModel.change(payment, { error_message }, { by, database: transaction });
  await emit(transaction, 'payment.updated', { record, by });
  return record;
}
