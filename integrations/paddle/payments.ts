/**
 * Payments at Paddle: pages and refunds. A page is a transaction of its own, with our key in its `custom_data`. Paddle
 * charges saved payment methods only on its pages and for its subscriptions, so none is charged from here.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
import { sumSucceeded } from '../../core/payments/provider-payments.ts';
import type { AccountPaymentPage, AccountPayments, AccountRefund, RequestedPayment } from '../account-payments.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { createAdjustment, findAdjustment, listAdjustments, listRefunds, toRefundOutcome } from './adjustments.ts';
import { fromLowest, toLowest } from './amounts.ts';
import type { PaddleClient } from './client.ts';
import type { PaddleCustomers } from './customers.ts';
import { type PaddleSettings, toItems } from './items.ts';
import { computeNet, computeReceived, findPaymentStatus } from './pulled-invoice.ts';
import type { PaddleAdjustment, PaddleTransaction } from './records.ts';
import { hasEnded, type PaddleTransactions, type SearchedTransaction } from './transactions.ts';

type AccountParts = {
  readonly client: PaddleClient;
  readonly settings: PaddleSettings;
  readonly customers: PaddleCustomers;
  readonly transactions: PaddleTransactions;
};

export class PaddlePayments implements AccountPayments {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  async openPage(page: AccountPaymentPage): Promise<PaymentOutcome> {
    const { transactions } = this.#parts;
    const found = await transactions.findLive(toSearched(page));
    const transaction = found ?? (await this.#createPage(page));
    const currency = transaction.currency_code.toLowerCase();
    const isSame = currency === page.currency && computeNet(transaction).eq(toLowest(page.amount, page.currency));
    const obstacle = isSame ? findObstacle(transaction) : describeAmount(transaction, page);
    if (obstacle === null) return await this.#toOutcome(transaction, page);
    await transactions.cancel(transaction);
    throw new ProviderError('person', obstacle);
  }

  /** Creates the page. Without an address at Paddle the customer enters one on the page, and Paddle computes the tax then. */
  async #createPage(page: AccountPaymentPage): Promise<PaddleTransaction> {
    const { customers, settings, transactions } = this.#parts;
    const { amount, currency, payment_id, invoice_id, invoice_number, provider_customer_id, key } = page;
    const label = `Invoice ${invoice_number ?? invoice_id}`;
    const line = { description: label, amount, line_item_id: null, period_start: null, period_end: null };
    return await transactions.create(toSearched(page), {
      items: toItems({ lines: [line], total: amount, currency }, { ...settings, label }),
      customer_id: provider_customer_id,
      address_id: (await customers.findNewestAddress(provider_customer_id)) ?? undefined,
      currency_code: currency.toUpperCase(),
      collection_mode: 'automatic',
      custom_data: { farthing_payment_id: payment_id, farthing_payment_key: key },
    });
  }

  async findOutcome(payment: RequestedPayment): Promise<PaymentOutcome | null> {
    const { transactions } = this.#parts;
    const id = payment.gateway_payment_id;
    const stored = id === null ? null : await transactions.find(id);
    const [found] = stored === null ? await transactions.list(toSearched(payment)) : [stored];
    if (found !== undefined) return await this.#toOutcome(found, payment);
    if (id === null) return null;
    throw new ProviderError('person', `Paddle has no transaction ${id}`, { is_missing: true });
  }

  async #toOutcome(transaction: PaddleTransaction, payment: RequestedPayment): Promise<PaymentOutcome> {
    const { id: gateway_payment_id, status, checkout } = transaction;
    if (status === 'canceled')
      return { outcome: 'failed', gateway_payment_id, error: 'canceled: the page was closed before it was paid' };
    if (findPaymentStatus(transaction) === 'succeeded')
      return toSuccess(transaction, payment, await listAdjustments(this.#parts.client, gateway_payment_id));
    // Money that was captured needs no further act of the customer.
    const url = status === 'paid' ? null : (checkout?.url ?? null);
    return { outcome: 'processing', gateway_payment_id, url, check_at: null };
  }

  /** Cancels the page. Paddle cancels none for which the customer has not entered an address. */
  async cancel(gateway_payment_id: string): Promise<void> {
    const transaction = await this.#find(gateway_payment_id);
    if (hasEnded(transaction)) return;
    if (transaction.status === 'paid')
      throw new ProviderError('person', `${gateway_payment_id} is paid at Paddle and cannot be canceled`);
    await this.#parts.transactions.cancel(transaction);
  }

  async refund(refund: AccountRefund): Promise<RefundOutcome> {
    const { gateway_payment_id, refund_id, amount, currency } = refund;
    const { client } = this.#parts;
    const transaction = await this.#find(gateway_payment_id);
    const earlier = await listAdjustments(client, gateway_payment_id);
    const found = findAdjustment(earlier, 'refund', refund_id);
    if (found !== undefined) return checkRefunded(found, refund);
    checkRefundable(transaction, earlier);
    const net = new Decimal(toLowest(amount, currency));
    const made = await createAdjustment(client, {
      ...{ action: 'refund', kind: 'refund', id: refund_id, reason: '' },
      ...{ net, by_line: new Map(), transaction, earlier },
    });
    return checkRefunded(made, refund);
  }

  async #find(gateway_payment_id: string): Promise<PaddleTransaction> {
    const transaction = await this.#parts.transactions.find(gateway_payment_id);
    if (transaction !== null) return transaction;
    throw new ProviderError('person', `Paddle has no transaction ${gateway_payment_id}`, { is_missing: true });
  }
}

