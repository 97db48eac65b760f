/**
 * Account at Xero: one organisation. A record that a push creates has our id in its reference, a contact in its number. A repeated push
 * searches for it first. Invoices and credit notes are created as drafts, compared with ours, and then authorised.
 */

import { Decimal } from '../../core/foundation/decimal.ts';
import { HOUR_MS } from '../../core/foundation/time/durations.ts';
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
import type { XeroClient } from './client.ts';
import {
  toAllocationBody,
  toContactBody,
  toContactName,
  toCreditNoteBody,
  toInvoiceBody,
  toPaymentBody,
  toReference,
  toRefundBody,
} from './documents.ts';
import { isTaken } from './errors.ts';
import { toProviderInvoice } from './pulled-invoice.ts';
import { type DocumentStatus, isXeroId, parseDay, type XeroCreditNote, type XeroRecords } from './records.ts';

/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_MS = HOUR_MS;
const ALIVE: readonly DocumentStatus[] = ['DRAFT', 'SUBMITTED', 'AUTHORISED', 'PAID'];

type OrganisationSettings = {
  readonly tenant_id: string;
  readonly sales_account: string;
  readonly payment_account: string;
};
type DocumentName = 'Invoices' | 'CreditNotes';
type SearchedDocument = {
  readonly provider_customer_id: string;
  readonly key_created_at: Date;
  /** Text in the reference that no other document of its kind has. */
  readonly reference: string;
};
type ComparedDocument = Pick<PushedInvoice, 'key' | 'currency' | 'lines' | 'total'> & { readonly reference: string };
type CreatedDocument = SearchedDocument &
  ComparedDocument &
  Pick<PushedInvoice, 'key_age_seconds' | 'is_key_renewed'> & { readonly body: ExactJson };

export class XeroAccount implements ProviderAccount {
  readonly #client: XeroClient;
  readonly #settings: OrganisationSettings;

  constructor(client: XeroClient, settings: OrganisationSettings) {
    this.#client = client;
    this.#settings = settings;
  }

