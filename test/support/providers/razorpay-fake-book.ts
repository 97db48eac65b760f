/**
 * Records of Razorpay's fake, and the effects of requests on them (razorpay.com/docs/api/customers,
 * /docs/api/payments/invoices with /docs/payments/invoices/states, /docs/api/orders, /docs/api/payments,
 * /docs/api/payments/recurring-payments, /docs/api/payments/payment-links, /docs/api/refunds). Like Razorpay, it has
 * idempotency keys for refunds only.
 */
import { RazorpayRefusal, refuseUnknownId } from './razorpay-fake-refusal.ts';

export type Parameters = { [name: string]: unknown };
type Notes = Record<string, string> | [];
export type RazorpayRecord = { id: string; entity: string; created_at: number; notes: Notes; [field: string]: unknown };
export type InvoiceRecord = RazorpayRecord & {
  status: 'draft' | 'issued' | 'partially_paid' | 'paid' | 'cancelled' | 'expired';
  amount: number;
  amount_paid: number;
  currency: string;
  receipt: string | null;
  order_id: string | null;
  line_items: Parameters[];
};
export type OrderRecord = RazorpayRecord & {
  amount: number;
  amount_paid: number;
  currency: string;
  receipt: string | null;
};
export type PaymentRecord = RazorpayRecord & {
  status: 'created' | 'authorized' | 'captured' | 'refunded' | 'failed';
  amount: number;
  amount_refunded: number;
  currency: string;
  order_id: string;
};
export type LinkRecord = RazorpayRecord & {
  status: 'created' | 'partially_paid' | 'paid' | 'cancelled' | 'expired';
  amount: number;
  amount_paid: number;
  currency: string;
  reference_id: string;
};
export type RefundRecord = RazorpayRecord & { payment_id: string; amount: number; status: string };

/** Decision of the bank about charges of a token. */
export type TokenBehaviour = 'pays' | 'declines' | 'pends';

