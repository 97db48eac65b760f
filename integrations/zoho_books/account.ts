/**
 * Account at Zoho Books: one organization. Zoho has no idempotency keys, so each record has our id as its reference
 * number, a contact in its notes. Every attempt searches for that id first: a key of age 0 does not show that no attempt
 * came before, because ages are whole seconds.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
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
import { isRefused, ProviderError } from '../provider-error.ts';
import type { ZohoBooksClient } from './client.ts';
import { toInvoiceUrl, toProviderInvoice } from './pulled-invoice.ts';
import {
  type InvoiceCredit,
  type InvoicePayment,
  toInvoiceStatus,
  type ZohoCurrency,
  type ZohoInvoice,
  type ZohoRecords,
} from './records.ts';
import {
  type RecordCreation,
  toApplicationBody,
  toContactBody,
  toContactName,
  toContactNote,
  toCreditNoteRequest,
  toInvoiceRequest,
  toPaymentBody,
} from './sales.ts';

type ReferencedName = 'invoice' | 'payment' | 'creditnote';
type ReferencedDocument = {
  readonly provider_customer_id: string;
  /** Our id, which no other record has as its reference number. */
  readonly reference: string;
  readonly currency: string;
  readonly total: string;
  /** Amounts of the lines, or of the part that pays the invoice. */
  readonly amounts: readonly string[];
};
/** Whether this call created the record; false if an earlier attempt did. */
type FoundOrCreated<Name extends ReferencedName> = { readonly record: ZohoRecords[Name]; readonly is_new: boolean };

export class ZohoBooksAccount implements ProviderAccount {
  readonly #client: ZohoBooksClient;
  readonly #organization_id: string;

  constructor(client: ZohoBooksClient, organization_id: string) {
    this.#client = client;
    this.#organization_id = organization_id;
  }

