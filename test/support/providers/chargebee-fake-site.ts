/**
 * Records of Chargebee's fake, and the effects of requests on them (apidocs.chargebee.com: "Customers", "Create invoice for items and one-time
 * charges", "Void an invoice", "Record an invoice payment", "Collect payment for an invoice", "Record refund for an invoice", "Refund an
 * invoice", "Credit notes", "Void a credit note", "Delete an offline transaction", "Hosted pages", "Payment sources", "Comments", "Events").
 */
import type { Input } from './chargebee-fake-parameters.ts';
import { ChargebeeRefusal, refuseMissing, refuseState, refuseValue } from './chargebee-fake-refusal.ts';

export type SiteRecord = { id: string; object: string; deleted: boolean; updated_at: number; [field: string]: unknown };
type Link = { txn_id: string; applied_amount: number; applied_at: number; txn_status: string; txn_amount: number };
export type InvoiceRecord = SiteRecord & {
  customer_id: string;
  currency_code: string;
  status: 'paid' | 'posted' | 'payment_due' | 'not_paid' | 'voided' | 'pending';
  total: number;
  amount_paid: number;
  amount_adjusted: number;
  credits_applied: number;
  amount_due: number;
  notes: { note: string }[];
  line_items: { amount: number; description: string }[];
  linked_payments: Link[];
  adjustment_credit_notes: { cn_id: string }[];
  issued_credit_notes: { cn_id: string }[];
};
export type TransactionRecord = SiteRecord & {
  type: 'payment' | 'refund';
  gateway: string;
  amount: number;
  status: string;
  date: number;
  currency_code: string;
  customer_id: string;
  linked_invoices: { invoice_id: string; applied_amount: number }[];
};
export type CreditNoteRecord = SiteRecord & {
  type: 'adjustment' | 'refundable';
  status: 'adjusted' | 'refunded' | 'refund_due' | 'voided';
  total: number;
  reference_invoice_id: string;
  notes: string[];
  linked_refunds: { txn_id: string; applied_amount: number; txn_status: string }[];
};
type PageRecord = SiteRecord & { type: string; state: string; expires_at: number; customer_id: string };

/** Decision of the bank about charges of a payment source. */
type SourceBehaviour = 'pays' | 'declines' | 'pends' | 'breaks';
type Announce = (event_type: string, content: Record<string, SiteRecord>) => void;

const OPEN: readonly string[] = ['payment_due', 'not_paid', 'posted'];
const PAGE_SECONDS = 5 * 86_400;

export class ChargebeeSite {
  readonly records = new Map<string, SiteRecord>();
  /** Amount added to each invoice, as by a tax of the site. */
  surcharge = 0;
  /** Currencies of the site. */
  readonly currencies = new Set(['USD', 'EUR', 'JPY', 'KWD']);
  /** Payment terms that the site has, in days. */
  readonly terms = new Set([0, 15, 30]);
  /** Status of new refunds by a gateway. */
  refund_status: 'success' | 'in_progress' | 'failure' = 'success';
  /** Unix seconds that the site's clock is ahead. */
  ahead_seconds = 0;
  readonly #behaviours = new Map<string, SourceBehaviour>();
  readonly #announce: Announce;
  #count = 0;

  constructor(announce: Announce) {
    this.#announce = announce;
  }

  get now(): number {
    return Math.floor(Date.now() / 1_000) + this.ahead_seconds;
  }

  add<Added extends object>(object: string, id: string | null, fields: Added): SiteRecord & Added {
    this.#count += 1;
    const used = id ?? `${PREFIXES[object] ?? ''}__test__${String(this.#count).padStart(8, '0')}`;
    const record = { id: used, object, deleted: false, updated_at: this.now, resource_version: Date.now(), ...fields };
    this.records.set(`${object} ${used}`, record);
    return record;
  }

  find<Found extends SiteRecord>(object: string, id: string): Found {
    const found = this.records.get(`${object} ${id}`);
    if (found === undefined) throw refuseMissing(id);
    return found as Found;
  }

  /** Lists records, newest first. */
  list<Found extends SiteRecord>(object: string, accepts: (record: Found) => boolean = () => true): Found[] {
    const all = [...this.records.values()].filter((record) => record.object === object && !record.deleted) as Found[];
    return all.filter(accepts).reverse();
  }

