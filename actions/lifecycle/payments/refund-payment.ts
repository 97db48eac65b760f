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
import { applyPaidAmount, applyRefund } from '../../../core/invoicing/invoice/payment-status.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import type { RecordedRefunds } from '../../../core/payments/provider-payments.ts';
import type { RefundPayment } from '../../../core/payments/record.ts';
import { computeOutcomeCheckAt, computeProviderRecheckAt } from '../../../core/payments/schedule.ts';
import type { RefundOutcome } from '../../../integrations/payment-provider.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { loadRefundLimit } from '../../credits/wallets/pending-credits.ts';
import { returnPaymentCredits } from '../../credits/wallets/return-credits.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { loadCharges } from '../../invoicing/credit-notes/load-charges.ts';
import { deriveKeys, isWithinMinute } from '../../payments/derived-keys.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { createProvider } from '../../payments/providers.ts';
import { changeInvoicePayment } from './change-invoice-payment.ts';

export async function refundPayment(
  stores: Stores,
  scope: Scope,
  { id, request, author }: { id: string; request: RefundPayment; author: Author },
): Promise<PaymentModel> {
  const { payment, refund } = await retryTransaction(stores, async (transaction) => {
    const locked = await lockPayment(transaction, scope, id);
    const derived = deriveKeys([request.amount, request.reason], author.now);
    const idempotency_key = request.idempotency_key ?? derived.key;
    const refunds = await listRefunds(locked.payment, transaction);
    const isSame = (one: PaymentRefundModel) =>
      one.idempotency_key === idempotency_key ||
      (!request.idempotency_key &&
        derived.neighbouring_keys.includes(one.idempotency_key) &&
        isWithinMinute(one.created_at, author.now));
    const known = refunds.find(isSame);
    if (known) return { payment: locked.payment, refund: sameRefund(known, request) };
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
    return { payment: await bookRefund(transaction, { ...locked, amount, by: author }), refund };
  });
  const after = await processRefunds(stores, payment, author);
  const ended = await PaymentRefundModel.fetch(scope, refund.id, { database: stores.postgres });
  if (ended.refund_status === 'failed')
    throw notAllowed(`nothing was refunded: ${ended.error_message}`, { refund_id: ended.id });
  return after;
}

/** Returns the known refund of a repeated key, which must have the same amount. */
function sameRefund(known: PaymentRefundModel, { amount }: RefundPayment): PaymentRefundModel {
  if (amount === null || new Decimal(amount).eq(known.amount)) return known;
  const about = { field: 'amount', id: known.id, amount: known.amount };
  throw alreadyExists('the idempotency_key is that of a refund of another amount', about);
}

type NewRefund = { amount: string; reason: string | null; idempotency_key: string; by: ChangeAuthor };

/** `transaction` has locked the payment. */
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
    // A refund that needs no call, because it has no provider or was made there already, is complete at once.
    refund_status: is_made ? 'succeeded' : 'pending',
  };
  return PaymentRefundModel.add(payment, record, { database: transaction });
}

/** Records a refund that was made at the provider; it is not requested there again. The caller has locked the invoice. */
export async function recordMadeRefund(
  transaction: Transaction,
  { reason, idempotency_key, ...refund }: LockedPayment & NewRefund,
): Promise<void> {
  const { payment, amount, by } = refund;
  await addRefund(transaction, payment, { amount, reason, idempotency_key, by, is_made: true });
  await bookRefund(transaction, refund);
}

function isOfProvider({ payment_gateway, gateway_payment_id }: PaymentModel): boolean {
  return Boolean(payment_gateway && gateway_payment_id);
}

/**
 * Loads the refundable amount. Amounts that a credit note, a void, a change or a correction returned are not refunded again. For an invoice
 * whose credits have arrived only the overpaid amount is refundable.
 */
async function loadRefundable({ payment, invoice }: LockedPayment, transaction: Transaction): Promise<Decimal> {
  const left = computeRefundablePayment(payment, invoice, await loadCharges(invoice, transaction));
  const most = await loadRefundLimit(transaction, invoice);
  return most === null ? left : Decimal.min(left, most);
}

function computeRefundAmount({ payment }: LockedPayment, left: Decimal, request: RefundPayment): string {
  const { payment_status } = payment;
  if (payment_status !== 'SUCCEEDED' && payment_status !== 'PARTIALLY_REFUNDED')
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
  return (await sendPendingRefunds(stores, payment, by)).payment;
}

/** `is_answered`: the provider has named the state of each pending refund. */
export async function sendPendingRefunds(
  stores: Stores,
  payment: PaymentModel,
  by: ChangeAuthor,
): Promise<{ payment: PaymentModel; is_answered: boolean }> {
  const open = (await listRefunds(payment, stores.postgres)).filter(({ refund_status }) => refund_status === 'pending');
  let after = payment;
  let is_answered = true;
  for (const refund of open) {
    const outcome = await requestRefund(stores, { payment: after, refund, by });
    is_answered &&= outcome !== null;
    after = await applyRefundOutcome(stores, { payment: after, refund, outcome, by });
  }
  return { payment: after.next_attempt_at === null ? after : await endRefunds(stores, after, by), is_answered };
}

