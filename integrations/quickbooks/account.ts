/**
 * Account at QuickBooks Online: one company. A record that a push creates has our id in its private note. A repeated
 * push searches for that note first and has the same request ids, so nothing is created twice.
 */

import { Decimal } from '../../core/foundation/decimal.ts';
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
import type { ExactJson } from '../exact-json.ts';
import { ProviderError } from '../provider-error.ts';
import { hasBegun } from '../pushed-records.ts';
import { type QuickBooksClient, quote } from './client.ts';
import { DUPLICATE_NAME, DUPLICATE_NUMBER, isFault } from './errors.ts';
import { toProviderInvoice } from './pulled-invoice.ts';
import { isVoided, type QuickBooksPayment, type QuickBooksRecords } from './records.ts';
import {
  toApplicationBody,
  toCreditMemoBody,
  toCustomerBody,
  toDisplayName,
  toInvoiceBody,
  toNote,
  toPaymentBody,
} from './sales.ts';

/** Item that all lines name. The description of a line says what is sold. */
const ITEM_NAME = 'Farthing';
/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_SECONDS = HOUR_SECONDS;

type CompanySettings = { readonly realm_id: string; readonly income_account_id?: string | undefined };
type Push = Pick<PushedCustomer, 'key' | 'key_created_at' | 'key_age_seconds' | 'is_key_renewed'>;
type SentName = 'Invoice' | 'CreditMemo' | 'Payment';
type SentDocument = Push & {
  readonly provider_customer_id: string;
  readonly currency: string;
  /** Text in the private note that no other record has. */
  readonly note: string;
  readonly total: string;
  /** Amounts of the lines, in their order. */
  readonly amounts: readonly string[];
};

type SentRecord<Name extends SentName> = {
  readonly record: QuickBooksRecords[Name];
  /** Whether this call created the record; false if an earlier attempt did. */
  readonly is_new: boolean;
};

export class QuickBooksAccount implements ProviderAccount {
  readonly #client: QuickBooksClient;
  readonly #settings: CompanySettings;
  #company: Promise<QuickBooksRecords['CompanyInfo'] | null> | null = null;

  constructor(client: QuickBooksClient, settings: CompanySettings) {
    this.#client = client;
    this.#settings = settings;
  }