  createCustomer(input: Input): SiteRecord {
    const id = input.text('id') ?? null;
    if (id !== null && this.records.has(`customer ${id}`))
      throw new ChargebeeRefusal(400, 'duplicate_entry', `id : The value ${id} is already present.`, { param: 'id' });
    const meta_data = input.text('meta_data');
    return this.add('customer', id, {
      ...{ company: input.text('company'), email: input.text('email'), auto_collection: input.text('auto_collection') },
      ...(meta_data === undefined ? {} : { meta_data: JSON.parse(meta_data) }),
      billing_address: Object.fromEntries(
        input.names.flatMap((name) => {
          const field = /^billing_address\[(\w+)\]$/.exec(name)?.[1];
          return field === undefined ? [] : [[field, input.text(name)]];
        }),
      ),
    });
  }

  createInvoice(input: Input): InvoiceRecord {
    const customer = this.find('customer', input.require('customer_id'));
    if (customer.deleted) throw refuseMissing(customer.id);
    const currency_code = input.require('currency_code');
    if (!this.currencies.has(currency_code)) throw refuseValue('currency_code', `${currency_code} is not configured`);
    const net_term_days = input.integer('net_term_days') ?? 0;
    if (!this.terms.has(net_term_days)) throw refuseValue('net_term_days', 'is not a payment term of the site');
    const line_items = Array.from({ length: input.count('charges') }, (_, index) => ({
      amount: Number(input.require(`charges[amount][${index}]`)),
      description: input.require(`charges[description][${index}]`),
      // Charges are taxable unless the request says otherwise.
      is_taxed: input.text(`charges[taxable][${index}]`) !== 'false',
      date_from: input.integer(`charges[date_from][${index}]`) ?? this.now,
      date_to: input.integer(`charges[date_to][${index}]`) ?? this.now,
      entity_type: 'adhoc',
    }));
    if (line_items.length === 0) throw refuseValue('charges', 'at least one is required');
    const tax = line_items
      .filter(({ is_taxed }) => is_taxed)
      .reduce((sum, { amount }) => sum + Math.round(amount / 10), 0);
    const total = line_items.reduce((sum, { amount }) => sum + amount, 0) + this.surcharge + tax;
    const note = input.text('invoice_note');
    const invoice = this.add('invoice', String(this.list('invoice').length + 1 + this.#count), {
      ...{ customer_id: customer.id, currency_code, recurring: false, price_type: 'tax_exclusive', line_items },
      ...{ date: this.now, due_date: this.now + net_term_days * 86_400, net_term_days },
      status: (net_term_days > 0 ? 'posted' : 'payment_due') as InvoiceRecord['status'],
      ...{
        total,
        tax,
        sub_total: total - tax,
        amount_paid: 0,
        amount_adjusted: 0,
        credits_applied: 0,
        amount_due: total,
      },
      ...{ notes: note === undefined ? [] : [{ note }], linked_payments: [] as Link[] },
      ...{ adjustment_credit_notes: [] as { cn_id: string }[], issued_credit_notes: [] as { cn_id: string }[] },
    });
    this.#announce('invoice_generated', { invoice, customer });
    return invoice;
  }

  voidInvoice(id: string): { invoice: InvoiceRecord } {
    const invoice = this.#findOpen(id);
    const isPaid = invoice.linked_payments.some(({ txn_status }) => ['success', 'in_progress'].includes(txn_status));
    if (isPaid) throw refuseState(`Invoice ${id} cannot be voided as it has payments.`);
    if (invoice.amount_adjusted > 0) throw refuseState(`Invoice ${id} cannot be voided as it has adjustments.`);
    invoice.status = 'voided';
    this.#touch(invoice);
    this.#announce('invoice_updated', { invoice });
    return { invoice };
  }

