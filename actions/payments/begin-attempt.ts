/**
 * Takes the next try of a payment: from here until it is concluded nobody else charges the invoice, or voids it. What was received
 * elsewhere is booked at once; what a provider has to be asked for is asked outside of this transaction.
 */
import { Decimal } from '../../core/decimal.ts';
import { FarthingError, notAllowed } from '../../core/error.ts';
import { OPEN } from '../../core/payment/moves.ts';
import { checkAmount, checkPayable } from '../../core/payment/request.ts';
import { askedAgainAt, laterAsked } from '../../core/payment/schedule.ts';
import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import { PaymentAttemptModel } from '../../storage/models/payment-attempt.ts';
import { newId } from '../../storage/new-id.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';
import { holdWallet } from '../wallets/hold-wallet.ts';
import { takeForPayment, walletToPay } from '../wallets/pay-with-credits.ts';
import { bookReceipt, failFor } from './book-outcome.ts';
import { type By, changeInvoicePayment } from './change-invoice-payment.ts';
import { type HeldPayment, holdPayment } from './hold.ts';
import { usableGateway, type WayToPay, wayToCollect } from './way-to-pay.ts';

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
  return stores.postgres.transaction(async (transaction) => {
    const held = await holdPayment(transaction, scope, id);
    const { payment } = held;
    if (!OPEN.includes(payment.payment_status)) {
      if (!isAsked || isNew) return { payment, asks: false };
      throw notAllowed(`a payment that is ${payment.payment_status} cannot be processed`, {
        payment_status: payment.payment_status,
      });
    }
    const unpayable = obstacleOf(held);
    const way = unpayable === null && payment.is_automatic ? await wayNow(transaction, held) : null;
    const obstacle = unpayable ?? (await unusable(transaction, held, { way, now: by.now }));
    if (obstacle && isNew)
      return { payment: await refuse(stores, transaction, { ...held, obstacle, by }), asks: false, obstacle };
    if (obstacle && isAsked) throw obstacle;
    if (obstacle) return { payment: await leave(stores, transaction, { ...held, obstacle, by }), asks: false };
    const isOfCredits = payment.payment_method_type === 'CREDITS';
    if (isOfCredits) await takeForPayment(transaction, { ...held, author: { user_id: '', ...by } });
    if (isOfCredits || payment.payment_method_type === 'OFFLINE')
      return {
        payment: await bookReceipt(stores, transaction, { ...held, gateway_payment_id: null, by }),
        asks: false,
      };
    if (payment.payment_method_type === 'PAYMENT_LINK')
      return { payment: await openPage(transaction, held, by), asks: true };
    return { payment: await claim(stores, transaction, { ...held, way, by }), asks: true };
  });
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
  { way, now }: { way: WayToPay | null; now: Date },
): Promise<FarthingError | null> {
  if (payment.payment_method_type === 'OFFLINE') return null;
  if (payment.payment_method_type === 'CREDITS') {
    const { id: wallet_id } = await holdWallet(transaction, payment, payment.payment_method_id);
    return refusalOf(() => walletToPay(transaction, invoice, { wallet_id, amount: payment.amount, now }));
  }
  return way ? null : refusalOf(() => usableGateway(transaction, payment, payment.payment_gateway ?? null));
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
  const next_attempt_at = laterAsked(by.now).toISOString();
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
    next_attempt_at: askedAgainAt(by.now).toISOString(),
  };
  return PaymentModel.change(payment, changes, { by, database: transaction });
}

async function claim(
  stores: Stores,
  transaction: Transaction,
  { by, ...held }: HeldPayment & { way: WayToPay | null; by: By },
): Promise<PaymentModel> {
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
    next_attempt_at: askedAgainAt(by.now).toISOString(),
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

/** The customer may have another card since. */
async function wayNow(transaction: Transaction, { invoice, subscription }: HeldPayment): Promise<WayToPay | null> {
  const asked = { customer_id: invoice.customer_id, subscription: subscription ?? {} };
  return (await wayToCollect(transaction, invoice, asked)).way;
}

/** By that, and what remains by now: a part may have been paid. */
function asItIsNow({ payment, invoice, way }: HeldPayment & { way: WayToPay | null }) {
  const amount = new Decimal(invoice.amount_remaining).toFixed();
  return { ...(way ?? { payment_gateway: payment.payment_gateway }), amount };
}
