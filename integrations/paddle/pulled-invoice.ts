/**
 * An invoice of Paddle as pulled (developer.paddle.com/api-reference/transactions, "Transaction lifecycle"). All amounts
 * are net: the tax is Paddle's. A transaction is one payment, with the id of the transaction: Paddle completes it when all
 * is paid.
 */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { type ReportedPayment, sumSucceeded } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { listCredits, listRefunds } from './adjustments.ts';
import { fromLowest } from './amounts.ts';
import type { PaddleAdjustment, PaddleTransaction } from './records.ts';

type TransactionStates = {
  readonly invoice: ProviderInvoice['invoice_status'];
  readonly payment: ReportedPayment['payment_status'] | null;
};

/** States by the status of a transaction. `paid` has captured the money and becomes `completed`. */
const STATES: Readonly<Record<string, TransactionStates>> = {
  draft: { invoice: 'draft', payment: null },
  ready: { invoice: 'draft', payment: null },
  billed: { invoice: 'open', payment: null },
  past_due: { invoice: 'open', payment: null },
  paid: { invoice: 'open', payment: 'pending' },
  completed: { invoice: 'paid', payment: 'succeeded' },
  canceled: { invoice: 'void', payment: null },
};

export function toProviderInvoice(
  transaction: PaddleTransaction,
  adjustments: readonly PaddleAdjustment[],
): ProviderInvoice {
  const currency = transaction.currency_code.toLowerCase();
  const received = computeReceived(transaction, adjustments);
  const credits = listCredits(adjustments);
  const { payment } = findStates(transaction);
  return {
    ...toRecord(transaction),
    invoice_status: toInvoiceStatus(transaction, received),
    total: fromLowest(computeNet(transaction), currency),
    currency,
    credits: credits.map(({ id, net, credit_note_id }) => ({
      provider_credit_id: id,
      amount: fromLowest(net, currency),
      reported_credit_note_id: credit_note_id,
    })),
    payments: payment === null ? [] : [toProviderPayment(transaction, { payment_status: payment, adjustments })],
  };
}

export function toRecord({ id, checkout }: PaddleTransaction) {
  return { provider_entity_id: id, url: checkout?.url ?? null };
}

/** A page that is ready can be paid, but an invoice is a draft until it is billed. An invoice that is credited in full stays `billed`. */
function toInvoiceStatus(
  transaction: PaddleTransaction,
  { net }: { readonly net: Decimal },
): ProviderInvoice['invoice_status'] {
  const { invoice } = findStates(transaction);
  if (invoice === 'open' && net.isZero()) return 'paid';
  const isPayable = transaction.collection_mode === 'automatic' && transaction.status !== 'draft';
  return invoice === 'draft' && isPayable ? 'open' : invoice;
}

function toProviderPayment(
  transaction: PaddleTransaction,
  {
    payment_status,
    adjustments,
  }: {
    readonly payment_status: ReportedPayment['payment_status'];
    readonly adjustments: readonly PaddleAdjustment[];
  },
): ReportedPayment {
  const currency = transaction.currency_code.toLowerCase();
  const { net, tax } = computeReceived(transaction, adjustments);
  const refunds = listRefunds(adjustments, currency);
  const captured = transaction.payments.find(({ status }) => status === 'captured');
  return {
    provider_payment_id: transaction.id,
    payment_status,
    amount: fromLowest(net, currency),
    currency,
    paid_at: captured?.captured_at ?? null,
    ...{ refunded_amount: sumSucceeded(refunds), refunds },
    provider_tax: fromLowest(tax, currency),
  };
}

/** Computes the net amount and the tax that the customer has paid, or has to pay, after credits. */
export function computeReceived(
  transaction: PaddleTransaction,
  adjustments: readonly PaddleAdjustment[],
): { readonly net: Decimal; readonly tax: Decimal } {
  const credits = listCredits(adjustments);
  return {
    net: computeNet(transaction).minus(sumDecimals(credits.map(({ net }) => net))),
    tax: new Decimal(transaction.details.totals.tax).minus(sumDecimals(credits.map(({ tax }) => tax))),
  };
}

export function computeNet({ details: { totals } }: PaddleTransaction): Decimal {
  return new Decimal(totals.subtotal).minus(totals.discount);
}

/** Refuses an unknown status, because it may mean that money moved; a person has to decide. */
function findStates({ id, status }: PaddleTransaction): TransactionStates {
  const known = Object.hasOwn(STATES, status) ? STATES[status] : undefined;
  if (known === undefined)
    throw new ProviderError('person', `${id} has the status ${status} at Paddle`, { is_of_record: true });
  return known;
}

/** Returns the state of the payment of a transaction; null while nobody has paid it. */
export function findPaymentStatus(transaction: PaddleTransaction): ReportedPayment['payment_status'] | null {
  return findStates(transaction).payment;
}