function toSearched({ key, provider_customer_id, requested_at }: RequestedPayment): SearchedTransaction {
  return { field: 'farthing_payment_key', value: key, customer_id: provider_customer_id, since: requested_at };
}

/** Describes why a new page cannot be shown; null if it can. */
function findObstacle({ id, checkout, status }: PaddleTransaction): string | null {
  const isPayable = status === 'draft' || status === 'ready';
  if (!isPayable || checkout?.url) return null;
  return `Paddle has no page for ${id}: set the default payment link in Paddle (Checkout settings)`;
}

function describeAmount(transaction: PaddleTransaction, { amount, currency, payment_id }: RequestedPayment): string {
  const there = transaction.currency_code.toLowerCase();
  return `the amount of ${payment_id} is ${amount} ${currency}, but ${fromLowest(computeNet(transaction), there)} ${there} without tax at Paddle (${transaction.id})`;
}

function toSuccess(
  transaction: PaddleTransaction,
  payment: RequestedPayment,
  adjustments: readonly PaddleAdjustment[],
): PaymentOutcome {
  const currency = transaction.currency_code.toLowerCase();
  const { net, tax } = computeReceived(transaction, adjustments);
  const received_amount = fromLowest(net, currency);
  if (currency !== payment.currency)
    throw new ProviderError(
      'wait',
      `${payment.amount} ${payment.currency} was requested, but Paddle received ${received_amount} ${currency} (${transaction.id})`,
      { is_of_record: true },
    );
  const refunds = listRefunds(adjustments, currency);
  return {
    outcome: 'succeeded',
    gateway_payment_id: transaction.id,
    received_amount,
    provider_tax: fromLowest(tax, currency),
    ...(refunds.length === 0 ? {} : { refunds, refunded_amount: sumSucceeded(refunds) }),
  };
}

/** Compares the net amount. Paddle cannot take a refund back, so a different one stays uncertain until a person has decided. */
function checkRefunded(made: PaddleAdjustment, { amount, currency, refund_id }: AccountRefund): RefundOutcome {
  const outcome = toRefundOutcome(made);
  const { subtotal } = made.totals;
  if (outcome.outcome === 'failed' || new Decimal(subtotal).eq(toLowest(amount, currency))) return outcome;
  throw new ProviderError(
    'person',
    `the refund ${refund_id} is ${amount} ${currency}, but ${fromLowest(subtotal, currency)} without tax at Paddle (${made.id})`,
    { is_of_record: true },
  );
}

/** Paddle refunds completed transactions, and decides about one refund at a time. */
function checkRefundable({ id, status }: PaddleTransaction, earlier: readonly PaddleAdjustment[]): void {
  const isPending = earlier.some((one) => one.action === 'refund' && one.status === 'pending_approval');
  if (status === 'paid' || isPending)
    throw new ProviderError(
      'wait',
      isPending ? `Paddle has not decided an earlier refund of ${id} yet` : `Paddle has not completed ${id} yet`,
      { is_of_record: true },
    );
  if (status !== 'completed') throw new ProviderError('person', `nobody has paid ${id} at Paddle`);
}
