/** Applies the outcome of a payment to the payment and its invoice (docs/rules/payments.md, "What becomes of the invoice"). */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { applyFailedPayment, applyPaidAmount } from '../../../core/invoicing/invoice/payment-status.ts';
import { computeAppliedAmount, describeReceived } from '../../../core/payments/applied-amount.ts';
import { canBePaidInPart } from '../../../core/payments/collection.ts';
import { computeNextAttempt } from '../../../core/payments/schedule.ts';
import type { PaymentOutcome } from '../../../integrations/payment-provider.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentAttemptModel } from '../../../storage/models/payments/payment-attempt.ts';
import { debitPayment, lockCoveredByCredits } from '../../credits/wallets/pay-with-credits.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import {
  addCollectionPayment,
  createCollectionPayment,
  findPendingCollectionPayment,
} from '../../invoicing/collection/create-collection.ts';
import { toCreditsTarget } from '../../invoicing/collection/find-payment-method.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import type { LockedPayment } from '../../payments/lock-payment.ts';
import { storePaymentMethod } from '../../payments/payment-methods.ts';
import { changeInvoicePayment } from './change-invoice-payment.ts';
import { refundOverpayment } from './refund-payment.ts';

export async function applySuccess(
  stores: Stores,
  transaction: Transaction,
  success: PaymentSuccess,
): Promise<PaymentModel> {
  const { payment, invoice, subscription, gateway_payment_id, received_amount, saved_payment_method, by, at } = success;
  const changes = {
    payment_status: 'SUCCEEDED' as const,
    succeeded_at: at ?? by.now.toISOString(),
    error_message: describeReceived(payment, received_amount),
    payment_url: null,
    next_attempt_at: null,
    ...(received_amount === undefined ? {} : { amount: received_amount }),
    ...(gateway_payment_id === null ? {} : { gateway_payment_id }),
    ...toProviderTax(success),
  };
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  // The charge succeeded at the provider after its attempt was recorded as failed.
  const is_late = payment.payment_status === 'PENDING' && gateway_payment_id !== null;
  await endAttempt(transaction, { payment: record, error: null, is_late, by });
  await emit(transaction, 'payment.success', { record, by });
  await saveChargedMethod(transaction, record, { saved_payment_method, by });
  const needed = computeAppliedAmount(record, invoice);
  if (needed.isZero()) await endProcessing(stores, transaction, { payment, invoice, subscription, by });
  else {
    // The charge has ended, so the invoice is no longer PROCESSING.
    const begun =
      payment.payment_status === 'PROCESSING' ? { ...invoice, payment_status: 'PENDING' as const } : invoice;
    const paid = applyPaidAmount(begun, needed.toFixed(), by.now);
    await changeInvoicePayment(stores, transaction, { invoice, subscription, changes: paid, by });
  }
  if (record.is_automatic) await collectRemainder(stores, transaction, { payment: record, by });
  const overpaid = new Decimal(record.amount).minus(needed);
  return overpaid.isZero() ? record : refundOverpayment(transaction, { payment: record, overpaid, by });
}

/** Adds the tax of a merchant of record to the metadata of the payment. */
function toProviderTax({ payment: { gateway_metadata }, provider_tax }: PaymentSuccess): Partial<PaymentModel> {
  return provider_tax === undefined ? {} : { gateway_metadata: { ...gateway_metadata, provider_tax } };
}

/** Saves the charged payment method, or the one that the customer entered on a page, if the payment asks for it. */
async function saveChargedMethod(
  transaction: Transaction,
  payment: PaymentModel,
  { saved_payment_method, by }: Pick<PaymentSuccess, 'saved_payment_method' | 'by'>,
): Promise<void> {
  const { customer_id, payment_gateway, payment_method_id, payment_method_type } = payment;
  const { id, type } = saved_payment_method ?? { id: payment_method_id, type: payment_method_type };
  if (!payment.save_card_and_make_default || !payment_gateway || !id) return;
  await storePaymentMethod(transaction, payment, {
    customer_id,
    payment_gateway,
    gateway_payment_method_id: id,
    payment_method_type: type,
    is_default: true,
    author: { user_id: '', ...by },
  });
}

