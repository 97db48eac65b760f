/**
 * Account at Chargebee: one site. A customer has our id there. An invoice, payment or credit note has our id in its note
 * or reference, by which a repeated push finds the record of an interrupted one.
 */

import { HOUR_SECONDS } from '../../core/foundation/time/durations.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type {
  AccountIdentity,
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
import type { AccountPayments } from '../account-payments.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { cutCharacters, hasBegun } from '../pushed-records.ts';
import { fromCents, toCents, toInteger } from './amounts.ts';
import { computeNetTermDays, hasId, toCustomerForm, toInvoiceForm, toSeconds } from './bodies.ts';
import { type ChargebeeClient, pickRecord } from './client.ts';
import { findChargebeeCreditNote, pushChargebeeCreditNote, voidChargebeeCreditNote } from './credit-notes.ts';
import { ChargebeeError, isDuplicate } from './errors.ts';
import { loadPayments, toState } from './invoice-money.ts';
import { ChargebeePayments } from './payments.ts';
import { readInvoice } from './pulled-invoice.ts';
import type { ChargebeeInvoice, ChargebeeTransaction } from './records.ts';

/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_SECONDS = HOUR_SECONDS;
const REFERENCE_MAX = 100;

export class ChargebeeAccount implements ProviderAccount {
  readonly payments: AccountPayments;
  readonly #client: ChargebeeClient;
  readonly #site: string;

  constructor(client: ChargebeeClient, site: string) {
    this.#client = client;
    this.#site = site;
    this.payments = new ChargebeePayments(client);
  }

  /** The key is accepted by its own site alone, so the site identifies the account. */
  async identify(): Promise<AccountIdentity> {
    await this.#client.check();
    return { provider_account_id: this.#site, name: null };
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    const { customer_id, key } = customer;
    try {
      await this.#client.create('customers', 'customer', { form: toCustomerForm(customer), key });
    } catch (error) {
      // The id is ours, so the customer with it was created by an earlier attempt.
      if (!isDuplicate(error)) throw error;
    }
    return { provider_entity_id: customer_id, url: null };
  }

  async hasCustomer(provider_entity_id: string): Promise<boolean> {
    return (await this.#client.read('customer', provider_entity_id)) !== null;
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    const earlier = hasBegun(invoice) ? await this.#findInvoice(invoice) : null;
    const there = earlier ?? (await this.#createInvoice(invoice));
    // An invoice of an earlier attempt may be paid already, so only its total is compared.
    const isSame = hasTotal(there, invoice) && (earlier !== null || isWhollyDue(there));
    if (!isSame) await this.#refuseAmounts(there, invoice, earlier === null);
    return { provider_entity_id: there.id, url: null };
  }

  /**
   * Creates an invoice, which is due at the due date if the site has such a payment term. Otherwise the term of the
   * customer applies.
   */
  async #createInvoice(invoice: PushedInvoice): Promise<ChargebeeInvoice> {
    const path = 'invoices/create_for_charge_items_and_charges';
    const form = toInvoiceForm(invoice);
    const net_term_days = computeNetTermDays(invoice, Date.now());
    const { key } = invoice;
    if (net_term_days === undefined) return await this.#client.create(path, 'invoice', { form, key });
    try {
      // The number of days changes with time, and a key belongs to one request.
      const termed = { form: { ...form, net_term_days }, key: `${key}:${net_term_days}` };
      return await this.#client.create(path, 'invoice', termed);
    } catch (error) {
      if (!(error instanceof ChargebeeError) || error.parameter !== 'net_term_days') throw error;
      return await this.#client.create(path, 'invoice', { form, key });
    }
  }

  /** Finds the invoice of an earlier attempt. A void one is ignored, because a person has voided it. */
  async #findInvoice(searched: SearchedInvoice): Promise<ChargebeeInvoice | null> {
    const since = Math.floor(searched.key_created_at.getTime() / 1_000) - CLOCK_SLACK_SECONDS;
    const filter = { customer_id: { is: searched.provider_customer_id }, updated_at: { after: since } };
    for await (const found of this.#client.list('invoice', filter)) {
      const isUsable = found.status !== 'voided' && found.deleted !== true;
      if (
        isUsable &&
        hasId(
          (found.notes ?? []).map(({ note }) => note),
          searched.invoice_id,
        )
      )
        return found;
    }
    return null;
  }

  /** Voids a new invoice with other amounts. One of an earlier attempt stays, because a person may have edited it. */
  async #refuseAmounts(there: ChargebeeInvoice, invoice: PushedInvoice, is_new: boolean): Promise<never> {
    const { id, total, amount_due, currency_code } = there;
    const found = `${fromCents(total, currency_code)} ${currency_code.toLowerCase()}`;
    const due = fromCents(amount_due, currency_code);
    const isVoid = is_new && (await this.#tryToVoid(id, `${invoice.key}:${id}:void`));
    throw new ProviderError(
      'person',
      `the total of ${invoice.invoice_id} is ${invoice.total} ${invoice.currency}, but ${found} at Chargebee, of which ${due} is due: ${isVoid ? `${id} was voided` : `correct or void ${id} there`}`,
    );
  }

  async #tryToVoid(id: string, key: string): Promise<boolean> {
    try {
      await this.voidInvoice(id, key);
      return true;
    } catch (error) {
      if (!isRefused(error)) throw error;
      return false;
    }
  }

