/**
 * Updates a payment manually: its fields before it is final, and its status SUCCEEDED, FAILED or VOIDED if no provider decides it
 * (docs/rules/payments.md, "Manual updates").
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { revertPaidAmount } from '../../../core/invoicing/invoice/payment-status.ts';
import { hasPaymentPage } from '../../../core/payments/applied-amount.ts';
import { checkMove, OPEN } from '../../../core/payments/moves.ts';
import { describeDecidedPage } from '../../../core/payments/page-closing.ts';
import type { UpdatePayment } from '../../../core/payments/record.ts';
import { checkAmount, checkPayable } from '../../../core/payments/request.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { loadRefundLimit } from '../../credits/wallets/pending-credits.ts';
import { listOwnGateways } from '../../foundation/connections/payment-gateways.ts';
import { emit } from '../../foundation/emit.ts';
import { loadUsableGateway } from '../../invoicing/collection/find-payment-method.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { applySuccess, failPayment } from './apply-outcome.ts';
import { changeInvoicePayment } from './change-invoice-payment.ts';
import { isDecidedByProvider, resolvePendingRefunds, storeReason } from './resolve-payment.ts';

type UpdatePaymentInput = { readonly id: string; readonly request: UpdatePayment; readonly author: Author };

export async function updatePayment(
  stores: Stores,
  scope: Scope,
  { id, request, author }: UpdatePaymentInput,
): Promise<PaymentModel> {
  return retryTransaction(stores, async (transaction) => {
    const locked = await lockPayment(transaction, scope, id);
    const written = await writeFields(transaction, locked, { request, author });
    const changed = await storeReason(transaction, written, { request, author });
    if (request.pending_refunds)
      return resolvePendingRefunds(stores, transaction, { ...locked, payment: changed, request, author });
    const status = request.payment_status;
    if (!status || status === locked.payment.payment_status) return changed;
    return writeStatus(stores, transaction, { ...locked, payment: changed, request, author });
  });
}

const BEFORE_SETTLEMENT = ['amount', 'payment_gateway', 'payment_method_id', 'gateway_payment_id'] as const;

async function writeFields(
  transaction: Transaction,
  { payment, invoice }: LockedPayment,
  { request, author }: { request: UpdatePayment; author: Author },
): Promise<PaymentModel> {
  const given = Object.fromEntries(
    BEFORE_SETTLEMENT.flatMap((field) => (request[field] ? [[field, request[field]]] : [])),
  ) as Partial<PaymentModel>;
  const [first] = Object.keys(given);
  if (first && hasPaymentPage(payment))
    throw notAllowed(`${first} of a payment whose page is open cannot be changed: void it, and make another`, {
      field: first,
    });
  if (first && !OPEN.includes(payment.payment_status))
    throw notAllowed(`${first} of a payment that is ${payment.payment_status} cannot be changed`, { field: first });
  if (payment.is_automatic && request.payment_status !== 'SUCCEEDED') checkPreservedByRetries(payment, given);
  if (given.amount) checkAmount({ ...payment, amount: given.amount, method: payment.payment_method_type }, invoice);
  if (given.payment_gateway) await loadUsableGateway(transaction, payment, given.payment_gateway);
  if (first && payment.payment_method_type === 'OFFLINE' && first !== 'amount' && first !== 'gateway_payment_id')
    throw invalid(first, 'does not go with OFFLINE');
  const fields = { ...(request.metadata ? { metadata: request.metadata } : {}), ...given };
  const isError = typeof request.error_message === 'string' && request.payment_status !== 'FAILED';
  const changes = isError ? { ...fields, error_message: request.error_message } : fields;
  const record = await PaymentModel.change(payment, changes, { by: author, database: transaction });
  if (record !== payment) await emit(transaction, 'payment.updated', { record, by: author });
  return record;
}

/**
 * Refuses changes of a payment with retries ahead: a retry charges the remaining amount to the current payment method
 * and would overwrite them.
 */
function checkPreservedByRetries(payment: PaymentModel, changes: Partial<PaymentModel>): void {
  const isSame = (one: 'amount' | 'payment_gateway' | 'payment_method_id') =>
    one === 'amount' ? new Decimal(changes.amount!).eq(payment.amount) : changes[one] === payment[one];
  const field = (['amount', 'payment_gateway', 'payment_method_id'] as const).find(
    (one) => changes[one] && !isSame(one),
  );
  if (!field) return;
  throw notAllowed(
    `${field} of a payment that is collected automatically follows from its invoice and its customer: store another payment method, or create a payment`,
    { field },
  );
}

type PaymentStatusChange = LockedPayment & { request: UpdatePayment; author: Author };