const AMOUNT_MIN = 100;
const LINES_MAX = 50;
const NAME = /^[A-Za-z0-9 .'()]{3,50}$/;

type Announce = (event: string, parts: Record<string, RazorpayRecord>) => void;

export class RazorpayBook {
  readonly records = new Map<string, RazorpayRecord>();
  /** Amount added to each invoice, as by a setting of the account. */
  surcharge = 0;
  /** Status of new refunds. */
  refund_status: 'processed' | 'pending' | 'failed' = 'processed';
  readonly #behaviours = new Map<string, TokenBehaviour>();
  #count = 0;
  readonly #announce: Announce;

  constructor(announce: Announce) {
    this.#announce = announce;
  }

  add<Added extends object>(prefix: string, entity: string, fields: Added): RazorpayRecord & Added {
    this.#count += 1;
    const id = `${prefix}_${String(this.#count).padStart(14, '0')}`;
    const record = { id, entity, created_at: seconds(), notes: [] as Notes, ...fields };
    this.records.set(id, record);
    return record;
  }

  find<Found extends RazorpayRecord>(entity: string, id: string): Found {
    const found = this.records.get(id);
    if (found?.entity !== entity) throw refuseUnknownId();
    return found as Found;
  }

  /** Lists records, newest first. */
  list<Found extends RazorpayRecord>(entity: string, filter: Parameters = {}): Found[] {
    return [...this.records.values()]
      .filter((record) => record.entity === entity)
      .filter((record) => Object.entries(filter).every(([name, value]) => record[name] === value))
      .reverse() as Found[];
  }

  createCustomer({ fail_existing = '1', notes, ...details }: Parameters): RazorpayRecord {
    const { name, email = null, contact = null } = details;
    if (name !== undefined && !NAME.test(String(name)))
      throw new RazorpayRefusal(400, 'The name format is invalid.', { field: 'name' });
    if (email !== null && !/^\S+@\S+$/.test(String(email)))
      throw new RazorpayRefusal(400, 'The email must be a valid email address.', { field: 'email' });
    if (String(email ?? '').length > 64)
      throw new RazorpayRefusal(400, 'The email may not be greater than 64 characters.', { field: 'email' });
    const isKnown = (one: RazorpayRecord) => one['email'] === email && one['contact'] === contact;
    const existing = email === null && contact === null ? undefined : this.list('customer').find(isKnown);
    if (existing && String(fail_existing) !== '0')
      throw new RazorpayRefusal(400, 'Customer already exists for the merchant');
    return existing ?? this.add('cust', 'customer', { name, email, contact, gstin: null, notes: toNotes(notes) });
  }

  addToken(customer_id: string, behaviour: TokenBehaviour, fields: Parameters = {}): RazorpayRecord {
    const card = { last4: '1111', network: 'Visa', expiry_month: '9', expiry_year: 2030 };
    const recurring_details = { status: 'confirmed', failure_reason: null };
    const token = this.add('token', 'token', { customer_id, method: 'card', card, recurring_details, ...fields });
    this.#behaviours.set(token.id, behaviour);
    return token;
  }

  createInvoice(body: Parameters): InvoiceRecord {
    const { customer_id, draft = '0', currency = 'INR', receipt = null, description = null, notes } = body;
    const customer = this.find('customer', String(customer_id));
    const lines = (body['line_items'] ?? []) as Parameters[];
    if (lines.length === 0)
      throw new RazorpayRefusal(400, 'The line items field is required.', { field: 'line_items' });
    if (lines.length > LINES_MAX)
      throw new RazorpayRefusal(400, `The line items may not have more than ${LINES_MAX} items.`);
    for (const line of lines) checkLine(line, String(currency));
    if (String(receipt ?? '').length > 40)
      throw new RazorpayRefusal(400, 'The receipt may not be greater than 40 characters.', { field: 'receipt' });
    const amount = lines.reduce((sum, line) => sum + Number(line['amount']) * Number(line['quantity'] ?? 1), 0);
    checkAmount(amount + this.surcharge, String(currency));
    const invoice = this.add('inv', 'invoice', {
      ...{ type: 'invoice', receipt: receipt as string | null, invoice_number: receipt, description },
      ...{ customer_id: customer.id, currency: String(currency), line_items: lines },
      ...{
        status: 'draft' as InvoiceRecord['status'],
        order_id: null as string | null,
        short_url: null,
        paid_at: null,
      },
      ...{ amount: amount + this.surcharge, gross_amount: amount, tax_amount: 0, amount_paid: 0 },
      notes: toNotes(notes),
    });
    return String(draft) === '1' ? invoice : this.issueInvoice(invoice.id);
  }

  issueInvoice(id: string): InvoiceRecord {
    const invoice = this.#findInvoice(id, ['draft']);
    const { amount, currency, receipt } = invoice;
    invoice.status = 'issued';
    invoice.order_id = this.createOrder({ amount, currency, ...(receipt === null ? {} : { receipt }) }).id;
    invoice['short_url'] = `https://rzp.example/i/${id}`;
    return invoice;
  }

  deleteInvoice(id: string): [] {
    this.#findInvoice(id, ['draft']);
    this.records.delete(id);
    return [];
  }

  cancelInvoice(id: string): InvoiceRecord {
    const invoice = this.#findInvoice(id, ['issued']);
    invoice.status = 'cancelled';
    return invoice;
  }

  #findInvoice(id: string, statuses: readonly InvoiceRecord['status'][]): InvoiceRecord {
    const invoice = this.find<InvoiceRecord>('invoice', id);
    if (!statuses.includes(invoice.status))
      throw new RazorpayRefusal(400, `Operation not allowed for Invoice in ${invoice.status} status.`);
    return invoice;
  }

  /** Pays an invoice as a person does on its page, or fails to. */
  payInvoice(id: string, { amount, status = 'captured' }: { amount?: number; status?: PaymentRecord['status'] } = {}) {
    const invoice = this.#findInvoice(id, ['issued', 'partially_paid']);
    const order = this.find<OrderRecord>('order', invoice.order_id!);
    const payment = this.#pay(order, { amount: amount ?? order.amount - order.amount_paid, status, invoice_id: id });
    if (status !== 'captured') return payment;
    invoice.amount_paid = order.amount_paid;
    invoice.status = invoice.amount_paid >= invoice.amount ? 'paid' : 'partially_paid';
    this.#announce(`invoice.${invoice.status}`, { payment, order, invoice });
    return payment;
  }

  createOrder(body: Parameters): OrderRecord {
    const { amount, currency = 'INR', receipt = null, notes } = body;
    checkAmount(amount, String(currency));
    if (String(receipt ?? '').length > 40)
      throw new RazorpayRefusal(400, 'The receipt may not be greater than 40 characters.', { field: 'receipt' });
    return this.add('order', 'order', {
      ...{ amount: Number(amount), amount_paid: 0, currency: String(currency), receipt: receipt as string | null },
      ...{ status: 'created', attempts: 0, notes: toNotes(notes) },
    });
  }

  createRecurring(body: Parameters) {
    const order = this.find<OrderRecord>('order', String(body['order_id']));
    const token = this.find('token', String(body['token']));
    for (const field of ['email', 'contact'])
      if (!body[field]) throw new RazorpayRefusal(400, `The ${field} field is required.`, { field });
    if (token['customer_id'] !== body['customer_id'])
      throw new RazorpayRefusal(400, 'The id provided does not exist', { field: 'token' });
    if (body['amount'] !== order.amount)
      throw new RazorpayRefusal(400, 'Your payment amount is different from your order amount.');
    if (order['status'] === 'paid') throw new RazorpayRefusal(400, 'Payment already done for this order.');
    const status = STATUS_BY_BEHAVIOUR[this.#behaviours.get(token.id)!];
    const payment = this.#pay(order, { amount: order.amount, status, token_id: token.id, notes: body['notes'] });
    if (status !== 'failed') return { razorpay_payment_id: payment.id, razorpay_order_id: order.id };
    const metadata = { payment_id: payment.id, order_id: order.id };
    throw new RazorpayRefusal(400, 'Your payment was declined.', { reason: 'payment_declined', metadata });
  }

  /** Ends a payment as the bank does later. A late failure is not final: an authorization may still arrive. */
  endPayment(id: string, status: 'captured' | 'failed'): void {
    const payment = this.find<PaymentRecord>('payment', id);
    payment.status = status;
    if (status === 'captured') this.#countPaid(payment);
    this.#announce(`payment.${status}`, { payment });
  }

  #pay(order: OrderRecord, { amount, status, notes, ...fields }: Parameters & { status: PaymentRecord['status'] }) {
    order['attempts'] = Number(order['attempts']) + 1;
    const error =
      status === 'failed' ? { code: 'BAD_REQUEST_ERROR', reason: 'payment_declined', description: 'Declined.' } : null;
    const payment = this.add('pay', 'payment', {
      ...{ amount: Number(amount), currency: order.currency, status, order_id: order.id, amount_refunded: 0 },
      ...{ invoice_id: null, captured: status === 'captured', refund_status: null, email: null, contact: null },
      ...{ error_code: error?.code ?? null, error_reason: error?.reason ?? null },
      ...{ error_description: error?.description ?? null, notes: toNotes(notes), ...fields },
    });
    if (status === 'captured') this.#countPaid(payment);
    this.#announce(`payment.${status}`, { payment });
    return payment as PaymentRecord;
  }

  #countPaid(payment: PaymentRecord): void {
    const order = this.find<OrderRecord>('order', payment.order_id);
    order.amount_paid += payment.amount;
    order['status'] = order.amount_paid >= order.amount ? 'paid' : 'attempted';
  }

  createLink(body: Parameters): LinkRecord {
    const { amount, currency = 'INR', reference_id = '', notes, callback_url, callback_method, ...rest } = body;
    checkAmount(amount, String(currency));
    if (callback_url !== undefined && callback_method !== 'get')
      throw new RazorpayRefusal(400, 'callback_method is required when callback_url is present.');
    if (reference_id !== '' && this.list('payment_link', { reference_id }).length > 0)
      throw new RazorpayRefusal(400, `payment link with given reference_id: ${reference_id} already exists`);
    const link = this.add('plink', 'payment_link', {
      ...{ ...rest, amount: Number(amount), amount_paid: 0, currency: String(currency) },
      ...{ reference_id: String(reference_id), status: 'created' as LinkRecord['status'] },
      ...{ notes: toNotes(notes), callback_url, callback_method, payments: null, cancelled_at: 0, expired_at: 0 },
    });
    return Object.assign(link, { short_url: `https://rzp.example/l/${link.id}` });
  }

  cancelLink(id: string): LinkRecord {
    const link = this.find<LinkRecord>('payment_link', id);
    if (link.status !== 'created')
      throw new RazorpayRefusal(400, `Payment Link cannot be cancelled since it is in ${link.status} status.`);
    link.status = 'cancelled';
    this.#announce('payment_link.cancelled', { payment_link: link });
    return link;
  }

  expireLink(id: string): void {
    const link = this.find<LinkRecord>('payment_link', id);
    link.status = 'expired';
    this.#announce('payment_link.expired', { payment_link: link });
  }

  payLink(id: string, status: 'captured' | 'failed' = 'captured'): PaymentRecord {
    const link = this.find<LinkRecord>('payment_link', id);
    if (link.status !== 'created') throw new Error(`the link is ${link.status}`);
    const { amount, currency } = link;
    const order = this.createOrder({ amount, currency });
    const payment = this.#pay(order, { amount, status });
    const attempt = { payment_id: payment.id, plink_id: id, amount, status, method: 'upi', created_at: seconds() };
    link['payments'] = [...((link['payments'] ?? []) as object[]), attempt];
    if (status === 'failed') return payment;
    link.amount_paid = amount;
    link.status = 'paid';
    this.#announce('payment_link.paid', { payment_link: link, order, payment });
    return payment;
  }

  createRefund(payment_id: string, { amount, receipt = null, notes }: Parameters): RefundRecord {
    const payment = this.find<PaymentRecord>('payment', payment_id);
    if (payment.status === 'refunded') throw new RazorpayRefusal(400, 'The payment has been fully refunded already');
    if (payment.status !== 'captured')
      throw new RazorpayRefusal(400, 'The payment status should be captured for action to be taken');
    const wanted = amount === undefined ? payment.amount - payment.amount_refunded : Number(amount);
    if (wanted > payment.amount - payment.amount_refunded)
      throw new RazorpayRefusal(400, 'The total refund amount is greater than the refund payment amount');
    const refund = this.add('rfnd', 'refund', {
      ...{ payment_id, amount: wanted, currency: payment.currency, receipt, status: this.refund_status as string },
      notes: toNotes(notes),
    });
    if (this.refund_status !== 'failed') {
      payment.amount_refunded += wanted;
      if (payment.amount_refunded === payment.amount) payment.status = 'refunded';
    }
    this.#announce(`refund.${this.refund_status}`, { refund, payment });
    return refund;
  }

  /**
   * Ends a refund. Razorpay usually reports one as processed before the bank confirms it, so it may still fail (razorpay.com/docs/payments/refunds).
   * No page says that a failure lowers `amount_refunded`, so it does not.
   */
  endRefund(id: string, status: 'processed' | 'failed'): void {
    const refund = this.find<RefundRecord>('refund', id);
    refund.status = status;
    this.#announce(`refund.${status}`, { refund, payment: this.find('payment', refund.payment_id) });
  }

  disputePayment(payment_id: string): RazorpayRecord {
    const payment = this.find<PaymentRecord>('payment', payment_id);
    const dispute = this.add('disp', 'dispute', { payment_id, amount: payment.amount, currency: payment.currency });
    this.#announce('payment.dispute.created', { payment, dispute });
    return dispute;
  }
}

