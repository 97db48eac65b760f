/**
 * Begins the next attempt of a payment. Until the attempt ends, the invoice cannot be voided or charged by another payment. Money that was
 * received offline and payments with credits are applied at once; a payment provider is called outside this transaction.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { FarthingError, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { OPEN } from '../../../core/payments/moves.ts';
import { checkAmount, checkPayable } from '../../../core/payments/request.ts';
import { computeOutcomeCheckAt, computeProviderRecheckAt } from '../../../core/payments/schedule.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentAttemptModel } from '../../../storage/models/payments/payment-attempt.ts';
import { loadKeyTime } from '../../../storage/postgres/database-time.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { lockWalletInOrder } from '../../credits/wallets/lock-wallet.ts';
import { debitPayment, findPayingWallet, lockCoveredByCredits } from '../../credits/wallets/pay-with-credits.ts';
import { lockConnectionTo } from '../../foundation/connections/find-connections.ts';
import { listOwnGateways, loadGatewayConnection } from '../../foundation/connections/payment-gateways.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import {
  type CollectionTerms,
  loadCollection,
  loadUsableGateway,
} from '../../invoicing/collection/find-payment-method.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { applySuccess, failPayment } from './apply-outcome.ts';
import { changeInvoicePayment } from './change-invoice-payment.ts';
import { storeAttemptId } from './earlier-attempts.ts';

/** A begun attempt. `calls_provider` is true if the caller has to call the provider next. */
type StartedAttempt = {
  readonly payment: PaymentModel;
  readonly calls_provider: boolean;
  /** Error with which the attempt failed before any provider was called. */
  readonly obstacle?: FarthingError;
};

/**
 * Begins an attempt. If the payment is impossible, a request (`isRequested`) gets an error, whereas the scheduler delays or fails the
 * payment.
 */
export async function beginAttempt(
  stores: Stores,
  scope: Scope,
  { id, by, isRequested, isNew = false }: { id: string; by: ChangeAuthor; isRequested: boolean; isNew?: boolean },
): Promise<StartedAttempt> {
  return retryTransaction(stores, async (transaction) => {
    const seen = await lockPayment(transaction, scope, id);
    const { payment } = seen;
    if (!OPEN.includes(payment.payment_status)) {
      if (!isRequested || isNew) return { payment, calls_provider: false };
      throw notAllowed(`a payment that is ${payment.payment_status} cannot be processed`, {
        payment_status: payment.payment_status,
      });
    }
    if (!isRequested && !isDue(payment, by.now)) return { payment, calls_provider: false };
    const unpayable = findObstacle(seen);
    const isCollected = unpayable === null && payment.is_automatic;
    const collection = isCollected
      ? await loadCurrentCollection(transaction, seen, { isRequested, now: by.now })
      : null;
    const current = collection ? { ...seen, payment: Object.assign(payment.$clone(), collection) } : seen;
    const obstacle =
      unpayable ??
      (await findPaymentObstacle(transaction, current, { collection, now: by.now })) ??
      (await findStoppedGateway(transaction, current));
    if (obstacle && isNew)
      return {
        payment: await rejectPayment(stores, transaction, { ...current, obstacle, by }),
        calls_provider: false,
        obstacle,
      };
    if (obstacle && isRequested) throw obstacle;
    if (obstacle)
      return {
        payment: await deferOrFailPayment(stores, transaction, { ...current, obstacle, by }),
        calls_provider: false,
      };
    switch (current.payment.payment_method_type) {
      case 'CREDITS':
        return {
          payment: await payWithCredits(stores, transaction, { ...seen, collection, by }),
          calls_provider: false,
        };
      case 'OFFLINE':
        return {
          payment: await applySuccess(stores, transaction, { ...seen, gateway_payment_id: null, by }),
          calls_provider: false,
        };
      case 'PAYMENT_LINK':
        return { payment: await openPaymentPage(transaction, seen, by), calls_provider: true };
      default:
        return { payment: await claimPayment(stores, transaction, { ...seen, collection, by }), calls_provider: true };
    }
  });
}