  async identify(): Promise<AccountIdentity> {
    const path = `organizations/${this.#organization_id}`;
    const { name } = await this.#client.fetchField<{ readonly name?: string }>('GET', path, 'organization');
    return { provider_account_id: this.#organization_id, name: name ?? null };
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    const earlier = await this.#findContact(customer, { search_text: customer.customer_id });
    const { contact_id } = earlier ?? (await this.#createContact(customer));
    return { provider_entity_id: contact_id, url: null };
  }

  async hasCustomer(provider_entity_id: string): Promise<boolean> {
    return (await this.#client.read('contact', provider_entity_id)) !== null;
  }

  async #createContact(customer: PushedCustomer): Promise<ZohoRecords['contact']> {
    try {
      return await this.#client.create('contact', { body: toContactBody(customer) });
    } catch (error) {
      if (!isRefused(error)) throw error;
      const contact_name = toContactName(customer);
      const ours = await this.#findContact(customer, { contact_name });
      if (ours !== null) return ours;
      for await (const _other of this.#client.list('contact', { contact_name }))
        throw new ProviderError(
          'person',
          `Zoho Books has a contact named ${JSON.stringify(contact_name)} already: link it (POST /integrations/link), or change one of the names`,
          { provider_code: error.provider_code },
        );
      throw error;
    }
  }

  /** Finds the contact of an earlier attempt, which may have been renamed since. Lists do not contain the notes. */
  async #findContact(
    { customer_id }: PushedCustomer,
    search: Readonly<Record<string, string>>,
  ): Promise<ZohoRecords['contact'] | null> {
    const note = toContactNote(customer_id);
    for await (const { contact_id } of this.#client.list('contact', { ...search, filter_by: 'Status.All' })) {
      const contact = await this.#client.read('contact', contact_id);
      if (contact?.notes?.includes(note)) return contact;
    }
    return null;
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    const request = toInvoiceRequest(invoice, await this.#findCurrency(invoice.currency));
    const amounts = invoice.lines.map(({ amount }) => amount);
    const document = { ...invoice, reference: invoice.invoice_id, amounts };
    const sent = await this.#createOnce('invoice', document, request);
    const { record } = sent;
    await this.#check('invoice', sent, document);
    if (toInvoiceStatus(record) === 'draft')
      await this.#client.post('invoice', { id: record.invoice_id, part: 'status/sent' });
    return toInvoiceRecord(record);
  }

  async findInvoice({ invoice_id: reference, ...searched }: SearchedInvoice): Promise<ProviderRecord | null> {
    const found = await this.#findSent('invoice', { ...searched, reference });
    return found === null ? null : toInvoiceRecord(found);
  }

  async pushPayment(payment: PushedPayment): Promise<ProviderRecord> {
    const { payment_id: reference, amount: total } = payment;
    const document = { ...payment, reference, total, amounts: [total] };
    const sent = await this.#createOnce('payment', document, { body: toPaymentBody(payment) });
    await this.#check('payment', sent, document);
    return { provider_entity_id: sent.record.payment_id, url: null };
  }

  /**
   * Creates a credit note as a draft and opens it. If the money was refunded elsewhere, it stays a credit of the customer
   * until a person records the refund in Zoho Books.
   */
  async pushCreditNote(note: PushedCreditNote): Promise<ProviderRecord> {
    const request = toCreditNoteRequest(note, await this.#findCurrency(note.currency));
    const amounts = note.lines.map(({ amount }) => amount);
    const document = { ...note, reference: note.credit_note_id, amounts };
    const sent = await this.#createOnce('creditnote', document, request);
    await this.#check('creditnote', sent, document);
    const { creditnote_id: id, status } = sent.record;
    if (status === 'draft') await this.#client.post('creditnote', { id, part: 'status/open' });
    if (note.effect === 'lowers_remaining') await this.#applyCreditNote(note, id);
    return { provider_entity_id: id, url: null };
  }

  /** Applies the rest of the credit note. An earlier attempt, or a setting of the organization, may have applied a part. */
  async #applyCreditNote(note: PushedCreditNote, id: string): Promise<void> {
    const { balance = '0' } = (await this.#client.read('creditnote', id)) ?? {};
    if (new Decimal(balance).isZero()) return;
    await this.#client.post('creditnote', { id, part: 'invoices' }, toApplicationBody(note, balance));
  }

  async findCreditNote({ credit_note_id: reference, ...searched }: SearchedCreditNote): Promise<ProviderRecord | null> {
    const found = await this.#findSent('creditnote', { ...searched, reference });
    return found === null ? null : { provider_entity_id: found.creditnote_id, url: null };
  }

  /** Takes the credit note off its invoices first: Zoho Books does not void an applied one. */
  async voidCreditNote(id: string): Promise<void> {
    const note = await this.#client.read('creditnote', id);
    if (note === null || note.status === 'void') return;
    if (note.status === 'draft') return await this.#client.delete('creditnote', { id });
    const applied = await this.#client.listParts<{ readonly creditnote_invoice_id: string }>(
      'creditnote',
      { id, part: 'invoices' },
      'invoices_credited',
    );
    for (const { creditnote_invoice_id } of applied)
      await this.#client.delete('creditnote', { id, part: `invoices/${creditnote_invoice_id}` });
    await this.#client.post('creditnote', { id, part: 'status/void' });
  }

  /** A voided invoice would leave its payments and credits to the customer, so an invoice with either is refused. */
  async voidInvoice(id: string): Promise<void> {
    const invoice = await this.#client.read('invoice', id);
    if (invoice === null || invoice.status === 'void') return;
    if (toInvoiceStatus(invoice) === 'draft') return await this.#client.delete('invoice', { id });
    const { payment_made = '0', credits_applied = '0' } = invoice;
    if (!new Decimal(payment_made).plus(credits_applied).isZero())
      throw new ProviderError(
        'person',
        `the invoice ${id} has payments or credits at Zoho Books, so it cannot be voided`,
      );
    await this.#client.post('invoice', { id, part: 'status/void' });
  }

  async pullInvoice(id: string): Promise<ProviderInvoice | null> {
    const invoice = await this.#client.read('invoice', id);
    if (invoice === null) return null;
    const listApplied = async <Part>(amount: string | undefined, part: string, field: string) =>
      amount !== undefined && new Decimal(amount).isZero()
        ? []
        : await this.#client.listParts<Part>('invoice', { id, part }, field);
    return toProviderInvoice(invoice, {
      payments: await listApplied<InvoicePayment>(invoice.payment_made, 'payments', 'payments'),
      credits: await listApplied<InvoiceCredit>(invoice.credits_applied, 'creditsapplied', 'credits'),
    });
  }

  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind === 'invoice') return [provider_entity_id];
    if (kind !== 'payment') return [];
    const payment = await this.#client.read('payment', provider_entity_id);
    return [...new Set((payment?.invoices ?? []).map(({ invoice_id }) => invoice_id))];
  }

  async #createOnce<Name extends ReferencedName>(
    name: Name,
    document: ReferencedDocument,
    request: RecordCreation,
  ): Promise<FoundOrCreated<Name>> {
    const earlier = await this.#findSent(name, document);
    if (earlier !== null) return { record: earlier, is_new: false };
    try {
      const record = await this.#client.create(name, request);
      if (name === 'payment') await this.#keepAlone(name, record, document);
      return { record, is_new: true };
    } catch (error) {
      const created = isRefused(error) ? await this.#findSent(name, document) : null;
      if (created === null) throw error;
      return { record: created, is_new: false };
    }
  }

