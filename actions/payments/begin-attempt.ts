/**
 * Takes the next try of a payment: from here until it is concluded nobody else charges the invoice, or voids it. What was received
 * elsewhere is booked at once; what a provider has to be asked for is asked outside of this transaction.
 */
import { Decimal } from '../../core/decimal.ts';
import { FarthingError, notAllowed } from '../../core/error.ts';
import { OPEN } from '../../core/payment/moves.ts';
import { checkAmount, checkPayable } from '../../core/payment/request.ts';
import { computeOutcomeCheckAt, computeProviderRecheckAt } from '../../core/payment/schedule.ts';
import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import { toInstant } from '../../core/time/instant.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { PaymentAttemptModel } from '../../storage/models/payment-attempt.ts';
import { newId } from '../../storage/new-id.ts';
import { transactionBehindOthers } from '../../storage/postgres/behind-others.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';
import { holdWalletAmongAll } from '../wallets/hold-wallet.ts';
import { heldCredits, takeForPayment, walletToPay } from '../wallets/pay-with-credits.ts';
import { bookReceipt, failFor } from './book-outcome.ts';
import { type By, changeInvoicePayment } from './change-invoice-payment.ts';
import { type HeldPayment, holdPayment } from './hold.ts';
import { type Collection, collectionOf, usableGateway } from './way-to-pay.ts';

/** Whether a provider is to be asked now. */
export type Begun = {
  readonly payment: PaymentModel;
  readonly asks: boolean;
  /** Why it has failed before anybody was asked. */
  readonly obstacle?: FarthingError;
};

/** `isAsked`: somebody asks for it, and is refused what cannot be; the clock leaves it. */
export async function beginAttempt(
  stores: Stores,
  scope: Scope,
  { id, by, isAsked, isNew = false }: { id: string; by: By; isAsked: boolean; isNew?: boolean },
): Promise<Begun> {
  return transactionBehindOthers(stores, async (transaction) => {
    const seen = await holdPayment(transaction, scope, id);
    const { payment } = seen;
    if (!OPEN.includes(payment.payment_status)) {
      if (!isAsked || isNew) return { payment, asks: false };
      throw notAllowed(`a payment that is ${payment.payment_status} cannot be processed`, {
        payment_status: payment.payment_status,
      });
    }
    if (!isAsked && !isDue(payment, by.now)) return { payment, asks: false };
    const unpayable = obstacleOf(seen);
    const isCollected = unpayable === null && payment.is_automatic;
    const collection = isCollected ? await collectionNow(transaction, seen, { isAsked, now: by.now }) : null;
    const held = collection ? { ...seen, payment: Object.assign(payment.$clone(), collection) } : seen;
    const obstacle = unpayable ?? (await unusable(transaction, held, { collection, now: by.now }));
    if (obstacle && isNew)
      return { payment: await refuse(stores, transaction, { ...held, obstacle, by }), asks: false, obstacle };
    if (obstacle && isAsked) throw obstacle;
    if (obstacle) return { payment: await leave(stores, transaction, { ...held, obstacle, by }), asks: false };
    switch (held.payment.payment_method_type) {
      case 'CREDITS':
        return { payment: await payWithCredits(stores, transaction, { ...seen, collection, by }), asks: false };
      case 'OFFLINE':
        return {
          payment: await bookReceipt(stores, transaction, { ...seen, gateway_payment_id: null, by }),
          asks: false,
        };
      case 'PAYMENT_LINK':
        return { payment: await openPage(transaction, seen, by), asks: true };
      default:
        return { payment: await claim(stores, transaction, { ...seen, collection, by }), asks: true };
    }
  });
}

/** The clock may go by a list of before: another has made this try since, and the next one has its own time. */
function isDue({ next_attempt_at }: PaymentModel, now: Date): boolean {
  return next_attempt_at !== null && next_attempt_at !== undefined && toInstant(next_attempt_at) <= now.getTime();
}

function obstacleOf({ invoice, payment }: HeldPayment): FarthingError | null {
  try {
    checkPayable(invoice);
    // What is collected automatically is what remains, however much that is by now.
    if (!payment.is_automatic) checkAmount({ ...payment, method: payment.payment_method_type }, invoice);
    return null;
  } catch (error) {
    if (error instanceof FarthingError) return error;
    throw error;
  }
}