/**
 * Whether the payment is due now. The scheduler's list may be outdated: another process may have made this attempt and
 * scheduled the next one.
 */
export function isDue({ next_attempt_at }: PaymentModel, now: Date): boolean {
  return next_attempt_at !== null && next_attempt_at !== undefined && toInstant(next_attempt_at) <= now.getTime();
}

/** Delays an attempt that has not begun, and says why. */
export function delayAttempt(
  stores: Stores,
  payment: PaymentModel,
  { reason, by }: { reason: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  return retryTransaction(stores, async (database) => {
    const current = await PaymentModel.fetch(payment, payment.id, { database, lock: true });
    if (!OPEN.includes(current.payment_status) || !isDue(current, by.now)) return current;
    const next_attempt_at = computeProviderRecheckAt(by.now).toISOString();
    const error_message = `${reason}: the attempt waits`;
    return PaymentModel.change(current, { next_attempt_at, error_message }, { by, database });
  });
}

function findObstacle({ invoice, payment }: LockedPayment): FarthingError | null {
  try {
    checkPayable(invoice);
    // An automatic collection charges the remaining amount, however it has changed.
    if (!payment.is_automatic) checkAmount({ ...payment, method: payment.payment_method_type }, invoice);
    return null;
  } catch (error) {
    if (error instanceof FarthingError) return error;
    throw error;
  }
}

/**
 * Returns an error if the provider is not usable, if the sandbox would be used for a real payment, or if the wallet cannot pay the amount.
 */
async function findPaymentObstacle(
  transaction: Transaction,
  { payment, invoice }: LockedPayment,
  { collection, now }: { collection: CollectionTerms | null; now: Date },
): Promise<FarthingError | null> {
  if (collection || payment.payment_method_type === 'OFFLINE') return null;
  if (payment.payment_method_type === 'CREDITS') {
    const { customer_id, payment_method_id: id } = payment;
    const { id: wallet_id } = await lockWalletInOrder(transaction, payment, { customer_id, id });
    return catchRejection(() => findPayingWallet(transaction, invoice, { wallet_id, amount: payment.amount, now }));
  }
  return catchRejection(() => loadUsableGateway(transaction, payment, payment.payment_gateway ?? null));
}

/**
 * Returns the error of a gateway whose connection needs attention; its payments wait and do not fail. The lock delays
 * an archival of the connection until the attempt is stored, because an archived connection cannot be queried about a
 * charge.
 */
async function findStoppedGateway(transaction: Transaction, { payment }: LockedPayment): Promise<FarthingError | null> {
  const { payment_gateway: gateway } = payment;
  if (!gateway || listOwnGateways()[gateway]) return null;
  await lockConnectionTo(payment, gateway, transaction);
  try {
    await loadGatewayConnection(payment, gateway, transaction);
    return null;
  } catch (error) {
    if (isUnavailable(error)) return error as FarthingError;
    throw error;
  }
}

async function catchRejection(attempt: () => Promise<unknown>): Promise<FarthingError | null> {
  try {
    await attempt();
    return null;
  } catch (error) {
    if (error instanceof FarthingError && error.http_status_code < 500) return error;
    throw error;
  }
}

/** Delays the payment if another payment is about to pay the invoice, or the gateway cannot be called; otherwise fails it. */
async function deferOrFailPayment(
  stores: Stores,
  transaction: Transaction,
  { obstacle, by, ...current }: LockedPayment & { obstacle: FarthingError; by: ChangeAuthor },
): Promise<PaymentModel> {
  const isBeingPaid = current.invoice.payment_status === 'PROCESSING' && current.invoice.invoice_status === 'FINALIZED';
  const waits = isBeingPaid || isUnavailable(obstacle);
  if (!waits) return failPayment(stores, transaction, { ...current, error: obstacle.message, by });
  const next_attempt_at = computeProviderRecheckAt(by.now).toISOString();
  return PaymentModel.change(current.payment, { next_attempt_at }, { by, database: transaction });
}

/** Fails the payment, because its request was answered with an error and the payment must not be made later. */
function rejectPayment(
  stores: Stores,
  transaction: Transaction,
  { obstacle, by, ...current }: LockedPayment & { obstacle: FarthingError; by: ChangeAuthor },
): Promise<PaymentModel> {
  return failPayment(stores, transaction, { ...current, error: obstacle.message, by });
}

/** Opens a payment page. The key is stored before the provider is called. */
async function openPaymentPage(
  transaction: Transaction,
  { payment }: LockedPayment,
  by: ChangeAuthor,
): Promise<PaymentModel> {
  const changes = {
    gateway_tracking_id: `${payment.id}/link`,
    // A repeated call uses the same key, so the time of the first call remains.
    requested_at: payment.requested_at ?? (await loadKeyTime(transaction, by.now)),
    next_attempt_at: computeOutcomeCheckAt(by.now).toISOString(),
  };
  return PaymentModel.change(payment, changes, { by, database: transaction });
}

type CollectionAttempt = LockedPayment & { collection: CollectionTerms | null; by: ChangeAuthor };

/** Pays with credits. `transaction` has locked the wallet, which can pay the amount. */
async function payWithCredits(
  stores: Stores,
  transaction: Transaction,
  { collection, by, ...current }: CollectionAttempt,
): Promise<PaymentModel> {
  const payment = await PaymentModel.change(current.payment, { ...collection }, { by, database: transaction });
  await debitPayment(transaction, { ...current, payment, author: { user_id: '', ...by } });
  return applySuccess(stores, transaction, { ...current, payment, gateway_payment_id: null, by });
}

async function claimPayment(
  stores: Stores,
  transaction: Transaction,
  { by, ...current }: CollectionAttempt,
): Promise<PaymentModel> {
  const { payment, invoice, subscription } = current;
  const collected = payment.is_automatic ? toCollectedFields(current) : {};
  const attempt_number = payment.attempt_count + 1;
  const gateway_tracking_id = `${payment.id}/${attempt_number}`;
  const changes = {
    ...collected,
    payment_status: 'PROCESSING' as const,
    attempt_count: attempt_number,
    gateway_tracking_id,
    requested_at: await loadKeyTime(transaction, by.now),
    gateway_payment_id: null,
    error_message: null,
    query_failure: null,
    next_attempt_at: computeOutcomeCheckAt(by.now).toISOString(),
  };
  const conflict = 'this invoice is being paid: wait until that payment has ended';
  await storeAttemptId(transaction, payment, by);
  const claimed = await PaymentModel.change(payment, changes, { by, database: transaction, conflict });
  await PaymentAttemptModel.add(
    claimed,
    {
      ...createdBy({ user_id: 'user_id' in by ? by.user_id : '', now: by.now }),
      id: newId('payment_attempt', by.now.getTime()),
      payment_id: claimed.id,
      attempt_number,
      payment_status: 'PROCESSING',
      payment_method_id: claimed.payment_method_id,
      amount: claimed.amount,
    },
    { database: transaction },
  );
  await emit(transaction, 'payment.pending', { record: claimed, by });
  const paying = { payment_status: 'PROCESSING' as const };
  await changeInvoicePayment(stores, transaction, { invoice, subscription, changes: paying, by });
  return claimed;
}

/**
 * Loads the current terms of the automatic payment: since the last attempt the customer may have changed the payment method or got credits.
 * A requested attempt may also charge a part of the invoice.
 */
async function loadCurrentCollection(
  transaction: Transaction,
  { invoice, subscription }: LockedPayment,
  { isRequested, now }: { isRequested: boolean; now: Date },
): Promise<CollectionTerms | null> {
  const covered = await lockCoveredByCredits(transaction, invoice, now);
  const partial = isRequested ? { allows_partial: true } : {};
  return (await loadCollection(transaction, invoice, { subscription, covered, ...partial })).collection;
}

/** Returns the target and amount of this attempt. The remaining amount may be smaller now, because a part may have been paid. */
function toCollectedFields({ payment, invoice, collection }: Omit<CollectionAttempt, 'by'>) {
  const amount = new Decimal(invoice.amount_remaining).toFixed();
  return collection ?? { payment_gateway: payment.payment_gateway, amount };
}
