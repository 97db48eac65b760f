/**
 * Account at Paddle, a merchant of record: it adds its own tax to the net amounts that it is sent. An invoice is a
 * transaction; in the currencies that Paddle invoices it is billed and sent by Paddle, in others it is paid on a page.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type {
  AccountIdentity,
  ProviderAccount,
  ProviderInvoice,
  ProviderRecord,
  PushedCreditNote,
  PushedCustomer,
  PushedInvoice,
  SearchedCreditNote,
  SearchedInvoice,
} from '../account.ts';
import type { AccountPayments } from '../account-payments.ts';
import { type ExactJson, JsonNumber } from '../exact-json.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { createAdjustment, findAdjustment, listAdjustments } from './adjustments.ts';
import { fromLowest, isInvoiceCurrency, sumLowest, toLowest } from './amounts.ts';
import type { PaddleClient } from './client.ts';
import { PaddleCustomers } from './customers.ts';
import { type PaddleSettings, toItems } from './items.ts';
import { PaddlePayments } from './payments.ts';
import { computeNet, toProviderInvoice, toRecord } from './pulled-invoice.ts';
import type { PaddleAdjustment, PaddleTransaction } from './records.ts';
import { PaddleTransactions, type SearchedTransaction } from './transactions.ts';

type CallerFacts = {
  readonly caller?: { readonly account?: { readonly id?: unknown; readonly name?: unknown } | null };
};

export class PaddleAccount implements ProviderAccount {
  readonly payments: AccountPayments;
  readonly #client: PaddleClient;
  readonly #customers: PaddleCustomers;
  readonly #transactions: PaddleTransactions;
  readonly #settings: PaddleSettings;

  constructor(client: PaddleClient, settings: PaddleSettings) {
    this.#client = client;
    this.#settings = settings;
    this.#customers = new PaddleCustomers(client);
    this.#transactions = new PaddleTransactions(client);
    const parts = { client, settings, customers: this.#customers, transactions: this.#transactions };
    this.payments = new PaddlePayments(parts);
  }

  /** Reads the API root, which names the account of the key. */
  async identify(): Promise<AccountIdentity> {
    const { caller } = await this.#client.read<CallerFacts>('');
    if (!caller?.account)
      throw new ProviderError('person', 'Paddle: the key belongs to no account', { is_unauthorized: true });
    const { id, name } = caller.account;
    return {
      provider_account_id: typeof id === 'string' ? id : null,
      name: typeof name === 'string' ? name : null,
    };
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    return { provider_entity_id: await this.#customers.push(customer), url: null };
  }

  async hasCustomer(provider_entity_id: string): Promise<boolean> {
    return await this.#customers.has(provider_entity_id);
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    const body = this.#toBody(invoice);
    const searched = toSearched(invoice);
    const draft = (await this.#findUsable(invoice)) ?? (await this.#createDraft(invoice, searched, body));
    try {
      checkTotal(draft, invoice);
      const issued = isUnbilled(draft) ? await this.#transactions.bill(draft) : draft;
      checkTotal(issued, invoice);
      return toRecord(issued);
    } catch (error) {
      // Cancels the draft, because a person could issue it in addition to the invoice of a later attempt.
      if (isRefused(error) && draft.status === 'ready') await this.#transactions.cancel(draft);
      throw error;
    }
  }

  /** Finds the transaction of an earlier attempt. A draft with another total was made before the invoice changed, and is canceled. */
  async #findUsable(invoice: PushedInvoice): Promise<PaddleTransaction | null> {
    const found = await this.#transactions.findLive(toSearched(invoice));
    if (found === null || found.status !== 'ready' || hasTotal(found, invoice)) return found;
    await this.#transactions.cancel(found);
    return null;
  }

  async #createDraft(
    { provider_customer_id, billing_address }: PushedInvoice,
    searched: SearchedTransaction,
    body: Readonly<Record<string, ExactJson | undefined>>,
  ): Promise<PaddleTransaction> {
    const address_id = billing_address?.country
      ? await this.#customers.ensureAddress(provider_customer_id, billing_address)
      : await this.#customers.findNewestAddress(provider_customer_id);
    if (address_id === null)
      throw new ProviderError(
        'person',
        'Paddle computes tax by the address of the customer: set address_country, or add an address in Paddle',
      );
    return await this.#transactions.create(searched, { ...body, address_id });
  }

  #toBody(invoice: PushedInvoice): Readonly<Record<string, ExactJson | undefined>> {
    const { currency, invoice_id, invoice_number, provider_customer_id } = invoice;
    const label = `Invoice ${invoice_number}`;
    return {
      items: toItems(invoice, { ...this.#settings, label }),
      customer_id: provider_customer_id,
      currency_code: currency.toUpperCase(),
      custom_data: { farthing_invoice_id: invoice_id, farthing_invoice_number: invoice_number },
      ...(isInvoiceCurrency(currency)
        ? { collection_mode: 'manual', billing_details: toBillingDetails(invoice, label) }
        : { collection_mode: 'automatic' }),
    };
  }

  async findInvoice(invoice: SearchedInvoice): Promise<ProviderRecord | null> {
    const [found] = await this.#transactions.listLive(toSearched(invoice));
    return found === undefined ? null : toRecord(found);
  }

  async voidInvoice(provider_entity_id: string): Promise<void> {
    const transaction = await this.#transactions.find(provider_entity_id);
    if (transaction === null || transaction.status === 'canceled') return;
    if (transaction.status === 'paid' || transaction.status === 'completed')
      throw new ProviderError(
        'person',
        `${provider_entity_id} is ${transaction.status} at Paddle, so it cannot be canceled`,
      );
    await this.#transactions.cancel(transaction);
    const current = await this.#transactions.find(provider_entity_id);
    if (current !== null && current.status !== 'canceled')
      throw new ProviderError('wait', `${provider_entity_id} was paid at Paddle while it was canceled`);
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    const transaction = await this.#transactions.find(provider_entity_id);
    if (transaction === null) return null;
    return toProviderInvoice(transaction, await listAdjustments(this.#client, transaction.id));
  }

  /** A transaction is its invoice and its payment. Events of adjustments name the transaction. */
  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    return kind === 'invoice' || kind === 'payment' ? [provider_entity_id] : [];
  }

  /** Credits the invoice. Paddle has no record of money that was given back elsewhere. */
  async pushCreditNote(note: PushedCreditNote): Promise<ProviderRecord> {
    const { provider_invoice_id, credit_note_id, currency, total, reason } = note;
    const transaction = await this.#transactions.find(provider_invoice_id);
    if (transaction === null)
      throw new ProviderError('person', `Paddle has no transaction ${provider_invoice_id}`, { is_missing: true });
    const earlier = await listAdjustments(this.#client, transaction.id);
    const found = findAdjustment(earlier, 'credit note', credit_note_id);
    if (found === undefined && note.effect === 'refunded_elsewhere')
      throw new ProviderError(
        'person',
        `Paddle has no credit notes of money that was returned elsewhere: refund ${provider_invoice_id} there instead`,
      );
    const credit =
      found ??
      (await createAdjustment(this.#client, {
        ...{ action: 'credit', kind: 'credit note', id: credit_note_id, reason, transaction, earlier },
        net: new Decimal(toLowest(total, currency)),
        by_line: sumByLine(note),
      }));
    checkCredited(credit, note);
    return { provider_entity_id: credit.id, url: null };
  }

  async findCreditNote({ credit_note_id, provider_invoice_id }: SearchedCreditNote): Promise<ProviderRecord | null> {
    const adjustments = await listAdjustments(this.#client, provider_invoice_id);
    const found = findAdjustment(adjustments, 'credit note', credit_note_id);
    return found === undefined ? null : { provider_entity_id: found.id, url: null };
  }
}

/** Sums the credited net amounts by the line of the invoice. */
function sumByLine({ lines, currency }: PushedCreditNote): ReadonlyMap<string, Decimal> {
  const by_line = groupBy(lines, ({ line_item_id }) => line_item_id ?? '');
  const sum = (some: PushedCreditNote['lines']) =>
    sumLowest(some.map(({ amount }) => String(toLowest(amount, currency))));
  return new Map(Array.from(by_line, ([id, some]) => [id, sum(some)]));
}

function toSearched({ invoice_id, provider_customer_id, key_created_at }: SearchedInvoice): SearchedTransaction {
  return {
    field: 'farthing_invoice_id',
    value: invoice_id,
    customer_id: provider_customer_id,
    since: key_created_at,
  };
}

/** Terms of the invoice that Paddle sends. It may also be paid on a page. Its due date is a number of days, at least one. */
function toBillingDetails({ due_date }: PushedInvoice, label: string): ExactJson {
  const days = due_date === null ? 1 : Math.ceil((Date.parse(due_date) - Date.now()) / DAY_MS);
  return {
    enable_checkout: true,
    payment_terms: { interval: 'day', frequency: new JsonNumber(String(Math.max(1, days))) },
    additional_information: label,
  };
}

/** Whether the transaction is an invoice that was not issued yet. */
function isUnbilled({ collection_mode, status }: PaddleTransaction): boolean {
  return collection_mode === 'manual' && (status === 'draft' || status === 'ready');
}

function hasTotal(transaction: PaddleTransaction, { total, currency }: PushedInvoice): boolean {
  const isSameCurrency = transaction.currency_code.toLowerCase() === currency;
  return isSameCurrency && computeNet(transaction).equals(toLowest(total, currency));
}

/** Compares the net total, because Paddle's tax is its own. */
function checkTotal(transaction: PaddleTransaction, invoice: PushedInvoice): void {
  if (hasTotal(transaction, invoice)) return;
  const there = transaction.currency_code.toLowerCase();
  throw new ProviderError(
    'person',
    `the total of ${invoice.invoice_id} is ${invoice.total} ${invoice.currency}, but ${fromLowest(computeNet(transaction), there)} ${there} without tax at Paddle (${transaction.id})`,
  );
}

/** Paddle cannot take a credit back, so a different one needs a person. */
function checkCredited({ id, totals }: PaddleAdjustment, { credit_note_id, total, currency }: PushedCreditNote): void {
  if (new Decimal(totals.subtotal).equals(toLowest(total, currency))) return;
  throw new ProviderError(
    'person',
    `credit note ${credit_note_id} is ${total} ${currency}, but ${fromLowest(totals.subtotal, currency)} without tax at Paddle (${id})`,
  );
}
