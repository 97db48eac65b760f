import { randomUUID } from 'node:crypto';
import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import {
  type CallFailure,
  findPattern,
  type InvoiceCopy,
  type ProviderDouble,
  type RequestPatterns,
  type SignedWebhook,
} from './provider-double.ts';
import { signXeroBody, XeroFake } from './xero-fake.ts';
import type { BookDocument } from './xero-fake-books.ts';

const REQUESTS: RequestPatterns = {
  customer: /^PUT Contacts$/,
  invoice: /^PUT Invoices$/,
  payment: /^PUT Payments$/,
  credit_note: /^(?:PUT CreditNotes|POST CreditNotes\/[\w-]+)$/,
  read: /^GET Invoices\/[\w-]+$/,
};
const STATUSES: Readonly<Record<string, InvoiceCopy['status']>> = {
  DRAFT: 'draft',
  AUTHORISED: 'open',
  PAID: 'paid',
  VOIDED: 'void',
  DELETED: 'void',
};

export class XeroDouble implements ProviderDouble {
  readonly provider_type = 'xero';
  readonly currency = 'usd';
  readonly fake = new XeroFake();
  #sequence = 0;

  get secrets() {
    const { access_token, refresh_token, secrets } = this.fake;
    return { ...secrets, access_token, refresh_token };
  }

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    this.fake.disturb(findPattern(REQUESTS, request), failure === 'fault' ? 'unavailable' : failure);
  }

  hold(request: PushedEntityType): ReturnType<XeroFake['hold']> {
    return this.fake.hold(findPattern(REQUESTS, request));
  }

  listCustomers(customer_id: string): string[] {
    const contacts = this.fake.books.contacts.filter(({ ContactNumber }) => ContactNumber === customer_id);
    return contacts.map(({ ContactID }) => String(ContactID));
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    const { books } = this.fake;
    return this.#list(books.documents.Invoices, `invoice ${invoice_id}`).map((invoice) => ({
      id: invoice.id,
      status: STATUSES[invoice.Status]!,
      remaining: books.computeRest(invoice).toFixed(),
    }));
  }

  listSentPayments(payment_id: string): string[] {
    const sent = this.fake.books.payments.filter(
      ({ Reference, Status }) => Status !== 'DELETED' && isNamed(Reference, `payment ${payment_id}`),
    );
    return sent.map(({ Amount }) => Amount);
  }

  listSentNotes(credit_note_id: string): string[] {
    const notes = this.#list(this.fake.books.documents.CreditNotes, `credit note ${credit_note_id}`);
    return notes.filter(({ Status }) => STATUSES[Status] !== 'void').map(({ Total }) => Total);
  }

  payCopy(copy_id: string): string {
    const { books } = this.fake;
    const Amount = books.computeRest(books.readDocument('Invoices', copy_id)).toFixed();
    return this.#pay(copy_id, Amount);
  }

  #pay(InvoiceID: string, Amount: string): string {
    return this.fake.books.createPayment({
      ...{ Invoice: { InvoiceID }, Account: { Code: '090' }, Date: '2026-11-29', Amount },
    }).PaymentID;
  }

  deletePayment(id: string): void {
    this.fake.books.deletePayment(id);
  }

  creditCopy(copy_id: string, Amount: string): string {
    const { books } = this.fake;
    const { Contact } = books.readDocument('Invoices', copy_id);
    const LineItems = [{ Description: 'Goodwill', UnitAmount: Amount, AccountCode: '200' }];
    const terms = { Type: 'ACCRECCREDIT', Status: 'AUTHORISED', LineAmountTypes: 'NoTax' };
    const { id } = books.createDocument('CreditNotes', { ...terms, Contact, LineItems });
    books.allocate(id, { Amount, Date: '2026-11-29', Invoice: { InvoiceID: copy_id } });
    return id;
  }

  editCopy(copy_id: string, total: string): void {
    const [line] = this.fake.books.readDocument('Invoices', copy_id).LineItems;
    this.fake.books.updateDocument('Invoices', copy_id, { LineItems: [{ ...line, Quantity: '1', UnitAmount: total }] });
  }

  voidCopy(copy_id: string): void {
    this.fake.books.updateDocument('Invoices', copy_id, { Status: 'VOIDED' });
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.books.surcharge = isAltered ? '1.5' : null;
  }

  forgetKeys(): void {
    this.fake.forgetKeys();
  }

  readonly unused_events = ['CONTACT.CREATE', 'CREDITNOTE.UPDATE', 'SUBSCRIPTION.UPDATE'];

  buildWebhook(type: string): object {
    const [eventCategory, eventType] = type.split('.');
    const event = { eventCategory, eventType, resourceId: randomUUID(), tenantId: this.fake.books.tenant_id };
    return this.#describe([{ ...event, eventDateUtc: '2026-11-29T10:00:00.123' }]);
  }

  takeWebhooks(): SignedWebhook[] {
    const { changes, tenant_id: tenantId } = this.fake.books;
    const events = changes.splice(0).map(({ id: resourceId, type: eventType, at }) => ({
      ...{ resourceId, tenantId, eventType, eventCategory: 'INVOICE' },
      eventDateUtc: at.toISOString().replace('Z', ''),
    }));
    if (events.length === 0) return [];
    const body = JSON.stringify(this.#describe(events));
    return [{ body, headers: { 'x-xero-signature': signXeroBody(body, 'webhook key') } }];
  }

  #describe(events: readonly (Readonly<Record<string, unknown>> & { readonly resourceId: string })[]): object {
    const firstEventSequence = this.#sequence + 1;
    this.#sequence += events.length;
    const all = events.map((event) => ({
      resourceUrl: `https://api.xero.com/api.xro/2.0/Invoices/${event.resourceId}`,
      tenantType: 'ORGANISATION',
      ...event,
    }));
    return { events: all, firstEventSequence, lastEventSequence: this.#sequence, entropy: 'S0m3r4Nd0mt3xt' };
  }

  #list(documents: readonly BookDocument[], reference: string): BookDocument[] {
    return documents.filter(({ Reference }) => isNamed(Reference, reference));
  }
}

function isNamed(reference: unknown, name: string): boolean {
  return ` ${reference} `.startsWith(` Farthing ${name} `);
}
