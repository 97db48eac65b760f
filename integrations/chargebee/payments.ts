/**
 * Payments at Chargebee (apidocs.chargebee.com, "Collect payment for an invoice", "Refund an invoice"). Chargebee has
 * payments of its own invoices only, so charges and pages need the copy of the invoice there: until it is sent, a payment
 * waits. Chargebee collects no more than what the copy still requests.
 */
import { createHash } from 'node:crypto';
import { sumSucceeded } from '../../core/payments/provider-payments.ts';
import type {
  AccountCharge,
  AccountPaymentPage,
  AccountPayments,
  AccountRefund,
  CardSetup,
  ReadPaymentMethod,
  RequestedPayment,
  SavedPaymentMethod,
  StartedCardSetup,
} from '../account-payments.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromCents, toCents, toInteger } from './amounts.ts';
import { type ChargebeeClient, KEY_SECONDS, pickRecord } from './client.ts';
import { listComments } from './comments.ts';
import {
  describeFailure,
  isOutside,
  type LinkedRefund,
  listCreditNotes,
  listRefunds,
  loadPayments,
  toRefundNote,
  toRefundOutcome,
  toState,
} from './invoice-money.ts';
import { describePage, findPaidPage, listPages, type OpenedPage } from './pages.ts';
import type { ChargebeeInvoice, ChargebeeTransaction } from './records.ts';
import { listPaymentMethods, readPaymentMethod, startCardSetup } from './saved-methods.ts';

/** Maximum distance in seconds between a charge and the comment that Chargebee adds for it. */
const COMMENT_DISTANCE_MAX = 120;

export class ChargebeePayments implements AccountPayments {
  readonly #client: ChargebeeClient;

  constructor(client: ChargebeeClient) {
    this.#client = client;
  }

  async charge(charge: AccountCharge): Promise<PaymentOutcome> {
    const invoice = await this.#loadCopy(charge);
    const earlier = charge.key_age_seconds < KEY_SECONDS ? null : await this.#findCharge(invoice, charge);
    if (earlier !== null) return await this.#conclude(earlier, charge, invoice.id);
    const form = {
      amount: toCents(charge.amount, charge.currency),
      payment_source_id: charge.provider_payment_method_id,
      payment_initiator: 'merchant',
      comment: describeCharge(charge),
    };
    try {
      const answer = await this.#client.act(['invoice', invoice.id, 'collect_payment'], { form, key: charge.key });
      return await this.#conclude(pickRecord(answer, 'transaction'), charge, invoice.id);
    } catch (error) {
      if (!isRefused(error) || error.is_of_record) throw error;
      const made = await this.#findMade(invoice, charge);
      if (made !== null && toState(made) !== 'failed') return await this.#conclude(made, charge, invoice.id);
      return { outcome: 'failed', gateway_payment_id: made?.id ?? null, error: error.message };
    }
  }

