/**
 * Makes the next step of a payment: begins an attempt, calls the provider outside any transaction, and applies the outcome. After a crash
 * in between, the outcome is requested from the provider under the same key, so that nothing is charged twice (docs/rules/payments.md,
 * "Never twice").
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { FarthingError, unavailable } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { describeReceived, hasPaymentPage } from '../../../core/payments/applied-amount.ts';
import { computePageEnd } from '../../../core/payments/checkout/record.ts';
import { computeOutcomeCheckAt, computeProviderRecheckAt } from '../../../core/payments/schedule.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { buildPaymentRequest } from '../../payments/payment-request.ts';
import { createProvider } from '../../payments/providers.ts';
import { markPageOpen } from '../checkout/complete-checkout.ts';
import { endCheckoutOfPayment } from '../checkout/end-checkout.ts';
import { applyFailure, applySuccess } from './apply-outcome.ts';
import { beginAttempt, delayAttempt, isDue } from './begin-attempt.ts';
import { applyEarlierSuccess } from './earlier-attempts.ts';
import {
  cancelAtProvider,
  chargeOrFindOutcome,
  deriveQueryFailure,
  findProviderOutcome,
  type ProviderOutcome,
  toUnknown,
} from './provider-outcome.ts';
import { findMoneyAtProviders } from './read-counterparts.ts';
import { recordPageClosing } from './record-page-closing.ts';
import { applyReportedRefunds } from './record-provider-payment.ts';
import { processRefunds, refundOverpayment, updateNextAttempt } from './refund-payment.ts';
import { handleRetriesExhausted } from './retries-exhausted.ts';

/**
 * Processes a payment on request; throws if it cannot be processed. `isNew` is true if this request created the payment; another request
 * with its key may have made the first attempt already. A void payment whose page is still open at the provider gets its page closed.
 */
export async function processPayment(
  stores: Stores,
  scope: Scope,
  { id, by, isNew = false }: { id: string; by: ChangeAuthor; isNew?: boolean },
): Promise<PaymentModel> {
  const seen = await PaymentModel.fetchPublished(scope, id, { database: stores.postgres });
  if (isPageUnclosed(seen) && !isNew) return resumePayment(stores, scope, { id, by });
  const late = await findLateOutcome(stores, seen, by);
  if (late?.outcome === 'succeeded') return applyOutcome(stores, seen, { outcome: late, by });
  if (late) throw unavailable('the outcome of the last attempt');
  const { payment, calls_provider, obstacle } = await beginAttempt(stores, scope, { id, by, isRequested: true, isNew });
  if (obstacle && hasCheckoutToEnd(payment)) await resumePayment(stores, payment, { id, by });
  if (obstacle) throw obstacle;
  return calls_provider ? callProviderAndApply(stores, payment, { by, isFirst: true }) : payment;
}

