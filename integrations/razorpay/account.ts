/**
 * Account at Razorpay, over the official library. Razorpay has no idempotency keys for customers and invoices. Their
 * notes contain our id, by which a repeated push finds the record of an interrupted one.
 */

import type { Customers } from 'razorpay/dist/types/customers.js';
import type { Invoices } from 'razorpay/dist/types/invoices.js';
import type { Payments } from 'razorpay/dist/types/payments.js';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type {
  AccountIdentity,
  AccountSettings,
  ProviderAccount,
  ProviderInvoice,
  ProviderRecord,
  PushedCustomer,
  PushedInvoice,
} from '../account.ts';
import type { AccountPayments } from '../account-payments.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { cutCharacters, hasBegun } from '../pushed-records.ts';
import { fromSubunits, toPayableSubunits } from './amounts.ts';
import {
  createRazorpayClient,
  fetchIfExists,
  type RazorpayClient,
  type RazorpayCredentials,
  translateErrors,
  unwrapError,
} from './client.ts';
import { toRazorpayLines } from './lines.ts';
import { RazorpayPayments } from './payments.ts';
import { type RefundablePayment, toProviderInvoice } from './pulled-invoice.ts';
import { readRefunds } from './refunds.ts';
import { isRazorpayId, readNote, toInvoiceReceipt, toNotes, toRazorpayEmail, toRazorpayName } from './texts.ts';

/** Maximum page size of a list at Razorpay. */
const PAGE = 100;
/** Maximum number of customers that a search reads. */
const LISTED_MAX = 2_000;
/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_SECONDS = 300;
const DESCRIPTION_MAX = 2_048;

/** Statuses of an existing invoice that a push uses instead of creating another. */
const USABLE_STATUSES: readonly Invoices.RazorpayInvoice['status'][] = ['draft', 'issued', 'partially_paid', 'paid'];
const ENDED_STATUSES: readonly Invoices.RazorpayInvoice['status'][] = ['cancelled', 'expired', 'deleted'];

export async function openRazorpayAccount(
  credentials: RazorpayCredentials,
  settings: AccountSettings,
): Promise<ProviderAccount> {
  return new RazorpayAccount(await createRazorpayClient(credentials, settings));
}

class RazorpayAccount implements ProviderAccount {
  readonly payments: AccountPayments;
  readonly #razorpay: RazorpayClient;

  constructor(razorpay: RazorpayClient) {
    this.#razorpay = razorpay;
    this.payments = new RazorpayPayments(razorpay);
  }