async function writeStatus(
  stores: Stores,
  transaction: Transaction,
  input: PaymentStatusChange,
): Promise<PaymentModel> {
  const { payment, invoice, request, author: by } = input;
  const status = request.payment_status!;
  if (payment.payment_status === 'PROCESSING' && !request.reason)
    throw notAllowed('its provider decides what becomes of a payment that is PROCESSING', { field: 'payment_status' });
  if (status === 'REFUNDED' || status === 'PARTIALLY_REFUNDED' || request.refunded_at)
    throw invalid('payment_status', `${status} follows from a refund: POST /payments/${payment.id}/refund`);
  if (status !== 'SUCCEEDED' && status !== 'FAILED' && status !== 'VOIDED')
    throw invalid('payment_status', `${status} cannot be recorded by a person`, {
      allowed: ['SUCCEEDED', 'FAILED', 'VOIDED'],
    });
  if (payment.payment_method_type === 'CREDITS' && status === 'SUCCEEDED')
    throw notAllowed('credits are taken when the payment is processed: POST /payments/{id}/process', {
      field: 'payment_status',
    });
  checkMove(payment.payment_status, status);
  checkInstants(request, by);
  if (status === 'VOIDED') return voidPayment(stores, transaction, input);
  if (hasPaymentPage(payment) && !request.reason)
    throw notAllowed('its provider decides what becomes of a payment whose page is open: void it, and record another', {
      field: 'payment_status',
    });
  if (status === 'FAILED') {
    const reason = request.error_message ?? request.reason ?? 'recorded by a person';
    const gateway = payment.payment_gateway!;
    const error = hasPaymentPage(payment) ? describeDecidedPage(payment, { gateway, reason }) : reason;
    return failPayment(stores, transaction, { ...input, error, at: request.failed_at ?? undefined, by });
  }
  if (!isDecidedByProvider(payment)) {
    checkPayable(invoice);
    checkAmount({ ...payment, method: payment.payment_method_type }, invoice);
  }
  const at = request.succeeded_at ?? undefined;
  return applySuccess(stores, transaction, {
    ...input,
    gateway_payment_id: payment.gateway_payment_id ?? null,
    at,
    by,
  });
}

/** Checks the instants: each requires its status and is not in the future. */
function checkInstants(request: UpdatePayment, { now }: Author): void {
  const goWith = { succeeded_at: 'SUCCEEDED', failed_at: 'FAILED', voided_at: 'VOIDED' } as const;
  for (const [field, status] of Object.entries(goWith)) {
    const at = request[field as keyof typeof goWith];
    if (!at) continue;
    if (request.payment_status !== status) throw invalid(field, `goes with ${status} alone`);
    if (Date.parse(at) > now.getTime()) throw invalid(field, 'must not lie ahead');
  }
}

/** Voids a payment that was recorded by mistake. Money that a provider took is returned by a refund instead. */
async function voidPayment(
  stores: Stores,
  transaction: Transaction,
  input: PaymentStatusChange,
): Promise<PaymentModel> {
  const { payment, invoice, subscription, request, author: by } = input;
  const wasReceived = payment.payment_status === 'SUCCEEDED';
  if (wasReceived && payment.payment_method_type === 'CREDITS')
    throw notAllowed('its credits were taken from a wallet: give them back by a refund');
  if (wasReceived && payment.payment_gateway)
    throw notAllowed(`its money was taken by ${payment.payment_gateway}: give it back by a refund`);
  if (wasReceived && (invoice.invoice_status !== 'FINALIZED' || new Decimal(invoice.refunded_amount).gt(0)))
    throw notAllowed('a part of what was paid of its invoice was refunded: the payment stays', {
      invoice_id: invoice.id,
    });
  if (wasReceived) await checkKeepsPurchase(transaction, input);
  // After this transaction the page is closed at its provider and the checkout is ended.
  const hasLeftovers = hasPaymentPage(payment) || payment.checkout_session_id;
  const changes = {
    payment_status: 'VOIDED' as const,
    voided_at: request.voided_at ?? by.now.toISOString(),
    payment_url: null,
    next_attempt_at: hasLeftovers && !wasReceived ? by.now.toISOString() : null,
  };
  const record = await PaymentModel.change(payment, changes, { by, database: transaction });
  await emit(transaction, 'payment.updated', { record, by });
  if (!wasReceived) return record;
  const paid = revertPaidAmount(invoice, payment.amount, by.now);
  await changeInvoicePayment(stores, transaction, { invoice, subscription, changes: paid, by });
  return record;
}

/** Refuses to void a payment that bought credits which are in the wallet: the customer would get them for free. */
async function checkKeepsPurchase(transaction: Transaction, { payment, invoice }: LockedPayment): Promise<void> {
  const most = await loadRefundLimit(transaction, invoice);
  if (most?.lt(payment.amount)) throw notAllowed('the credits that it has bought are in a wallet: the payment stays');
}

/** Archives a payment, unless money was received with it or may still be. */
export async function archivePayment(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await retryTransaction({ postgres }, async (transaction) => {
    const { payment } = await lockPayment(transaction, scope, id);
    if (!ARCHIVED.includes(payment.payment_status))
      throw notAllowed(`a payment that is ${payment.payment_status} cannot be archived`, { allowed: ARCHIVED });
    if (payment.payment_status === 'INITIATED' && hasPaymentPage(payment))
      throw notAllowed('the customer may still pay on its open payment page: void the payment first', {
        payment_url: payment.payment_url,
      });
    if (payment.payment_status !== 'PENDING' && payment.next_attempt_at !== null)
      throw notAllowed(
        'its refund, the closing of its page or the handling of its failure is not finished: try again later',
        {
          next_attempt_at: payment.next_attempt_at,
        },
      );
    checkNotAtProvider(payment);
    const changes = { status: 'archived' as const, next_attempt_at: null };
    await PaymentModel.change(payment, changes, { by: author, database: transaction });
  });
}

/**
 * Refuses to archive a payment that a connected provider knows. A declined charge may still succeed, and events of the provider are matched
 * with published payments only.
 */
function checkNotAtProvider(payment: PaymentModel): void {
  const { payment_gateway: gateway, gateway_payment_id, gateway_tracking_id, connection_id } = payment;
  if (gateway && listOwnGateways()[gateway]) return;
  const isKnown = gateway_tracking_id || connection_id || (gateway && gateway_payment_id);
  if (!isKnown) return;
  throw notAllowed(
    'its provider may still report money for it: a payment that was requested or paid there cannot be archived',
    {
      payment_gateway: gateway,
      gateway_payment_id,
    },
  );
}

const ARCHIVED: readonly PaymentModel['payment_status'][] = ['INITIATED', 'PENDING', 'FAILED', 'VOIDED'];
