/**
 * Records of Whop's fake, and the effects of requests on them (docs.whop.com/api-reference: invoices, payments, refunds,
 * checkout-configurations, setup-intents, companies). The types of the library agree with these pages.
 */
import { WhopRefusal } from './whop-fake-refusal.ts';

export type Fields = { readonly [name: string]: unknown };
type Metadata = Readonly<Record<string, unknown>> | null;
type LineItem = { label: string; unit_price: number; quantity: number; total: number; position: number };
type PlanRecord = { id: string; initial_price: number; currency: string; internal_notes: string | null };

export type InvoiceRecord = {
  id: string;
  status: 'draft' | 'open' | 'paid' | 'past_due' | 'uncollectible' | 'void';
  created_at: string;
  current_plan: { id: string; currency: string; formatted_price: string };
  line_items: LineItem[];
  email_address: string | null;
  [field: string]: unknown;
};
export type RefundRecord = {
  id: string;
  amount: number;
  currency: string;
  status: 'pending' | 'requires_action' | 'succeeded' | 'failed' | 'canceled';
  created_at: string;
};
export type PaymentRecord = {
  id: string;
  status: string;
  substatus: string;
  currency: string;
  total: number;
  tax_amount: number | null;
  tax_behavior: string | null;
  refunded_amount: number;
  refunds: RefundRecord[];
  created_at: string;
  metadata: Metadata;
  plan: { id: string; internal_notes: string | null; metadata: null };
  checkout_configuration_id: string | null;
  [field: string]: unknown;
};
export type CheckoutRecord = {
  id: string;
  created_at: string;
  mode: string;
  metadata: Metadata;
  plan: PlanRecord | null;
  [field: string]: unknown;
};
type SetupRecord = { id: string; status: string; created_at: string; [field: string]: unknown };

/** Decision of the bank about charges of a payment method. */
export type MethodBehaviour = 'pays' | 'declines' | 'waits';
const SUBSTATUSES = { pays: 'succeeded', declines: 'failed', waits: 'pending' } as const;
const STATUSES: Readonly<Record<string, string>> = { succeeded: 'paid', failed: 'open', pending: 'pending' };

/** Some of Whop's currencies. */
const CURRENCIES = ['usd', 'eur', 'gbp', 'jpy', 'kwd'];
export const COMPANY = 'biz_fake';

export class WhopBook {
  readonly invoices = new Map<string, InvoiceRecord>();
  readonly payments = new Map<string, PaymentRecord>();
  readonly checkouts = new Map<string, CheckoutRecord>();
  readonly setups = new Map<string, SetupRecord>();
  /** Amount added to each line of a new invoice, which Whop does not do. */
  surcharge = 0;
  /** Status of new refunds. */
  refund_status: RefundRecord['status'] = 'succeeded';
  readonly #plans = new Map<string, PlanRecord>();
  readonly #methods = new Map<string, { member_id: string; behaviour: MethodBehaviour }>();
  readonly #members = new Map<string, string>();
  readonly #products = new Map<string, string>();
  readonly #announce: (type: string, data: Fields) => void;
  #count = 0;

  constructor(announce: (type: string, data: Fields) => void) {
    this.#announce = announce;
  }

  makeId(prefix: string): string {
    this.#count += 1;
    return `${prefix}_${String(this.#count).padStart(14, 'x')}`;
  }

