/**
 * Refunds a payment, through its provider or manually. The refund is recorded first, under the payment's lock, so that refunds never exceed
 * the payment. The provider is called afterwards, and its answer is applied (docs/rules/payments.md, "Refunds").
 */

import { listOwnKeys, toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { alreadyExists, invalid, notAllowed } from '../../../core/foundation/error.ts';
import { minorUnits } from '../../../core/foundation/money.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { computeRefundablePayment } from '../../../core/invoicing/credit-note/creditable.ts';
import { applyRefund } from '../../../core/invoicing/invoice/payment-status.ts';
import type { RefundPayment } from '../../../core/payments/record.ts';
import { computeProviderRecheckAt } from '../../../core/payments/schedule.ts';
import type { RefundOutcome } from '../../../integrations/payment-provider.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { loadRefundLimit } from '../../credits/wallets/pending-credits.ts';
import { returnPaymentCredits } from '../../credits/wallets/return-credits.ts';
import { lockConnectionTo } from '../../foundation/connections/find-connections.ts';
import { listOwnGateways } from '../../foundation/connections/payment-gateways.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { loadCharges } from '../../invoicing/credit-notes/load-charges.ts';
import { deriveKeys, isWithinMinute } from '../../payments/derived-keys.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { createProvider } from '../../payments/providers.ts';
import { hasPendingRefund, isOfProvider, isOverpaymentRefund, listRefunds, updateRefunded } from './book-refund.ts';
import { reverseRefund } from './reverse-refund.ts';

export async function refundPayment(
  stores: Stores,
  scope: Scope,
  { id, request, author }: { id: string; request: RefundPayment; author: Author },
): Promise<PaymentModel> {
  const { payment, refund } = await retryTransaction(stores, async (transaction) => {
    const locked = await lockPayment(transaction, scope, id);
    const derived = deriveKeys([request.amount, request.reason], author.now);
    const toKey = (key: string) => (isClosed(locked.payment) ? `${OVERPAYMENT}/${id}/${key}` : key);
    const idempotency_key = toKey(request.idempotency_key ?? derived.key);
    const refunds = await listRefunds(locked.payment, transaction);
    const isSame = (one: PaymentRefundModel) =>
      one.idempotency_key === idempotency_key ||
      (!request.idempotency_key &&
        derived.neighbouring_keys.map(toKey).includes(one.idempotency_key) &&
        isWithinMinute(one.created_at, author.now));
    const known = refunds.find(isSame);
    if (known) return { payment: locked.payment, refund: sameRefund(known, request) };
    await checkConnected(transaction, locked.payment);
    if (isClosed(locked.payment)) checkUnreturned(locked.payment, refunds);
    const amount = computeRefundAmount(locked, await loadRefundable(locked, transaction), request);
    const refundInput = { amount, reason: request.reason, idempotency_key, by: author };
    const refund = await addRefund(transaction, locked.payment, refundInput);
    if (locked.payment.payment_method_type === 'CREDITS')
      await returnPaymentCredits(transaction, locked.invoice, {
        amount: new Decimal(amount),
        debit_keys: listOwnKeys('payment', locked.payment.id),
        transaction_reason: 'CREDIT_NOTE',
        reference_type: 'PAYMENT',
        reference_id: locked.payment.id,
        idempotency_key: toOwnKey('refund', refund.id),
        description: request.reason ?? 'A payment was refunded',
        metadata: null,
        author,
      });
    const book = isClosed(locked.payment) ? updateRefunded : bookRefund;
    return { payment: await book(transaction, { ...locked, amount, by: author }), refund };
  });
  const after = await processRefunds(stores, payment, author);
  const ended = await PaymentRefundModel.fetch(scope, refund.id, { database: stores.postgres });
  if (ended.refund_status === 'failed')
    throw notAllowed(`nothing was refunded: ${ended.error_message}`, { refund_id: ended.id });
  return after;
}

/** Returns the existing refund of a repeated request; throws if the repeated request has another amount. */
function sameRefund(known: PaymentRefundModel, { amount }: RefundPayment): PaymentRefundModel {
  if (amount === null || new Decimal(amount).eq(known.amount)) return known;
  const about = { field: 'amount', id: known.id, amount: known.amount };
  throw alreadyExists('the idempotency_key is that of a refund of another amount', about);
}

type NewRefund = {
  amount: string;
  reason: string | null;
  idempotency_key: string;
  gateway_refund_id?: string | null;
  by: ChangeAuthor;
};

/** Adds the refund. `transaction` has locked the payment. */
function addRefund(
  transaction: Transaction,
  payment: PaymentModel,
  { by, is_made = !isOfProvider(payment), ...fields }: NewRefund & { is_made?: boolean },
): Promise<PaymentRefundModel> {
  const record = {
    ...fields,
    ...createdBy({ user_id: 'user_id' in by ? by.user_id : '', now: by.now }),
    id: newId('payment_refund', by.now.getTime()),
    payment_id: payment.id,
    // A refund without a provider, or one that was already made at the provider, needs no call and is complete at once.
    refund_status: is_made ? 'succeeded' : 'pending',
  };
  return PaymentRefundModel.add(payment, record, { database: transaction });
}

/** Records a refund that was made at the provider; it is not requested there again. The caller has locked the invoice. */
export async function recordMadeRefund(
  transaction: Transaction,
  { reason, idempotency_key, gateway_refund_id, ...refund }: LockedPayment & NewRefund,
): Promise<PaymentModel> {
  const { payment, amount, by } = refund;
  await addRefund(transaction, payment, { amount, reason, idempotency_key, gateway_refund_id, by, is_made: true });
  return bookRefund(transaction, refund);
}

/**
 * Refuses the refund if the payment's gateway has no connection. Only the account that received the money can return
 * it, so the refund would be pending for ever.
 */
async function checkConnected(transaction: Transaction, payment: PaymentModel): Promise<void> {
  const { payment_gateway: gateway } = payment;
  if (!isOfProvider(payment) || !gateway || listOwnGateways()[gateway]) return;
  if (await lockConnectionTo(payment, gateway, transaction)) return;
  throw notAllowed(`${gateway} took this payment, and the connection to it was archived: refund it there`, {
    payment_gateway: gateway,
  });
}

/**
 * Loads the amount that can be refunded, less the amounts that credit notes, voids, changes and corrections have
 * returned. If the invoice paid for credits that are in the wallet, only an overpaid amount can be refunded.
 */
async function loadRefundable({ payment, invoice }: LockedPayment, transaction: Transaction): Promise<Decimal> {
  if (isClosed(payment)) return new Decimal(payment.amount).minus(payment.refunded_amount);
  const left = computeRefundablePayment(payment, invoice, await loadCharges(invoice, transaction));
  const most = await loadRefundLimit(transaction, invoice);
  return most === null ? left : Decimal.min(left, most);
}

/** Whether the payment is closed. It then pays nothing, and money that the provider received for it can only be refunded. */
function isClosed({ payment_status }: PaymentModel): boolean {
  return payment_status === 'FAILED' || payment_status === 'VOIDED';
}

/** Throws unless the closed payment has received money, which its automatic refund shows. A request can only repeat that refund. */
function checkUnreturned({ payment_status }: PaymentModel, refunds: readonly PaymentRefundModel[]): void {
  if (!refunds.some(isOverpaymentRefund))
    throw notAllowed(`a payment that is ${payment_status} cannot be refunded`, { payment_status });
}

function computeRefundAmount({ payment }: LockedPayment, left: Decimal, request: RefundPayment): string {
  const { payment_status } = payment;
  if (payment_status !== 'SUCCEEDED' && payment_status !== 'PARTIALLY_REFUNDED' && !isClosed(payment))
    throw notAllowed(`a payment that is ${payment_status} cannot be refunded`, { payment_status });
  if (left.lte(0))
    throw notAllowed(
      'what was paid was refunded already, by a credit note, by a change of the subscription or because the invoice is void',
    );
  const amount = request.amount === null ? left : new Decimal(request.amount);
  if (amount.lte(0)) throw invalid('amount', 'must be more than 0');
  if (amount.decimalPlaces() > minorUnits(payment.currency))
    throw invalid('amount', `has more decimals than ${payment.currency}`);
  if (amount.gt(left)) throw invalid('amount', `is more than is left to give back, ${left.toFixed()}`);
  return amount.toFixed();
}

/** Sends the pending refunds to the provider, each under its id as the key. */
export async function processRefunds(stores: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  const open = (await listRefunds(payment, stores.postgres)).filter(({ refund_status }) => refund_status === 'pending');
  let after = payment;
  for (const refund of open) after = await processRefund(stores, { payment: after, refund, by });
  return after.next_attempt_at === null ? after : endRefunds(stores, after, by);
}

/** Ends the processing of a payment's refunds if none is pending. The payment is locked, so that no refund is added meanwhile. */
function endRefunds({ postgres }: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  return retryTransaction({ postgres }, async (transaction) => {
    const current = await PaymentModel.fetch(payment, payment.id, { database: transaction, lock: true });
    return (await hasPendingRefund(current, transaction))
      ? current
      : PaymentModel.change(current, { next_attempt_at: null }, { by, database: transaction });
  });
}

/** Reads and updates the current record under its lock, because refunds of a payment may run concurrently. */
export function updateNextAttempt(
  { postgres }: Stores,
  payment: PaymentModel,
  { by, ...changes }: Partial<PaymentModel> & { by: ChangeAuthor },
): Promise<PaymentModel> {
  return retryTransaction({ postgres }, async (transaction) => {
    const current = await PaymentModel.fetch(payment, payment.id, { database: transaction, lock: true });
    return PaymentModel.change(current, changes, { by, database: transaction });
  });
}

type RefundAttempt = { payment: PaymentModel; refund: PaymentRefundModel; by: ChangeAuthor };

async function processRefund(stores: Stores, { payment, refund, by }: RefundAttempt): Promise<PaymentModel> {
  const outcome = await requestRefund(stores, { payment, refund, by });
  if (outcome === null) {
    const next_attempt_at = computeProviderRecheckAt(by.now).toISOString();
    return updateNextAttempt(stores, payment, { next_attempt_at, by });
  }
  return retryTransaction(stores, async (transaction) => {
    const locked = await lockPayment(transaction, payment, payment.id);
    const current = await PaymentRefundModel.fetch(payment, refund.id, { database: transaction, lock: true });
    if (current.refund_status !== 'pending') return locked.payment;
    if (outcome.outcome === 'pending') {
      const { gateway_refund_id } = outcome;
      await PaymentRefundModel.change(current, { gateway_refund_id }, { by, database: transaction });
      const next_attempt_at = computeProviderRecheckAt(by.now).toISOString();
      return PaymentModel.change(locked.payment, { next_attempt_at }, { by, database: transaction });
    }
    return endRefund(stores, transaction, { ...locked, refund: current, outcome, by });
  });
}

type EndedRefund = LockedPayment & {
  refund: PaymentRefundModel;
  outcome: Exclude<RefundOutcome, { outcome: 'pending' }>;
  by: ChangeAuthor;
};

/** Records the outcome of a pending refund. */
export async function endRefund(
  stores: Stores,
  transaction: Transaction,
  { refund, outcome, ...locked }: EndedRefund,
): Promise<PaymentModel> {
  const { payment, by } = locked;
  const isMade = outcome.outcome === 'succeeded';
  const changes = isMade
    ? { refund_status: 'succeeded' as const, gateway_refund_id: outcome.gateway_refund_id || null }
    : { refund_status: 'failed' as const, error_message: outcome.error };
  await PaymentRefundModel.change(refund, changes, { by, database: transaction });
  // A pending refund is not sent to connected providers; this event causes it to be sent.
  if (isMade && isOfProvider(payment)) await emit(transaction, 'payment.updated', { record: payment, by });
  if (isMade) return payment;
  return reverseRefund(stores, transaction, { ...locked, refund, error: outcome.error });
}

/** Requests a refund. Returns null if the provider could not be reached; the refund is requested again later. */
async function requestRefund(stores: Stores, { payment, refund, by }: RefundAttempt): Promise<RefundOutcome | null> {
  const { payment_gateway, gateway_payment_id } = payment;
  if (!payment_gateway || !gateway_payment_id) return { outcome: 'succeeded', gateway_refund_id: '' };
  try {
    const { id: key, amount, requested_at } = refund;
    return await createProvider(stores, payment_gateway).refund(payment, {
      key,
      gateway_payment_id,
      amount,
      currency: payment.currency,
      requested_at: new Date(toInstant(requested_at)),
      refunded_before: await sumMadeRefunds(stores, payment),
      now: by.now,
    });
  } catch (error) {
    if (isUnavailable(error)) return null;
    throw error;
  }
}

async function sumMadeRefunds({ postgres }: Stores, payment: PaymentModel): Promise<string> {
  const made = (await listRefunds(payment, postgres)).filter(({ refund_status }) => refund_status === 'succeeded');
  return sumDecimals(made.map(({ amount }) => new Decimal(amount))).toFixed();
}

/**
 * Key prefix of refunds that the invoice does not show: of an overpaid amount, or of money for a closed payment. A payment has at most one
 * automatic refund of this kind, with only its id after the prefix. A requested repetition also has the request's key.
 */
const OVERPAYMENT = 'surplus';

export async function refundOverpayment(
  transaction: Transaction,
  { payment, overpaid, by }: { payment: PaymentModel; overpaid: Decimal; by: ChangeAuthor },
): Promise<PaymentModel> {
  if ((await listRefunds(payment, transaction)).some(isOverpaymentRefund)) return payment;
  const amount = overpaid.toFixed();
  const reason = 'its invoice did not need it any more';
  await addRefund(transaction, payment, { amount, reason, idempotency_key: `${OVERPAYMENT}/${payment.id}`, by });
  return updateRefunded(transaction, { payment, amount, by });
}

/**
 * Writes the refund to the payment and its invoice before the provider is called, so that no other request refunds the same money
 * meanwhile.
 */
async function bookRefund(
  transaction: Transaction,
  { payment, invoice, amount, by }: LockedPayment & { amount: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const record = await updateRefunded(transaction, { payment, amount, by });
  const { by_notes } = await loadCharges(invoice, transaction);
  const changes = applyRefund(invoice, { refunded: amount, by_notes, at: by.now });
  const changed = await InvoiceModel.change(invoice, changes, { by, database: transaction });
  await emit(transaction, 'invoice.update.payment', { record: changed, by });
  return record;
}
