/**
 * Makes the next step of a payment: begins an attempt, calls the provider outside any transaction, and books the outcome. After a crash in
 * between, the outcome is requested from the provider under the same key, so that nothing is charged twice
 * (docs/rules/payments.md, "Never twice").
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { hasPage } from '../../../core/payments/receipt.ts';
import { computeOutcomeCheckAt, computeProviderRecheckAt } from '../../../core/payments/schedule.ts';
import type { PaymentOutcome, PaymentProvider } from '../../../integrations/payments/provider.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { createProvider } from '../../payments/providers.ts';
import { beginAttempt } from './begin-attempt.ts';
import { bookDecline, bookReceipt } from './book-outcome.ts';
import { processRefunds, refundOverpayment, updateNextAttempt } from './refund-payment.ts';
import { handleRetriesExhausted } from './retries-exhausted.ts';

/**
 * Processes a payment on request and throws if it cannot be processed. `isNew`: another request with the payment's key may have made the
 * first attempt already.
 */
export async function processPayment(
  stores: Stores,
  scope: Scope,
  { id, by, isNew = false }: { id: string; by: ChangeAuthor; isNew?: boolean },
): Promise<PaymentModel> {
  const { payment, asks, obstacle } = await beginAttempt(stores, scope, { id, by, isRequested: true, isNew });
  if (obstacle) throw obstacle;
  return asks ? queryAndBook(stores, payment, { by, isFirst: true }) : payment;
}

