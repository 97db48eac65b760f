/**
 * Account at Stripe, over the official library. The steps of one push have keys derived from the caller's key, so an
 * interrupted push is resumed by repeating it.
 */

import type { Stripe } from 'stripe';
import type { ReportedRefund } from '../../core/payments/provider-payments.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type {
  AccountIdentity,
  AccountSettings,
  AttachedPayment,
  ProviderAccount,
  ProviderInvoice,
  ProviderRecord,
  PushedCreditNote,
  PushedCustomer,
  PushedInvoice,
  PushedPayment,
  SearchedCreditNote,
  SearchedInvoice,
} from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { toMinorUnits } from './amounts.ts';
import { openStripeClient } from './client.ts';
import { checkAmountDue, checkTotal, toStripeDraft } from './draft.ts';
import { isForbidden, isMissing, toProviderError, translate } from './errors.ts';
import { type StripeLine, toStripeLines } from './lines.ts';
import {
  attachStripePayment,
  findStripeCreditNote,
  pushStripeCreditNote,
  pushStripePayment,
  voidStripeCreditNote,
} from './money-out.ts';
import { StripePayments } from './payments.ts';
import {
  listCredits,
  listRefunds,
  PAYMENTS_EXPANDED,
  RECORDS_EXPANDED,
  type RefundsById,
  toProviderInvoice,
  toRefundQuery,
} from './pulled-invoice.ts';
import { changeOnce, findByMetadata, sendOnce, toCreatedSince } from './send-once.ts';

const PAGE = 100;

type StripeCredentials = { readonly secret_key: string; readonly account_id?: string | undefined };

/** Opens the account and loads the library. */
export async function openStripeAccount(
  { secret_key, account_id }: StripeCredentials,
  settings: AccountSettings,
): Promise<ProviderAccount> {
  const client = await openStripeClient(secret_key, settings);
  return new StripeAccount(client, account_id ?? null);
}

class StripeAccount implements ProviderAccount {
  readonly #stripe: Stripe;
  readonly #account_id: string | null;
  readonly payments: StripePayments;

  constructor(stripe: Stripe, account_id: string | null) {
    this.#stripe = stripe;
    this.payments = new StripePayments(stripe);
    this.#account_id = account_id;
  }

  async identify(): Promise<AccountIdentity> {
    return await translate(async () => {
      const account = await this.#loadAccount();
      if (account === null && this.#account_id !== null)
        throw new ProviderError(
          'person',
          'the key may not read its account, so account_id cannot be checked: give it this right, or omit account_id',
        );
      if (account === null) return { provider_account_id: null, name: null };
      if (this.#account_id !== null && this.#account_id !== account.id)
        throw new ProviderError(
          'person',
          `the key belongs to the Stripe account ${account.id}, not ${this.#account_id}`,
        );
      const name = account.business_profile?.name ?? account.settings?.dashboard.display_name ?? account.email;
      return { provider_account_id: account.id, name: name ?? null };
    });
  }

  /**
   * Reads the account; null if a restricted key may not do so. Then a list of customers shows that the key is valid.
   */
  async #loadAccount(): Promise<Stripe.Account | null> {
    try {
      return await this.#stripe.accounts.retrieveCurrent();
    } catch (error) {
      if (!isForbidden(error)) throw error;
      await this.#stripe.customers.list({ limit: 1 });
      return null;
    }
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    return await translate(async () => {
      const { id } = await sendOnce({
        ...customer,
        find: () => this.#findCustomer(customer),
        send: (options) => this.#stripe.customers.create(toStripeCustomer(customer), options),
      });
      return { provider_entity_id: id, url: null };
    });
  }

  async hasCustomer(provider_entity_id: string): Promise<boolean> {
    return await translate(async () => {
      try {
        await this.#stripe.customers.retrieve(provider_entity_id);
        return true;
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    });
  }

  async #findCustomer({ customer_id, key_created_at }: PushedCustomer): Promise<Stripe.Customer | null> {
    return await findByMetadata(['farthing_customer_id', customer_id], {
      list: () => this.#stripe.customers.list({ limit: PAGE, created: { gte: toCreatedSince(key_created_at) } }),
      search: (query) => this.#stripe.customers.search({ query }),
      accepts: () => true,
    });
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    return await translate(async () => {
      const total = toMinorUnits(invoice.total, invoice.currency);
      const lines = toStripeLines(invoice);
      // Stripe would credit a negative total to the customer's balance.
      if (total < 0) throw new ProviderError('person', `an invoice over ${invoice.total} cannot be paid at Stripe`);
      const created = await this.#createDraft(invoice);
      if (created.status !== 'draft') {
        checkTotal(created, invoice, total);
        return toRecord(created);
      }
      try {
        // A draft of an earlier attempt may already have its lines.
        const isFilled = invoice.is_key_renewed && created.lines.data.length > 0 && created.total === total;
        const filled = isFilled ? created : await this.#addLines(created, invoice, lines);
        checkTotal(filled, invoice, total);
        checkAmountDue(filled, invoice, total);
        const final = await this.#finalize(filled, invoice);
        checkTotal(final, invoice, total);
        return toRecord(final);
      } catch (error) {
        const failure = toProviderError(error);
        // Deletes the draft, because a person could open it in addition to the invoice of a later attempt.
        if (failure instanceof ProviderError && failure.error_class === 'person') await this.#deleteDraft(created.id);
        throw failure;
      }
    });
  }

  async #createDraft(invoice: PushedInvoice): Promise<Stripe.Invoice> {
    return await sendOnce({
      key: `${invoice.key}:draft`,
      key_age_seconds: invoice.key_age_seconds,
      is_key_renewed: invoice.is_key_renewed,
      find: () => this.#findInvoice(invoice),
      send: (options) => this.#stripe.invoices.create(toStripeDraft(invoice), options),
    });
  }

