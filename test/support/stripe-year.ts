/**
 * A year of actions through Stripe, by customers, by the tenant and by people in Stripe's dashboard. An action returns
 * false if there is no record for it.
 */
import { expect } from 'chai';
import type { Row } from './both-sides.ts';
import type { StripeFake } from './providers/stripe-fake.ts';
import {
  actOnIntent,
  completeSession,
  endRefund,
  type IntentRecord,
  listRefunds,
} from './providers/stripe-fake-payments.ts';
import type { InvoiceRecord } from './providers/stripe-fake-records.ts';
import type { Chance } from './seeds.ts';
import type { StripeWorld } from './stripe-world.ts';
import { fixed, usage } from './world.ts';

const DAY_MS = 86_400_000;
/** Customers whose saved payment method is charged off session. */
const SAVED: Readonly<Record<string, string>> = {
  card: 'pm_card_visa',
  declined: 'pm_card_chargeCustomerFail',
  secure: 'pm_card_authenticationRequired',
  debit: 'pm_usBankAccount_success',
};
const CUSTOMERS = [...Object.keys(SAVED), 'hosted', 'hand', 'cheque', 'page'];

type Deed = () => Promise<boolean>;

export class StripeYear {
  readonly #there: StripeWorld;
  readonly #chance: Chance;
  readonly #fake: StripeFake;
  readonly #log: string[] = [];

  constructor(there: StripeWorld, chance: Chance) {
    this.#there = there;
    this.#chance = chance;
    this.#fake = there.fake;
  }

  /** Returns the log lines about these invoices, and the lines that name no invoice. */
  describe(invoice_ids: readonly string[]): string {
    return this.#log.filter((line) => !line.includes('inv_') || invoice_ids.some((id) => line.includes(id))).join('\n');
  }

  async begin(): Promise<void> {
    const { world } = this.#there;
    await this.#request('PUT', '/settings/payment_config', { value: { default_gateway: 'stripe' } });
    await world.meter('calls');
    await world.plan('Pro', [fixed('20'), usage('calls', '0.13')]);
    for (const name of CUSTOMERS) {
      await world.subscribe(name, 'Pro');
      if (SAVED[name]) await this.#save(name, SAVED[name]);
    }
  }

  /** Every customer uses something. */
  async use(): Promise<void> {
    for (const name of CUSTOMERS) await this.#there.world.use(name, 'calls', this.#chance.whole(1, 300));
    await this.#there.world.waitForPipeline();
  }