  async findInvoice(invoice: SearchedInvoice): Promise<ProviderRecord | null> {
    const found = await this.#findInvoice(invoice);
    return found === null ? null : { provider_entity_id: found.id, url: null };
  }

  async voidInvoice(provider_entity_id: string, key: string): Promise<void> {
    const invoice = await this.#client.read('invoice', provider_entity_id);
    if (invoice === null || invoice.deleted === true || invoice.status === 'voided') return;
    try {
      await this.#client.act(['invoice', provider_entity_id, 'void'], { key });
    } catch (error) {
      const current = isRefused(error) ? await this.#client.read('invoice', provider_entity_id) : null;
      if (current?.status !== 'voided') throw error;
    }
  }

  /** Records the part of the payment that the invoice needs, because Chargebee would credit the rest to the customer. */
  async pushPayment(payment: PushedPayment): Promise<ProviderRecord> {
    const invoice = await this.#client.load('invoice', payment.provider_invoice_id);
    const earlier = await this.#findRecorded(invoice, payment.payment_id);
    if (earlier !== null) return { provider_entity_id: earlier.id, url: null };
    const amount = Math.min(toCents(payment.amount, payment.currency), toInteger(invoice.amount_due));
    if (amount <= 0 || invoice.status === 'voided')
      throw new ProviderError(
        'person',
        `the invoice ${invoice.id} is ${invoice.status} at Chargebee, so the payment of ${payment.amount} ${payment.currency} is not counted there`,
      );
    const transaction = {
      amount,
      payment_method: 'other',
      reference_number: cutCharacters(`${payment.payment_id} ${payment.reference}`, REFERENCE_MAX),
      date: Math.min(toSeconds(payment.paid_at), Math.floor(Date.now() / 1_000)),
    };
    const recording = { form: { transaction }, key: payment.key };
    const recorded = pickRecord(
      await this.#client.act(['invoice', invoice.id, 'record_payment'], recording),
      'transaction',
    );
    return { provider_entity_id: recorded.id, url: null };
  }

  async #findRecorded(invoice: ChargebeeInvoice, payment_id: string): Promise<ChargebeeTransaction | null> {
    const payments = await loadPayments(this.#client, invoice);
    const recorded = payments.filter(({ reference_number = '' }) => hasId([reference_number], payment_id));
    return recorded.find((one) => one.deleted !== true && toState(one) === 'succeeded') ?? null;
  }

  async pushCreditNote(note: PushedCreditNote): Promise<ProviderRecord> {
    return await pushChargebeeCreditNote(this.#client, note);
  }

  async findCreditNote(note: SearchedCreditNote): Promise<ProviderRecord | null> {
    return await findChargebeeCreditNote(this.#client, note);
  }

  async voidCreditNote(provider_entity_id: string, key: string): Promise<void> {
    await voidChargebeeCreditNote(this.#client, provider_entity_id, key);
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    return await readInvoice(this.#client, provider_entity_id);
  }

  /** An event names the invoices beside the payment, so only transactions without an invoice in their event are read. */
  async listConcernedInvoices({ kind, provider_entity_id: id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind === 'invoice') return [id];
    if (kind !== 'payment' || !id.startsWith('txn_')) return [];
    const transaction = await this.#client.read('transaction', id);
    return (transaction?.linked_invoices ?? []).map(({ invoice_id }) => invoice_id);
  }
}

/** Whether total and currency are ours: taxes or rounding could change them. */
function hasTotal({ total: there, currency_code }: ChargebeeInvoice, { total, currency }: PushedInvoice): boolean {
  return currency_code.toLowerCase() === currency && toInteger(there) === toCents(total, currency);
}

/** Whether nothing was paid at once, e.g. by a credit that the customer had. */
function isWhollyDue({ total, amount_due }: ChargebeeInvoice): boolean {
  return toInteger(amount_due) === toInteger(total);
}
