/**
 * Records of Moyasar's fake, and the effects of requests on them (docs.moyasar.com/api/invoices/01-create-invoice, /list-invoices,
 * /fetch-invoice, /api/payments/05-refund-payment, /update-payment, /guides/payment-operations, /guides/tokenization/overview,
 * /guides/tokenization/tokenized-cards, /api/idempotency, /api/metadata, /payment-status-reference).
 */
import { MoyasarRefusal } from './moyasar-fake-refusal.ts';

export type Fields = { readonly [name: string]: unknown };
type Metadata = Record<string, string> | null;
type InvoiceStatus = 'initiated' | 'paid' | 'failed' | 'refunded' | 'canceled' | 'on_hold' | 'expired' | 'voided';
type PaymentStatus =
  | 'initiated'
  | 'paid'
  | 'authorized'
  | 'failed'
  | 'refunded'
  | 'captured'
  | 'voided'
  | 'verified'
  | 'undocumented';

export type InvoiceRecord = {
  id: string;
  status: InvoiceStatus;
  amount: number;
  currency: string;
  description: string;
  metadata: Metadata;
  [field: string]: unknown;
};
export type PaymentRecord = {
  id: string;
  status: PaymentStatus;
  amount: number;
  currency: string;
  refunded: number;
  captured: number;
  invoice_id: string | null;
  metadata: Metadata;
  source: { type: string; message: string | null; transaction_url: string | null };
  [field: string]: unknown;
};

/** Decision of the bank about payments of a token. */
export type TokenBehaviour = 'pays' | 'declines' | 'confirms' | 'authorizes' | 'invents';
const STATUS_BY_BEHAVIOUR = {
  pays: 'paid',
  declines: 'failed',
  confirms: 'initiated',
  authorizes: 'authorized',
  invents: 'undocumented',
} as const;

const AMOUNT_MIN = 100;
/** Currencies of the account. */
const CURRENCIES = ['SAR', 'USD', 'KWD', 'JPY'];
const PAGE = 40;

export class MoyasarBook {
  readonly invoices = new Map<string, InvoiceRecord>();
  readonly payments = new Map<string, PaymentRecord>();
  /** Amount added to each new invoice, which Moyasar does not do. */
  surcharge = 0;
  readonly #tokens = new Map<string, TokenBehaviour>();
  readonly #announce: (type: string, payment: PaymentRecord) => void;
  #count = 0;

  constructor(announce: (type: string, payment: PaymentRecord) => void) {
    this.#announce = announce;
  }

  makeId(): string {
    this.#count += 1;
    return `00000000-0000-4000-8000-${String(this.#count).padStart(12, '0')}`;
  }

  createInvoice(body: Fields): InvoiceRecord {
    const { amount, currency = 'SAR', description, metadata, ...urls } = body;
    checkAmount(amount);
    checkCurrency(currency);
    if (typeof description !== 'string' || description === '')
      throw new MoyasarRefusal(400, { description: ["can't be blank"] });
    const id = this.makeId();
    const invoice: InvoiceRecord = {
      ...{ id, status: 'initiated', amount: Number(amount) + this.surcharge, currency: String(currency), description },
      ...{ callback_url: null, success_url: null, back_url: null, expired_at: null, ...urls },
      ...{ url: `https://checkout.moyasar.example/invoices/${id}?lang=en`, logo_url: null },
      ...{ created_at: new Date().toISOString(), updated_at: new Date().toISOString(), metadata: toMetadata(metadata) },
    };
    this.invoices.set(id, invoice);
    return this.showInvoice(id);
  }

  findInvoice(id: string): InvoiceRecord {
    const found = this.invoices.get(id);
    if (found === undefined) throw new MoyasarRefusal(404);
    return found;
  }

  showInvoice(id: string): InvoiceRecord {
    const payments = [...this.payments.values()].filter(({ invoice_id }) => invoice_id === id);
    return { ...this.findInvoice(id), payments };
  }

