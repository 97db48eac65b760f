/**
 * Payments at Moyasar. A page is an invoice of Moyasar with our key in its metadata. A charge is a payment of a token; its id is a UUID
 * that we derive from our key, so a repeated request finds it (docs.moyasar.com/api/idempotency).
 */

import { createHash } from 'node:crypto';
import { Decimal } from '../../core/foundation/decimal.ts';
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { AccountCharge, AccountPaymentPage, AccountPayments, AccountRefund } from '../account-payments.ts';
import { JsonNumber } from '../exact-json.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { cutCharacters } from '../pushed-records.ts';
import { toPayableUnits } from './amounts.ts';
import type { MoyasarClient } from './client.ts';
import { cancelInvoice, createInvoiceOnce, listUsable, toMetadata } from './create-invoice.ts';
import type { MoyasarInvoice, MoyasarPayment } from './records.ts';
import { refundOnce } from './refunds.ts';
import { findInvoiceStatus, findPaid, readReceived, toPageOutcome, toPaymentOutcome } from './states.ts';

const REFERENCE = 'farthing_page';
const DESCRIPTION_MAX = 255;
/** Time for which a page can be paid. Moyasar sets no end itself. */
const PAGE_MS = DAY_MS;
const TOKEN = /^token_\w{1,200}$/;

type MoyasarPaymentQuery = Parameters<AccountPayments['findOutcome']>[0];

export class MoyasarPayments implements AccountPayments {
  readonly #client: MoyasarClient;

  constructor(client: MoyasarClient) {
    this.#client = client;
  }

  async charge(charge: AccountCharge): Promise<PaymentOutcome> {
    const { provider_payment_method_id: token, amount, currency, success_url } = charge;
    if (!TOKEN.test(token))
      throw new ProviderError('person', `${JSON.stringify(token)} is no token of Moyasar: it must begin with token_`);
    const body = {
      given_id: toGivenId(charge.key),
      amount: new JsonNumber(String(toPayableUnits(amount, currency))),
      currency: currency.toUpperCase(),
      description: cutCharacters(describePayment(charge), DESCRIPTION_MAX),
      callback_url: success_url ?? undefined,
      source: { type: 'token', token },
      metadata: toPaymentMetadata(charge),
    };
    try {
      return toOutcome(await this.#client.createPayment(body), charge);
    } catch (error) {
      // A second payment with the id is refused, so the first one decides.
      const made = isRefused(error) ? await this.#client.findPayment(toGivenId(charge.key)) : null;
      if (made === null) throw error;
      return toOutcome(made, charge);
    }
  }

  async openPage(page: AccountPaymentPage): Promise<PaymentOutcome> {
    const { key, payment_id, amount, currency, success_url, cancel_url } = page;
    const invoice = {
      ...{ reference_name: REFERENCE, reference: toGivenId(key), record_id: payment_id, amount, currency },
      ...{ description: describePayment(page), metadata: toPaymentMetadata(page) },
      ...{ success_url, back_url: cancel_url, expired_at: new Date(Date.now() + PAGE_MS).toISOString() },
    };
    return await this.#readPage(await createInvoiceOnce(this.#client, invoice), page);
  }

  async findOutcome(payment: MoyasarPaymentQuery): Promise<PaymentOutcome | null> {
    const { gateway_payment_id: id } = payment;
    const stored = id === null ? null : await this.#findStored(id, payment);
    // A page keeps its outcome. A failed charge may be followed by another payment with the key.
    if (stored !== null && (stored.outcome !== 'failed' || payment.is_page)) return stored;
    const requested = payment.is_page ? await this.#findPage(payment) : await this.#findCharge(payment);
    if (requested !== null || stored !== null) return requested ?? stored;
    if (id === null) return null;
    throw new ProviderError('person', `Moyasar no longer has the payment ${id}`, { is_missing: true });
  }

  /** Reads the page or payment with the stored id. The id of a page is that of its invoice until it is paid. */
  async #findStored(id: string, query: MoyasarPaymentQuery): Promise<PaymentOutcome | null> {
    const page = query.is_page ? await this.#client.findInvoice(id) : null;
    if (page !== null) return concludePage(page, query);
    const payment = await this.#client.findPayment(id);
    return payment === null ? null : toOutcome(payment, query);
  }