  async identify(): Promise<AccountIdentity> {
    const { Name } = await this.#client.readOrganisation();
    return { provider_account_id: this.#settings.tenant_id, name: Name ?? null };
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    const { customer_id, key } = customer;
    const earlier = hasBegun(customer) ? await this.#client.readContactByNumber(customer_id) : null;
    if (earlier !== null) return toRecord(earlier.ContactID);
    try {
      const body = toContactBody(customer);
      return toRecord((await this.#client.create('Contacts', body, { key: `${key}:contact` })).ContactID);
    } catch (error) {
      if (!isTaken(error)) throw error;
      const ours = await this.#client.readContactByNumber(customer_id);
      if (ours !== null) return toRecord(ours.ContactID);
      throw new ProviderError(
        'person',
        `Xero has a contact named ${JSON.stringify(toContactName(customer))} already: link it (POST /integrations/link), or change one of the names`,
        { cause: error },
      );
    }
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    const reference = toReference('invoice', invoice.invoice_id);
    const body = toInvoiceBody(invoice, this.#settings.sales_account);
    const { InvoiceID } = await this.#openDocument('Invoices', { ...invoice, reference, body });
    return toRecord(InvoiceID);
  }

  async findInvoice({ invoice_id, ...searched }: SearchedInvoice): Promise<ProviderRecord | null> {
    const found = await this.#findSent('Invoices', { ...searched, reference: toReference('invoice', invoice_id) });
    return found === null ? null : toRecord(found.InvoiceID);
  }

  async voidInvoice(provider_entity_id: string, key: string): Promise<void> {
    const invoice = await this.#client.read('Invoices', provider_entity_id);
    if (invoice === null) return;
    const { AmountPaid = '0', AmountCredited = '0' } = invoice;
    if (!new Decimal(AmountPaid).plus(AmountCredited).isZero())
      throw new ProviderError(
        'person',
        `the invoice ${provider_entity_id} has payments or credits at Xero, so it cannot be voided`,
      );
    await this.#endDocument('Invoices', { id: provider_entity_id, status: invoice.Status, key });
  }

  async pushPayment(payment: PushedPayment): Promise<ProviderRecord> {
    const { provider_invoice_id, payment_id, key, amount } = payment;
    const reference = toReference('payment', payment_id);
    const invoice = hasBegun(payment) ? await this.#client.read('Invoices', provider_invoice_id) : null;
    const earlier = invoice?.Payments?.find((one) => one.Status !== 'DELETED' && hasReference(one, reference));
    if (earlier !== undefined) return toRecord(checkAmount(earlier, { reference, amount }).PaymentID);
    const body = toPaymentBody(payment, this.#settings.payment_account);
    const made = await this.#client.create('Payments', body, { key: `${key}:payment` });
    return toRecord(checkAmount(made, { reference, amount }).PaymentID);
  }

  /** Creates a credit note. If the money was refunded elsewhere, a payment of the credit note gives it back here, too. */
  async pushCreditNote(credit_note: PushedCreditNote): Promise<ProviderRecord> {
    const { credit_note_id, effect, key } = credit_note;
    const { payment_account, sales_account } = this.#settings;
    const reference = toReference('credit note', credit_note_id);
    const body = toCreditNoteBody(credit_note, sales_account);
    const { CreditNoteID: id, ...note } = await this.#openDocument('CreditNotes', { ...credit_note, reference, body });
    if (new Decimal(note.RemainingCredit ?? note.Total).isZero()) return toRecord(id);
    const day = parseDay(note.Date);
    if (effect === 'lowers_remaining') {
      if (day === undefined) throw new ProviderError('wait', 'Xero: a credit note without its date');
      await this.#client.allocate(id, toAllocationBody(credit_note, day), { key: `${key}:allocation` });
    } else {
      const refund = toRefundBody(credit_note, { id, day, payment_account });
      await this.#client.create('Payments', refund, { key: `${key}:refund` });
    }
    return toRecord(id);
  }

  async findCreditNote({ credit_note_id, ...searched }: SearchedCreditNote): Promise<ProviderRecord | null> {
    const reference = toReference('credit note', credit_note_id);
    const found = await this.#findSent('CreditNotes', { ...searched, reference });
    return found === null ? null : toRecord(found.CreditNoteID);
  }

  /** Voids the credit note, after its allocations and the refund that a push created. */
  async voidCreditNote(provider_entity_id: string, key: string): Promise<void> {
    const id = provider_entity_id;
    const note = await this.#client.read('CreditNotes', id);
    if (note === null || note.Status === 'VOIDED' || note.Status === 'DELETED') return;
    await this.#releaseCredit(id, note, key);
    await this.#endDocument('CreditNotes', { id, status: note.Status === 'PAID' ? 'AUTHORISED' : note.Status, key });
  }

  async #releaseCredit(id: string, { Payments = [], Allocations = [] }: XeroCreditNote, key: string): Promise<void> {
    const refunds = Payments.filter(({ Status }) => Status !== 'DELETED');
    const foreign = refunds.find((one) => !/\bFarthing refund /.test(one.Reference ?? ''));
    if (foreign !== undefined)
      throw new ProviderError(
        'person',
        `the credit note ${id} was paid out at Xero by the payment ${foreign.PaymentID}: void it there`,
      );
    for (const { PaymentID } of refunds)
      await this.#client.deletePayment(PaymentID, { key: `${key}:refund:${PaymentID}` });
    for (const { AllocationID } of Allocations)
      if (AllocationID !== undefined) await this.#client.deleteAllocation(id, AllocationID);
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    const invoice = await this.#client.read('Invoices', provider_entity_id);
    return invoice === null ? null : toProviderInvoice(invoice);
  }

  /** Xero names the invoice in its events, never the payment. */
  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    return kind === 'invoice' ? [provider_entity_id] : [];
  }

  /** Creates the draft unless an earlier attempt did, compares it, and authorises it. */
  async #openDocument<Name extends DocumentName>(name: Name, document: CreatedDocument): Promise<XeroRecords[Name]> {
    const { record, is_new } = await this.#createOnce(name, document);
    const id = readId(record);
    const { key } = document;
    const difference = describeDifference(record, document);
    if (difference !== null) {
      if (is_new) await this.#client.setStatus(name, { id, status: 'DELETED', key: `${key}:${id}:delete` });
      const what_follows = is_new ? `where it was deleted (${id})` : `correct or delete it there (${id})`;
      throw new ProviderError('person', `${difference}, ${what_follows}`);
    }
    if (record.Status !== 'DRAFT' && record.Status !== 'SUBMITTED') return record;
    return await this.#client.setStatus(name, { id, status: 'AUTHORISED', key: `${key}:${id}:authorise` });
  }

  async #createOnce<Name extends DocumentName>(
    name: Name,
    { body, ...document }: CreatedDocument,
  ): Promise<{ record: XeroRecords[Name]; is_new: boolean }> {
    const earlier = hasBegun(document) ? await this.#findSent(name, document) : null;
    if (earlier !== null) return { record: earlier, is_new: false };
    try {
      return { record: await this.#client.create(name, body, { key: `${document.key}:${name}` }), is_new: true };
    } catch (error) {
      const created = isTaken(error) ? await this.#findSent(name, document) : null;
      if (created === null) throw error;
      return { record: created, is_new: false };
    }
  }

  /**
   * Finds the document of an earlier attempt. A person may have added text to its reference. Void and deleted documents are ignored, because
   * a person has ended them.
   */
  async #findSent<Name extends DocumentName>(
    name: Name,
    { provider_customer_id, key_created_at, reference }: SearchedDocument,
  ): Promise<XeroRecords[Name] | null> {
    if (!isXeroId(provider_customer_id)) return null;
    const since = new Date(key_created_at.getTime() - CLOCK_SLACK_MS);
    // Credit notes have fewer parameters than invoices.
    const parameters: Readonly<Record<string, string>> =
      name === 'Invoices'
        ? { ContactIDs: provider_customer_id, Statuses: ALIVE.join(',') }
        : { where: `Contact.ContactID==guid("${provider_customer_id}")` };
    for await (const found of this.#client.list(name, { parameters, since }))
      if (ALIVE.includes(found.Status) && hasReference(found, reference)) return found;
    return null;
  }

  async #endDocument(
    name: DocumentName,
    { id, status, key }: { id: string; status: DocumentStatus; key: string },
  ): Promise<void> {
    if (status === 'VOIDED' || status === 'DELETED') return;
    const end = status === 'AUTHORISED' || status === 'PAID' ? 'VOIDED' : 'DELETED';
    await this.#client.setStatus(name, { id, status: end, key: `${key}:${end}` });
  }
}

/** Describes how the document differs from ours, because of taxes, rounding or another currency; null if it does not. */
function describeDifference(
  { Total, CurrencyCode, LineItems = [] }: XeroRecords[DocumentName],
  { reference, total, currency, lines }: ComparedDocument,
): string | null {
  const isEqual =
    CurrencyCode.toLowerCase() === currency &&
    new Decimal(Total).equals(total) &&
    LineItems.length === lines.length &&
    LineItems.every(({ LineAmount = '0' }, index) => new Decimal(LineAmount).equals(lines[index]!.amount));
  if (isEqual) return null;
  const there = `${new Decimal(Total).toFixed()} ${CurrencyCode.toLowerCase()} in ${LineItems.length} lines`;
  return `the total of ${reference} is ${total} ${currency} in ${lines.length} lines, but ${there} at Xero`;
}

function checkAmount<Payment extends { readonly PaymentID: string; readonly Amount: string }>(
  payment: Payment,
  { reference, amount }: { reference: string; amount: string },
): Payment {
  const { PaymentID, Amount } = payment;
  if (new Decimal(Amount).equals(amount)) return payment;
  throw new ProviderError(
    'person',
    `the amount of ${reference} is ${amount}, but ${new Decimal(Amount).toFixed()} at Xero: correct it there (${PaymentID})`,
  );
}

function hasReference({ Reference = '' }: { readonly Reference?: string }, reference: string): boolean {
  return ` ${Reference} `.includes(` ${reference} `);
}

function readId(record: XeroRecords[DocumentName]): string {
  return 'InvoiceID' in record ? record.InvoiceID : record.CreditNoteID;
}

function toRecord(provider_entity_id: string): ProviderRecord {
  return { provider_entity_id, url: null };
}
