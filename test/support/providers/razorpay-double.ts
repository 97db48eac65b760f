import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import type { CallFailure, InvoiceCopy, ProviderDouble, SignedWebhook } from './provider-double.ts';
import { RazorpayFake, signRazorpayBody } from './razorpay-fake.ts';
import type { InvoiceRecord, PaymentRecord, RazorpayRecord } from './razorpay-fake-book.ts';

const REQUESTS: Readonly<Partial<Record<PushedEntityType | 'read', RegExp>>> = {
  customer: /^POST customers$/,
  invoice: /^POST invoices.*issue$/,
  read: /^GET invoices\/\w+$/,
};
const WEBHOOK_SECRET = 'secret of the webhook';

export class RazorpayDouble implements ProviderDouble {
  readonly provider_type = 'razorpay';
  readonly currency = 'inr';
  readonly secrets = { key_id: 'rzp_test_fake', secret_key: 'secret_fake', webhook_secret: WEBHOOK_SECRET };
  readonly fake = new RazorpayFake();
  #taken = 0;

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    const at = REQUESTS[request];
    if (at === undefined) throw new Error(`Razorpay has no ${request}s`);
    this.fake.disturb(at, failure);
  }

  listCustomers(customer_id: string): string[] {
    return this.#list('customer', 'farthing_customer_id', customer_id).map(({ id }) => id);
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    return this.#list<InvoiceRecord>('invoice', 'farthing_invoice_id', invoice_id).map((invoice) => {
      const remaining = String((invoice.amount - invoice.amount_paid) / 100);
      return { id: invoice.id, status: STATUSES[invoice.status] ?? 'void', remaining };
    });
  }

  /** Razorpay has no records of payments that were made elsewhere. */
  listSentPayments(): string[] {
    return [];
  }

  listSentNotes(): string[] {
    return [];
  }

  payCopy(copy_id: string): string {
    return this.fake.book.payInvoice(copy_id).id;
  }

  refundPayment(id: string, amount: string): void {
    this.fake.book.createRefund(id, { amount: Math.round(Number(amount) * 100) });
  }

  sumRefunds(payment_id: string): string {
    return String(this.fake.book.find<PaymentRecord>('payment', payment_id).amount_refunded / 100);
  }

  voidCopy(copy_id: string): void {
    this.fake.book.cancelInvoice(copy_id);
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.book.surcharge = isAltered ? 250 : 0;
  }

  forgetKeys(): void {
    // The provider has idempotency keys for refunds only, so there is nothing to forget.
  }

  readonly unused_events = [
    'token.confirmed',
    'settlement.processed',
    'subscription.activated',
    'virtual_account.credited',
  ];

  buildWebhook(event: string): object {
    const ids = { payment: 'pay_1', invoice: 'inv_1', payment_link: 'plink_1', refund: 'rfnd_1', dispute: 'disp_1' };
    const payload = Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, { entity: { id } }]));
    return { entity: 'event', event, payload };
  }

  takeWebhooks(): SignedWebhook[] {
    const events = this.fake.events.slice(this.#taken);
    this.#taken += events.length;
    return events.map(({ event_id, body }) => {
      const signature = signRazorpayBody(body, WEBHOOK_SECRET);
      return { body, headers: { 'x-razorpay-signature': signature, 'x-razorpay-event-id': event_id } };
    });
  }

  #list<Found extends RazorpayRecord>(entity: string, field: string, id: string): Found[] {
    return this.fake.book.list<Found>(entity).filter(({ notes }) => !Array.isArray(notes) && notes[field] === id);
  }
}

const STATUSES: Readonly<Partial<Record<InvoiceRecord['status'], InvoiceCopy['status']>>> = {
  draft: 'draft',
  issued: 'open',
  partially_paid: 'open',
  paid: 'paid',
};