  /** Checks the key by a list request. Razorpay does not say to which account a key belongs, so the id is unknown. */
  async identify(): Promise<AccountIdentity> {
    return await translateErrors(async () => {
      await this.#razorpay.customers.all({ count: 1 });
      return { provider_account_id: null, name: null };
    });
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    return await translateErrors(async () => {
      const body = toRazorpayCustomer(customer);
      // Razorpay returns the existing customer if the email is the same, so a first push with an email needs no search. A repeated push
      // searches because the email may have changed; a push without an email searches because Razorpay would create another customer.
      const isFirst = !hasBegun(customer);
      const found = isFirst && body.email !== undefined ? null : await this.#findCustomer(customer);
      const { id } = found ?? (await this.#createCustomer(customer, body));
      return { provider_entity_id: id, url: null };
    });
  }

  async hasCustomer(provider_entity_id: string): Promise<boolean> {
    if (!isRazorpayId(provider_entity_id, 'cust')) return false;
    return (await fetchIfExists(() => this.#razorpay.customers.fetch(provider_entity_id))) !== null;
  }

  /** Creates the customer. A customer with this email that is not ours is refused, not linked. */
  async #createCustomer(
    { customer_id }: PushedCustomer,
    body: Customers.RazorpayCustomerCreateRequestBody,
  ): Promise<Customers.RazorpayCustomer> {
    const customer = await this.#razorpay.customers.create(body);
    if (readNote(customer, 'farthing_customer_id') === customer_id) return customer;
    throw new ProviderError(
      'person',
      `Razorpay has a customer with this email already: link ${customer.id}, or change the email`,
      { provider_entity_id: customer.id },
    );
  }

  /** Finds the customer of an earlier attempt. The newest customers are first; those from before the first attempt cannot be ours. */
  async #findCustomer({ customer_id, key_created_at }: PushedCustomer): Promise<Customers.RazorpayCustomer | null> {
    const since = key_created_at.getTime() / 1_000 - CLOCK_SLACK_SECONDS;
    for (let skip = 0; skip < LISTED_MAX; skip += PAGE) {
      const { items } = await this.#razorpay.customers.all({ count: PAGE, skip });
      const found = items.find((item) => readNote(item, 'farthing_customer_id') === customer_id);
      if (found !== undefined) return found;
      if (items.length < PAGE || items.at(-1)!.created_at < since) return null;
    }
    throw new ProviderError(
      'person',
      `${customer_id} may be among more than ${LISTED_MAX} new customers at Razorpay: search it there and link it`,
    );
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    return await translateErrors(async () => {
      const lines = toRazorpayLines(invoice);
      const body = { ...toRazorpayDraft(invoice), line_items: lines };
      const created = (await this.#findUsableInvoice(invoice)) ?? (await this.#createDraft(invoice, body));
      try {
        checkTotal(created, invoice);
        const issued = created.status === 'draft' ? await this.#issue(created) : created;
        checkTotal(issued, invoice);
        return toRecord(issued);
      } catch (thrown) {
        const error = unwrapError(thrown);
        // Deletes the draft, because a person could issue it in addition to the invoice of a later attempt.
        if (isRefused(error)) await this.#deleteDraft(created.id);
        throw error;
      }
    });
  }

  /**
   * Creates a draft. If a concurrent push also has one, this push deletes its own and is repeated, so that only one is
   * issued.
   */
  async #createDraft(
    invoice: PushedInvoice,
    body: Invoices.RazorpayInvoiceCreateRequestBody,
  ): Promise<Invoices.RazorpayInvoice> {
    const created = await this.#razorpay.invoices.create(body);
    const usable = await this.#listUsableInvoices(invoice);
    if (usable.every(({ id }) => id === created.id)) return created;
    await this.#deleteDraft(created.id);
    throw buildRaceError(invoice.invoice_id);
  }

  /** Issues the draft. A concurrent push or a person may have issued or deleted it already. */
  async #issue(draft: Invoices.RazorpayInvoice): Promise<Invoices.RazorpayInvoice> {
    try {
      return await this.#razorpay.invoices.issue(draft.id);
    } catch (thrown) {
      const error = unwrapError(thrown);
      if (!isRefused(error)) throw error;
      const current = await this.#loadInvoice(draft.id);
      if (current === null) throw buildRaceError(draft.id);
      if (current.status === 'draft') throw error;
      return current;
    }
  }