  /**
   * Deletes the new record and repeats the attempt if a concurrent one has created another. Payments need this, because their reference
   * numbers are not unique; Zoho Books refuses a second invoice or credit note with one number.
   */
  async #keepAlone<Name extends ReferencedName>(
    name: Name,
    record: ZohoRecords[Name],
    { reference, provider_customer_id }: ReferencedDocument,
  ): Promise<void> {
    const id = getId(name, record);
    const other = await this.#findSent(name, { reference, provider_customer_id }, id);
    if (other === null) return;
    await this.#client.delete(name, { id });
    throw new ProviderError('wait', `${reference} was sent to Zoho Books twice at once: one attempt is repeated`);
  }

  /**
   * Finds the record of an earlier attempt. A void record is ignored, because a person has voided it. Lists may lack the
   * reference number, and have no lines.
   */
  async #findSent<Name extends ReferencedName>(
    name: Name,
    { reference, provider_customer_id }: Pick<ReferencedDocument, 'reference' | 'provider_customer_id'>,
    except_id?: string,
  ): Promise<ZohoRecords[Name] | null> {
    const search = { reference_number: reference, customer_id: provider_customer_id };
    for await (const listed of this.#client.list(name, search)) {
      if ((listed.reference_number ?? reference) !== reference || getId(name, listed) === except_id) continue;
      const found = await this.#client.read(name, getId(name, listed));
      if (found?.reference_number === reference && getStatus(found) !== 'void') return found;
    }
    return null;
  }

  /**
   * Deletes a new record whose amounts differ, because taxes, rounding or another currency changed it. A record of an
   * earlier attempt stays, because a bookkeeper may have edited it.
   */
  async #check<Name extends ReferencedName>(
    name: Name,
    { record, is_new }: FoundOrCreated<Name>,
    { total, currency, amounts, reference }: ReferencedDocument,
  ): Promise<void> {
    const there = readAmounts(record);
    const isEqual =
      there.currency === currency &&
      new Decimal(there.total).equals(total) &&
      there.amounts.length === amounts.length &&
      there.amounts.every((amount, index) => new Decimal(amount).equals(amounts[index]!));
    if (isEqual) return;
    const id = getId(name, record);
    if (is_new) await this.#client.delete(name, { id });
    const what_follows = is_new ? `where it was deleted (${id})` : `correct or delete it there (${id})`;
    throw new ProviderError(
      'person',
      `the total of ${reference} is ${total} ${currency} in ${amounts.length} lines, but ${new Decimal(there.total).toFixed()} ${there.currency} in ${there.amounts.length} lines at Zoho Books, ${what_follows}`,
    );
  }

  async #findCurrency(currency: string): Promise<ZohoCurrency> {
    const currencies = this.#client.listPages<ZohoCurrency>('settings/currencies', 'currencies');
    for await (const one of currencies) if (one.currency_code.toLowerCase() === currency) return one;
    throw new ProviderError(
      'person',
      `the organization at Zoho Books has no currency ${currency.toUpperCase()}: add it there (Settings, Currencies)`,
    );
  }
}

function toInvoiceRecord(invoice: ZohoInvoice): ProviderRecord {
  return { provider_entity_id: invoice.invoice_id, url: toInvoiceUrl(invoice) };
}

function getId<Name extends ReferencedName>(name: Name, record: ZohoRecords[Name]): string {
  return (record as unknown as Readonly<Record<string, string>>)[`${name}_id`]!;
}

function getStatus(record: ZohoRecords[ReferencedName]): string | null {
  return 'status' in record ? record.status : null;
}

/** Reads the total of a record, and the amounts of its lines or of the invoices that it pays. */
function readAmounts(record: ZohoRecords[ReferencedName]): Pick<ReferencedDocument, 'currency' | 'total' | 'amounts'> {
  const currency = record.currency_code.toLowerCase();
  if ('total' in record)
    return { currency, total: record.total, amounts: (record.line_items ?? []).map(({ item_total }) => item_total) };
  const amounts = (record.invoices ?? []).map(({ amount_applied }) => amount_applied);
  return { currency, total: record.amount, amounts };
}
