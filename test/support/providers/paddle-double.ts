import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import { PaddleFake, signPaddleBody } from './paddle-fake.ts';
import type { TransactionRecord } from './paddle-fake-book.ts';
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
  invoice: /^POST transactions$/,
  credit_note: /^POST adjustments$/,
  read: /^GET transactions\/\w+$/,
};
const WEBHOOK_SECRET = 'pdl_ntfset_01gkdgb1b3vk5ahmrtexd4pqbk_secret';
const LOWEST = 100;

export class PaddleDouble implements ProviderDouble {
  readonly provider_type = 'paddle';
  readonly currency = 'usd';
  readonly fake = new PaddleFake();
  readonly has_permanent_notes = true;
  readonly secrets = { api_key: this.fake.api_key, webhook_secret: WEBHOOK_SECRET };
  #taken = 0;

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    this.fake.disturb(findPattern(REQUESTS, request), failure);
  }

  hold(request: PushedEntityType): ReturnType<PaddleFake['hold']> {
    return this.fake.hold(findPattern(REQUESTS, request));
  }

  listCustomers(customer_id: string): string[] {
    return this.#list<{ id: string; custom_data: unknown }>('ctm', 'farthing_customer_id', customer_id).map(
      ({ id }) => id,
    );
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    return this.#list<TransactionRecord>('txn', 'farthing_invoice_id', invoice_id).map((transaction) => {
      const { id, status } = transaction;
      const remaining = status === 'completed' ? 0 : this.#computeRemaining(transaction);
      const isPaid = status === 'completed' || remaining === 0;
      const shown = status === 'canceled' ? 'void' : status === 'ready' ? 'draft' : isPaid ? 'paid' : 'open';
      return { id, status: shown, remaining: String(remaining) };
    });
  }

  #computeRemaining({ id, details }: TransactionRecord): number {
    const credits = this.fake.adjustments.list(id).filter(({ action }) => action === 'credit');
    const credited = credits.reduce((sum, { totals }) => sum + Number(totals.subtotal), 0);
    return (Number(details.totals.subtotal) - credited) / LOWEST;
  }

  /** Paddle has no records of payments that were made elsewhere. */
  listSentPayments(): string[] {
    return [];
  }

  listSentNotes(credit_note_id: string): string[] {
    const all = this.fake.book.list<ReturnType<PaddleFake['adjustments']['create']>>('adj');
    return all
      .filter(({ reason }) => reason.startsWith(`Farthing credit note ${credit_note_id}`))
      .map(({ totals }) => String(Number(totals.subtotal) / LOWEST));
  }

  payCopy(copy_id: string): string {
    this.fake.book.payTransaction(copy_id);
    return copy_id;
  }

  refundPayment(id: string, amount: string): void {
    this.#adjust(id, { action: 'refund', amount });
  }

  creditCopy(copy_id: string, amount: string): string {
    return this.#adjust(copy_id, { action: 'credit', amount });
  }

  #adjust(transaction_id: string, { action, amount }: { action: 'credit' | 'refund'; amount: string }): string {
    const [line] = this.fake.book.find<TransactionRecord>(transaction_id, 'txn').details.line_items;
    const item = { item_id: line!.id, type: 'partial' as const, amount: String(Math.round(Number(amount) * LOWEST)) };
    const body = { type: 'partial', tax_mode: 'external', transaction_id, reason: 'by hand', items: [item] } as const;
    return this.fake.adjustments.create({ ...body, action, items: [item] }).id;
  }

  voidCopy(copy_id: string): void {
    this.fake.book.updateTransaction(copy_id, { status: 'canceled' });
  }

  alterInvoices(isAltered: boolean): void {
    this.fake.book.surcharge = isAltered ? 250 : 0;
  }

  forgetKeys(): void {
    // Paddle has no idempotency keys.
  }

  readonly unused_events = ['transaction.created', 'transaction.updated', 'customer.created', 'subscription.activated'];

  buildWebhook(event_type: string): object {
    const [transaction_id, adjustment_id] = [`txn_${'0'.repeat(26)}`, `adj_${'0'.repeat(26)}`];
    const data = event_type.startsWith('adjustment.')
      ? { id: adjustment_id, transaction_id, action: 'chargeback' }
      : { id: transaction_id };
    return { event_id: 'evt_1', event_type, occurred_at: '2026-11-29T00:00:00Z', notification_id: 'ntf_1', data };
  }

  takeWebhooks(): SignedWebhook[] {
    const events = this.fake.events.slice(this.#taken);
    this.#taken += events.length;
    const time = Math.floor(Date.now() / 1_000);
    return events.map(({ body }) => ({
      body,
      headers: { 'paddle-signature': signPaddleBody(body, [WEBHOOK_SECRET], time) },
    }));
  }

  #list<Found extends { id: string; custom_data: unknown }>(prefix: string, field: string, id: string): Found[] {
    const all = this.fake.book.list<Found & { created_at: string; updated_at: string }>(prefix);
    return all.filter(({ custom_data }) => (custom_data as Record<string, unknown> | null)?.[field] === id);
  }
}
