import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import { MoyasarFake } from './moyasar-fake.ts';
import type { InvoiceRecord } from './moyasar-fake-book.ts';
import type { CallFailure, InvoiceCopy, ProviderDouble, SignedWebhook } from './provider-double.ts';

const REQUESTS: Readonly<Partial<Record<PushedEntityType | 'read', RegExp>>> = {
  invoice: /^POST invoices$/,
  read: /^GET invoices\/[\w-]+$/,
};
const WEBHOOK_SECRET = 'token of the webhook';

export class MoyasarDouble implements ProviderDouble {
  readonly provider_type = 'moyasar';
  readonly currency = 'sar';
  readonly secrets = { secret_key: 'sk_test_fake', webhook_secret: WEBHOOK_SECRET };
  readonly fake = new MoyasarFake();
  #taken = 0;

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    const at = REQUESTS[request];
    if (at === undefined) throw new Error(`Moyasar has no ${request}s`);
    this.fake.disturb(at, failure);
  }

  /** Moyasar has no customers. */
  listCustomers(): string[] {
    return [];
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    const copies = [...this.fake.book.invoices.values()].filter(
      ({ metadata }) => metadata?.['farthing_invoice_copy'] === invoice_id,
    );
    return copies.map(({ id, status, amount }) => {
      const isPaid = status === 'paid' || status === 'refunded';
      return { id, status: STATUSES[status] ?? 'void', remaining: isPaid ? '0' : String(amount / 100) };
    });
  }

  /** Moyasar has no records of payments that were made elsewhere. */
  listSentPayments(): string[] {
    return [];
  }

  listSentNotes(): string[] {
    return [];
  }

  payCopy(copy_id: string): string {
    return this.fake.book.payInvoice(copy_id).id;
  }

  sumRefunds(payment_id: string): string {
    return String(this.fake.book.findPayment(payment_id).refunded / 100);
  }

  voidCopy(copy_id: string): void {
    this.fake.book.cancelInvoice(copy_id);
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.book.surcharge = isAltered ? 250 : 0;
  }

  forgetKeys(): void {
    // The id of a payment is its key and stays known, so there is nothing to forget.
  }

  readonly unused_events = ['payment_verified', 'balance_transferred', 'payout_paid'];

  buildWebhook(type: string): object {
    const data = { id: this.fake.book.makeId(), invoice_id: this.fake.book.makeId() };
    return { id: 'event_1', type, created_at: '2026-11-30T10:00:00.000Z', secret_token: WEBHOOK_SECRET, data };
  }

  takeWebhooks(): SignedWebhook[] {
    const events = this.fake.events.slice(this.#taken);
    this.#taken += events.length;
    return events.map((event) => ({ headers: {}, body: JSON.stringify({ ...event, secret_token: WEBHOOK_SECRET }) }));
  }

  /** A wrong token, and none. */
  forge({ headers, body }: SignedWebhook): SignedWebhook[] {
    const { secret_token: _token, ...event } = JSON.parse(body);
    const forged = [{ ...event, secret_token: `${WEBHOOK_SECRET} ` }, event];
    return forged.map((one) => ({ headers, body: JSON.stringify(one) }));
  }
}

const STATUSES: Readonly<Partial<Record<InvoiceRecord['status'], InvoiceCopy['status']>>> = {
  initiated: 'open',
  failed: 'open',
  on_hold: 'open',
  paid: 'paid',
  refunded: 'paid',
};
