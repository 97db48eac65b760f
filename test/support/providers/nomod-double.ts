import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import { NomodFake, signNomodWebhook } from './nomod-fake.ts';
import type { CallFailure, InvoiceCopy, ProviderDouble, SignedWebhook } from './provider-double.ts';

const REQUESTS: Readonly<Partial<Record<PushedEntityType | 'read', RegExp>>> = {
  customer: /^POST customers$/,
  invoice: /^POST invoices$/,
  read: /^GET invoices\/[\w-]+$/,
};
const WEBHOOK_SECRET = `whsec_${Buffer.from('secret of the webhook of Nomod').toString('base64')}`;

export class NomodDouble implements ProviderDouble {
  readonly provider_type = 'nomod';
  readonly currency = 'aed';
  readonly secrets = { api_key: 'sk_test_fake.1', webhook_secret: WEBHOOK_SECRET };
  readonly fake = new NomodFake();
  #taken = 0;

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    const at = REQUESTS[request];
    if (at === undefined) throw new Error(`Nomod has no ${request}s`);
    this.fake.disturb(at, failure);
  }

  listCustomers(customer_id: string): string[] {
    const { customers } = this.fake.book.records;
    return customers.filter(({ job_title }) => job_title === customer_id).map(({ id }) => id);
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    const copies = this.fake.book.records.invoices.filter(({ note }) => String(note).includes(`(${invoice_id})`));
    return copies.map(({ id, status, amount }) => ({
      id,
      status: STATUSES[String(status)] ?? 'void',
      remaining: status === 'paid' ? '0' : String(Number(amount)),
    }));
  }

  /** Nomod has no records of payments that were made elsewhere. */
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
    return String(Number(this.fake.book.find('charges', payment_id)['refund_total']));
  }

  voidCopy(copy_id: string): void {
    this.fake.book.editInvoice(copy_id, { status: 'cancelled' });
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.book.surcharge = isAltered ? '2.50' : '0';
  }

  forgetKeys(): void {
    // Nomod has no idempotency keys, so there is nothing to forget.
  }

  readonly unused_events = ['payout.paid', 'member.added'];

  buildWebhook(type: string): object {
    return { type, eventId: 'event_1', data: { id: this.fake.book.makeId(), status: 'paid' } };
  }

  /** Every second webhook has the older form. */
  takeWebhooks(): SignedWebhook[] {
    const events = this.fake.events.slice(this.#taken);
    this.#taken += events.length;
    return events.map((event, index) => {
      const isOlder = (this.#taken + index) % 2 === 0;
      const body = JSON.stringify(isOlder ? { id: event.data.id } : event);
      return { body, headers: isOlder ? { 'x-api-key': WEBHOOK_SECRET } : signNomodWebhook(body, WEBHOOK_SECRET) };
    });
  }

  forge({ headers, body }: SignedWebhook): SignedWebhook[] {
    const wrong = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, `${value}x`]));
    return [
      { headers: wrong, body },
      { headers: {}, body },
      { headers: { 'x-api-key': 'sk_test_fake.1' }, body },
    ];
  }
}

const STATUSES: Readonly<Record<string, InvoiceCopy['status']>> = { unpaid: 'open', overdue: 'open', paid: 'paid' };