  async #findCharge(query: MoyasarPaymentQuery): Promise<PaymentOutcome | null> {
    const payment = await this.#client.findPayment(toGivenId(query.key));
    return payment === null ? null : toOutcome(payment, query);
  }

  async #findPage(query: MoyasarPaymentQuery): Promise<PaymentOutcome | null> {
    const [page] = await listUsable(this.#client, { reference_name: REFERENCE, reference: toGivenId(query.key) });
    return page === undefined ? null : await this.#readPage(page, query);
  }

  /** Reads the payments of a paid page, which a list does not show. */
  async #readPage(page: MoyasarInvoice, query: MoyasarPaymentQuery): Promise<PaymentOutcome> {
    const isIncomplete = findInvoiceStatus(page) === 'paid' && !page.payments;
    return concludePage(isIncomplete ? ((await this.#client.findInvoice(page.id)) ?? page) : page, query);
  }

  async cancel(gateway_payment_id: string): Promise<void> {
    const page = await this.#client.findInvoice(gateway_payment_id);
    if (page !== null) {
      if (findInvoiceStatus(page) === 'open') await this.#closePage(page);
      return;
    }
    const payment = await this.#client.findPayment(gateway_payment_id);
    if (payment?.status === 'authorized') return await this.#client.voidPayment(payment.id);
    if (payment?.status === 'initiated')
      throw new ProviderError(
        'person',
        `the charge ${gateway_payment_id} waits for the customer and cannot be cancelled`,
      );
  }

  /** Closes the page. If the customer has paid it meanwhile, that is no error. */
  async #closePage({ id }: MoyasarInvoice): Promise<void> {
    try {
      await cancelInvoice(this.#client, id);
    } catch (error) {
      const current = isRefused(error) ? await this.#client.findInvoice(id) : null;
      if (current === null || findInvoiceStatus(current) !== 'paid') throw error;
    }
  }

  async refund(refund: AccountRefund): Promise<RefundOutcome> {
    return await refundOnce(this.#client, await this.#loadPaid(refund.gateway_payment_id), refund);
  }

  /** Loads the payment to refund. A payment that was requested as a page may still be known by the id of its invoice. */
  async #loadPaid(gateway_payment_id: string): Promise<MoyasarPayment> {
    const payment = await this.#client.findPayment(gateway_payment_id);
    if (payment !== null) return payment;
    const page = await this.#client.findInvoice(gateway_payment_id);
    const paid = page === null ? null : findPaid(page);
    if (paid === null) throw new ProviderError('person', `nobody has paid ${gateway_payment_id} at Moyasar`);
    return paid;
  }
}

/** Builds a UUID from our key. It has the form of version 4, which Moyasar asks for. */
export function toGivenId(key: string): string {
  const bytes = createHash('sha256').update(key).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function toPaymentMetadata({ payment_id, invoice_id, invoice_number }: MoyasarPaymentQuery): Record<string, string> {
  const ids = { farthing_payment_id: payment_id, farthing_invoice_id: invoice_id };
  return toMetadata({ ...ids, farthing_invoice_number: invoice_number });
}

function describePayment({ invoice_number, invoice_id }: MoyasarPaymentQuery): string {
  return `Invoice ${invoice_number ?? invoice_id}`;
}

function concludePage(page: MoyasarInvoice, query: MoyasarPaymentQuery): PaymentOutcome {
  const paid = findInvoiceStatus(page) === 'paid' ? findPaid(page) : null;
  return paid === null ? toPageOutcome(page) : toOutcome(paid, query);
}

function toOutcome(payment: MoyasarPayment, query: MoyasarPaymentQuery): PaymentOutcome {
  const outcome = toPaymentOutcome(payment);
  return outcome.outcome === 'succeeded' ? { ...outcome, ...toReceivedAmount(payment, query) } : outcome;
}

/** Reads the received amount. It may differ from the requested one: a person may capture a part, or store another payment here. */
function toReceivedAmount(payment: MoyasarPayment, { amount, currency }: MoyasarPaymentQuery) {
  const paid_currency = payment.currency.toLowerCase();
  const received = readReceived(payment);
  if (paid_currency === currency) return new Decimal(received).eq(amount) ? {} : { received_amount: received };
  throw new ProviderError(
    'wait',
    `${amount} ${currency} was requested, but Moyasar received ${received} ${paid_currency} (${payment.id})`,
    { is_of_record: true },
  );
}
