import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import {
  type CallFailure,
  findPattern,
  type InvoiceCopy,
  type ProviderDouble,
  type RequestPatterns,
  type SignedWebhook,
} from './provider-double.ts';
import { StripeFake, signStripeBody } from './stripe-fake.ts';
import { type CreditNoteRecord, createNote } from './stripe-fake-money-out.ts';
import { type InvoiceRecord, type StripeRecord, seconds } from './stripe-fake-records.ts';

const REQUESTS: RequestPatterns = {
  customer: /^POST customers$/,
  invoice: /^POST invoices.*finalize$/,
  payment: /^POST invoices.*attach_payment$/,
  credit_note: /^POST credit_notes$/,
  read: /^GET invoices\/\w+$/,
};
const WEBHOOK_SECRET = 'whsec_of_the_endpoint';

export class StripeDouble implements ProviderDouble {
  readonly provider_type = 'stripe';
  readonly currency = 'usd';
  readonly secrets = { secret_key: 'sk_test_fake', webhook_secret: WEBHOOK_SECRET };
  readonly fake = new StripeFake();
  #taken = 0;

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    this.fake.disturb(findPattern(REQUESTS, request), failure === 'fault' ? 'unavailable' : failure);
  }

  hold(request: PushedEntityType): ReturnType<StripeFake['hold']> {
    return this.fake.hold(findPattern(REQUESTS, request));
  }

  listCustomers(customer_id: string): string[] {
    return this.#list('customer', 'farthing_customer_id', customer_id).map(({ id }) => id);
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    const copies = this.fake.listInvoices().filter(({ metadata }) => metadata['farthing_invoice_id'] === invoice_id);
    return copies.map(({ id, status, amount_remaining }) => {
      return { id, status: status as InvoiceCopy['status'], remaining: toUnits(amount_remaining) };
    });
  }

  listSentPayments(payment_id: string): string[] {
    const records = this.#list<StripeRecord & { amount: { value: number } }>(
      'payment_record',
      'farthing_payment_id',
      payment_id,
    );
    return records.map(({ amount }) => toUnits(amount.value));
  }

  listSentNotes(credit_note_id: string): string[] {
    const notes = this.#list<CreditNoteRecord>('credit_note', 'farthing_credit_note_id', credit_note_id);
    return notes.filter(({ status }) => status === 'issued').map(({ total }) => toUnits(total));
  }

  payCopy(copy_id: string): string {
    this.fake.book.payInvoice(copy_id, { card: 'pm_card_visa' });
    return this.fake.book.listPayments(copy_id).find(({ status }) => status === 'paid')!.payment.payment_intent!;
  }

  /** What exceeds the remaining amount is credited outside Stripe. */
  creditCopy(copy_id: string, amount: string): string {
    const { amount_remaining } = this.fake.book.find<InvoiceRecord>('invoice', copy_id);
    const unit_amount = Math.round(Number(amount) * 100);
    const out_of_band_amount = Math.max(0, unit_amount - amount_remaining);
    const lines = [{ type: 'custom_line_item', unit_amount, quantity: 1 }];
    return createNote(this.fake.book, { invoice: copy_id, lines, out_of_band_amount }).id;
  }

  refundPayment(id: string, amount: string): void {
    this.fake.book.refundPayment(id, Math.round(Number(amount) * 100));
  }

  sumRefunds(payment_id: string): string {
    const refunds = this.fake.book.list('refund').filter((refund) => refund['payment_intent'] === payment_id);
    return String(refunds.reduce((sum, { amount }) => sum + Number(amount), 0) / 100);
  }

  voidCopy(copy_id: string): void {
    this.fake.book.voidInvoice(copy_id);
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.book.surcharge = isAltered ? 250 : 0;
  }

  forgetKeys(): void {
    this.fake.forgetKeys();
  }

  readonly unused_events = [
    'invoice.created',
    'invoice.finalized',
    'charge.succeeded',
    'customer.updated',
    'customer.subscription.updated',
  ];

  buildWebhook(type: string): object {
    const references = { invoice: 'in_1', payment_intent: 'pi_1', setup_intent: 'seti_1', charge: 'ch_1' };
    return { id: 'evt_1', type, created: 1_700_000_000, data: { object: { id: 'x_1', object: 'x', ...references } } };
  }

  takeWebhooks(): SignedWebhook[] {
    const events = this.fake.events.slice(this.#taken);
    this.#taken += events.length;
    return events.map((event) => {
      const body = JSON.stringify(event);
      return { body, headers: { 'stripe-signature': signStripeBody(body, [WEBHOOK_SECRET], seconds()) } };
    });
  }

  #list<Found extends StripeRecord>(object: string, field: string, id: string): Found[] {
    return this.fake.book.list<Found>(object).filter(({ metadata }) => metadata[field] === id);
  }
}

function toUnits(amount: number): string {
  return String(amount / 100);
}
