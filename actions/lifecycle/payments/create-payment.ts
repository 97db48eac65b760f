/**
 * Creates a payment for an invoice and processes it unless the request disables that: received money is applied, and a charge is made
 * (docs/rules/payments.md, "Making a payment"). One key is one payment; a unique index enforces it.
 */
import { alreadyExists, FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { deriveFirstStatus, OPEN } from '../../../core/payments/moves.ts';
import type { CreatePayment, PaymentMethodType } from '../../../core/payments/record.ts';
import { checkAmount, checkPayable, findDifferingField, parsePaymentMethod } from '../../../core/payments/request.ts';
import { computeOutcomeCheckAt } from '../../../core/payments/schedule.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { findPayingWallet } from '../../credits/wallets/pay-with-credits.ts';
import { emit } from '../../foundation/emit.ts';
import { findPaymentMethod, loadUsableGateway } from '../../invoicing/collection/find-payment-method.ts';
import { type LockedInvoice, lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { deriveKeys, isWithinMinute } from '../../payments/derived-keys.ts';
import { processPayment } from './process-payment.ts';

type CreatePaymentInput = { readonly request: CreatePayment; readonly author: Author };

export async function createPayment(
  stores: Stores,
  scope: Scope,
  { request, author }: CreatePaymentInput,
): Promise<PaymentModel> {
  const method = parsePaymentMethod(request);
  const { known } = await findPaymentKey(stores.postgres, scope, { request, author });
  if (known) return resumeRequestedPayment(stores, checkSamePayment(known, request), { request, author });
  const made = await addPayment(stores, scope, { request, author, method }).catch(async (error: unknown) => {
    // A concurrent request may have created the payment and paid the invoice.
    if (!(error instanceof FarthingError) || error.http_status_code >= 500) throw error;
    const { known: first } = await findPaymentKey(stores.postgres, scope, { request, author });
    if (first) return { first };
    throw error;
  });
  if ('first' in made)
    return resumeRequestedPayment(stores, checkSamePayment(made.first, request), { request, author });
  return request.process_payment ? processPayment(stores, scope, { id: made.id, by: author, isNew: true }) : made;
}

/** Processes the payment of an earlier request that crashed before it did so. */
async function resumeRequestedPayment(
  stores: Stores,
  payment: PaymentModel,
  { request, author }: CreatePaymentInput,
): Promise<PaymentModel> {
  const isLeft = OPEN.includes(payment.payment_status) && !payment.gateway_tracking_id;
  if (!request.process_payment || !isLeft) return payment;
  return processPayment(stores, payment, { id: payment.id, by: author, isNew: true });
}

async function addPayment(
  stores: Stores,
  scope: Scope,
  { request, author, method }: CreatePaymentInput & { method: PaymentMethodType },
): Promise<PaymentModel | { first: PaymentModel }> {
  return retryTransaction(stores, async (transaction) => {
    const lockedInvoice = await lockInvoice(transaction, scope, request.destination_id);
    // Two equal requests in different minutes have different keys, so the earlier one is searched under the invoice's
    // lock.
    const { key, known } = await findPaymentKey(transaction, scope, { request, author });
    if (known) return { first: known };
    checkPayable(lockedInvoice.invoice);
    checkAmount({ ...request, method }, lockedInvoice.invoice);
    const chargeTarget = await resolveCharge(transaction, lockedInvoice, { request, method, now: author.now });
    const payment_status = deriveFirstStatus(method, request.process_payment);
    // If this process crashes, the scheduler processes the payment. Without `process_payment` it waits for a request.
    const record = {
      ...chargeTarget,
      ...createdBy(author),
      id: newId('payment', author.now.getTime()),
      idempotency_key: key,
      customer_id: lockedInvoice.invoice.customer_id,
      destination_type: request.destination_type,
      destination_id: lockedInvoice.invoice.id,
      invoice_number: lockedInvoice.invoice.invoice_number ?? null,
      payment_method_type: method,
      amount: request.amount,
      currency: lockedInvoice.invoice.currency,
      payment_status,
      track_attempts: method !== 'OFFLINE' && method !== 'CREDITS',
      success_url: request.success_url,
      cancel_url: request.cancel_url,
      metadata: request.metadata,
      save_card_and_make_default: request.save_card_and_make_default,
      next_attempt_at: request.process_payment ? computeOutcomeCheckAt(author.now).toISOString() : null,
    };
    const conflict = `a payment with this idempotency_key exists already`;
    const payment = await PaymentModel.add(scope, record, { database: transaction, conflict });
    await emit(transaction, 'payment.created', { record: payment, by: author });
    return payment;
  });
}

async function resolveCharge(
  transaction: Transaction,
  { invoice, subscription }: LockedInvoice,
  { request, method, now }: { request: CreatePayment; method: PaymentMethodType; now: Date },
) {
  if (method === 'OFFLINE') return { payment_gateway: null, payment_method_id: '' };
  if (method === 'CREDITS') {
    const walletQuery = { wallet_id: request.payment_method_id, amount: request.amount, now };
    return { payment_gateway: null, payment_method_id: (await findPayingWallet(transaction, invoice, walletQuery)).id };
  }
  if (method === 'PAYMENT_LINK') {
    const payment_gateway = await loadUsableGateway(transaction, invoice, request.payment_gateway);
    return { payment_gateway, payment_method_id: '' };
  }
  const requested = request.payment_method_id ?? (subscription?.gateway_payment_method_id || null);
  return findPaymentMethod(transaction, invoice, {
    customer_id: invoice.customer_id,
    requested,
    gateway: request.payment_gateway,
  });
}

type PaymentKey = { readonly key: string; readonly known: PaymentModel | undefined };

/**
 * Returns the key of the request and the payment that already has it. A request without a key gets one from its content, equal for equal
 * requests within a minute.
 */
async function findPaymentKey(
  database: Database,
  scope: Scope,
  { request, author: { now } }: CreatePaymentInput,
): Promise<PaymentKey> {
  const { idempotency_key: key } = request;
  if (key) return { key, known: await findByKey(database, scope, key) };
  const derived = deriveKeys(listKeyParts(request), now);
  for (const neighbouring_key of derived.neighbouring_keys) {
    const found = await findOpenKey(database, scope, `payment-${neighbouring_key}`);
    if (found.known && isWithinMinute(found.known.created_at, now)) return found;
  }
  return findOpenKey(database, scope, `payment-${derived.key}`);
}

/**
 * Finds the derived key of a request without one. A payment that failed or was voided no longer blocks its key: a repeated request is a new
 * payment under the next key.
 */
async function findOpenKey(database: Database, scope: Scope, first: string): Promise<PaymentKey> {
  let key = first;
  for (;;) {
    const known = await findByKey(database, scope, key);
    if (!known || !OVER.includes(known.payment_status)) return { key, known };
    key = `${first}-${known.id}`;
  }
}

const OVER: readonly PaymentModel['payment_status'][] = ['FAILED', 'VOIDED', 'REFUNDED'];

async function findByKey(database: Database, scope: Scope, idempotency_key: string): Promise<PaymentModel | undefined> {
  const [payment] = await PaymentModel.in(scope, database).where({ idempotency_key, status: 'published' });
  return payment;
}

function checkSamePayment(payment: PaymentModel, request: CreatePayment): PaymentModel {
  const field = findDifferingField(payment, request);
  if (field === null) return payment;
  throw alreadyExists(`the idempotency_key is that of a payment with another ${field}`, { field, id: payment.id });
}

/** Lists the parts of a request from which its key is derived. Requests that differ only in metadata have different keys. */
function listKeyParts(request: CreatePayment): unknown[] {
  const { destination_id, payment_method_type, payment_method_id, payment_gateway, amount, currency } = request;
  const own = Object.entries(request.metadata ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    destination_id,
    payment_method_type,
    payment_method_id,
    payment_gateway,
    amount,
    currency.toLowerCase(),
    ...(own.length > 0 ? [own] : []),
  ];
}
