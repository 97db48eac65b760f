import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import {
  type CallFailure,
  findPattern,
  type InvoiceCopy,
  type ProviderDouble,
  type RequestPatterns,
  type SignedWebhook,
} from './provider-double.ts';
import { signZohoWebhook, ZohoBooksFake } from './zoho-books-fake.ts';
import type { BooksRecord } from './zoho-books-fake-books.ts';

const REQUESTS: RequestPatterns = {
  customer: /^POST contacts$/,
  invoice: /^POST invoices$/,
  payment: /^POST customerpayments$/,
  // A credit note is created, or withdrawn.
  credit_note: /^POST creditnotes(?:\/\d+\/status\/void)?$/,
  read: /^GET invoices\/\d+$/,
};

const STATUSES: Readonly<Record<string, InvoiceCopy['status']>> = { draft: 'draft', paid: 'paid', void: 'void' };

type Change = { readonly event: string; readonly payload: object };

export class ZohoBooksDouble implements ProviderDouble {
  readonly provider_type = 'zoho_books';
  readonly currency = 'usd';
  readonly fake = new ZohoBooksFake();
  readonly #changes: Change[] = [];
  #sent = 0;

  get secrets() {
    const { access_token, refresh_token, secrets } = this.fake;
    return { ...secrets, access_token, refresh_token };
  }

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    this.fake.disturb(findPattern(REQUESTS, request), failure === 'fault' ? 'unavailable' : failure);
  }

  hold(request: PushedEntityType): ReturnType<ZohoBooksFake['hold']> {
    return this.fake.hold(findPattern(REQUESTS, request));
  }

  listCustomers(customer_id: string): string[] {
    const contacts = this.fake.books.list('contacts');
    return contacts.filter(({ notes }) => notes === `Farthing customer ${customer_id}`).map(({ id }) => id);
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    return this.#list('invoices', invoice_id).map(({ id, status, balance }) => {
      return { id, status: STATUSES[String(status)] ?? 'open', remaining: String(balance) };
    });
  }

  listSentPayments(payment_id: string): string[] {
    return this.#list('customerpayments', payment_id).map(({ amount }) => String(amount));
  }

  listSentNotes(credit_note_id: string): string[] {
    const notes = this.#list('creditnotes', credit_note_id).filter(({ status }) => status !== 'void');
    return notes.map(({ total }) => String(total));
  }

  payCopy(copy_id: string): string {
    const { balance, customer_id } = this.fake.books.read('invoices', copy_id);
    const payment = this.fake.books.createPayment({
      ...{ customer_id, payment_mode: 'cash', amount: balance, date: '2026-11-29' },
      invoices: [{ invoice_id: copy_id, amount_applied: balance }],
    });
    this.#report('payment.created', 'customerpayments', payment);
    return payment.id;
  }

  voidCopy(copy_id: string): void {
    this.fake.books.setStatus('invoices', copy_id, 'void');
    this.#report('invoice.edited', 'invoices', this.fake.books.read('invoices', copy_id));
  }

  creditCopy(copy_id: string, amount: string): string {
    const { books } = this.fake;
    const { customer_id } = books.read('invoices', copy_id);
    const line_items = [{ name: 'Goodwill', rate: amount, quantity: '1' }];
    const note = books.createCreditNote({ customer_id, date: '2026-11-29', line_items }, false);
    books.applyCreditNote(note.id, [{ invoice_id: copy_id, amount_applied: amount }]);
    this.#report('creditnote.edited', 'creditnotes', note);
    return note.id;
  }

  editCopy(copy_id: string, total: string): void {
    const invoice = this.fake.books.read('invoices', copy_id);
    Object.assign(invoice, { total });
    this.fake.books.settle();
    this.#report('invoice.edited', 'invoices', invoice);
  }

  editPayment(id: string, amount: string): void {
    const payment = this.fake.books.read('customerpayments', id);
    Object.assign(payment, { amount });
    for (const link of this.fake.books.listLinks(({ source_id }) => source_id === id)) link.amount = amount;
    this.fake.books.settle();
    this.#report('payment.edited', 'customerpayments', payment);
  }

  deletePayment(id: string): void {
    const payment = this.fake.books.read('customerpayments', id);
    this.#report('payment.deleted', 'customerpayments', payment);
    this.fake.books.delete('customerpayments', id);
  }

  /** The organization adds its tax to invoices. */
  alterInvoices(isAltered: boolean): void {
    this.fake.books.tax_rate = isAltered ? '0.1' : '0';
  }

  /** Zoho has no idempotency keys. */
  forgetKeys(): void {}

  readonly unused_events = ['contact.created', 'item.edited', 'bill.deleted'];

  buildWebhook(event: string): object {
    const [record = ''] = event.split('.');
    return { [record]: { [`${record}_id`]: '982000000567114', invoices: [{ invoice_id: '982000000567115' }] } };
  }

  /** Zoho sends what the user has chosen: every second webhook is a form. */
  takeWebhooks(): SignedWebhook[] {
    return this.#changes.splice(0).map(({ event, payload }) => {
      const query = `event=${event}`;
      const isForm = ++this.#sent % 2 === 0;
      const json = JSON.stringify(payload);
      const body = isForm ? new URLSearchParams({ JSONString: json }).toString() : json;
      const signature = signZohoWebhook({ query, body, isForm }, 'webhookSecret1');
      const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json';
      return { query, body, headers: { 'x-zoho-webhook-signature': signature, 'content-type': type } };
    });
  }

  #list(name: string, reference: string): BooksRecord[] {
    return this.fake.books.list(name).filter(({ reference_number }) => reference_number === reference);
  }

  #report(event: string, name: string, record: BooksRecord): void {
    const last_modified_time = new Date(Date.now()).toISOString().replace(/\.\d+Z$/, '+0000');
    const payload = structuredClone(this.fake.showPayload(name, { ...record, last_modified_time }));
    this.#changes.push({ event, payload });
  }
}