/** Ends the invoice's status PROCESSING if the payment was in progress. */
async function endProcessing(
  stores: Stores,
  transaction: Transaction,
  { payment, invoice, subscription, by }: LockedPayment & { by: ChangeAuthor },
): Promise<void> {
  if (payment.payment_status !== 'PROCESSING') return;
  const changes = applyFailedPayment(invoice, by.now);
  await changeInvoicePayment(stores, transaction, { invoice, subscription, changes, by });
}

type AppliedPayment = { readonly payment: PaymentModel; readonly by: ChangeAuthor };

/**
 * Collects the amount that an automatic payment left for a postpaid wallet. If the wallet has fewer credits by now, another automatic
 * payment follows.
 */
async function collectRemainder(stores: Stores, transaction: Transaction, applied: AppliedPayment): Promise<void> {
  if (await payRemainder(stores, transaction, applied)) return;
  const { invoice, subscription } = await lockInvoice(transaction, applied.payment, applied.payment.destination_id);
  const isCollected = await findPendingCollectionPayment(transaction, invoice);
  if (!isCollected && invoice.invoice_status === 'FINALIZED')
    await createCollectionPayment(transaction, { invoice, subscription, now: applied.by.now });
}

/**
 * Pays as much of the remaining amount as a postpaid wallet can; returns false if it can pay nothing. The success of this payment in turn
 * collects the remainder.
 */
async function payRemainder(
  stores: Stores,
  transaction: Transaction,
  { payment, by }: AppliedPayment,
): Promise<boolean> {
  const current = await lockInvoice(transaction, payment, payment.destination_id);
  const { invoice } = current;
  if (invoice.invoice_status !== 'FINALIZED' || new Decimal(invoice.amount_remaining).lte(0)) return false;
  const covered = await lockCoveredByCredits(transaction, invoice, by.now);
  if (!covered) return false;
  const collection = { ...toCreditsTarget(covered), amount: covered.amount.toFixed() };
  const added = await addCollectionPayment(transaction, { invoice, collection, now: by.now }, 'INITIATED');
  await debitPayment(transaction, { payment: added, invoice, author: { user_id: '', ...by } });
  await applySuccess(stores, transaction, { ...current, payment: added, gateway_payment_id: null, by });
  return true;
}

type PaymentSuccess = LockedPayment & {
  gateway_payment_id: string | null;
  received_amount?: string | undefined;
  provider_tax?: string | undefined;
  saved_payment_method?: Extract<PaymentOutcome, { outcome: 'succeeded' }>['saved_payment_method'];
  by: ChangeAuthor;
  at?: string | undefined;
};

/** Applies a failed attempt. An automatic payment is retried as often as `payment_config` allows. */
export async function applyFailure(
  stores: Stores,
  transaction: Transaction,
  {
    error,
    gateway_payment_id,
    by,
    ...current
  }: LockedPayment & { error: string; gateway_payment_id: string | null; by: ChangeAuthor },
): Promise<PaymentModel> {
  const { payment } = current;
  const config = await loadSetting(payment, 'payment_config', transaction);
  const retry_at = isRetried(current) ? computeNextAttempt(payment.attempt_count, config, by.now) : null;
  const isPartial = payment.is_automatic && canBePaidInPart(current.invoice, current.subscription);
  const after = async (declined: PaymentModel) => {
    if (isPartial) await payRemainder(stores, transaction, { payment: declined, by });
    return declined;
  };
  if (retry_at === null)
    return after(await failPayment(stores, transaction, { ...current, error, gateway_payment_id, by }));
  const changes = {
    payment_status: 'PENDING' as const,
    error_message: error,
    payment_url: null,
    gateway_payment_id,
    next_attempt_at: retry_at.toISOString(),
  };
  return after(await writeFailure(stores, transaction, { ...current, changes, by }));
}