export async function loadRecordedRefunds(payment: PaymentModel, database: Database): Promise<RecordedRefunds> {
  const refunds = await listRefunds(payment, database);
  const made = refunds.filter(({ refund_status }) => refund_status === 'succeeded');
  return {
    made: sumDecimals(made.map(({ amount }) => new Decimal(amount))),
    is_pending: refunds.some(({ refund_status }) => refund_status === 'pending'),
  };
}

/** Ends the refunds of a payment. No refund is added while the payment is locked, so none is missed. */
function endRefunds({ postgres }: Stores, payment: PaymentModel, by: ChangeAuthor): Promise<PaymentModel> {
  return retryTransaction({ postgres }, async (transaction) => {
    const current = await PaymentModel.fetch(payment, payment.id, { database: transaction, lock: true });
    const isLeft = (await listRefunds(current, transaction)).some(({ refund_status }) => refund_status === 'pending');
    return isLeft ? current : PaymentModel.change(current, { next_attempt_at: null }, { by, database: transaction });
  });
}

/** Updates the current record, because refunds of a payment may run concurrently. */
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

async function applyRefundOutcome(
  stores: Stores,
  { payment, refund, outcome, by }: RefundAttempt & { outcome: RefundOutcome | null },
): Promise<PaymentModel> {
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
    const isMade = outcome.outcome === 'succeeded';
    const changes = isMade
      ? { refund_status: 'succeeded' as const, gateway_refund_id: outcome.gateway_refund_id || null }
      : { refund_status: 'failed' as const, error_message: outcome.error };
    await PaymentRefundModel.change(current, changes, { by, database: transaction });
    // While the refund was pending, it could not be sent to the connected providers.
    if (isMade && isOfProvider(payment)) await emit(transaction, 'payment.updated', { record: locked.payment, by });
    if (isMade) return locked.payment;
    return reverseRefund(stores, transaction, { ...locked, refund: current, error: outcome.error, by });
  });
}

/** Requests a refund. Returns null if the provider could not be reached; the refund is requested again later. */
async function requestRefund(stores: Stores, { payment, refund, by }: RefundAttempt): Promise<RefundOutcome | null> {
  const { payment_gateway, gateway_payment_id } = payment;
  if (!payment_gateway || !gateway_payment_id) return { outcome: 'succeeded', gateway_refund_id: '' };
  try {
    const { id: key, amount, created_at } = refund;
    return await createProvider(stores, payment_gateway).refund(payment, {
      key,
      gateway_payment_id,
      amount,
      currency: payment.currency,
      created_at: new Date(toInstant(created_at)),
      now: by.now,
    });
  } catch (error) {
    if (isUnavailable(error)) return null;
    throw error;
  }
}

/** Key prefix of a refund that the invoice does not show: an overpaid amount, or money for a closed payment. At most one per payment. */
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

function isOverpaymentRefund({ payment_id, idempotency_key }: PaymentRefundModel): boolean {
  return idempotency_key === `${OVERPAYMENT}/${payment_id}`;
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

/** Updates the payment and not its invoice. A payment that was never received keeps its status. */
async function updateRefunded(
  transaction: Transaction,
  { payment, amount, by }: { payment: PaymentModel; amount: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const refunded = new Decimal(payment.refunded_amount).plus(amount);
  const received_status = refunded.lte(0)
    ? 'SUCCEEDED'
    : refunded.gte(payment.amount)
      ? 'REFUNDED'
      : 'PARTIALLY_REFUNDED';
  const changes = {
    refunded_amount: refunded.toFixed(),
    refunded_at: refunded.gt(0) ? by.now.toISOString() : null,
    next_attempt_at: isOfProvider(payment) ? computeOutcomeCheckAt(by.now).toISOString() : null,
    ...(RECEIVED.includes(payment.payment_status)
      ? { payment_status: received_status as PaymentModel['payment_status'] }
      : {}),
  };
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  await emit(transaction, 'payment.updated', { record, by });
  return record;
}

/** Reverses a failed refund by its negative amount; an overpaid amount that could not be refunded is applied as a receipt. */
async function reverseRefund(
  stores: Stores,
  transaction: Transaction,
  { refund, error, ...locked }: LockedPayment & { refund: PaymentRefundModel; error: string; by: ChangeAuthor },
): Promise<PaymentModel> {
  const { by, invoice, subscription } = locked;
  const amount = new Decimal(refund.amount).negated().toFixed();
  if (!isOverpaymentRefund(refund)) return bookRefund(transaction, { ...locked, amount });
  const payment = await updateRefunded(transaction, { ...locked, amount });
  if (!RECEIVED.includes(payment.payment_status)) {
    // The money of a closed payment pays nothing, and the refund is not repeated: a person has to resolve it.
    const error_message = `${refund.amount} ${payment.currency} was received and could not be refunded: ${error}`;
    const record = await PaymentModel.change(payment, { error_message }, { by, database: transaction });
    await emit(transaction, 'payment.updated', { record, by });
    return record;
  }
  const changes = applyPaidAmount(invoice, refund.amount, by.now);
  await changeInvoicePayment(stores, transaction, { invoice, subscription, changes, by });
  return payment;
}

function listRefunds(payment: PaymentModel, database: Database): Promise<PaymentRefundModel[]> {
  return PaymentRefundModel.listBy(payment, { column: 'payment_id', value: payment.id }, database);
}