  /**
   * Finds the invoice of an earlier attempt. A draft with another total was made before the invoice changed. It was
   * never issued, so it is deleted.
   */
  async #findUsableInvoice(invoice: PushedInvoice): Promise<Invoices.RazorpayInvoice | null> {
    const [found = null] = await this.#listUsableInvoices(invoice);
    if (found?.status !== 'draft' || hasTotal(found, invoice)) return found;
    await this.#deleteDraft(found.id);
    return null;
  }

  /** Lists invoices that can be used, issued ones first. */
  async #listUsableInvoices({ invoice_id, invoice_number }: PushedInvoice): Promise<Invoices.RazorpayInvoice[]> {
    const receipt = toInvoiceReceipt(invoice_number, invoice_id);
    const { items } = await this.#razorpay.invoices.all({ receipt, count: PAGE });
    const ours = items.filter((item) => readNote(item, 'farthing_invoice_id') === invoice_id);
    const usable = ours.filter(({ status }) => USABLE_STATUSES.includes(status));
    return usable.toSorted((a, b) => Number(a.status === 'draft') - Number(b.status === 'draft'));
  }

  /** Deletes the invoice if it is a draft. */
  async #deleteDraft(id: string): Promise<void> {
    const invoice = await this.#loadInvoice(id);
    if (invoice?.status === 'draft') await this.#razorpay.invoices.delete(id);
  }

  async voidInvoice(provider_entity_id: string): Promise<void> {
    await translateErrors(async () => {
      const invoice = await this.#loadInvoice(provider_entity_id);
      if (invoice === null || ENDED_STATUSES.includes(invoice.status)) return;
      if (invoice.status === 'draft') return await this.#deleteDraft(provider_entity_id);
      if (invoice.status !== 'issued')
        throw new ProviderError(
          'person',
          `the invoice ${provider_entity_id} is ${invoice.status} at Razorpay, so it cannot be voided`,
        );
      await this.#cancel(provider_entity_id);
    });
  }

  async #cancel(id: string): Promise<void> {
    try {
      await this.#razorpay.invoices.cancel(id);
    } catch (thrown) {
      const error = unwrapError(thrown);
      const current = isRefused(error) ? await this.#loadInvoice(id) : null;
      if (current === null || !ENDED_STATUSES.includes(current.status)) throw error;
    }
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    return await translateErrors(async () => {
      const invoice = await this.#loadInvoice(provider_entity_id);
      if (invoice === null) return null;
      return toProviderInvoice(invoice, await this.#listPayments(invoice));
    });
  }

  /** Lists the attempts to pay an invoice, all of which belong to its order. A draft has no order. */
  async #listPayments({ order_id }: Invoices.RazorpayInvoice): Promise<RefundablePayment[]> {
    if (!order_id) return [];
    const { items } = await this.#razorpay.orders.fetchPayments(order_id);
    const read: RefundablePayment[] = [];
    for (const payment of items) read.push({ payment, ...(await this.#readRefunds(payment)) });
    return read;
  }

  /** Reads the refunds of a payment. A payment that was not captured has none. */
  async #readRefunds(payment: Payments.RazorpayPayment) {
    const isCaptured = payment.status === 'captured' || payment.status === 'refunded';
    return isCaptured ? await readRefunds(this.#razorpay, payment) : { refunds: [], refunded_amount: '0' };
  }

  async #loadInvoice(id: string): Promise<Invoices.RazorpayInvoice | null> {
    if (!isRazorpayId(id, 'inv')) return null;
    return await fetchIfExists(() => this.#razorpay.invoices.fetch(id));
  }

  async listConcernedInvoices(subject: ProviderEventSubject): Promise<readonly string[]> {
    return await translateErrors(async () => {
      if (subject.kind === 'invoice') return [subject.provider_entity_id];
      const payment_id = await this.#findPaymentId(subject);
      if (payment_id === null) return [];
      const payment = await fetchIfExists(() => this.#razorpay.payments.fetch(payment_id));
      return payment?.invoice_id ? [payment.invoice_id] : [];
    });
  }

  /** Finds the payment that a record is about; null for a payment link, which belongs to no invoice of Razorpay. */
  async #findPaymentId({ provider_entity_id: id }: ProviderEventSubject): Promise<string | null> {
    if (isRazorpayId(id, 'pay')) return id;
    if (isRazorpayId(id, 'rfnd'))
      return (await fetchIfExists(() => this.#razorpay.refunds.fetch(id)))?.payment_id ?? null;
    if (isRazorpayId(id, 'disp'))
      return (await fetchIfExists(() => this.#razorpay.disputes.fetch(id)))?.payment_id ?? null;
    return null;
  }
}

function buildRaceError(id: string): ProviderError {
  return new ProviderError('wait', `${id} was sent to Razorpay twice at once: one attempt is repeated`);
}

function toRazorpayCustomer(customer: PushedCustomer): Customers.RazorpayCustomerCreateRequestBody {
  const { customer_id, external_id, name } = customer;
  const email = toRazorpayEmail(customer.email);
  return {
    name: toRazorpayName(name, external_id),
    ...(email === '' ? {} : { email }),
    fail_existing: 0,
    notes: toNotes({
      farthing_customer_id: customer_id,
      farthing_external_id: external_id,
      farthing_name: name,
      farthing_email: email === '' ? customer.email : '',
    }),
  };
}

/** Builds a draft with which Razorpay sends no messages and accepts no partial payment. */
function toRazorpayDraft(invoice: PushedInvoice): Omit<Invoices.RazorpayInvoiceCreateRequestBody, 'line_items'> {
  const { invoice_id, invoice_number, provider_customer_id, currency } = invoice;
  return {
    type: 'invoice',
    draft: '1',
    customer_id: provider_customer_id,
    currency: currency.toUpperCase(),
    description: cutCharacters(`Invoice ${invoice_number}`, DESCRIPTION_MAX),
    receipt: toInvoiceReceipt(invoice_number, invoice_id),
    partial_payment: 0,
    sms_notify: 0,
    email_notify: 0,
    notes: toNotes({ farthing_invoice_id: invoice_id, farthing_invoice_number: invoice_number }),
  };
}

function hasTotal({ amount, currency = '' }: Invoices.RazorpayInvoice, invoice: PushedInvoice): boolean {
  const isSameCurrency = currency.toLowerCase() === invoice.currency;
  return isSameCurrency && Number(amount) === toPayableSubunits(invoice.total, invoice.currency);
}

function checkTotal(there: Invoices.RazorpayInvoice, invoice: PushedInvoice): void {
  if (hasTotal(there, invoice)) return;
  const { amount, currency = '', id } = there;
  const found = `${fromSubunits(Number(amount), currency)} ${currency.toLowerCase()}`;
  throw new ProviderError(
    'person',
    `the total of ${invoice.invoice_id} is ${invoice.total} ${invoice.currency}, but ${found} at Razorpay (${id})`,
  );
}

function toRecord({ id, short_url }: Invoices.RazorpayInvoice): ProviderRecord {
  return { provider_entity_id: id, url: short_url ?? null };
}