  /** Lists invoices without their payments, newest first. */
  listInvoices({ page = '1', id, status, ...filters }: Readonly<Record<string, string>>) {
    const metadata = Object.entries(filters).flatMap(([name, value]) => {
      const key = /^metadata\[(\w+)\]$/.exec(name)?.[1];
      return key === undefined ? [] : [[key, value] as const];
    });
    const found = [...this.invoices.values()]
      .filter((invoice) => (id ?? invoice.id) === invoice.id && (status ?? invoice.status) === invoice.status)
      .filter((invoice) => metadata.every(([key, value]) => invoice.metadata?.[key] === value))
      .reverse();
    const current_page = Number(page);
    const total_pages = Math.max(1, Math.ceil(found.length / PAGE));
    const next_page = current_page < total_pages ? current_page + 1 : null;
    const invoices = found.slice((current_page - 1) * PAGE, current_page * PAGE);
    const prev_page = current_page > 1 ? current_page - 1 : null;
    return { invoices, meta: { current_page, next_page, prev_page, total_pages, total_count: found.length } };
  }

  cancelInvoice(id: string): InvoiceRecord {
    const invoice = this.findInvoice(id);
    if (invoice.status !== 'initiated' && invoice.status !== 'failed')
      throw new MoyasarRefusal(400, { status: [`is ${invoice.status}`] });
    invoice.status = 'canceled';
    return this.showInvoice(id);
  }

  expireInvoice(id: string): void {
    this.findInvoice(id).status = 'expired';
  }

  /** A person pays the invoice on its page, or fails to. */
  payInvoice(id: string, status: PaymentStatus = 'paid'): PaymentRecord {
    const invoice = this.findInvoice(id);
    if (!['initiated', 'failed', 'on_hold'].includes(invoice.status)) throw new Error(`it is ${invoice.status}`);
    const { amount, currency } = invoice;
    const payment = this.#pay({ id: this.makeId(), amount, currency, invoice_id: id, metadata: null, status });
    if (status === 'paid') invoice.status = 'paid';
    if (status === 'failed') invoice.status = 'failed';
    if (status === 'authorized') invoice.status = 'on_hold';
    return payment;
  }

  addToken(behaviour: TokenBehaviour): string {
    this.#count += 1;
    const id = `token_${String(this.#count).padStart(20, 'x')}`;
    this.#tokens.set(id, behaviour);
    return id;
  }