  readonly payers: Readonly<Record<string, Deed>> = {
    'a declined card is replaced': async () => {
      const method = this.#chance.pick(['pm_card_visa', 'pm_card_visa', 'pm_card_chargeCustomerFail']);
      await this.#save('declined', method);
      return true;
    },
    'a card is declined from now on': async () => {
      await this.#save('declined', 'pm_card_chargeCustomerFail');
      return true;
    },
    'a charge is confirmed': async () => {
      const waiting = this.#listIntents('requires_action');
      for (const { id } of waiting)
        actOnIntent(this.#fake.book, id, this.#chance.pick(['succeeded', 'succeeded', 'failed']));
      return waiting.length > 0;
    },
    'a bank decides': async () => {
      const debits = this.#listIntents('processing');
      for (const { id } of debits)
        actOnIntent(this.#fake.book, id, this.#chance.pick(['succeeded', 'succeeded', 'failed']));
      const refunds = this.#fake.book.list('refund').filter(({ status }) => status === 'pending');
      for (const { id } of refunds) endRefund(this.#fake.book, id, this.#chance.pick(['succeeded', 'failed']));
      return debits.length > 0;
    },
    'an invoice is paid on its page': () =>
      this.#payAll('hosted', (copy) => this.#payThere(copy, this.#chance.next() < 0.4)),
    'an invoice is paid by hand at Stripe': () =>
      this.#payAll('hand', (copy) => void this.#fake.book.payInvoice(copy.id, { outside: true })),
    'a cheque is booked here': async () => {
      const open = await this.#listOpen('cheque');
      for (const invoice of open) await this.#payHere(invoice);
      return open.length > 0;
    },
    'a page of ours is paid': async () => {
      for (const { id, amount_remaining } of await this.#listOpen('page'))
        await this.#try(id, '/payments', {
          ...{ destination_type: 'INVOICE', destination_id: id, amount: amount_remaining, currency: 'usd' },
          ...{ payment_method_type: 'PAYMENT_LINK', payment_gateway: 'stripe', success_url: 'https://shop.example/' },
        });
      const pages = this.#fake.book.list('checkout.session').filter(({ status }) => status === 'open');
      for (const { id } of pages) if (this.#chance.next() < 0.7) completeSession(this.#fake.book, id, 'pm_card_visa');
      return pages.length > 0;
    },
  };

  readonly accidents: Readonly<Record<string, Deed>> = {
    'a part is refunded here': () => this.#refund((left) => ({ amount: (left / 4).toFixed(2) })),
    'all is refunded here': () => this.#refund(() => ({})),
    'money is refunded at Stripe': async () => {
      const paid = this.#listIntents('succeeded').filter((intent) => this.#countLeft(intent) > 100);
      if (paid.length === 0) return false;
      const intent = this.#chance.pick(paid);
      const left = this.#countLeft(intent);
      const amount = this.#chance.next() < 0.5 ? left : Math.floor(left / 3);
      this.#note(`refund at Stripe of ${amount} of ${intent.id} ${intent.metadata['farthing_invoice_id'] ?? ''}`);
      this.#fake.book.refundPayment(intent.id, amount);
      return true;
    },
    'a paid invoice is credited': () => this.#credit(['SUCCEEDED', 'PARTIALLY_REFUNDED', 'OVERPAID']),
    'an open invoice is credited': () => this.#credit(['PENDING', 'FAILED']),
    'a credit note is voided': async () => {
      const note = await this.#pickRow('credit_notes', {
        credit_note_status: 'FINALIZED',
        credit_note_type: 'ADJUSTMENT',
      });
      return note !== null && this.#try(note['invoice_id'], `/creditnotes/${note['id']}/void`);
    },
    'an invoice is voided here': async () => {
      const invoice = await this.#pickOpen();
      return invoice !== null && this.#try(invoice.id, `/invoices/${invoice.id}/void`);
    },
    'an invoice is paid on both sides at once': async () => {
      const invoice = await this.#pickOpen((copy) => copy !== undefined);
      if (!invoice) return false;
      const copy = this.#findCopy(invoice.id)!;
      if (this.#chance.next() < 0.5) this.#payThere(copy, false);
      else this.#fake.book.payInvoice(copy.id, { outside: true });
      return this.#payHere(invoice);
    },
    'more than an invoice is paid at Stripe': async () => {
      const invoice = await this.#pickOpen((copy) => copy !== undefined);
      if (!invoice) return false;
      const copy = this.#findCopy(invoice.id)!;
      this.#note(`${invoice.id} is paid with 5 more at Stripe`);
      this.#fake.book.payInvoice(copy.id, { card: 'pm_card_visa', received: copy.amount_remaining + 500 });
      return true;
    },
    'an invoice is closed at Stripe': async () => {
      const invoice = await this.#pickOpen((copy) => copy !== undefined);
      if (!invoice) return false;
      const close = this.#chance.pick(['voidInvoice', 'markUncollectible'] as const);
      this.#note(`${invoice.id}: ${close} at Stripe`);
      this.#fake.book[close](this.#findCopy(invoice.id)!.id);
      return true;
    },
    'a booked cheque is voided': async () => {
      const row = await this.#pickRow('payments', {
        payment_status: 'SUCCEEDED',
        payment_method_type: 'OFFLINE',
        connection_id: null,
      });
      if (!row) return false;
      const { status, text } = await this.#send('PUT', `/payments/${row['id']}`, { payment_status: 'VOIDED' });
      this.#note(`void payment ${row['id']} of ${row['destination_id']}: ${status} ${text.slice(0, 200)}`);
      return status < 300;
    },
    'a payment is disputed': async () => {
      const paid = this.#listIntents('succeeded');
      if (paid.length > 0) this.#fake.book.disputePayment(this.#chance.pick(paid).id);
      return paid.length > 0;
    },
    'Stripe is away for a day': async () => {
      this.#note('Stripe is away');
      this.#fake.isAway = true;
      await this.#there.passTo(new Date(this.#there.now.getTime() + DAY_MS), 2);
      this.#fake.isAway = false;
      return true;
    },
    'answers are lost': async () => {
      for (const what of ['lost_answer', 'lost_request', 'fault', 'lost_fault'] as const)
        this.#fake.disturb(/POST/, what);
      return true;
    },
    'an event of another company arrives': async () => {
      const event = this.#fake.events.at(-1);
      if (event) await this.#there.deliver({ ...event, id: `${event.id}_of_another`, account: 'acct_other' });
      return event !== undefined;
    },
  };