/**
 * Whether the payment is retried: automatic collections are. The exception is the first collection of a subscription
 * created with `error_if_incomplete`, whose creation is refused instead.
 */
function isRetried({ payment, invoice, subscription }: LockedPayment): boolean {
  const isRefused =
    invoice.billing_reason === 'SUBSCRIPTION_CREATE' &&
    subscription?.subscription_status === 'incomplete' &&
    subscription.payment_behavior === 'error_if_incomplete' &&
    isFirstOutcome(payment);
  return payment.is_automatic && !isRefused;
}

/**
 * Whether the request still waits for this outcome of the first attempt. If the attempt took long or had no outcome,
 * the request was answered with an incomplete subscription, and the payment is retried as usual.
 */
function isFirstOutcome({ attempt_count, gateway_payment_id, error_message }: PaymentModel): boolean {
  return attempt_count <= 1 && !gateway_payment_id && !error_message;
}

/**
 * Fails the payment for good. Afterwards its checkout is ended, or its subscription is changed if the setting
 * `after_last_try` requires it.
 */
export async function failPayment(
  stores: Stores,
  transaction: Transaction,
  { error, gateway_payment_id, at, by, ...current }: PaymentFailure,
): Promise<PaymentModel> {
  const { payment, subscription } = current;
  const { after_last_try } = await loadSetting(payment, 'payment_config', transaction);
  const isExhausted = payment.is_automatic && subscription !== null && after_last_try !== 'keep_active';
  const isFollowed = isExhausted || Boolean(payment.checkout_session_id);
  const changes = {
    payment_status: 'FAILED' as const,
    failed_at: at ?? by.now.toISOString(),
    error_message: error,
    payment_url: null,
    next_attempt_at: isFollowed ? by.now.toISOString() : null,
    ...(gateway_payment_id ? { gateway_payment_id } : {}),
  };
  return writeFailure(stores, transaction, { ...current, changes, by });
}

type PaymentFailure = LockedPayment & {
  error: string;
  gateway_payment_id?: string | null;
  at?: string | undefined;
  by: ChangeAuthor;
};

async function writeFailure(
  stores: Stores,
  transaction: Transaction,
  { payment, invoice, subscription, changes, by }: LockedPayment & { changes: Partial<PaymentModel>; by: ChangeAuthor },
): Promise<PaymentModel> {
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  await endAttempt(transaction, { payment: record, error: record.error_message ?? null, by });
  await emit(transaction, 'payment.failed', { record, by });
  await endProcessing(stores, transaction, { payment, invoice, subscription, by });
  return record;
}

type EndedAttempt = { payment: PaymentModel; error: string | null; is_late?: boolean; by: ChangeAuthor };

async function endAttempt(
  transaction: Transaction,
  { payment, error, is_late = false, by }: EndedAttempt,
): Promise<void> {
  const [attempt] = await PaymentAttemptModel.in(payment, transaction).where({
    payment_id: payment.id,
    attempt_number: findAttemptNumber(payment),
    payment_status: is_late ? 'FAILED' : 'PROCESSING',
  });
  if (!attempt) return;
  const payment_status = error === null ? ('SUCCEEDED' as const) : ('FAILED' as const);
  await PaymentAttemptModel.change(attempt, { payment_status, error_message: error }, { by, database: transaction });
}

/** Returns the number of the attempt from its key, because a late success may belong to an earlier attempt than the last one. */
function findAttemptNumber({ gateway_tracking_id, attempt_count }: PaymentModel): number {
  const number = /\/(\d+)$/.exec(gateway_tracking_id ?? '')?.[1];
  return number === undefined ? attempt_count : Number(number);
}
