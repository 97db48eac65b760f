import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import type { CallFailure, InvoiceCopy, ProviderDouble, SignedWebhook } from './provider-double.ts';
import { signWhopBody, WhopFake } from './whop-fake.ts';
import { COMPANY, type InvoiceRecord } from './whop-fake-book.ts';

const REQUESTS: Readonly<Partial<Record<PushedEntityType | 'read', RegExp>>> = {
  invoice: /^POST invoices$/,
  read: /^GET invoices\/\w+$/,
};
const WEBHOOK_SECRET = 'ws_secret of the webhook';

export class WhopDouble implements ProviderDouble {
  readonly provider_type = 'whop';
  readonly currency = 'usd';
  readonly secrets = {
    ...{ api_key: 'key_fake', company_id: COMPANY, environment: 'sandbox' },
    webhook_secret: WEBHOOK_SECRET,
  };
  readonly fake = new WhopFake();
  #taken = 0;

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    const at = REQUESTS[request];
    if (at === undefined) throw new Error(`Whop has no ${request}s`);
    this.fake.disturb(at, failure);
  }

  /** The members of Whop cannot be created by its API. */
  listCustomers(): string[] {
    return [];
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    const copies = [...this.fake.book.invoices.values()].filter(({ line_items }) =>
      line_items[0]!.label.includes(invoice_id),
    );
    return copies.map(({ id, status, line_items }) => {
      const total = line_items.reduce((sum, item) => sum + item.total, 0);
      return { id, status: STATUSES[status] ?? 'void', remaining: status === 'paid' ? '0' : String(total) };
    });
  }

  /** Payments that were made elsewhere are not sent to Whop. */
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
    this.fake.book.refundPayment(id, { partial_amount: Number(amount) });
  }

  sumRefunds(payment_id: string): string {
    return String(this.fake.book.find(this.fake.book.payments, payment_id).refunded_amount);
  }

  voidCopy(copy_id: string): void {
    this.fake.book.endInvoice(copy_id, 'void');
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.book.surcharge = isAltered ? 2.5 : 0;
  }

  forgetKeys(): void {
    this.fake.forgetKeys();
  }

  readonly unused_events = ['invoice.created', 'membership.activated', 'setup_intent.canceled', 'withdrawal.created'];

  buildWebhook(type: string): object {
    const data = { id: 'inv_1', payment: { id: 'pay_1' }, checkout_configuration_id: null };
    return { id: 'msg_1', type, api_version: 'v1', timestamp: '2026-11-30T10:00:00.000Z', company_id: COMPANY, data };
  }

  takeWebhooks(): SignedWebhook[] {
    const events = this.fake.events.slice(this.#taken);
    this.#taken += events.length;
    return events.map((event) => {
      const body = JSON.stringify(event);
      return { body, headers: signWhopBody(body, WEBHOOK_SECRET, { id: String(event['id']) }) };
    });
  }
}

const STATUSES: Readonly<Partial<Record<InvoiceRecord['status'], InvoiceCopy['status']>>> = {
  draft: 'draft',
  open: 'open',
  past_due: 'open',
  paid: 'paid',
};