  /** Loads the copy of the invoice. Before it is sent, the payment waits, because the copy may be sent soon. */
  async #loadCopy({ provider_invoice_id, invoice_id }: RequestedPayment): Promise<ChargebeeInvoice> {
    if (provider_invoice_id !== null) return await this.#client.load('invoice', provider_invoice_id);
    throw new ProviderError(
      'wait',
      `Chargebee has payments of its own invoices alone, and the invoice ${invoice_id} is not there yet: send it (POST /integrations/sync)`,
      { is_of_record: true },
    );
  }

  /**
   * Finds the transaction of a refused charge: that of an earlier request whose answer was lost, or a new one on the
   * invoice. Its result may be unknown, if the connection to the gateway broke.
   */
  async #findMade(before: ChargebeeInvoice, charge: AccountCharge): Promise<ChargebeeTransaction | null> {
    const invoice = await this.#client.load('invoice', before.id);
    const earlier = await this.#findCharge(invoice, charge);
    if (earlier !== null) return earlier;
    const known = (before.linked_payments ?? []).map(({ txn_id }) => txn_id);
    const payments = await loadPayments(this.#client, invoice);
    return payments.find((one) => isCharge(one) && !known.includes(one.id)) ?? null;
  }

  /**
   * Finds the transaction of a charge whose key Chargebee has forgotten. The transaction does not name our payment; the
   * comment of the charge does, which has the same time. Without the comment the charge was not made.
   */
  async #findCharge(invoice: ChargebeeInvoice, payment: RequestedPayment): Promise<ChargebeeTransaction | null> {
    const comments = await listComments(this.#client, invoice.id);
    const comment = comments.find(({ text }) => text === describeCharge(payment));
    if (comment === undefined) return null;
    const measure = ({ date }: ChargebeeTransaction) => Math.abs(Number(date ?? 0) - comment.created_at);
    const cents = toCents(payment.amount, payment.currency);
    const charges = (await loadPayments(this.#client, invoice))
      .filter((one) => isCharge(one) && toInteger(one.amount) === cents && measure(one) <= COMMENT_DISTANCE_MAX)
      .sort((a, b) => rankState(a) - rankState(b) || measure(a) - measure(b));
    return charges[0] ?? null;
  }

  async openPage(page: AccountPaymentPage): Promise<PaymentOutcome> {
    const invoice = await this.#loadCopy(page);
    checkDue(invoice, page);
    const opened = await this.#findOpenPage(invoice.id, page.payment_id);
    if (opened !== null) return await this.#showPage(opened, invoice.id);
    const form = {
      customer: { id: page.provider_customer_id },
      currency_code: page.currency.toUpperCase(),
      redirect_url: page.success_url ?? undefined,
    };
    const { key, payment_id } = page;
    const { id, url, expires_at } = await this.#client.create('hosted_pages/collect_now', 'hosted_page', { form, key });
    if (!/^\d{10}$/.test(expires_at))
      throw new ProviderError('wait', `Chargebee: the page ${id} has no end that can be read`);
    const notes = describePage({ page_id: id, payment_id, ends_at: Number(expires_at) });
    const comment = { entity_type: 'invoice', entity_id: invoice.id, notes };
    await this.#client.create('comments', 'comment', { form: comment, key: `${key}:comment` });
    return { outcome: 'processing', gateway_payment_id: invoice.id, url, check_at: null };
  }

  async #findOpenPage(invoice_id: string, payment_id: string): Promise<OpenedPage | null> {
    const pages = await listPages(this.#client, invoice_id);
    return pages.find((page) => page.payment_id === payment_id && isOpen(page)) ?? null;
  }

  async #showPage({ page_id }: OpenedPage, invoice_id: string): Promise<PaymentOutcome> {
    const { url } = await this.#client.load('hosted_page', page_id);
    return { outcome: 'processing', gateway_payment_id: invoice_id, url, check_at: null };
  }

  async findOutcome(payment: RequestedPayment): Promise<PaymentOutcome | null> {
    const { gateway_payment_id: id, provider_invoice_id } = payment;
    if (id !== null && isTransaction(id)) {
      const transaction = await this.#client.load('transaction', id);
      const paid_id = provider_invoice_id ?? transaction.linked_invoices?.[0]?.invoice_id ?? null;
      return await this.#conclude(transaction, payment, paid_id);
    }
    const invoice_id = id ?? provider_invoice_id;
    if (invoice_id === null) return null;
    const invoice = await this.#client.load('invoice', invoice_id);
    if (payment.is_page) return await this.#findPageOutcome(invoice, payment);
    // A void payment is not charged again, so also a young key is searched for here.
    const charge = await this.#findCharge(invoice, payment);
    return charge === null ? null : await this.#conclude(charge, payment, invoice.id);
  }

  async #findPageOutcome(invoice: ChargebeeInvoice, payment: RequestedPayment): Promise<PaymentOutcome | null> {
    const pages = await listPages(this.#client, invoice.id);
    const own = pages.filter(({ payment_id }) => payment_id === payment.payment_id);
    if (own.length === 0) return null;
    const paid = (await loadPayments(this.#client, invoice))
      .filter((one) => findPaidPage(one, pages)?.payment_id === payment.payment_id && toState(one) !== 'failed')
      .sort((a, b) => rankState(a) - rankState(b))[0];
    if (paid !== undefined) return await this.#conclude(paid, payment, invoice.id);
    const open = own.find(isOpen);
    if (open !== undefined && isPayable(invoice)) return await this.#showPage(open, invoice.id);
    const error = isPayable(invoice)
      ? 'expired: nobody has paid while the page was open'
      : `closed: the invoice ${invoice.id} is ${invoice.status} at Chargebee`;
    return { outcome: 'failed', gateway_payment_id: invoice.id, error };
  }

  /** A payment may be applied to several invoices; `invoice_id` is the one that this payment pays. */
  async #conclude(
    transaction: ChargebeeTransaction,
    payment: RequestedPayment,
    invoice_id: string | null,
  ): Promise<PaymentOutcome> {
    const { id: gateway_payment_id } = transaction;
    switch (toState(transaction)) {
      case 'pending':
        return { outcome: 'processing', gateway_payment_id, url: null, check_at: null };
      case 'failed':
        return { outcome: 'failed', gateway_payment_id, error: describeFailure(transaction) };
      default: {
        const refunds = (await this.#listRefunds(transaction, invoice_id)).map(({ refund }) => refund);
        const refunded = refunds.length === 0 ? {} : { refunds, refunded_amount: sumSucceeded(refunds) };
        const received = toReceivedAmount(transaction, payment, invoice_id);
        return { outcome: 'succeeded', gateway_payment_id, ...received, ...refunded };
      }
    }
  }

  /** Lists the refunds of a payment of the invoice: those of its credit notes. */
  async #listRefunds({ id }: ChargebeeTransaction, invoice_id: string | null): Promise<LinkedRefund[]> {
    if (invoice_id === null) return [];
    const refunds = await listRefunds(this.#client, await listCreditNotes(this.#client, invoice_id));
    return refunds.filter(({ payment_id }) => payment_id === id);
  }

  /**
   * Checks that nothing can be paid any more. Chargebee cannot close a page; it ends when its invoice is paid or void,
   * or after five days.
   */
  async cancel(gateway_payment_id: string): Promise<void> {
    if (isTransaction(gateway_payment_id)) return await this.#checkEnded(gateway_payment_id);
    const invoice = await this.#client.read('invoice', gateway_payment_id);
    if (invoice === null || !isPayable(invoice)) return;
    const open = (await listPages(this.#client, invoice.id)).find(isOpen);
    if (open === undefined) return;
    const ends_at = new Date(open.ends_at * 1_000).toISOString();
    throw new ProviderError(
      'person',
      `Chargebee cannot close the page ${open.page_id}: it ends at ${ends_at}, or when the invoice ${invoice.id} is paid or void there`,
    );
  }

  async #checkEnded(id: string): Promise<void> {
    if (toState(await this.#client.load('transaction', id)) !== 'pending') return;
    throw new ProviderError('person', `the payment ${id} is in progress at Chargebee and cannot be cancelled`);
  }

  async refund(refund: AccountRefund): Promise<RefundOutcome> {
    const payment = await this.#client.load('transaction', refund.gateway_payment_id);
    const { linked_invoices = [] } = payment;
    const [link] = linked_invoices;
    if (link === undefined || linked_invoices.length > 1)
      throw new ProviderError(
        'person',
        `the payment ${payment.id} is not applied to one invoice at Chargebee: refund it there`,
      );
    const made = refund.key_age_seconds > 0 ? await this.#listRefunds(payment, link.invoice_id) : [];
    const earlier = made.find((one) => one.refund.refund_id === refund.refund_id);
    if (earlier !== undefined) return toRefundOutcome(earlier.refund);
    return await this.#createRefund(await this.#loadRefundable(payment, link.invoice_id), refund);
  }

  async #createRefund(invoice: ChargebeeInvoice, refund: AccountRefund): Promise<RefundOutcome> {
    const form = {
      refund_amount: toCents(refund.amount, refund.currency),
      customer_notes: toRefundNote(refund.refund_id),
      credit_note: { reason_code: 'other' },
    };
    const answer = await this.#client.act(['invoice', invoice.id, 'refund'], { form, key: refund.key });
    const made = pickRecord(answer, 'transaction');
    const refund_status = toState(made);
    return toRefundOutcome({
      provider_refund_id: made.id,
      amount: refund.amount,
      refund_status,
      error: refund_status === 'failed' ? describeFailure(made) : null,
      refund_id: refund.refund_id,
    });
  }

  /**
   * Loads the invoice through which the payment is refunded. Chargebee chooses the refunded payment itself, so there may
   * be only one.
   */
  async #loadRefundable({ id }: ChargebeeTransaction, invoice_id: string): Promise<ChargebeeInvoice> {
    const invoice = await this.#client.load('invoice', invoice_id);
    const payments = (await loadPayments(this.#client, invoice)).filter(
      (one) => one.type === 'payment' && !isOutside(one) && toState(one) === 'succeeded',
    );
    if (payments.length === 1 && payments[0]!.id === id) return invoice;
    throw new ProviderError(
      'person',
      `the invoice ${invoice.id} has ${payments.length} payments by a gateway at Chargebee, which would choose the refunded one: refund ${id} there`,
    );
  }

  async startCardSetup(setup: CardSetup): Promise<StartedCardSetup> {
    return await startCardSetup(this.#client, setup);
  }

  async readPaymentMethod(provider_entity_id: string): Promise<ReadPaymentMethod | null> {
    return await readPaymentMethod(this.#client, provider_entity_id);
  }

  async listPaymentMethods(provider_customer_id: string): Promise<readonly SavedPaymentMethod[]> {
    return await listPaymentMethods(this.#client, provider_customer_id);
  }
}

function isTransaction(id: string): boolean {
  return id.startsWith('txn_');
}

function isOpen({ ends_at }: OpenedPage): boolean {
  return ends_at > Date.now() / 1_000;
}

function isPayable({ status, amount_due }: ChargebeeInvoice): boolean {
  return status !== 'paid' && status !== 'voided' && toInteger(amount_due) > 0;
}

/** Refuses a page over another amount than the copy requests, because the page shows the amount of the copy. */
function checkDue(invoice: ChargebeeInvoice, { amount, currency, invoice_id }: RequestedPayment): void {
  const { id, amount_due, currency_code, status } = invoice;
  const isSameCurrency = currency_code.toLowerCase() === currency;
  if (isPayable(invoice) && isSameCurrency && toInteger(amount_due) === toCents(amount, currency)) return;
  throw new ProviderError(
    'person',
    `a page over ${amount} ${currency} of ${invoice_id} is not possible: the invoice ${id} at Chargebee is ${status}, and ${fromCents(amount_due, currency_code)} ${currency_code.toLowerCase()} is due there`,
  );
}

/** Order of transactions of one payment: a successful one decides. */
function rankState(transaction: ChargebeeTransaction): number {
  return ['succeeded', 'pending', 'failed'].indexOf(toState(transaction));
}

/**
 * Reads the amount that the invoice received. Money in another currency would be booked wrongly, so it waits for a
 * person.
 */
function toReceivedAmount(
  { id, amount: all, currency_code, linked_invoices = [] }: ChargebeeTransaction,
  { amount, currency }: RequestedPayment,
  invoice_id: string | null,
) {
  const link = linked_invoices.find((one) => one.invoice_id === invoice_id);
  const cents = link?.applied_amount ?? all;
  const received = fromCents(cents, currency_code);
  if (currency_code.toLowerCase() !== currency)
    throw new ProviderError(
      'wait',
      `${amount} ${currency} was requested, but Chargebee received ${received} ${currency_code.toLowerCase()} (${id})`,
      { is_of_record: true },
    );
  return toInteger(cents) === toCents(amount, currency) ? {} : { received_amount: received };
}

/** Comment of one attempt of a charge, which Chargebee adds to the invoice. */
function describeCharge({ payment_id, key }: Pick<RequestedPayment, 'payment_id' | 'key'>): string {
  const attempt = createHash('sha256').update(key).digest('hex').slice(0, 16);
  return `Farthing charge of ${payment_id}, attempt ${attempt}`;
}

/** Whether the seller charged a saved method; a customer's payment on a page is none. */
function isCharge({ type, initiator_type }: ChargebeeTransaction): boolean {
  return type === 'payment' && initiator_type === 'merchant';
}