  async identify(): Promise<AccountIdentity> {
    const { CompanyName } = await this.#loadCompany();
    return { provider_account_id: this.#settings.realm_id, name: CompanyName ?? null };
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    const note = toNote('customer', customer.customer_id);
    const earlier = hasBegun(customer) ? await this.#findCustomer(note, toCreatedSince(customer)) : null;
    return toRecord(earlier ?? (await this.#createCustomer(customer, note)));
  }

  async #createCustomer(customer: PushedCustomer, note: string): Promise<QuickBooksRecords['Customer']> {
    try {
      return await this.#client.create('Customer', toCustomerBody(customer), { key: `${customer.key}:customer` });
    } catch (error) {
      if (!isFault(error, DUPLICATE_NAME)) throw error;
      const name = toDisplayName(customer);
      const ours = await this.#findCustomer(note, `DisplayName = ${quote(name)}`);
      if (ours !== null) return ours;
      throw new ProviderError(
        'person',
        `QuickBooks has a customer, vendor or employee named ${JSON.stringify(name)} already: link it (POST /integrations/link), or change one of the names`,
        { provider_code: DUPLICATE_NAME },
      );
    }
  }

  async #findCustomer(note: string, condition: string): Promise<QuickBooksRecords['Customer'] | null> {
    for await (const customer of this.#client.query('Customer', `${condition} and Active in (true, false)`))
      if (hasNote(customer.Notes, note)) return customer;
    return null;
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    const document: SentDocument = {
      ...invoice,
      note: toNote('invoice', invoice.invoice_id),
      amounts: invoice.lines.map(({ amount }) => amount),
    };
    const body = toInvoiceBody(invoice, await this.#loadTerms(invoice));
    const sent = await this.#createOnce('Invoice', document, body);
    await this.#check('Invoice', sent, document);
    return toRecord(sent.record);
  }

  async findInvoice({ invoice_id, ...searched }: SearchedInvoice): Promise<ProviderRecord | null> {
    const found = await this.#findSent('Invoice', { ...searched, note: toNote('invoice', invoice_id) });
    return found === null ? null : toRecord(found);
  }

  async pushPayment(payment: PushedPayment): Promise<ProviderRecord> {
    const { amount: total } = payment;
    const document = { ...payment, note: toNote('payment', payment.payment_id), total, amounts: [total] };
    const sent = await this.#createOnce('Payment', document, toPaymentBody(payment));
    await this.#check('Payment', sent, document);
    return toRecord(sent.record);
  }

  /**
   * Creates a credit memo. If the money was refunded elsewhere, it stays a credit of the customer until a person
   * records the refund in QuickBooks.
   */
  async pushCreditNote(credit_note: PushedCreditNote): Promise<ProviderRecord> {
    const document: SentDocument = {
      ...credit_note,
      note: toNote('credit note', credit_note.credit_note_id),
      amounts: credit_note.lines.map(({ amount }) => amount),
    };
    const body = toCreditMemoBody(credit_note, await this.#loadTerms(credit_note));
    const sent = await this.#createOnce('CreditMemo', document, body);
    await this.#check('CreditMemo', sent, document);
    if (credit_note.effect === 'lowers_remaining') await this.#applyCreditMemo(credit_note, sent.record.Id);
    return toRecord(sent.record);
  }

  /** Applies the credit memo to its invoice, unless the company's own settings have applied it already. */
  async #applyCreditMemo(credit_note: PushedCreditNote, id: string): Promise<void> {
    const memo = await this.#client.read('CreditMemo', id);
    if (memo === null || new Decimal(memo.RemainingCredit ?? memo.TotalAmt).isZero()) return;
    const { key } = credit_note;
    await this.#client.create('Payment', toApplicationBody(credit_note, id), { key: `${key}:apply:${memo.SyncToken}` });
  }

  async findCreditNote({ credit_note_id, ...searched }: SearchedCreditNote): Promise<ProviderRecord | null> {
    const found = await this.#findSent('CreditMemo', { ...searched, note: toNote('credit note', credit_note_id) });
    return found === null ? null : toRecord(found);
  }

  /** QuickBooks cannot void a credit memo, so it is deleted, after the payments of 0 that apply it. */
  async voidCreditNote(provider_entity_id: string, key: string): Promise<void> {
    const memo = await this.#client.read('CreditMemo', provider_entity_id);
    if (memo === null) return;
    for (const { TxnId, TxnType } of memo.LinkedTxn ?? []) {
      const payment = TxnType === 'Payment' ? await this.#client.read('Payment', TxnId) : null;
      if (payment === null) continue;
      if (!new Decimal(payment.TotalAmt).isZero())
        throw new ProviderError(
          'person',
          `the credit memo ${memo.Id} is part of the payment ${payment.Id} at QuickBooks: void it there`,
        );
      await this.#client.end('Payment', { id: payment.Id, operation: 'delete', key: `${key}:${payment.Id}` });
    }
    await this.#client.end('CreditMemo', { id: memo.Id, operation: 'delete', key });
  }

  async voidInvoice(provider_entity_id: string, key: string): Promise<void> {
    const id = provider_entity_id;
    await this.#client.end('Invoice', {
      id,
      operation: 'void',
      key,
      isDone: (invoice) => {
        const isPaid = (invoice.LinkedTxn ?? []).some(({ TxnType }) => TxnType === 'Payment');
        if (isPaid)
          throw new ProviderError('person', `the invoice ${id} has payments at QuickBooks, so it cannot be voided`);
        return isVoided(invoice);
      },
    });
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    const invoice = await this.#client.read('Invoice', provider_entity_id);
    if (invoice === null) return null;
    const ids = (invoice.LinkedTxn ?? []).filter(({ TxnType }) => TxnType === 'Payment').map(({ TxnId }) => TxnId);
    const payments: QuickBooksPayment[] = [];
    for (const id of new Set(ids)) {
      const payment = await this.#client.read('Payment', id);
      if (payment !== null) payments.push(payment);
    }
    return toProviderInvoice(invoice, payments, await this.#readCurrency(invoice));
  }

  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind === 'invoice') return [provider_entity_id];
    if (kind !== 'payment') return [];
    const payment = await this.#client.read('Payment', provider_entity_id);
    const linked = (payment?.Line ?? []).flatMap(({ LinkedTxn = [] }) => LinkedTxn);
    return [...new Set(linked.filter(({ TxnType }) => TxnType === 'Invoice').map(({ TxnId }) => TxnId))];
  }