  createInvoice(body: Fields): InvoiceRecord {
    const { collection_method, company_id, plan, due_date, email_address, customer_name, line_items } = body;
    if (company_id !== COMPANY) throw new WhopRefusal(403);
    if (collection_method !== 'send_invoice')
      throw new WhopRefusal(400, 'collection_method is not used by these tests');
    if (typeof email_address !== 'string' || typeof customer_name !== 'string')
      throw new WhopRefusal(400, 'email_address and customer_name are required without member_id');
    if (typeof due_date !== 'string' || Number.isNaN(Date.parse(due_date)))
      throw new WhopRefusal(400, 'due_date is required');
    const product_id = this.#findProduct(body);
    const made = this.#createPlan(plan as Fields);
    const items = toLineItems(line_items as readonly Fields[]);
    const sum = items.reduce((total, item) => total + item.total, 0);
    if (Math.abs(sum - made.initial_price) > 1e-9)
      throw new WhopRefusal(400, 'the sum of the line items must equal the price of the plan');
    for (const item of items) item.total += this.surcharge;
    const id = this.makeId('inv');
    const { currency } = made;
    const invoice: InvoiceRecord = {
      ...{ id, status: 'open', created_at: new Date().toISOString(), due_date, email_address, user: null },
      ...{ number: `#${this.#count}`, fetch_invoice_token: 'token', line_items: items },
      current_plan: { id: made.id, currency, formatted_price: `$${made.initial_price}` },
    };
    this.#products.set(id, product_id);
    this.invoices.set(id, invoice);
    this.#announce('invoice.created', invoice);
    return invoice;
  }

