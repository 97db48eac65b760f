/** Books the outcome of a payment on the payment and its invoice (docs/rules/payments.md, "What becomes of the invoice"). */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { applyDecline, applyReceipt } from '../../../core/invoicing/invoice/payment-status.ts';
import { canBePaidInPart } from '../../../core/payments/collection.ts';
import { computeAppliedAmount } from '../../../core/payments/receipt.ts';
import { computeNextAttempt } from '../../../core/payments/schedule.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentAttemptModel } from '../../../storage/models/payments/payment-attempt.ts';
import { debitPayment, lockCoveredByCredits } from '../../credits/wallets/pay-with-credits.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { toCreditsTarget } from '../../invoicing/collection/find-payment-method.ts';
import { addCollection, findPendingCollection, planCollection } from '../../invoicing/collection/plan-collection.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import type { LockedPayment } from '../../payments/lock-payment.ts';
import { storePaymentMethod } from '../../payments/payment-methods.ts';
import { changeInvoicePayment } from './change-invoice-payment.ts';
import { refundOverpayment } from './refund-payment.ts';

export async function bookReceipt(
  stores: Stores,
  transaction: Transaction,
  { payment, invoice, subscription, gateway_payment_id, by, at }: PaymentReceipt,
): Promise<PaymentModel> {
  const changes = {
    payment_status: 'SUCCEEDED' as const,
    succeeded_at: at ?? by.now.toISOString(),
    error_message: null,
    payment_url: null,
    next_attempt_at: null,
    ...(gateway_payment_id === null ? {} : { gateway_payment_id }),
  };
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  await endAttempt(transaction, { payment: record, error: null, by });
  await emit(transaction, 'payment.success', { record, by });
  if (record.save_card_and_make_default && record.payment_gateway && record.payment_method_id)
    await storePaymentMethod(transaction, record, {
      customer_id: record.customer_id,
      payment_gateway: record.payment_gateway,
      gateway_payment_method_id: record.payment_method_id,
      payment_method_type: record.payment_method_type,
      is_default: true,
      author: { user_id: '', ...by },
    });
  const needed = computeAppliedAmount(record, invoice);
  if (needed.isZero()) await endProcessing(stores, transaction, { payment, invoice, subscription, by });
  else {
    // A charge that has ended is no longer in progress.
    const begun =
      payment.payment_status === 'PROCESSING' ? { ...invoice, payment_status: 'PENDING' as const } : invoice;
    const paid = applyReceipt(begun, needed.toFixed(), by.now);
    await changeInvoicePayment(stores, transaction, { invoice, subscription, changes: paid, by });
  }
  if (record.is_automatic) await collectRemainder(stores, transaction, { payment: record, by });
  const overpaid = new Decimal(record.amount).minus(needed);
  return overpaid.isZero() ? record : refundOverpayment(transaction, { payment: record, overpaid, by });
}

/** Ends the invoice's status PROCESSING if the payment was in progress. */
async function endProcessing(
  stores: Stores,
  transaction: Transaction,
  { payment, invoice, subscription, by }: LockedPayment & { by: ChangeAuthor },
): Promise<void> {
  if (payment.payment_status !== 'PROCESSING') return;
  const changes = applyDecline(invoice, by.now);
  await changeInvoicePayment(stores, transaction, { invoice, subscription, changes, by });
}

type BookedPayment = { readonly payment: PaymentModel; readonly by: ChangeAuthor };

/** Collects the rest of the invoice, which was planned for a postpaid wallet; the wallet may hold less by now. */
async function collectRemainder(stores: Stores, transaction: Transaction, booked: BookedPayment): Promise<void> {
  if (await payRemainder(stores, transaction, booked)) return;
  const { invoice, subscription } = await lockInvoice(transaction, booked.payment, booked.payment.destination_id);
  const isCollected = await findPendingCollection(transaction, invoice);
  if (!isCollected && invoice.invoice_status === 'FINALIZED')
    await planCollection(transaction, { invoice, subscription, now: booked.by.now });
}