/** No provider is asked that is not there, or that moves no money where money is meant; and no wallet that cannot pay so much. */
async function unusable(
  transaction: Transaction,
  { payment, invoice }: HeldPayment,
  { collection, now }: { collection: Collection | null; now: Date },
): Promise<FarthingError | null> {
  if (collection || payment.payment_method_type === 'OFFLINE') return null;
  if (payment.payment_method_type === 'CREDITS') {
    const { customer_id, payment_method_id: id } = payment;
    const { id: wallet_id } = await holdWalletAmongAll(transaction, payment, { customer_id, id });
    return refusalOf(() => walletToPay(transaction, invoice, { wallet_id, amount: payment.amount, now }));
  }
  return refusalOf(() => usableGateway(transaction, payment, payment.payment_gateway ?? null));
}

async function refusalOf(ask: () => Promise<unknown>): Promise<FarthingError | null> {
  try {
    await ask();
    return null;
  } catch (error) {
    if (error instanceof FarthingError && error.http_status_code < 500) return error;
    throw error;
  }
}

/** Another is about to pay the invoice: it waits; else it can never be made. */
async function leave(
  stores: Stores,
  transaction: Transaction,
  { obstacle, by, ...held }: HeldPayment & { obstacle: FarthingError; by: By },
): Promise<PaymentModel> {
  const waits = held.invoice.payment_status === 'PROCESSING' && held.invoice.invoice_status === 'FINALIZED';
  if (!waits) return failFor(stores, transaction, { ...held, error: obstacle.message, by });
  const next_attempt_at = computeProviderRecheckAt(by.now).toISOString();
  return PaymentModel.change(held.payment, { next_attempt_at }, { by, database: transaction });
}

/** Its request is answered that it cannot be made: nobody makes it later. */
function refuse(
  stores: Stores,
  transaction: Transaction,
  { obstacle, by, ...held }: HeldPayment & { obstacle: FarthingError; by: By },
): Promise<PaymentModel> {
  return failFor(stores, transaction, { ...held, error: obstacle.message, by });
}

/** The key is written down before the provider hears of it. */
async function openPage(transaction: Transaction, { payment }: HeldPayment, by: By): Promise<PaymentModel> {
  const changes = {
    gateway_tracking_id: `${payment.id}/link`,
    next_attempt_at: computeOutcomeCheckAt(by.now).toISOString(),
  };
  return PaymentModel.change(payment, changes, { by, database: transaction });
}

type Collecting = HeldPayment & { collection: Collection | null; by: By };

/** `transaction` holds the wallet, which was found to be able to pay. */
async function payWithCredits(
  stores: Stores,
  transaction: Transaction,
  { collection, by, ...held }: Collecting,
): Promise<PaymentModel> {
  const payment = await PaymentModel.change(held.payment, { ...collection }, { by, database: transaction });
  await takeForPayment(transaction, { ...held, payment, author: { user_id: '', ...by } });
  return bookReceipt(stores, transaction, { ...held, payment, gateway_payment_id: null, by });
}

async function claim(stores: Stores, transaction: Transaction, { by, ...held }: Collecting): Promise<PaymentModel> {
  const { payment, invoice, subscription } = held;
  const collected = payment.is_automatic ? asItIsNow(held) : {};
  const attempt_number = payment.attempt_count + 1;
  const gateway_tracking_id = `${payment.id}/${attempt_number}`;
  const changes = {
    ...collected,
    payment_status: 'PROCESSING' as const,
    attempt_count: attempt_number,
    gateway_tracking_id,
    gateway_payment_id: null,
    error_message: null,
    next_attempt_at: computeOutcomeCheckAt(by.now).toISOString(),
  };
  const conflict = 'this invoice is being paid: wait until that payment has ended';
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

/** The customer may have another card since, or credits. Whoever asks for it has what there is, also of a part. */
async function collectionNow(
  transaction: Transaction,
  { invoice, subscription }: HeldPayment,
  { isAsked, now }: { isAsked: boolean; now: Date },
): Promise<Collection | null> {
  const covered = await heldCredits(transaction, invoice, now);
  const inPart = isAsked ? { inPart: true } : {};
  return (await collectionOf(transaction, invoice, { subscription, covered, ...inPart })).collection;
}

/** By that, and what remains by now: a part may have been paid. */
function asItIsNow({ payment, invoice, collection }: Omit<Collecting, 'by'>) {
  const amount = new Decimal(invoice.amount_remaining).toFixed();
  return collection ?? { payment_gateway: payment.payment_gateway, amount };
}
