/**
 * Records of Stripe's fake, and the effects of requests on them (docs.stripe.com/api/customers, /invoices,
 * /invoice-line-item, /invoiceitems, /invoice-payment, /refunds, /disputes; docs.stripe.com/invoicing/overview,
 * "Invoice lifecycle"; docs.stripe.com/testing for the cards).
 */
import type { Parameters } from './stripe-fake-parameters.ts';
import { refuseMissing, StripeRefusal } from './stripe-fake-refusal.ts';

export type StripeRecord = {
  id: string;
  object: string;
  created: number;
  metadata: Record<string, string>;
  [field: string]: unknown;
};
export type Line = StripeRecord & { amount: number; invoice_item: string };
export type InvoiceRecord = StripeRecord & {
  customer: string;
  currency: string;
  status: 'draft' | 'open' | 'paid' | 'void' | 'uncollectible';
  total: number;
  amount_paid: number;
  amount_remaining: number;
};
export type PaymentRecord = StripeRecord & {
  invoice: string;
  status: 'open' | 'paid' | 'canceled';
  amount_requested: number;
  payment: { type: string; payment_intent?: string; payment_record?: string };
};

const LINES_MAX = 250;

/**
 * Test cards by the name of their payment method: the bank's reason for a decline, or whether the customer must
 * confirm.
 */
const CARDS: Readonly<Record<string, { decline_code?: string; acts?: true }>> = {
  pm_card_visa: {},
  pm_card_chargeDeclined: { decline_code: 'generic_decline' },
  pm_card_chargeCustomerFail: { decline_code: 'generic_decline' },
  pm_card_visa_chargeDeclinedInsufficientFunds: { decline_code: 'insufficient_funds' },
  pm_card_authenticationRequired: { acts: true },
};

type CardPayment = {
  readonly card?: string;
  /** Paid part of the invoice; absent for all of it. */
  readonly amount?: number;
  /** Received amount, if it is less than requested, as with a bank transfer. */
  readonly received?: number;
  /** Whether the invoice is paid outside Stripe. */
  readonly outside?: boolean;
};

export class StripeBook {
  readonly records = new Map<string, StripeRecord>();
  readonly lines = new Map<string, Line[]>();
  /** Amount added to each invoice, in the unit of its currency, as by a setting of the account. */
  surcharge = 0;
  #count = 0;
  readonly #announce: (type: string, object: unknown) => void;

  constructor(announce: (type: string, object: unknown) => void) {
    this.#announce = announce;
  }

  announce(type: string, object: unknown): void {
    this.#announce(type, object);
  }

  add<Added extends object>(prefix: string, object: string, fields: Added): StripeRecord & Added {
    this.#count += 1;
    const id = `${prefix}_${String(this.#count).padStart(14, '0')}`;
    const record = { id, object, created: seconds(), livemode: false, metadata: {}, ...fields };
    this.records.set(id, record);
    return record;
  }

  find<Found extends StripeRecord>(object: string, id: string): Found {
    const found = this.records.get(id);
    if (found?.object !== object) throw refuseMissing(object, id);
    return found as Found;
  }

  /** Lists records, newest first. */
  list<Found extends StripeRecord>(object: string): Found[] {
    return [...this.records.values()].filter((record) => record.object === object).reverse() as Found[];
  }

  createCustomer(parameters: Parameters): StripeRecord {
    const { name = null, email = null, address = null, metadata = {} } = parameters;
    if (typeof email === 'string' && !/^\S+@\S+$/.test(email))
      throw new StripeRefusal(400, {
        code: 'email_invalid',
        message: `Invalid email address: ${email}`,
        param: 'email',
      });
    const customer = this.add('cus', 'customer', { name, email, address, balance: 0, metadata: toTexts(metadata) });
    this.#announce('customer.created', customer);
    return customer;
  }

  deleteCustomer(id: string) {
    const customer = this.find('customer', id);
    this.records.delete(id);
    this.#announce('customer.deleted', customer);
    return { id, object: 'customer', deleted: true };
  }

