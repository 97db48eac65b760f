import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import { API_KEY, ChargebeeFake } from './chargebee-fake.ts';
import type { CreditNoteRecord, InvoiceRecord, TransactionRecord } from './chargebee-fake-site.ts';
import {
  type CallFailure,
  findPattern,
  type InvoiceCopy,
  type ProviderDouble,
  type RequestPatterns,
  type SignedWebhook,
} from './provider-double.ts';

const REQUESTS: RequestPatterns = {
  customer: /^POST customers$/,
  invoice: /^POST invoices\/create_for_charge_items_and_charges$/,
  payment: /^POST invoices\/\w+\/record_payment$/,
  // A credit note is created, or withdrawn.
  credit_note: /^POST (?:credit_notes|credit_notes\/[\w-]+\/void|invoices\/\w+\/record_refund)$/,
  read: /^GET invoices\/\w+$/,
};
const WEBHOOK = { webhook_username: 'farthing', webhook_password: 'password of the webhook' };

export class ChargebeeDouble implements ProviderDouble {
  readonly provider_type = 'chargebee';
  readonly currency = 'usd';
  readonly secrets = { site: 'fake-test', api_key: API_KEY, ...WEBHOOK, requests_per_minute: '60000' };
  readonly fake = new ChargebeeFake();
  #taken = 0;

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    this.fake.disturb(findPattern(REQUESTS, request), failure);
  }

  hold(request: PushedEntityType): ReturnType<ChargebeeFake['hold']> {
    return this.fake.hold(findPattern(REQUESTS, request));
  }

  listCustomers(customer_id: string): string[] {
    return this.fake.site.list('customer', ({ id }) => id === customer_id).map(({ id }) => id);
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    const isCopy = ({ notes }: InvoiceRecord) => notes.some(({ note }) => note.includes(invoice_id));
    return this.fake.site.list<InvoiceRecord>('invoice', isCopy).map(({ id, status, amount_due }) => {
      return { id, status: STATUSES[status] ?? 'open', remaining: toUnits(amount_due) };
    });
  }

  listSentPayments(payment_id: string): string[] {
    const isSent = (one: TransactionRecord) => String(one['reference_number']).startsWith(payment_id);
    return this.fake.site.list<TransactionRecord>('transaction', isSent).map(({ amount }) => toUnits(amount));
  }

  listSentNotes(credit_note_id: string): string[] {
    const isSent = ({ notes, status }: CreditNoteRecord) =>
      status !== 'voided' && notes.join().includes(credit_note_id);
    return this.fake.site.list<CreditNoteRecord>('credit_note', isSent).map(({ total }) => toUnits(total));
  }

  payCopy(copy_id: string): string {
    return this.fake.site.payInvoice(copy_id).id;
  }

  deletePayment(id: string): void {
    // A payment by a gateway is removed from the invoice instead.
    this.fake.site.find<TransactionRecord>('transaction', id).gateway = 'not_applicable';
    this.fake.site.deleteOffline(id);
  }

  creditCopy(copy_id: string, amount: string): string {
    return this.fake.site.creditInvoice(copy_id, Number(amount) * 100).id;
  }

  voidCopy(copy_id: string): void {
    this.fake.site.voidInvoice(copy_id);
  }

  refundPayment(id: string, amount: string): void {
    this.fake.site.refundPayment(id, Number(amount) * 100);
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.site.surcharge = isAltered ? 250 : 0;
  }

  forgetKeys(): void {
    this.fake.forgetKeys();
  }

  readonly unused_events = ['invoice_generated', 'customer_changed', 'subscription_created', 'card_expired'];

  buildWebhook(event_type: string): object {
    const transaction = { id: 'txn_1', type: 'payment', linked_invoices: [{ invoice_id: '1' }] };
    const credit_note = { id: 'CN-1', reference_invoice_id: '1' };
    const content = { transaction, invoice: { id: '1' }, credit_note, payment_source: { id: 'pm_1' } };
    return { id: 'ev_1', event_type, occurred_at: 1_700_000_000, content };
  }

  /** Basic credentials do not cover the body. */
  forge({ body }: SignedWebhook): SignedWebhook[] {
    const { webhook_username: username } = WEBHOOK;
    const headers = ['wrong', ''].map((password) => ({ authorization: encodeBasic(username, password) }));
    return [{ headers: {}, body }, ...headers.map((one) => ({ headers: one, body }))];
  }

  takeWebhooks(): SignedWebhook[] {
    const events = this.fake.events.slice(this.#taken);
    this.#taken += events.length;
    const authorization = encodeBasic(WEBHOOK.webhook_username, WEBHOOK.webhook_password);
    return events.map((event) => ({ body: JSON.stringify(event), headers: { authorization } }));
  }
}

export function encodeBasic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

const STATUSES: Readonly<Partial<Record<InvoiceRecord['status'], InvoiceCopy['status']>>> = {
  pending: 'draft',
  paid: 'paid',
  voided: 'void',
};

function toUnits(cents: number): string {
  return String(cents / 100);
}