  #findOpen(id: string): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (!OPEN.includes(invoice.status)) throw refuseState(`The invoice ${id} is ${invoice.status}.`);
    return invoice;
  }

  recordPayment(id: string, input: Input): Record<string, SiteRecord> {
    const invoice = this.#findOpen(id);
    const amount = input.integer('transaction[amount]') ?? invoice.amount_due;
    const payment_method = input.require('transaction[payment_method]');
    const date = input.integer('transaction[date]') ?? this.now;
    if (date > this.now) throw refuseValue('transaction[date]', 'cannot be in the future');
    const reference_number = input.text('transaction[reference_number]');
    const transaction = this.#pay([invoice], {
      amount,
      payment_method,
      date,
      reference_number,
      gateway: 'not_applicable',
    });
    return { invoice, transaction };
  }

  addSource(customer_id: string, behaviour: SourceBehaviour, fields: object = {}): SiteRecord {
    const card = {
      brand: 'visa',
      last4: '1111',
      expiry_month: 9,
      expiry_year: 2030,
      iin: '411111',
      funding_type: 'credit',
    };
    const common = { customer_id, type: 'card', status: 'valid', gateway: 'chargebee', card, created_at: this.now };
    const source = this.add('payment_source', null, { ...common, ...fields });
    const customer = this.find('customer', customer_id);
    customer['primary_payment_source_id'] ??= source.id;
    this.#behaviours.set(source.id, behaviour);
    this.#announce('payment_source_added', { payment_source: source, customer });
    return source;
  }

  deleteSource(id: string): void {
    const payment_source = this.find('payment_source', id);
    payment_source.deleted = true;
    this.#announce('payment_source_deleted', { payment_source });
  }

  collectPayment(id: string, input: Input): Record<string, SiteRecord> {
    const invoice = this.#findOpen(id);
    const source = this.find('payment_source', input.require('payment_source_id'));
    if (source['customer_id'] !== invoice.customer_id)
      throw refuseValue('payment_source_id', 'is not of this customer');
    const amount = input.integer('amount') ?? invoice.amount_due;
    if (amount > invoice.amount_due) throw refuseValue('amount', 'is more than the amount to collect');
    const status = STATUS_BY_BEHAVIOUR[this.#behaviours.get(source.id)!];
    const transaction = this.#pay([invoice], {
      ...{ amount, status, payment_method: 'card', gateway: 'chargebee', payment_source_id: source.id },
      initiator_type: input.text('payment_initiator'),
    });
    const comment = input.text('comment');
    if (comment !== undefined && status !== 'failure') this.#comment('invoice', id, comment);
    if (status !== 'failure' && status !== 'needs_attention') return { invoice, transaction };
    throw new ChargebeeRefusal(
      400,
      'payment_processing_failed',
      'Problem while collecting payment. Reason: card declined',
      {
        type: 'payment',
      },
    );
  }

  /** Pays an invoice as its customer does on a page of Chargebee. */
  payInvoice(id: string, fields: object = {}): TransactionRecord {
    const invoice = this.#findOpen(id);
    const { amount_due: amount } = invoice;
    return this.#pay([invoice], {
      amount,
      payment_method: 'card',
      gateway: 'chargebee',
      initiator_type: 'customer',
      ...fields,
    });
  }

  /** Pays all that a customer owes by one transaction, as the page does. */
  payPage(id: string): TransactionRecord {
    const page = this.find<PageRecord>('hosted_page', id);
    if (page.expires_at < this.now) throw new Error('the page has expired');
    const { customer_id } = page;
    const isDue = (one: InvoiceRecord) => one.customer_id === customer_id && OPEN.includes(one.status);
    const invoices = this.list<InvoiceRecord>('invoice', isDue);
    page.state = 'succeeded';
    const amount = invoices.reduce((sum, { amount_due }) => sum + amount_due, 0);
    return this.#pay(invoices, { amount, payment_method: 'card', gateway: 'chargebee', initiator_type: 'customer' });
  }

  /** Pays invoices in turn by one transaction. */
  #pay(
    invoices: readonly InvoiceRecord[],
    fields: { amount: number; status?: string; [field: string]: unknown },
  ): TransactionRecord {
    const { customer_id, currency_code } = invoices[0]!;
    const { amount, status = 'success' } = fields;
    let rest = amount;
    const linked_invoices = invoices.map((invoice) => {
      const applied_amount = Math.min(rest, invoice.amount_due);
      rest -= applied_amount;
      return { invoice_id: invoice.id, applied_amount, applied_at: this.now, invoice_status: invoice.status };
    });
    const transaction = this.add('transaction', null, {
      ...{
        type: 'payment' as const,
        customer_id,
        currency_code,
        date: this.now,
        gateway: 'chargebee',
        ...fields,
        status,
      },
      ...{ amount_unused: status === 'success' ? rest : 0, linked_invoices },
      ...(status === 'failure' ? { error_code: 'card_declined', error_text: 'Your card was declined.' } : {}),
    });
    for (const [index, invoice] of invoices.entries()) {
      const { applied_amount } = linked_invoices[index]!;
      const link = { txn_id: transaction.id, applied_amount, applied_at: this.now, txn_date: this.now };
      invoice.linked_payments.push({ ...link, txn_status: status, txn_amount: amount });
      this.#recount(invoice);
    }
    this.#announce(EVENTS[status]!, { transaction, invoice: invoices[0]! });
    return transaction;
  }

  /** Ends a payment in progress as the bank does. */
  endPayment(id: string, status: 'success' | 'failure' | 'late_failure'): void {
    const transaction = this.find<TransactionRecord>('transaction', id);
    transaction.status = status;
    const invoice = this.find<InvoiceRecord>('invoice', transaction.linked_invoices[0]!.invoice_id);
    for (const link of invoice.linked_payments) if (link.txn_id === id) link.txn_status = status;
    this.#recount(invoice);
    this.#announce(EVENTS[status]!, { transaction, invoice });
  }

  /** Computes what remains of an invoice. A full payment makes it paid, and without it it is due again. */
  #recount(invoice: InvoiceRecord): void {
    const paid = invoice.linked_payments.filter(({ txn_status }) => txn_status === 'success');
    invoice.amount_paid = paid.reduce((sum, { applied_amount }) => sum + applied_amount, 0);
    invoice.amount_due = invoice.total - invoice.amount_paid - invoice.amount_adjusted - invoice.credits_applied;
    if (invoice.amount_due === 0) invoice.status = 'paid';
    else if (invoice.status === 'paid') invoice.status = 'not_paid';
    this.#touch(invoice);
  }

  createCreditNote(input: Input): CreditNoteRecord {
    const invoice = this.find<InvoiceRecord>('invoice', input.require('reference_invoice_id'));
    if (input.require('type') !== 'adjustment') throw new Error('only adjustments are played');
    if (!OPEN.includes(invoice.status)) throw refuseState('An adjustment needs an invoice that is due.');
    const total = Number(input.require('total'));
    if (total > invoice.amount_due) throw refuseValue('total', 'is more than the amount due');
    return this.#adjust(invoice, total, input.text('customer_notes'));
  }

  /** A person credits a part of the invoice. */
  creditInvoice(id: string, total: number): CreditNoteRecord {
    return this.#adjust(this.#findOpen(id), total, undefined);
  }

  #adjust(invoice: InvoiceRecord, total: number, note: string | undefined): CreditNoteRecord {
    const credit_note = this.#addNote(invoice, { type: 'adjustment', status: 'adjusted', total, note });
    invoice.adjustment_credit_notes.push({ cn_id: credit_note.id });
    invoice.amount_adjusted += total;
    this.#recount(invoice);
    this.#announce('credit_note_created', { credit_note });
    return credit_note;
  }

  #addNote(
    invoice: InvoiceRecord,
    { note, ...fields }: Pick<CreditNoteRecord, 'type' | 'status' | 'total'> & { note: string | undefined },
  ): CreditNoteRecord {
    return this.add('credit_note', null, {
      ...{ ...fields, reference_invoice_id: invoice.id, customer_id: invoice.customer_id },
      ...{ currency_code: invoice.currency_code, notes: note === undefined ? [] : [note], price_type: 'tax_exclusive' },
      linked_refunds: [] as CreditNoteRecord['linked_refunds'],
    });
  }

  voidCreditNote(id: string): CreditNoteRecord {
    const credit_note = this.find<CreditNoteRecord>('credit_note', id);
    if (credit_note.status === 'refunded' || credit_note.status === 'voided')
      throw refuseState(`The credit note is ${credit_note.status}.`);
    if (credit_note.linked_refunds.length > 0) throw refuseState('The credit note has refunds.');
    const invoice = this.find<InvoiceRecord>('invoice', credit_note.reference_invoice_id);
    if (credit_note.type === 'adjustment') {
      invoice.amount_adjusted -= credit_note.total;
      this.#recount(invoice);
      invoice.status = 'not_paid';
    }
    credit_note.status = 'voided';
    this.#announce('credit_note_updated', { credit_note });
    return credit_note;
  }

  /** Records a refund that was made elsewhere, for which Chargebee creates a credit note. */
  recordRefund(id: string, input: Input): Record<string, SiteRecord> {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    const amount = input.integer('transaction[amount]') ?? invoice.amount_paid;
    input.require('transaction[payment_method]');
    if (Number(input.require('transaction[date]')) > this.now)
      throw refuseValue('transaction[date]', 'is in the future');
    return this.#refund(invoice, { amount, note: input.text('customer_notes'), gateway: 'not_applicable' });
  }

  /** Refunds the payment that a gateway received. */
  refundInvoice(id: string, input: Input): Record<string, SiteRecord> {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    const amount = input.integer('refund_amount') ?? invoice.amount_paid;
    return this.#refund(invoice, { amount, note: input.text('customer_notes'), gateway: 'chargebee' });
  }

  /** A person refunds a part of a payment. */
  refundPayment(id: string, amount: number): SiteRecord {
    const { linked_invoices } = this.find<TransactionRecord>('transaction', id);
    const invoice = this.find<InvoiceRecord>('invoice', linked_invoices[0]!.invoice_id);
    return this.#refund(invoice, { amount, note: undefined, gateway: 'chargebee' }).transaction!;
  }

  #refund(
    invoice: InvoiceRecord,
    { amount, note, gateway }: { amount: number; note: string | undefined; gateway: string },
  ): Record<string, SiteRecord> {
    const isOnline = gateway !== 'not_applicable';
    const paid = invoice.linked_payments
      .filter(({ txn_status }) => txn_status === 'success')
      .map(({ txn_id }) => this.find<TransactionRecord>('transaction', txn_id))
      .find((one) => (one.gateway !== 'not_applicable') === isOnline);
    const refunded = this.list<CreditNoteRecord>(
      'credit_note',
      (one) => one.reference_invoice_id === invoice.id && one.type === 'refundable' && one.status !== 'voided',
    ).reduce((sum, { total }) => sum + total, 0);
    if (paid === undefined || amount > invoice.amount_paid - refunded)
      throw refuseValue('refund_amount', 'is more than the refundable amount');
    const { customer_id, currency_code } = invoice;
    const status = isOnline ? this.refund_status : 'success';
    const source = isOnline ? { refunded_txn_id: paid.id } : { reference_transaction_id: paid.id };
    const transaction = this.add('transaction', null, {
      ...{ type: 'refund' as const, gateway, amount, status, date: this.now, customer_id, currency_code, ...source },
      linked_invoices: [],
    });
    const credit_note = this.#addNote(invoice, {
      ...{ type: 'refundable', total: amount, note },
      status: status === 'success' ? 'refunded' : 'refund_due',
    });
    credit_note.linked_refunds.push({ txn_id: transaction.id, applied_amount: amount, txn_status: status });
    invoice.issued_credit_notes.push({ cn_id: credit_note.id });
    this.#touch(invoice);
    this.#announce(status === 'success' ? 'payment_refunded' : 'refund_initiated', {
      transaction,
      invoice,
      credit_note,
    });
    return { invoice, transaction, credit_note };
  }

  /** Deletes a recorded refund or payment. */
  deleteOffline(id: string): TransactionRecord {
    const transaction = this.find<TransactionRecord>('transaction', id);
    if (transaction.gateway !== 'not_applicable') throw refuseState('Only offline transactions can be deleted.');
    transaction.deleted = true;
    for (const note of this.list<CreditNoteRecord>('credit_note')) {
      const rest = note.linked_refunds.filter(({ txn_id }) => txn_id !== id);
      if (rest.length < note.linked_refunds.length) note.status = 'refund_due';
      note.linked_refunds = rest;
    }
    for (const { invoice_id } of transaction.linked_invoices) {
      const invoice = this.find<InvoiceRecord>('invoice', invoice_id);
      invoice.linked_payments = invoice.linked_payments.filter(({ txn_id }) => txn_id !== id);
      this.#recount(invoice);
      this.#announce('transaction_deleted', { transaction, invoice });
    }
    return transaction;
  }

  createPage(type: string, input: Input): SiteRecord {
    const { id: customer_id } = this.find('customer', input.require('customer[id]'));
    const isDue = (one: InvoiceRecord) => one.customer_id === customer_id && OPEN.includes(one.status);
    if (type === 'collect_now' && this.list<InvoiceRecord>('invoice', isDue).length === 0)
      throw refuseState('The customer has no unpaid invoices.');
    const page = this.add('hosted_page', null, {
      ...{ type, state: 'created', customer_id, embed: false, created_at: this.now },
      expires_at: this.now + PAGE_SECONDS,
    });
    return Object.assign(page, { url: `https://site-test.chargebee.example/pages/v4/${page.id}/` });
  }

  createComment(input: Input): SiteRecord {
    return this.#comment(input.require('entity_type'), input.require('entity_id'), input.require('notes'));
  }

  #comment(entity_type: string, entity_id: string, notes: string): SiteRecord {
    return this.add('comment', null, { entity_type, entity_id, notes, type: 'user', created_at: this.now });
  }

  #touch(record: SiteRecord): void {
    Object.assign(record, { updated_at: this.now, resource_version: Date.now() });
  }
}

const STATUS_BY_BEHAVIOUR = {
  pays: 'success',
  declines: 'failure',
  pends: 'in_progress',
  // The connection to the gateway broke, so Chargebee does not know the result.
  breaks: 'needs_attention',
} as const;
const PREFIXES: Readonly<Record<string, string>> = {
  transaction: 'txn_',
  payment_source: 'pm_',
  credit_note: 'CN-',
  comment: 'cmt_',
};
const EVENTS: Readonly<Record<string, string>> = {
  success: 'payment_succeeded',
  failure: 'payment_failed',
  late_failure: 'payment_failed',
  in_progress: 'payment_initiated',
  needs_attention: 'payment_failed',
};