  createInvoice(parameters: Parameters): InvoiceRecord {
    const customer = String(parameters['customer']);
    if (this.records.get(customer)?.object !== 'customer') throw refuseMissing('customer', customer, 400, 'customer');
    const {
      collection_method = 'charge_automatically',
      auto_advance = false,
      description = null,
      metadata = {},
    } = parameters;
    const invoice = this.add('in', 'invoice', {
      ...{
        customer,
        currency: String(parameters['currency'] ?? 'usd').toLowerCase(),
        collection_method,
        auto_advance,
        description,
      },
      ...{
        status: 'draft' as const,
        total: 0,
        amount_paid: 0,
        amount_remaining: 0,
        hosted_invoice_url: null,
        number: null,
      },
      ...{ pre_payment_credit_notes_amount: 0, post_payment_credit_notes_amount: 0 },
      ...{
        due_date: toDueDate(parameters),
        metadata: toTexts(metadata),
        status_transitions: { paid_at: null, voided_at: null },
      },
    });
    this.lines.set(invoice.id, []);
    if (this.surcharge !== 0) this.#addLine(invoice, { amount: this.surcharge, description: 'Surcharge' });
    if (parameters['pending_invoice_items_behavior'] === 'include')
      for (const item of this.list<Line>('invoiceitem').filter(
        (one) => one['customer'] === customer && one['invoice'] === null,
      )) {
        item['invoice'] = invoice.id;
        this.#attach(invoice, item);
      }
    this.#announce('invoice.created', this.showInvoice(invoice));
    return invoice;
  }

  createItem(parameters: Parameters): StripeRecord {
    const {
      customer,
      invoice = null,
      amount = 0,
      currency,
      description = null,
      metadata = {},
      period = null,
    } = parameters;
    const item = this.add('ii', 'invoiceitem', {
      ...{ customer, invoice, amount: Number(amount), currency, description, period, metadata: toTexts(metadata) },
    });
    if (invoice !== null) this.#attach(this.#findDraft(String(invoice)), item);
    return item;
  }

  deleteItem(id: string) {
    const item = this.find('invoiceitem', id);
    if (item['invoice'] !== null) {
      const invoice = this.#findDraft(String(item['invoice']));
      const lines = this.lines.get(invoice.id)!;
      this.lines.set(
        invoice.id,
        lines.filter((line) => line.invoice_item !== id),
      );
      this.#addUp(invoice);
    }
    this.records.delete(id);
    return { id, object: 'invoiceitem', deleted: true };
  }

  addLines(id: string, lines: readonly Parameters[]): InvoiceRecord {
    const invoice = this.#findDraft(id);
    if (this.lines.get(id)!.length + lines.length > LINES_MAX)
      throw new StripeRefusal(400, {
        message: `You can only add up to ${LINES_MAX} items to an invoice.`,
        param: 'lines',
      });
    for (const line of lines) this.#addLine(invoice, line);
    return invoice;
  }

  removeLines(id: string, removed: readonly Parameters[]): InvoiceRecord {
    const invoice = this.#findDraft(id);
    for (const { id: line_id, behavior } of removed) {
      const line = this.lines.get(id)!.find((one) => one.id === line_id);
      if (line === undefined) throw refuseMissing('line item', String(line_id), 400, 'lines');
      this.lines.set(
        id,
        this.lines.get(id)!.filter((one) => one !== line),
      );
      if (behavior === 'delete') this.records.delete(line.invoice_item);
      else this.find('invoiceitem', line.invoice_item)['invoice'] = null;
    }
    this.#addUp(invoice);
    return invoice;
  }