  async #findInvoice({ invoice_id, key_created_at, provider_customer_id }: SearchedInvoice) {
    const created = { gte: toCreatedSince(key_created_at) };
    return await findByMetadata<Stripe.Invoice>(['farthing_invoice_id', invoice_id], {
      list: () => this.#stripe.invoices.list({ customer: provider_customer_id, limit: PAGE, created }),
      search: (query) => this.#stripe.invoices.search({ query }),
      accepts: ({ status }) => status !== 'void',
    });
  }

  /** Adds all lines by one request, so that either all or none of them exist. */
  async #addLines(draft: Stripe.Invoice, { key, key_age_seconds }: PushedInvoice, lines: StripeLine[]) {
    const readFilled = async () => {
      const invoice = await this.#stripe.invoices.retrieve(draft.id);
      return invoice.lines.data.length > 0 ? invoice : null;
    };
    return await sendOnce({
      key: `${key}:lines`,
      key_age_seconds,
      is_key_renewed: false,
      find: readFilled,
      send: (options) => this.#stripe.invoices.addLines(draft.id, { lines }, options),
    });
  }

  async #finalize(
    { id }: Stripe.Invoice,
    { key, key_age_seconds, is_key_renewed }: PushedInvoice,
  ): Promise<Stripe.Invoice> {
    const readFinal = async () => {
      const invoice = await this.#stripe.invoices.retrieve(id);
      return invoice.status === 'draft' ? null : invoice;
    };
    return await changeOnce({
      key: `${key}:finalize`,
      key_age_seconds,
      is_key_renewed,
      find: readFinal,
      send: (options) => this.#stripe.invoices.finalizeInvoice(id, { auto_advance: false }, options),
    });
  }

  /**
   * Deletes a draft with its lines. The lines go first: lines without an invoice would be charged with the next invoice
   * of the customer. No effect on an opened invoice.
   */
  async #deleteDraft(id: string): Promise<void> {
    const invoice = await this.#loadInvoice(id);
    if (invoice?.status !== 'draft') return;
    const lines: Stripe.InvoiceRemoveLinesParams.Line[] = [];
    for await (const line of this.#stripe.invoices.listLineItems(id, { limit: PAGE }))
      lines.push({ id: line.id, behavior: 'delete' });
    // This request has no key: each repetition reads the lines again and deletes those that are left.
    if (lines.length > 0) await this.#stripe.invoices.removeLines(id, { lines });
    await this.#stripe.invoices.del(id);
  }

  async voidInvoice(provider_entity_id: string, key: string): Promise<void> {
    await translate(async () => {
      const invoice = await this.#loadInvoice(provider_entity_id);
      if (invoice === null || invoice.status === 'void') return;
      if (invoice.status === 'draft') return await this.#deleteDraft(provider_entity_id);
      if (invoice.status === 'paid')
        throw new ProviderError(
          'person',
          `the invoice ${provider_entity_id} is paid at Stripe, so it cannot be voided`,
        );
      const readVoid = async () => {
        const read = await this.#loadInvoice(provider_entity_id);
        return read?.status === 'void' ? read : null;
      };
      await changeOnce({
        key,
        key_age_seconds: 0,
        is_key_renewed: false,
        find: readVoid,
        send: (options) => this.#stripe.invoices.voidInvoice(provider_entity_id, {}, options),
      });
    });
  }

  async findInvoice(invoice: SearchedInvoice): Promise<ProviderRecord | null> {
    return await translate(async () => {
      const found = await this.#findInvoice(invoice);
      return found === null ? null : toRecord(found);
    });
  }

  async pushPayment(payment: PushedPayment): Promise<ProviderRecord> {
    return await translate(() => pushStripePayment(this.#stripe, payment));
  }

  async attachPayment(payment: AttachedPayment): Promise<void> {
    await translate(() => attachStripePayment(this.#stripe, payment));
  }

  async pushCreditNote(note: PushedCreditNote): Promise<ProviderRecord> {
    return await translate(() => pushStripeCreditNote(this.#stripe, note));
  }

  async findCreditNote(note: SearchedCreditNote): Promise<ProviderRecord | null> {
    return await translate(() => findStripeCreditNote(this.#stripe, note));
  }

  async voidCreditNote(provider_entity_id: string, key: string): Promise<void> {
    await translate(() => voidStripeCreditNote(this.#stripe, provider_entity_id, key));
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    return await translate(async () => {
      const invoice = await this.#loadInvoice(
        provider_entity_id,
        [PAYMENTS_EXPANDED, RECORDS_EXPANDED].map((path) => `payments.${path}`),
      );
      if (invoice === null) return null;
      const payments = await this.#listPayments(invoice);
      const refunded = await this.#listRefunds(payments);
      return toProviderInvoice(invoice, { payments, refunded, credits: await listCredits(this.#stripe, invoice) });
    });
  }

  /**
   * Lists the invoices of a payment. An event about a refund or dispute also names its payment, so invoices are not searched for by refunds
   * and disputes.
   */
  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind !== 'payment') return [];
    return await translate(async () => {
      const payment_intent = await this.#findPaymentIntent(provider_entity_id);
      if (payment_intent === null) return [];
      const invoices = new Set<string>();
      const payment = { type: 'payment_intent', payment_intent } as const;
      for await (const { invoice } of this.#stripe.invoicePayments.list({ payment, limit: PAGE }))
        invoices.add(typeof invoice === 'string' ? invoice : invoice.id);
      return [...invoices];
    });
  }

  /** Finds the payment intent of a record; null if the record itself pays no invoice, such as a Checkout session. */
  async #findPaymentIntent(id: string): Promise<string | null> {
    if (id.startsWith('pi_')) return id;
    if (!id.startsWith('ch_') && !id.startsWith('py_')) return null;
    const { payment_intent } = await this.#stripe.charges.retrieve(id);
    return typeof payment_intent === 'string' ? payment_intent : (payment_intent?.id ?? null);
  }

  /** Lists refunds by the id of their payment intent or charge. */
  async #listRefunds(payments: readonly Stripe.InvoicePayment[]): Promise<RefundsById> {
    const refunds = new Map<string, readonly ReportedRefund[]>();
    for (const payment of payments) {
      const query = payment.status === 'paid' ? toRefundQuery(payment) : null;
      if (query === null) continue;
      refunds.set(query.id, await listRefunds(this.#stripe, query.by, payment.currency));
    }
    return refunds;
  }

  /** Lists all payments of an invoice, whose record contains only the first ones. */
  async #listPayments({ id, payments }: Stripe.Invoice): Promise<Stripe.InvoicePayment[]> {
    if (payments?.has_more === false) return payments.data;
    const listed: Stripe.InvoicePayment[] = [];
    const pages = this.#stripe.invoicePayments.list({
      invoice: id,
      limit: PAGE,
      expand: [PAYMENTS_EXPANDED, RECORDS_EXPANDED],
    });
    for await (const payment of pages) listed.push(payment);
    return listed;
  }

  /** Reads an invoice; null if it was deleted. */
  async #loadInvoice(id: string, expand: string[] = []): Promise<Stripe.Invoice | null> {
    try {
      return await this.#stripe.invoices.retrieve(id, { expand });
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }
}

/** Builds a customer. Stripe refuses an empty text in some fields, and deletes the value in others. */
function toStripeCustomer({ name, email, address, ...ids }: PushedCustomer): Stripe.CustomerCreateParams {
  const filled = Object.fromEntries(Object.entries(address).filter(([, text]) => text !== ''));
  return {
    ...(name === '' ? {} : { name }),
    ...(email === '' ? {} : { email }),
    ...(Object.keys(filled).length === 0 ? {} : { address: filled }),
    metadata: { farthing_customer_id: ids.customer_id, farthing_external_id: ids.external_id },
  };
}

function toRecord({ id, hosted_invoice_url }: Stripe.Invoice): ProviderRecord {
  return { provider_entity_id: id, url: hosted_invoice_url ?? null };
}