  async #createOnce<Name extends SentName>(
    name: Name,
    document: SentDocument,
    body: ExactJson,
  ): Promise<SentRecord<Name>> {
    const earlier = hasBegun(document) ? await this.#findSent(name, document) : null;
    if (earlier !== null) return { record: earlier, is_new: false };
    try {
      return { record: await this.#client.create(name, body, { key: `${document.key}:${name}` }), is_new: true };
    } catch (error) {
      const created = isFault(error, DUPLICATE_NUMBER) ? await this.#findSent(name, document) : null;
      if (created === null) throw error;
      return { record: created, is_new: false };
    }
  }

  /** Finds the record of an earlier attempt. A void record is ignored, because a person has voided it. */
  async #findSent<Name extends SentName>(
    name: Name,
    searched: Pick<SentDocument, 'provider_customer_id' | 'note' | 'key_created_at'>,
  ): Promise<QuickBooksRecords[Name] | null> {
    const customer = `CustomerRef = ${quote(searched.provider_customer_id)}`;
    for await (const found of this.#client.query(name, `${customer} and ${toCreatedSince(searched)}`))
      if (hasNote(found.PrivateNote, searched.note) && !isVoided(found) && isDocument(found)) return found;
    return null;
  }

  /**
   * Deletes a new record whose amounts differ, because taxes, rounding or another currency changed it. A record of an
   * earlier attempt stays, because a bookkeeper may have edited it.
   */
  async #check<Name extends SentName>(
    name: Name,
    { record: there, is_new }: SentRecord<Name>,
    { total, currency, amounts, key, note }: SentDocument,
  ): Promise<void> {
    const found = await this.#readCurrency(there);
    const lines = listAmounts(there);
    const isEqual =
      found === currency &&
      new Decimal(there.TotalAmt).equals(total) &&
      lines.length === amounts.length &&
      lines.every((amount, index) => new Decimal(amount).equals(amounts[index]!));
    if (isEqual) return;
    if (is_new) await this.#client.end(name, { id: there.Id, operation: 'delete', key: `${key}:${there.Id}` });
    const what_follows = is_new ? `where it was deleted (${there.Id})` : `correct or delete it there (${there.Id})`;
    throw new ProviderError(
      'person',
      `the total of ${note} is ${total} ${currency} in ${amounts.length} lines, but ${new Decimal(there.TotalAmt).toFixed()} ${found} in ${lines.length} lines at QuickBooks, ${what_follows}`,
    );
  }

  async #loadTerms({ key }: Push) {
    const company = await this.#loadCompany();
    return { company, item_id: await this.#loadItem(key) };
  }

  async #loadItem(key: string): Promise<string> {
    const existing = await this.#findItem();
    if (existing !== null) return existing;
    const { income_account_id } = this.#settings;
    if (income_account_id === undefined)
      throw new ProviderError('person', 'income_account_id is missing: QuickBooks has no item named Farthing yet');
    const body = { Name: ITEM_NAME, Type: 'Service', IncomeAccountRef: { value: income_account_id } };
    try {
      return (await this.#client.create('Item', body, { key: `${key}:item` })).Id;
    } catch (error) {
      const created = isFault(error, DUPLICATE_NAME) ? await this.#findItem() : null;
      if (created === null) throw error;
      return created;
    }
  }

  async #findItem(): Promise<string | null> {
    for await (const { Id } of this.#client.query('Item', `Name = ${quote(ITEM_NAME)}`)) return Id;
    return null;
  }

  async #loadCompany(): Promise<QuickBooksRecords['CompanyInfo']> {
    const company = await (this.#company ??= this.#client.read('CompanyInfo', this.#settings.realm_id));
    if (company === null) throw new ProviderError('person', `QuickBooks has no company ${this.#settings.realm_id}`);
    return company;
  }

  /** Reads the currency in lower case. Records of a company with one currency do not name it. */
  async #readCurrency({ CurrencyRef }: { readonly CurrencyRef?: { readonly value: string } }): Promise<string> {
    if (CurrencyRef !== undefined) return CurrencyRef.value.toLowerCase();
    for await (const { CurrencyPrefs } of this.#client.query('Preferences'))
      if (CurrencyPrefs?.HomeCurrency) return CurrencyPrefs.HomeCurrency.value.toLowerCase();
    throw new ProviderError('person', 'QuickBooks does not tell the currency of the company');
  }
}

/** Earliest creation of a record that an attempt with this key created. */
function toCreatedSince({ key_created_at }: Pick<Push, 'key_created_at'>): string {
  const since_ms = key_created_at.getTime() - CLOCK_SLACK_SECONDS * 1_000;
  return `MetaData.CreateTime >= ${quote(new Date(since_ms).toISOString().replace(/\.\d+Z$/, '+00:00'))}`;
}

/** Whether the text contains the note, to which people may have added. */
function hasNote(text: string | undefined, note: string): boolean {
  return text !== undefined && text.split(/\s*\n\s*/).some((line) => line.trim() === note);
}

/** Whether the record has an amount. A payment of 0, which only applies a credit memo, is no document, although it has a note. */
function isDocument({ TotalAmt }: { readonly TotalAmt: string }): boolean {
  return !new Decimal(TotalAmt).isZero();
}

function listAmounts(record: QuickBooksRecords[SentName]): readonly string[] {
  const lines = (record.Line ?? []) as readonly { readonly DetailType?: string; readonly Amount?: string }[];
  return lines
    .filter(({ DetailType = 'SalesItemLineDetail' }) => DetailType === 'SalesItemLineDetail')
    .map(({ Amount = '0' }) => Amount);
}

function toRecord({ Id }: { readonly Id: string }): ProviderRecord {
  return { provider_entity_id: Id, url: null };
}