  createPayment(body: Fields): PaymentRecord {
    const { amount, currency = 'SAR', source, given_id, metadata } = body;
    checkAmount(amount);
    checkCurrency(currency);
    const { type, token, ...rest } = (source ?? {}) as Fields;
    if (type !== 'token') throw new MoyasarRefusal(400, { source: ['is not used by these tests'] });
    const unknown = Object.keys(rest).find((name) => !['cvc', '3ds', 'manual', 'statement_descriptor'].includes(name));
    if (unknown !== undefined) throw new MoyasarRefusal(400, { [`source.${unknown}`]: ['is unknown'] });
    const behaviour = this.#tokens.get(String(token));
    if (behaviour === undefined) throw new MoyasarRefusal(400, { source: ['token is not active'] });
    if (
      given_id !== undefined &&
      !/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/.test(String(given_id))
    )
      throw new MoyasarRefusal(400, { given_id: ['must be a UUID'] });
    if (this.payments.has(String(given_id))) throw new MoyasarRefusal(400, { given_id: ['has already been taken'] });
    return this.#pay({
      ...{ id: given_id === undefined ? this.makeId() : String(given_id), amount: Number(amount) },
      ...{ currency: String(currency), invoice_id: null, metadata: toMetadata(metadata) },
      status: STATUS_BY_BEHAVIOUR[behaviour],
    });
  }

  #pay(
    fields: Pick<PaymentRecord, 'id' | 'amount' | 'currency' | 'invoice_id' | 'metadata' | 'status'>,
  ): PaymentRecord {
    const { status } = fields;
    const payment: PaymentRecord = {
      ...{ fee: 0, refunded: 0, refunded_at: null, captured: 0, captured_at: null, voided_at: null },
      ...{ description: null, ip: null, callback_url: null },
      ...{ created_at: new Date().toISOString(), updated_at: new Date().toISOString() },
      source: {
        ...{ type: 'creditcard', company: 'visa', number: 'XXXX-XXXX-XXXX-1111', token: null },
        message: status === 'failed' ? 'INSUFFICIENT FUNDS' : null,
        transaction_url: status === 'initiated' ? 'https://api.moyasar.example/v1/transaction_auths/1/form' : null,
      },
      ...fields,
    };
    this.payments.set(payment.id, payment);
    if (status !== 'initiated') this.#announce(EVENTS[status] ?? '', payment);
    return payment;
  }

  findPayment(id: string): PaymentRecord {
    const found = this.payments.get(id);
    if (found === undefined) throw new MoyasarRefusal(404);
    return found;
  }

  /** The cardholder confirms a payment, or does not. */
  endPayment(id: string, status: 'paid' | 'failed'): void {
    const payment = this.findPayment(id);
    payment.status = status;
    this.#announce(EVENTS[status]!, payment);
  }

  updatePayment(id: string, { description, metadata }: Fields): PaymentRecord {
    const payment = this.findPayment(id);
    if (description !== undefined) payment['description'] = description;
    if (metadata !== undefined) payment.metadata = { ...payment.metadata, ...toMetadata(metadata) };
    return payment;
  }

  refundPayment(id: string, { amount }: Fields = {}): PaymentRecord {
    const payment = this.findPayment(id);
    if (!['paid', 'captured', 'refunded'].includes(payment.status))
      throw new MoyasarRefusal(400, { status: [`is ${payment.status}`] });
    const left = payment.amount - payment.refunded;
    const wanted = amount === undefined ? left : amount;
    if (!Number.isSafeInteger(wanted) || Number(wanted) <= 0 || Number(wanted) > left)
      throw new MoyasarRefusal(400, { amount: ['exceeds the amount that is left'] });
    payment.refunded += Number(wanted);
    payment['refunded_at'] = new Date().toISOString();
    payment.status = 'refunded';
    if (payment.invoice_id !== null && payment.refunded === payment.amount)
      this.findInvoice(payment.invoice_id).status = 'refunded';
    this.#announce('payment_refunded', payment);
    return payment;
  }

  voidPayment(id: string): PaymentRecord {
    const payment = this.findPayment(id);
    if (!['paid', 'captured', 'authorized'].includes(payment.status))
      throw new MoyasarRefusal(400, { status: [`is ${payment.status}`] });
    payment.status = 'voided';
    payment['voided_at'] = new Date().toISOString();
    if (payment.invoice_id !== null) this.findInvoice(payment.invoice_id).status = 'voided';
    this.#announce('payment_voided', payment);
    return payment;
  }
}

const EVENTS: Readonly<Partial<Record<PaymentStatus, string>>> = {
  paid: 'payment_paid',
  failed: 'payment_faild',
  authorized: 'payment_authorized',
};

function checkAmount(amount: unknown): void {
  if (!Number.isSafeInteger(amount)) throw new MoyasarRefusal(400, { amount: ['must be an integer'] });
  if (Number(amount) < AMOUNT_MIN)
    throw new MoyasarRefusal(400, { amount: [`must be greater than or equal to ${AMOUNT_MIN}`] });
}

function checkCurrency(currency: unknown): void {
  if (!CURRENCIES.includes(String(currency))) throw new MoyasarRefusal(400, { currency: ['is not supported'] });
}

function toMetadata(metadata: unknown): Metadata {
  if (metadata === undefined || metadata === null) return null;
  const entries = Object.entries(metadata as Fields);
  const isLong = ([key, value]: [string, unknown]) => key.length > 40 || String(value).length > 500;
  if (entries.length > 30 || entries.some(isLong)) throw new MoyasarRefusal(400, { metadata: ['is too large'] });
  return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]));
}