/** Makes the due step of a payment for the scheduler. */
export async function resumePayment(
  stores: Stores,
  scope: Scope,
  { id, by }: { id: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const payment = await PaymentModel.fetch(scope, id, { database: stores.postgres });
  if (hasCheckoutToEnd(payment) && !(await endCheckoutOfPayment(stores, payment, by)))
    return updateNextAttempt(stores, payment, { next_attempt_at: computeProviderRecheckAt(by.now).toISOString(), by });
  if (isPageOverdue(payment, by)) return expirePage(stores, payment, by);
  switch (payment.payment_status) {
    case 'PENDING': {
      const late = await findLateOutcome(stores, payment, by);
      return late ? applyOutcome(stores, payment, { outcome: late, by }) : startAttempt(stores, payment, by);
    }
    case 'INITIATED':
    case 'PROCESSING':
      return payment.gateway_tracking_id
        ? callProviderAndApply(stores, payment, { by, isFirst: false })
        : startAttempt(stores, payment, by);
    case 'FAILED':
      return hasRefund(payment) ? processRefunds(stores, payment, by) : handleRetriesExhausted(stores, payment, by);
    case 'VOIDED':
      return isPageUnclosed(payment) ? closePage(stores, payment, by) : processRefunds(stores, payment, by);
    default:
      return processRefunds(stores, payment, by);
  }
}

/** Whether the payment belongs to a checkout whose page can no longer be paid, so that the session has to be ended. */
function hasCheckoutToEnd({ checkout_session_id, payment_status, next_attempt_at }: PaymentModel): boolean {
  return Boolean(checkout_session_id) && CLOSED_STATUSES.includes(payment_status) && Boolean(next_attempt_at);
}

function isPageOverdue(payment: PaymentModel, { now }: ChangeAuthor): boolean {
  const isOpen = payment.checkout_session_id && payment.payment_status === 'INITIATED';
  return Boolean(isOpen) && computePageEnd(payment) <= now;
}

/**
 * Closes a payment page whose time is over, because the provider may allow more time. If the page was paid in the meantime, records the
 * payment.
 */
async function expirePage(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const found = payment.gateway_tracking_id ? await cancelAtProvider(stores, payment, by) : null;
  const never = { outcome: 'failed', gateway_payment_id: null, error: 'the page was never opened' } as const;
  return applyOutcome(stores, payment, { outcome: found ?? never, by });
}

/** Whether the provider may still show the page of the void payment. */
function isPageUnclosed(payment: PaymentModel): boolean {
  const isDue = payment.payment_status === 'VOIDED' && Boolean(payment.next_attempt_at);
  return isDue && hasPaymentPage(payment) && !hasRefund(payment);
}

function hasRefund({ refunded_amount }: PaymentModel): boolean {
  return new Decimal(refunded_amount).gt(0);
}

/**
 * Queries the outcome of the last attempt before the next one charges, because a bank may accept a declined charge later. Null if another
 * attempt is safe: the last one has failed, or the provider does not have it. Null also if the connection is stopped or archived, because
 * the next attempt then waits anyway.
 */
async function findLateOutcome(
  stores: Stores,
  payment: PaymentModel,
  { now }: ChangeAuthor,
): Promise<ProviderOutcome | null> {
  const { payment_status, payment_gateway, gateway_tracking_id: key, gateway_payment_id } = payment;
  if (payment_status !== 'PENDING' || !payment_gateway || !key || !gateway_payment_id) return null;
  try {
    const provider = createProvider(stores, payment_gateway);
    const found = await provider.findOutcome(payment, buildPaymentRequest(payment, { key, now }));
    return found?.outcome === 'failed' ? null : found;
  } catch (error) {
    if (!(error instanceof FarthingError)) throw error;
    const { cause } = error;
    return cause instanceof ProviderError && !cause.is_missing ? toUnknown(error) : null;
  }
}

/**
 * Begins an attempt that no request waits for. A payment that cannot be processed therefore raises no error; it stays unchanged or fails.
 * An automatic payment is delayed while its invoice is being paid at a provider.
 */
async function startAttempt(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const isCollected = payment.is_automatic && isDue(payment, by.now);
  const reason = isCollected ? await findMoneyAtProviders(stores, payment, by) : null;
  if (reason !== null) return delayAttempt(stores, payment, { reason, by });
  const begun = await beginAttempt(stores, payment, { id: payment.id, by, isRequested: false });
  return begun.calls_provider ? callProviderAndApply(stores, begun.payment, { by, isFirst: true }) : begun.payment;
}

/**
 * Applies the provider's current state of a payment, after a notification or a request; it never charges. Throws if the provider gave no
 * answer, so that the notification is sent again.
 */
export async function refreshPayment(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const outcome = await findProviderOutcome(stores, payment, by);
  if (outcome === null) return payment;
  const applied = await applyOutcome(stores, payment, { outcome, by });
  if (outcome.outcome === 'unknown' && outcome.failure !== null) throw outcome.failure;
  return applied;
}

/**
 * Cancels a charge at the provider, so that the customer can no longer confirm it. The outcome that is applied may be
 * that of an earlier charge, or unknown.
 */
export async function cancelCharge(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const outcome = await cancelAtProvider(stores, payment, by);
  return outcome ? applyOutcome(stores, payment, { outcome, by }) : payment;
}

async function callProviderAndApply(
  stores: Stores,
  payment: PaymentModel,
  { by, isFirst }: { by: ChangeAuthor; isFirst: boolean },
): Promise<PaymentModel> {
  const outcome = await chargeOrFindOutcome(stores, payment, { now: by.now, isFirst });
  return applyOutcome(stores, payment, { outcome, by });
}

/**
 * Applies the outcome to the current state of the payment: another process may have applied it already, and a page may have been paid
 * before it was closed.
 */
async function applyOutcome(
  stores: Stores,
  { id, gateway_tracking_id, ...scope }: PaymentModel,
  { outcome, by }: { outcome: ProviderOutcome; by: ChangeAuthor },
): Promise<PaymentModel> {
  const applied = await retryTransaction(stores, async (transaction) => {
    const current = await lockPayment(transaction, scope, id);
    const { payment } = current;
    if (payment.gateway_tracking_id !== gateway_tracking_id) {
      if (outcome.outcome !== 'succeeded' || !gateway_tracking_id) return payment;
      return applyEarlierSuccess(stores, transaction, { ...current, key: gateway_tracking_id, outcome, by });
    }
    const isOpen = payment.payment_status === 'PROCESSING' || payment.payment_status === 'INITIATED';
    const apply = isOpen ? applyToOpenPayment : chooseLateEffect(payment);
    const after = await apply(stores, transaction, { ...current, outcome, by });
    return applyRefundsAtProvider(stores, transaction, { payment: after, outcome, by });
  });
  // The outcome was that of an earlier attempt. The next one has begun, and `next_attempt_at` belongs to it.
  if (applied.gateway_tracking_id !== gateway_tracking_id) return applied;
  if (applied.next_attempt_at !== null && outcome.outcome === 'succeeded') return processRefunds(stores, applied, by);
  const isEnded = outcome.outcome === 'failed' && hasCheckoutToEnd(applied);
  return isEnded ? resumePayment(stores, applied, { id, by }) : applied;
}

/**
 * Records refunds made at the provider that this service did not request. If a credit note or a void has returned the money already, the
 * difference is stored as the payment's error message, for a person to resolve.
 */
async function applyRefundsAtProvider(
  stores: Stores,
  transaction: Transaction,
  { payment, outcome, by }: { payment: PaymentModel; outcome: ProviderOutcome; by: ChangeAuthor },
): Promise<PaymentModel> {
  if (outcome.outcome !== 'succeeded' || outcome.refunded_amount === undefined) return payment;
  const { refunded_amount, refunds } = outcome;
  const provider_type = payment.payment_gateway;
  if (!provider_type) return payment;
  const reported = { refunded_amount, ...(refunds ? { refunds } : {}) };
  const input = { payment, reported, provider_type, key_prefix: provider_type, now: by.now };
  const error_message = await applyReportedRefunds(stores, transaction, input);
  const after = await PaymentModel.fetch(payment, payment.id, { database: transaction });
  if (error_message === null || error_message === after.error_message) return after;
  return PaymentModel.change(after, { error_message }, { by, database: transaction });
}

/** Statuses in which a payment brings no more money to its invoice. */
const CLOSED_STATUSES: readonly PaymentModel['payment_status'][] = ['VOIDED', 'FAILED'];

async function applyToOpenPayment(
  stores: Stores,
  transaction: Transaction,
  { outcome, by, ...current }: LockedPayment & { outcome: ProviderOutcome; by: ChangeAuthor },
): Promise<PaymentModel> {
  switch (outcome.outcome) {
    case 'succeeded':
      return applySuccess(stores, transaction, { ...current, ...outcome, by });
    case 'failed':
      return applyFailure(stores, transaction, { ...current, ...outcome, by });
    case 'unknown':
      return recordPendingPayment(
        transaction,
        current.payment,
        {
          error_message: outcome.error,
          query_failure: deriveQueryFailure(outcome.failure),
          next_attempt_at: computeRetryAt(current, by),
        },
        by,
      );
    case 'processing': {
      const { gateway_payment_id, url: payment_url, check_at } = outcome;
      const next_attempt_at = (check_at ?? computeProviderRecheckAt(by.now)).toISOString();
      const changes = { gateway_payment_id, payment_url, next_attempt_at, error_message: null, query_failure: null };
      return recordPendingPayment(transaction, current.payment, changes, by);
    }
  }
}

/**
 * Applies the outcome of the last attempt to a payment that waits for its next attempt. Late money pays the invoice and
 * ends the retries. While the outcome is unknown, a due attempt waits, because both attempts could charge the customer.
 */
async function applyToWaitingPayment(
  stores: Stores,
  transaction: Transaction,
  { outcome, by, ...current }: LockedPayment & { outcome: ProviderOutcome; by: ChangeAuthor },
): Promise<PaymentModel> {
  const { payment } = current;
  if (outcome.outcome === 'succeeded') return applySuccess(stores, transaction, { ...current, ...outcome, by });
  if (outcome.outcome === 'failed' || !isDue(payment, by.now)) return payment;
  const next_attempt_at = computeProviderRecheckAt(by.now).toISOString();
  const changes = { next_attempt_at, ...(outcome.outcome === 'unknown' ? { error_message: outcome.error } : {}) };
  return PaymentModel.change(payment, changes, { by, database: transaction });
}

/**
 * Stores a note if the provider later reports another amount than the payment has, for example because a person entered its amount. The
 * service cannot know which amount is true.
 */
async function noteReceivedAmount(
  _stores: Stores,
  transaction: Transaction,
  { payment, outcome, by }: LockedPayment & { outcome: ProviderOutcome; by: ChangeAuthor },
): Promise<PaymentModel> {
  const error_message = outcome.outcome === 'succeeded' ? describeReceived(payment, outcome.received_amount) : null;
  if (error_message === null || error_message === payment.error_message) return payment;
  const record = await PaymentModel.change(payment, { error_message }, { by, database: transaction });
  await emit(transaction, 'payment.updated', { record, by });
  return record;
}

function computeRetryAt({ payment }: LockedPayment, by: ChangeAuthor): string | null {
  if (!payment.gateway_tracking_id) return null;
  return (payment.error_message ? computeProviderRecheckAt(by.now) : computeOutcomeCheckAt(by.now)).toISOString();
}

async function recordPendingPayment(
  transaction: Transaction,
  payment: PaymentModel,
  changes: Partial<PaymentModel>,
  by: ChangeAuthor,
): Promise<PaymentModel> {
  const next_attempt_at = limitToPageEnd(payment, { next_attempt_at: changes.next_attempt_at ?? null, by });
  const record = await PaymentModel.change(payment, { ...changes, next_attempt_at }, { by, database: transaction });
  const isNews = record.payment_url && record.payment_url !== payment.payment_url;
  if (isNews) await emit(transaction, 'payment.pending', { record, by });
  if (isNews) await markPageOpen(transaction, record, by);
  return record;
}

/** Returns the next check of a payment, or the end of its checkout page if that is earlier, so that the page is closed in time. */
function limitToPageEnd(
  payment: PaymentModel,
  { next_attempt_at, by }: { next_attempt_at: string | null; by: ChangeAuthor },
): string | null {
  if (!payment.checkout_session_id || next_attempt_at === null) return next_attempt_at;
  const end = computePageEnd(payment);
  return end > by.now && end < new Date(next_attempt_at) ? end.toISOString() : next_attempt_at;
}

function chooseLateEffect({ payment_status }: PaymentModel) {
  if (CLOSED_STATUSES.includes(payment_status)) return applyToClosedPayment;
  return payment_status === 'PENDING' ? applyToWaitingPayment : noteReceivedAmount;
}

/** Refunds in full a payment that succeeded after it was closed. If its page is open at the provider, makes the closing of the page due. */
async function applyToClosedPayment(
  _stores: Stores,
  transaction: Transaction,
  { payment, outcome, by }: LockedPayment & { outcome: ProviderOutcome; by: ChangeAuthor },
): Promise<PaymentModel> {
  if (outcome.outcome === 'unknown' || outcome.outcome === 'failed' || hasRefund(payment)) return payment;
  const { gateway_payment_id } = outcome;
  const isOpen = outcome.outcome === 'processing' && hasPaymentPage(payment);
  const received_amount = outcome.outcome === 'succeeded' ? outcome.received_amount : undefined;
  const wasUnclosed = outcome.outcome === 'succeeded' && payment.close_failures > 0;
  const changes = {
    gateway_payment_id,
    ...(wasUnclosed ? { close_failures: 0, error_message: null } : {}),
    ...(isOpen ? { next_attempt_at: by.now.toISOString() } : {}),
    ...(received_amount === undefined
      ? {}
      : { amount: received_amount, error_message: describeReceived(payment, received_amount) }),
  };
  const known = await PaymentModel.change(payment, changes, { by, database: transaction });
  if (outcome.outcome === 'processing') return known;
  return refundOverpayment(transaction, { payment: known, overpaid: new Decimal(known.amount), by });
}

/** Closes the payment page at its provider. If the customer has paid there already, records the payment, which is then refunded. */
async function closePage(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const outcome = await cancelAtProvider(stores, payment, by);
  if (outcome?.outcome === 'succeeded') return applyOutcome(stores, payment, { outcome, by });
  return recordPageClosing(stores, payment, { outcome, by });
}