/** Makes the due step of a payment for the scheduler. */
export async function resumePayment(
  stores: Stores,
  scope: Scope,
  { id, by }: { id: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const payment = await PaymentModel.fetch(scope, id, { database: stores.postgres });
  switch (payment.payment_status) {
    case 'PENDING':
      return startAttempt(stores, scope, { id, by });
    case 'INITIATED':
    case 'PROCESSING':
      return payment.gateway_tracking_id
        ? queryAndBook(stores, payment, { by, isFirst: false })
        : startAttempt(stores, scope, { id, by });
    case 'FAILED':
      return hasRefund(payment) ? processRefunds(stores, payment, by) : handleRetriesExhausted(stores, payment, by);
    case 'VOIDED':
      return hasPage(payment) && !hasRefund(payment)
        ? closePage(stores, payment, by)
        : processRefunds(stores, payment, by);
    default:
      return processRefunds(stores, payment, by);
  }
}

function hasRefund({ refunded_amount }: PaymentModel): boolean {
  return new Decimal(refunded_amount).gt(0);
}

/** Begins an attempt without a waiting request: a payment that cannot be processed is left alone or fails. */
async function startAttempt(
  stores: Stores,
  scope: Scope,
  { id, by }: { id: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const begun = await beginAttempt(stores, scope, { id, by, isRequested: false });
  return begun.asks ? queryAndBook(stores, begun.payment, { by, isFirst: true }) : begun.payment;
}

/** Books the provider's current state of a payment, after a notification or a request. */
export async function refreshPayment(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  return queryAndBook(stores, payment, { by, isFirst: false });
}

/** Cancels a charge at the provider, so that the customer cannot confirm it. The answer may show an earlier charge or no connection. */
export async function withdrawCharge(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const outcome = await closeCharge(stores, payment, by);
  return outcome ? bookAnswer(stores, payment, { outcome, by }) : payment;
}

async function queryAndBook(
  stores: Stores,
  payment: PaymentModel,
  { by, isFirst }: { by: ChangeAuthor; isFirst: boolean },
): Promise<PaymentModel> {
  const outcome = await queryProvider(stores, payment, { now: by.now, isFirst });
  return bookAnswer(stores, payment, { outcome, by });
}

type ProviderAnswer = PaymentOutcome | { readonly outcome: 'unknown'; readonly error: string };

/** An unreachable provider may or may not have charged. */
async function queryProvider(
  stores: Stores,
  payment: PaymentModel,
  { now, isFirst }: { now: Date; isFirst: boolean },
): Promise<ProviderAnswer> {
  const { payment_gateway, gateway_tracking_id: key } = payment;
  if (!payment_gateway || !key) return { outcome: 'unknown', error: 'it has not been asked for yet' };
  try {
    const provider = createProvider(stores, payment_gateway);
    const before = isFirst ? null : await provider.findOutcome(payment, key, now);
    return before ?? (await chargeProvider(provider, payment, { key, now }));
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { outcome: 'unknown', error: (error as FarthingError).message };
  }
}

function chargeProvider(
  provider: PaymentProvider,
  payment: PaymentModel,
  { key, now }: { key: string; now: Date },
): Promise<PaymentOutcome> {
  const { amount, currency, payment_method_id, success_url = null, cancel_url = null } = payment;
  if (payment.payment_method_type === 'PAYMENT_LINK')
    return provider.openLink(payment, { key, amount, currency, success_url, cancel_url, now });
  return provider.charge(payment, { key, amount, currency, payment_method_id, now });
}

/** Books on the current record: another process may have booked the answer, and a page may have been paid before it was closed. */
async function bookAnswer(
  stores: Stores,
  { id, gateway_tracking_id, ...scope }: PaymentModel,
  { outcome, by }: { outcome: ProviderAnswer; by: ChangeAuthor },
): Promise<PaymentModel> {
  const booked = await retryTransaction(stores, async (transaction) => {
    const current = await lockPayment(transaction, scope, id);
    const { payment } = current;
    if (payment.gateway_tracking_id !== gateway_tracking_id) return payment;
    const isOpen = payment.payment_status === 'PROCESSING' || payment.payment_status === 'INITIATED';
    if (isOpen) return bookOpenPayment(stores, transaction, { ...current, outcome, by });
    return CLOSED_STATUSES.includes(payment.payment_status)
      ? bookLatePayment(transaction, { payment, outcome, by })
      : payment;
  });
  return booked.next_attempt_at !== null && outcome.outcome === 'succeeded'
    ? processRefunds(stores, booked, by)
    : booked;
}

/** Payments in these statuses bring no more money to their invoice. */
const CLOSED_STATUSES: readonly PaymentModel['payment_status'][] = ['VOIDED', 'FAILED'];

async function bookOpenPayment(
  stores: Stores,
  transaction: Transaction,
  { outcome, by, ...current }: LockedPayment & { outcome: ProviderAnswer; by: ChangeAuthor },
): Promise<PaymentModel> {
  switch (outcome.outcome) {
    case 'succeeded':
      return bookReceipt(stores, transaction, { ...current, gateway_payment_id: outcome.gateway_payment_id, by });
    case 'failed':
      return bookDecline(stores, transaction, { ...current, ...outcome, by });
    case 'unknown':
      return deferPayment(
        transaction,
        current.payment,
        { error_message: outcome.error, next_attempt_at: computeRetryAt(current, by) },
        by,
      );
    case 'processing': {
      const { gateway_payment_id, url: payment_url, ask_at } = outcome;
      const next_attempt_at = (ask_at ?? computeProviderRecheckAt(by.now)).toISOString();
      const changes = { gateway_payment_id, payment_url, next_attempt_at, error_message: null };
      return deferPayment(transaction, current.payment, changes, by);
    }
  }
}

function computeRetryAt({ payment }: LockedPayment, by: ChangeAuthor): string | null {
  if (!payment.gateway_tracking_id) return null;
  return (payment.error_message ? computeProviderRecheckAt(by.now) : computeOutcomeCheckAt(by.now)).toISOString();
}

async function deferPayment(
  transaction: Transaction,
  payment: PaymentModel,
  changes: Partial<PaymentModel>,
  by: ChangeAuthor,
): Promise<PaymentModel> {
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  const isNews = record.payment_url && record.payment_url !== payment.payment_url;
  if (isNews) await emit(transaction, 'payment.pending', { record, by });
  return record;
}

/** A payment that succeeded after it was closed is refunded in full. A page that was opened meanwhile is closed. */
async function bookLatePayment(
  transaction: Transaction,
  { payment, outcome, by }: { payment: PaymentModel; outcome: ProviderAnswer; by: ChangeAuthor },
): Promise<PaymentModel> {
  if (outcome.outcome === 'unknown' || outcome.outcome === 'failed' || hasRefund(payment)) return payment;
  const { gateway_payment_id } = outcome;
  const isOpen = outcome.outcome === 'processing' && hasPage(payment);
  const changes = { gateway_payment_id, ...(isOpen ? { next_attempt_at: by.now.toISOString() } : {}) };
  const known = await PaymentModel.change(payment, changes, { by, database: transaction });
  if (outcome.outcome === 'processing') return known;
  return refundOverpayment(transaction, { payment: known, overpaid: new Decimal(known.amount), by });
}

/** Closes the page at its provider and books an earlier payment for its refund. A page that is just being opened is checked again later. */
async function closePage(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const answer = await closeCharge(stores, payment, by);
  if (answer?.outcome === 'succeeded') return bookAnswer(stores, payment, { outcome: answer, by });
  const isOver = answer === null ? isLongVoid(payment, by) : answer.outcome === 'failed';
  const next_attempt_at = isOver ? null : computeProviderRecheckAt(by.now).toISOString();
  // The provider's id is stored, so that a notification finds the payment.
  const gateway_payment_id =
    (answer && 'gateway_payment_id' in answer && answer.gateway_payment_id) || payment.gateway_payment_id;
  return updateNextAttempt(stores, payment, { next_attempt_at, gateway_payment_id: gateway_payment_id ?? null, by });
}

/** After an hour no process is still about to open the page. */
function isLongVoid({ voided_at }: PaymentModel, { now }: ChangeAuthor): boolean {
  return !voided_at || Date.parse(voided_at) < now.getTime() - HOUR_MS;
}

const HOUR_MS = 3_600_000;

async function closeCharge(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<ProviderAnswer | null> {
  const { payment_gateway, gateway_tracking_id: key } = payment;
  try {
    const provider = createProvider(stores, payment_gateway!);
    const found = await provider.findOutcome(payment, key!, by.now);
    if (found?.outcome !== 'processing') return found;
    await provider.cancel(payment, found.gateway_payment_id);
    return await provider.findOutcome(payment, key!, by.now);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { outcome: 'unknown', error: (error as FarthingError).message };
  }
}