  #findDraft(id: string): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'draft')
      throw new StripeRefusal(400, { code: 'invoice_not_editable', message: 'This invoice is no longer editable' });
    return invoice;
  }

  #addLine(
    invoice: InvoiceRecord,
    { amount = 0, description = null, period = null, metadata = {} }: Parameters | Partial<Line>,
  ): void {
    const item = this.add('ii', 'invoiceitem', {
      ...{ customer: invoice.customer, invoice: invoice.id, currency: invoice.currency },
      ...{ amount: Number(amount), description, period, metadata: toTexts(metadata) },
    });
    this.#attach(invoice, item);
  }

  #attach(invoice: InvoiceRecord, item: StripeRecord): void {
    this.#count += 1;
    const { amount, currency, description, period, metadata, created } = item;
    const id = `il_${String(this.#count).padStart(14, '0')}`;
    const line = { id, object: 'line_item', created, amount: Number(amount), currency, description, period, metadata };
    this.lines.get(invoice.id)!.push({ ...line, invoice_item: item.id, invoice: invoice.id });
    this.#addUp(invoice);
  }

  #addUp(invoice: InvoiceRecord): void {
    invoice.total = this.lines.get(invoice.id)!.reduce((sum, { amount }) => sum + amount, 0);
    invoice.amount_remaining = invoice.total;
  }

  /**
   * Deletes a draft; its lines stay as invoice items of the customer without an invoice. Stripe does not document whether
   * they are deleted, too; that they stay is the worse case.
   */
  deleteInvoice(id: string) {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'draft') throw new StripeRefusal(400, { message: 'You can only delete draft invoices.' });
    for (const line of this.lines.get(id)!) this.find('invoiceitem', line.invoice_item)['invoice'] = null;
    this.records.delete(id);
    this.lines.delete(id);
    this.#announce('invoice.deleted', invoice);
    return { id, object: 'invoice', deleted: true };
  }

  finalizeInvoice(id: string): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'draft')
      throw new StripeRefusal(400, {
        message: "This invoice is already finalized, you can't re-finalize a non-draft invoice.",
      });
    invoice.status = 'open';
    invoice['number'] = `FAKE-${String(this.#count).padStart(4, '0')}`;
    invoice['hosted_invoice_url'] = `https://invoice.stripe.example/i/${id}`;
    if (invoice.total > 0) this.#createPayment(invoice, invoice.total, true);
    this.#announce('invoice.finalized', this.showInvoice(invoice));
    if (invoice.total <= 0) this.#closePaid(invoice);
    return invoice;
  }

  voidInvoice(id: string): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'open' && invoice.status !== 'uncollectible')
      throw new StripeRefusal(400, { message: "You can only pass in open invoices. This invoice isn't open." });
    invoice.status = 'void';
    for (const payment of this.listPayments(id).filter(({ status }) => status === 'open')) {
      payment.status = 'canceled';
      this.find('payment_intent', payment.payment.payment_intent!)['status'] = 'canceled';
    }
    this.#announce('invoice.voided', this.showInvoice(invoice));
    return invoice;
  }

  markUncollectible(id: string): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'open')
      throw new StripeRefusal(400, { message: 'You can only mark open invoices as uncollectible.' });
    invoice.status = 'uncollectible';
    this.#announce('invoice.marked_uncollectible', this.showInvoice(invoice));
    return invoice;
  }

  /** Pays an invoice. A partial amount gets a new payment; that of the invoice stays open for the remainder. */
  payInvoice(id: string, { card, amount, received, outside = false }: CardPayment): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'open' && invoice.status !== 'uncollectible')
      throw new StripeRefusal(400, { message: 'Invoice is already paid', code: 'invoice_already_paid' });
    if (outside) return this.#payOutside(invoice);
    const known = CARDS[card ?? ''];
    if (known === undefined) throw refuseMissing('PaymentMethod', card ?? '', 400, 'payment_method');
    const opened = this.listPayments(id).find(({ status }) => status === 'open')!;
    const payment = amount === undefined ? opened : this.#createPayment(invoice, amount, false);
    const intent = this.find('payment_intent', payment.payment.payment_intent!);
    if (known.acts || known.decline_code) throw this.#decline(invoice, intent, known);
    Object.assign(intent, {
      status: 'succeeded',
      amount_received: received ?? payment.amount_requested,
      last_payment_error: null,
    });
    this.#announce('payment_intent.succeeded', intent);
    this.#book(invoice, payment, received);
    if (invoice.amount_remaining <= 0) this.#closePaid(invoice);
    return invoice;
  }

  /**
   * Attaches a payment record, which counts at once; the excess over the remaining amount is credited to the customer's
   * balance.
   */
  attachRecord(id: string, record: StripeRecord & { amount: { value: number } }): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'open')
      throw new StripeRefusal(400, { message: `Payments cannot be attached to an invoice that is ${invoice.status}.` });
    const over = record.amount.value - invoice.amount_remaining;
    const customer = this.find('customer', invoice.customer);
    if (over > 0) customer['balance'] = Number(customer['balance']) - over;
    const payment = this.#createPayment(invoice, record.amount.value, false);
    payment.payment = { type: 'payment_record', payment_record: record.id };
    this.#book(invoice, payment);
    if (invoice.amount_remaining <= 0) this.#closePaid(invoice);
    return invoice;
  }

  /**
   * Attaches a payment intent, which pays the invoice if it has succeeded. At Stripe a later success pays it, too; this
   * fake does not do that.
   */
  attachPayment(id: string, intent_id: string): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (invoice.status !== 'open')
      throw new StripeRefusal(400, { message: `You cannot attach a payment to an invoice that is ${invoice.status}.` });
    const intent = this.find<StripeRecord & { amount: number; status: string }>('payment_intent', intent_id);
    const payment = this.add('inpay', 'invoice_payment', {
      ...{ invoice: id, status: 'open' as const, amount_requested: intent.amount, amount_paid: null },
      ...{
        currency: invoice.currency,
        is_default: false,
        payment: { type: 'payment_intent', payment_intent: intent_id },
      },
      status_transitions: { paid_at: null as number | null, canceled_at: null },
    });
    if (intent.status === 'succeeded') this.#book(invoice, payment);
    if (invoice.amount_remaining <= 0) this.#closePaid(invoice);
    return invoice;
  }

  /** Lowers the remaining amount by that of a credit note; a voided note has a negative `amount`, which raises it. */
  lowerRemaining(invoice: InvoiceRecord, amount: number): void {
    invoice['pre_payment_credit_notes_amount'] = Number(invoice['pre_payment_credit_notes_amount'] ?? 0) + amount;
    invoice.amount_remaining -= amount;
    this.#lowerOpened(invoice);
    if (invoice.amount_remaining <= 0) this.#closePaid(invoice);
  }

  #payOutside(invoice: InvoiceRecord): InvoiceRecord {
    const payment = this.listPayments(invoice.id).find(({ status }) => status === 'open')!;
    payment.payment = { type: 'payment_record', payment_record: `pr_${invoice.id.slice(3)}` };
    this.#book(invoice, payment);
    this.#closePaid(invoice);
    return invoice;
  }

  #decline(
    invoice: InvoiceRecord,
    intent: StripeRecord,
    { decline_code, acts }: { decline_code?: string; acts?: true },
  ) {
    const code = acts ? 'invoice_payment_intent_requires_action' : 'card_declined';
    const message = acts ? 'This payment requires additional user action.' : 'Your card was declined.';
    intent['status'] = acts ? 'requires_action' : 'requires_payment_method';
    const fault = { type: 'card_error', code, message, ...(decline_code ? { decline_code } : {}) };
    if (!acts) intent['last_payment_error'] = fault;
    this.#announce(acts ? 'invoice.payment_action_required' : 'invoice.payment_failed', this.showInvoice(invoice));
    return new StripeRefusal(402, { ...fault, payment_intent: intent });
  }

  #createPayment(invoice: InvoiceRecord, amount: number, is_default: boolean): PaymentRecord {
    const intent = this.add('pi', 'payment_intent', {
      ...{ amount, amount_received: 0, currency: invoice.currency, customer: invoice.customer },
      ...{ status: 'requires_payment_method', last_payment_error: null },
    });
    return this.add('inpay', 'invoice_payment', {
      ...{
        invoice: invoice.id,
        status: 'open' as const,
        amount_requested: amount,
        amount_paid: null,
        currency: invoice.currency,
      },
      ...{ is_default, payment: { type: 'payment_intent', payment_intent: intent.id } },
      status_transitions: { paid_at: null as number | null, canceled_at: null },
    });
  }

  #book(invoice: InvoiceRecord, payment: PaymentRecord, amount_paid = payment.amount_requested): void {
    Object.assign(payment, { status: 'paid', amount_paid });
    Object.assign(payment, { status_transitions: { paid_at: seconds(), canceled_at: null } });
    invoice.amount_paid += amount_paid;
    const credited = Number(invoice['pre_payment_credit_notes_amount'] ?? 0);
    invoice.amount_remaining = Math.max(0, invoice.total - invoice.amount_paid - credited);
    this.#lowerOpened(invoice);
    this.#announce('invoice_payment.paid', payment);
  }

  /** Lowers the payment that Stripe created with the invoice to the remaining amount (docs.stripe.com/invoicing/partial-payments). */
  #lowerOpened(invoice: InvoiceRecord): void {
    const opened = this.listPayments(invoice.id).find(({ status, is_default }) => status === 'open' && is_default);
    if (opened === undefined) return;
    opened.amount_requested = invoice.amount_remaining;
    this.find('payment_intent', opened.payment.payment_intent!)['amount'] = invoice.amount_remaining;
  }

  #closePaid(invoice: InvoiceRecord): void {
    invoice.status = 'paid';
    invoice['status_transitions'] = { paid_at: seconds(), voided_at: null };
    this.#announce('invoice.paid', this.showInvoice(invoice));
  }

  /** Refunds a payment as a person does in the dashboard. */
  refundPayment(payment_intent: string, amount: number): StripeRecord {
    const { currency, amount_received } = this.find('payment_intent', payment_intent);
    const refunded = this.list('refund').filter(
      (one) => one['payment_intent'] === payment_intent && one['status'] !== 'failed',
    );
    const sum = refunded.reduce((total, one) => total + Number(one['amount']), 0);
    if (sum + amount > Number(amount_received))
      throw new StripeRefusal(400, { code: 'charge_already_refunded', message: 'Refund amount is too great.' });
    const charge = `ch_${payment_intent.slice(3)}`;
    const refund = this.add('re', 'refund', { amount, currency, payment_intent, charge, status: 'succeeded' });
    this.#announce('refund.created', refund);
    this.#announce('charge.refunded', { id: charge, object: 'charge', payment_intent, amount_refunded: sum + amount });
    return refund;
  }

  disputePayment(payment_intent: string): StripeRecord {
    const { currency, amount } = this.find('payment_intent', payment_intent);
    const charge = `ch_${payment_intent.slice(3)}`;
    const fields = { amount, currency, payment_intent, charge, status: 'needs_response', reason: 'fraudulent' };
    const dispute = this.add('dp', 'dispute', fields);
    this.#announce('charge.dispute.created', dispute);
    return dispute;
  }

  listPayments(invoice_id: string): PaymentRecord[] {
    return this.list<PaymentRecord>('invoice_payment').filter(({ invoice }) => invoice === invoice_id);
  }

  /** Shows an invoice with its first lines; its payments are included only on request. */
  showInvoice(invoice: InvoiceRecord): StripeRecord {
    const lines = this.lines.get(invoice.id) ?? [];
    const url = `/v1/invoices/${invoice.id}/lines`;
    const first = {
      object: 'list',
      data: lines.slice(0, 10),
      has_more: lines.length > 10,
      total_count: lines.length,
      url,
    };
    // An invoice also settles the balance of the customer, which is below 0 if Stripe owes the customer.
    const balance = Number(this.find('customer', invoice.customer)?.balance ?? 0);
    return structuredClone({ ...invoice, amount_due: Math.max(0, invoice.total + balance), lines: first });
  }
}

export function seconds(): number {
  return Math.floor(Date.now() / 1_000);
}

function toTexts(metadata: unknown): Record<string, string> {
  return metadata === '' ? {} : { ...(metadata as Record<string, string>) };
}

function toDueDate({ collection_method, due_date, days_until_due }: Parameters): number | null {
  if (collection_method !== 'send_invoice') return null;
  if ((due_date === undefined) === (days_until_due === undefined))
    throw new StripeRefusal(400, {
      message: 'You must specify either `due_date` or `days_until_due`.',
      param: 'due_date',
    });
  if (due_date === undefined) return seconds() + Number(days_until_due) * 86_400;
  if (Number(due_date) <= seconds())
    throw new StripeRefusal(400, { message: 'The due date must be in the future.', param: 'due_date' });
  return Number(due_date);
}