  #note(text: string): void {
    this.#log.push(`${this.#there.now.toISOString().slice(0, 16)} ${text}`);
  }

  #send(method: 'POST' | 'PUT', path: string, body: object) {
    return this.#there.world.api.request<Row>(method, path, { body });
  }

  async #request(method: 'POST' | 'PUT', path: string, body: object): Promise<void> {
    const { status, text } = await this.#send(method, path, body);
    expect(status, `${method} ${path}: ${text}`).to.be.lessThan(300);
  }

  /** Sends a request that may be refused, such as a void of an invoice that is being paid. */
  async #try(invoice_id: string, path: string, body: object = {}): Promise<boolean> {
    const { status, text } = await this.#send('POST', path, body);
    this.#note(`${invoice_id} ${path} ${JSON.stringify(body)}: ${status} ${status < 300 ? '' : text.slice(0, 200)}`);
    expect(status, text).to.be.lessThan(500);
    return status < 300;
  }

  #save(name: string, gateway_payment_method_id: string): Promise<void> {
    const payment_method_type = name === 'debit' ? 'ACH' : 'CARD';
    const method = { payment_gateway: 'stripe', gateway_payment_method_id, payment_method_type, is_default: true };
    return this.#request('POST', `/payments/customers/${this.#there.world.id(`customer ${name}`)}/methods`, method);
  }

  /** Final invoices, of one customer or of all. */
  async #listFinal(name?: string): Promise<Row[]> {
    const { world } = this.#there;
    const customer = name === undefined ? {} : { customer_id: world.id(`customer ${name}`) };
    const final = world.api.services.postgres('invoices').where({ invoice_status: 'FINALIZED', ...customer });
    return (await final.orderBy('id')).map((row) => ({ ...row, amount_remaining: String(row.amount_remaining) }));
  }

  async #listOpen(name?: string): Promise<Row[]> {
    return (await this.#listFinal(name)).filter(({ amount_remaining }) => Number(amount_remaining) > 0);
  }

  async #pickOpen(isWanted: (copy: InvoiceRecord | undefined) => boolean = () => true): Promise<Row | null> {
    const wanted = (await this.#listOpen()).filter(
      ({ id, payment_status }) => payment_status !== 'PROCESSING' && isWanted(this.#findCopy(id)),
    );
    return wanted.length === 0 ? null : this.#chance.pick(wanted);
  }

  async #pickRow(table: string, where: object): Promise<Row | null> {
    const rows = await this.#there.world.api.services.postgres(table).where(where).orderBy('id');
    return rows.length === 0 ? null : this.#chance.pick(rows);
  }

  /** The open copy of an invoice at Stripe. */
  #findCopy(invoice_id: string): InvoiceRecord | undefined {
    const copies = this.#fake.listInvoices().filter(({ status }) => status === 'open');
    return copies.find(({ metadata }) => metadata['farthing_invoice_id'] === invoice_id);
  }

  #listIntents(status: string): IntentRecord[] {
    return this.#fake.book.list<IntentRecord>('payment_intent').filter((intent) => intent.status === status);
  }

  #countLeft({ id, amount_received }: IntentRecord): number {
    const refunds = listRefunds(this.#fake.book, id).filter(({ status }) => status !== 'failed');
    return amount_received - refunds.reduce((sum, { amount }) => sum + amount, 0);
  }

  async #payAll(name: string, pay: (copy: InvoiceRecord) => void): Promise<boolean> {
    const copies = (await this.#listOpen(name)).flatMap(({ id }) => this.#findCopy(id) ?? []);
    for (const copy of copies) {
      this.#note(`${name} pays ${copy.metadata['farthing_invoice_id']} at Stripe`);
      pay(copy);
    }
    return copies.length > 0;
  }

  #payThere(copy: InvoiceRecord, isPartial: boolean): void {
    const amount = Math.floor(copy.amount_remaining / 2);
    this.#fake.book.payInvoice(copy.id, { card: 'pm_card_visa', ...(isPartial && amount > 50 ? { amount } : {}) });
  }

  #payHere({ id, amount_remaining: amount }: Row): Promise<boolean> {
    const payment = { destination_type: 'INVOICE', destination_id: id, payment_method_type: 'OFFLINE' };
    return this.#try(id, '/payments', {
      ...payment,
      amount,
      currency: 'usd',
      idempotency_key: String(this.#chance.next()),
    });
  }

  async #refund(choose: (left: number) => object): Promise<boolean> {
    const row = await this.#pickRow('payments', {
      payment_status: this.#chance.pick(['SUCCEEDED', 'PARTIALLY_REFUNDED']),
    });
    if (!row) return false;
    const left = Number(row['amount']) - Number(row['refunded_amount']);
    const body = { ...choose(left), idempotency_key: String(this.#chance.next()) };
    return this.#try(row['destination_id'], `/payments/${row['id']}/refund`, body);
  }

  async #credit(payment_statuses: readonly string[]): Promise<boolean> {
    const wanted = (await this.#listFinal()).filter(({ payment_status }) => payment_statuses.includes(payment_status));
    if (wanted.length === 0) return false;
    const invoice_id = this.#chance.pick(wanted)['id'];
    const { id, amount } = (await this.#pickRow('invoice_line_items', { invoice_id }))!;
    const line_items = [{ invoice_line_item_id: id, amount: (Number(amount) / 4).toFixed(2) }];
    const note = { invoice_id, reason: 'BILLING_ERROR', line_items, idempotency_key: String(this.#chance.next()) };
    return this.#try(invoice_id, '/creditnotes', note);
  }
}