  #findProduct({ product, product_id }: Fields): string {
    if (typeof product_id === 'string') return product_id;
    if (typeof (product as Fields | undefined)?.['title'] !== 'string')
      throw new WhopRefusal(400, 'product or product_id is required');
    return this.makeId('prod');
  }

  #createPlan(plan: Fields | null | undefined): PlanRecord {
    const { initial_price, currency, plan_type, internal_notes = null } = plan ?? {};
    if (typeof initial_price !== 'number' || initial_price < 0)
      throw new WhopRefusal(400, 'initial_price is no number');
    if (!CURRENCIES.includes(String(currency))) throw new WhopRefusal(400, `currency ${currency} is not supported`);
    if (plan_type !== 'one_time') throw new WhopRefusal(400, 'plan_type is not used by these tests');
    const notes = internal_notes as string | null;
    const made = { id: this.makeId('plan'), initial_price, currency: String(currency), internal_notes: notes };
    this.#plans.set(made.id, made);
    return made;
  }

  find<Found>(records: ReadonlyMap<string, Found>, id: string): Found {
    const found = records.get(id);
    if (found === undefined) throw new WhopRefusal(404);
    return found;
  }

  listInvoices(query: Fields): InvoiceRecord[] {
    const product_ids = query['product_ids[]'];
    return filterTimes([...this.invoices.values()], query).filter(
      ({ id }) => product_ids === undefined || this.#products.get(id) === product_ids,
    );
  }

  endInvoice(id: string, status: 'void' | 'uncollectible'): true {
    const invoice = this.find(this.invoices, id);
    if (invoice.status !== 'open' && invoice.status !== 'past_due')
      throw new WhopRefusal(400, `the invoice is ${invoice.status}`);
    invoice.status = status;
    this.#announce(status === 'void' ? 'invoice.voided' : 'invoice.marked_uncollectible', invoice);
    return true;
  }

  deleteInvoice(id: string): true {
    if (this.find(this.invoices, id).status !== 'draft') throw new WhopRefusal(400, 'the invoice is no draft');
    this.invoices.delete(id);
    return true;
  }

  /** A person pays the invoice, or fails to. */
  payInvoice(id: string, substatus = 'succeeded'): PaymentRecord {
    const invoice = this.find(this.invoices, id);
    const plan = this.find(this.#plans, invoice.current_plan.id);
    if (!['open', 'past_due'].includes(invoice.status)) throw new Error(`it is ${invoice.status}`);
    const member = { id: this.#findMember(String(invoice.email_address)) };
    const payment = this.#pay({ plan, substatus, metadata: null, product_id: this.#products.get(id)!, member });
    if (substatus === 'succeeded') {
      invoice.status = 'paid';
      this.#announce('invoice.paid', invoice);
    }
    return payment;
  }

  /** A person who pays becomes a member of the company. */
  #findMember(email_address: string): string {
    const id = this.#members.get(email_address) ?? this.makeId('mber');
    this.#members.set(email_address, id);
    return id;
  }

  addMethod(behaviour: MethodBehaviour): string {
    const member_id = this.makeId('mber');
    const id = this.makeId('payt');
    this.#methods.set(id, { member_id, behaviour });
    return `${member_id}:${id}`;
  }

  createPayment({ company_id, member_id, payment_method_id, plan, metadata = null }: Fields): PaymentRecord {
    if (company_id !== COMPANY) throw new WhopRefusal(403);
    const method = this.#methods.get(String(payment_method_id));
    if (method?.member_id !== member_id) throw new WhopRefusal(404, 'the payment method was not found');
    const { product, product_id } = plan as Fields;
    if (product_id === undefined && typeof (product as Fields | undefined)?.['external_identifier'] !== 'string')
      throw new WhopRefusal(400, 'product or product_id is required');
    const made = this.#createPlan(plan as Fields);
    return this.#pay({
      ...{ plan: made, metadata: metadata as Metadata, substatus: SUBSTATUSES[method!.behaviour] },
      product_id: typeof product_id === 'string' ? product_id : 'prod_charges',
    });
  }

  #pay({
    plan,
    metadata,
    substatus,
    product_id,
    checkout_configuration_id = null,
    member = null,
  }: {
    plan: PlanRecord;
    metadata: Metadata;
    substatus: string;
    product_id: string | null;
    checkout_configuration_id?: string | null;
    member?: { id: string } | null;
  }): PaymentRecord {
    const now = new Date().toISOString();
    const payment: PaymentRecord = {
      ...{ id: this.makeId('pay'), status: STATUSES[substatus] ?? 'open', substatus, currency: plan.currency },
      ...{ total: plan.initial_price, tax_amount: null, tax_behavior: null, tax_refunded_amount: null },
      ...{ refunded_amount: 0, refunds: [], created_at: now, paid_at: substatus === 'succeeded' ? now : null },
      ...{ failure_message: substatus === 'failed' ? 'Your card was declined' : null, next_payment_attempt: null },
      ...{ voidable: false, metadata, checkout_configuration_id, member },
      ...{ plan: { id: plan.id, internal_notes: plan.internal_notes, metadata: null }, product: { id: product_id } },
    };
    this.payments.set(payment.id, payment);
    this.#announceState(payment);
    return payment;
  }

  #announceState(payment: PaymentRecord): void {
    this.#announce(`payment.${payment.substatus}`, payment);
  }

  /** The bank decides about a payment, or takes it back. */
  changePayment(id: string, fields: Partial<PaymentRecord>): void {
    const payment = this.find(this.payments, id);
    Object.assign(payment, fields);
    if (fields.substatus !== undefined) this.#announceState(payment);
  }

  /** Lists payments without their refunds. */
  listPayments(query: Fields): Fields[] {
    const plan_id = query['plan_ids[]'];
    const checkout_id = query['checkout_configuration_ids[]'];
    return filterTimes([...this.payments.values()], query)
      .filter(({ plan }) => plan_id === undefined || plan.id === plan_id)
      .filter(({ checkout_configuration_id: id }) => checkout_id === undefined || id === checkout_id)
      .map(({ refunds: _refunds, ...listed }) => listed);
  }

  refundPayment(id: string, { partial_amount }: Fields = {}): PaymentRecord {
    const payment = this.find(this.payments, id);
    const left = payment.total - payment.refunded_amount;
    const amount = partial_amount === undefined ? left : partial_amount;
    if (payment.status !== 'paid') throw new WhopRefusal(400, 'the payment is not refundable');
    if (typeof amount !== 'number' || amount <= 0 || amount > left)
      throw new WhopRefusal(400, 'partial_amount exceeds the amount that is left');
    const status = this.refund_status;
    const { currency } = payment;
    const refund = { id: this.makeId('rf'), amount, currency, status, created_at: new Date().toISOString() };
    payment.refunds.unshift(refund);
    this.#countRefunds(payment);
    this.#announce('refund.created', { ...refund, payment: { id } });
    return payment;
  }

  /** The bank decides about a refund. */
  endRefund(payment_id: string, status: RefundRecord['status']): void {
    const payment = this.find(this.payments, payment_id);
    payment.refunds[0]!.status = status;
    this.#countRefunds(payment);
    this.#announce('refund.updated', { ...payment.refunds[0]!, payment: { id: payment_id } });
  }

  #countRefunds(payment: PaymentRecord): void {
    const made = payment.refunds.filter(({ status }) => status === 'succeeded');
    payment.refunded_amount = made.reduce((sum, { amount }) => sum + amount, 0);
    if (payment.refunded_amount > 0)
      payment.substatus = payment.refunded_amount < payment.total ? 'partially_refunded' : 'refunded';
  }

  voidPayment(id: string): PaymentRecord {
    const payment = this.find(this.payments, id);
    if (payment['voidable'] !== true) throw new WhopRefusal(400, 'the payment is not voidable');
    payment.substatus = 'canceled';
    payment.status = 'void';
    return payment;
  }

  createCheckout({ account_id, mode = 'payment', plan, metadata = null, redirect_url = null }: Fields): CheckoutRecord {
    if (account_id !== COMPANY) throw new WhopRefusal(403);
    const id = this.makeId('ch');
    const checkout: CheckoutRecord = {
      ...{ id, account_id, mode: String(mode), metadata: metadata as Metadata, redirect_url },
      ...{ created_at: new Date().toISOString(), updated_at: new Date().toISOString() },
      plan: mode === 'payment' ? this.#createPlan(plan as Fields) : null,
      purchase_url: `https://whop.example/checkout/${id}`,
    };
    this.checkouts.set(id, checkout);
    return checkout;
  }

  deleteCheckout(id: string): void {
    this.find(this.checkouts, id);
    this.checkouts.delete(id);
  }

  /** A person pays on a page, or fails to. */
  payCheckout(id: string, substatus = 'succeeded'): PaymentRecord {
    const { plan, metadata } = this.find(this.checkouts, id);
    return this.#pay({ plan: plan!, metadata, substatus, product_id: null, checkout_configuration_id: id });
  }

  /** A person saves a payment method on a page. `copies` tells whether the setup repeats the metadata of the page. */
  completeSetup(checkout_id: string, { copies = true, type = 'card' } = {}): SetupRecord {
    const checkout = this.find(this.checkouts, checkout_id);
    const [member_id, method_id] = this.addMethod('pays').split(':');
    const setup: SetupRecord = {
      ...{ id: this.makeId('sint'), status: 'succeeded', created_at: new Date().toISOString(), error_message: null },
      ...{ checkout_configuration: { id: checkout_id }, member: { id: member_id, user: null } },
      ...{ metadata: copies ? checkout.metadata : null, payment_method: { id: method_id, payment_method_type: type } },
    };
    this.setups.set(setup.id, setup);
    this.#announce('setup_intent.succeeded', setup);
    return setup;
  }
}

function toLineItems(items: readonly Fields[] = []): LineItem[] {
  return items.map(({ label, unit_price, quantity = 1 }, position) => {
    if (typeof label !== 'string' || typeof unit_price !== 'number' || typeof quantity !== 'number' || unit_price < 0)
      throw new WhopRefusal(400, 'a line item is not valid');
    return { label, unit_price, quantity, total: unit_price * quantity, position };
  });
}

export function filterTimes<Found extends { created_at: string }>(records: Found[], query: Fields): Found[] {
  const { created_after: after, created_before: before, direction } = query;
  const ms = (text: unknown) => (/^\d+$/.test(String(text)) ? Number(text) * 1_000 : Date.parse(String(text)));
  const found = records
    .filter(({ created_at }) => after === undefined || Date.parse(created_at) > ms(after))
    .filter(({ created_at }) => before === undefined || Date.parse(created_at) < ms(before));
  return direction === 'asc' ? found : found.toReversed();
}