/** Returns whether a postpaid wallet paid a part. The booking of that payment collects the rest. */
async function payRemainder(
  stores: Stores,
  transaction: Transaction,
  { payment, by }: BookedPayment,
): Promise<boolean> {
  const current = await lockInvoice(transaction, payment, payment.destination_id);
  const { invoice } = current;
  if (invoice.invoice_status !== 'FINALIZED' || new Decimal(invoice.amount_remaining).lte(0)) return false;
  const covered = await lockCoveredByCredits(transaction, invoice, by.now);
  if (!covered) return false;
  const collection = { ...toCreditsTarget(covered), amount: covered.amount.toFixed() };
  const added = await addCollection(transaction, { invoice, collection, now: by.now }, 'INITIATED');
  await debitPayment(transaction, { payment: added, invoice, author: { user_id: '', ...by } });
  await bookReceipt(stores, transaction, { ...current, payment: added, gateway_payment_id: null, by });
  return true;
}

type PaymentReceipt = LockedPayment & {
  gateway_payment_id: string | null;
  by: ChangeAuthor;
  at?: string | undefined;
};

/** Books an attempt that brought no money. An automatic collection is retried as often as `payment_config` allows. */
export async function bookDecline(
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
  return after(await writeDecline(stores, transaction, { ...current, changes, by }));
}

/** Automatic collections are retried, except the first one of a subscription created with `error_if_incomplete`: its request is refused. */
function isRetried({ payment, invoice, subscription }: LockedPayment): boolean {
  const isRefused =
    invoice.billing_reason === 'SUBSCRIPTION_CREATE' &&
    subscription?.subscription_status === 'incomplete' &&
    subscription.payment_behavior === 'error_if_incomplete' &&
    isFirstAnswer(payment);
  return payment.is_automatic && !isRefused;
}

/** A first attempt that took long or had no answer was answered as an incomplete subscription, so it is retried as usual. */
function isFirstAnswer({ attempt_count, gateway_payment_id, error_message }: PaymentModel): boolean {
  return attempt_count <= 1 && !gateway_payment_id && !error_message;
}

/** Fails the payment for good. If the setting `after_last_try` requires it, the subscription is changed next. */
export async function failPayment(
  stores: Stores,
  transaction: Transaction,
  { error, gateway_payment_id, at, by, ...current }: PaymentFailure,
): Promise<PaymentModel> {
  const { payment, subscription } = current;
  const { after_last_try } = await loadSetting(payment, 'payment_config', transaction);
  const isFollowed = payment.is_automatic && subscription !== null && after_last_try !== 'keep_active';
  const changes = {
    payment_status: 'FAILED' as const,
    failed_at: at ?? by.now.toISOString(),
    error_message: error,
    payment_url: null,
    next_attempt_at: isFollowed ? by.now.toISOString() : null,
    ...(gateway_payment_id ? { gateway_payment_id } : {}),
  };
  return writeDecline(stores, transaction, { ...current, changes, by });
}

type PaymentFailure = LockedPayment & {
  error: string;
  gateway_payment_id?: string | null;
  at?: string | undefined;
  by: ChangeAuthor;
};

async function writeDecline(
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

async function endAttempt(
  transaction: Transaction,
  { payment, error, by }: { payment: PaymentModel; error: string | null; by: ChangeAuthor },
): Promise<void> {
  const [attempt] = await PaymentAttemptModel.in(payment, transaction).where({
    payment_id: payment.id,
    attempt_number: payment.attempt_count,
    payment_status: 'PROCESSING',
  });
  if (!attempt) return;
  const payment_status = error === null ? ('SUCCEEDED' as const) : ('FAILED' as const);
  await PaymentAttemptModel.change(attempt, { payment_status, error_message: error }, { by, database: transaction });
}