const STATUS_BY_BEHAVIOUR = { pays: 'captured', declines: 'failed', pends: 'created' } as const;

function checkLine({ name, amount, currency, quantity = 1 }: Parameters, wanted: string): void {
  if (typeof name !== 'string' || name === '')
    throw new RazorpayRefusal(400, 'The name field is required.', { field: 'name' });
  if (!Number.isSafeInteger(amount) || Number(amount) < 0)
    throw new RazorpayRefusal(400, 'The amount must be at least 0.', { field: 'amount' });
  if (!Number.isSafeInteger(quantity) || Number(quantity) < 1)
    throw new RazorpayRefusal(400, 'The quantity must be an integer.', { field: 'quantity' });
  if (currency !== wanted)
    throw new RazorpayRefusal(400, 'Currency of all items should be the same as of the invoice.');
}

function checkAmount(amount: unknown, currency: string): void {
  if (!Number.isSafeInteger(amount))
    throw new RazorpayRefusal(400, 'The amount must be an integer.', { field: 'amount' });
  const min = currency === 'JPY' ? 1 : AMOUNT_MIN;
  if (Number(amount) < min)
    throw new RazorpayRefusal(400, 'Order amount less than minimum amount allowed', { field: 'amount' });
}

/** Empty notes are an empty list at Razorpay. */
function toNotes(notes: unknown): Notes {
  const entries = Object.entries((notes ?? {}) as Record<string, unknown>);
  if (entries.length > 15)
    throw new RazorpayRefusal(400, 'Number of fields in notes should be less than or equal to 15');
  if (entries.some(([, value]) => String(value).length > 256))
    throw new RazorpayRefusal(400, 'The notes value may not be greater than 256 characters.', { field: 'notes' });
  return entries.length === 0 ? [] : Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

export function seconds(): number {
  return Math.floor(Date.now() / 1_000);
}
