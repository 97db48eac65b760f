/**
 * Records of Paddle's fake, and the effects of requests on them (developer.paddle.com/api-reference/customers,
 * /addresses, /transactions; /build/transactions/create-transaction, "Transaction lifecycle"; /build/invoices/create-issue-invoices,
 * /build/invoices/cancel-invoices; the refusals below /errors/transactions). Adjustments: paddle-fake-adjustments.ts.
 */
import { CURRENCIES, type PaddleBody } from './paddle-fake-fields.ts';
import { PaddleRefusal, refuseMissing } from './paddle-fake-refusal.ts';

type Totals = { subtotal: string; discount: string; tax: string; total: string };
export type FakeRecord = { id: string; created_at: string; updated_at: string };
export type CustomerRecord = FakeRecord & { email: string; name: string | null; status: string; custom_data: unknown };
export type AddressRecord = FakeRecord & { customer_id: string; country_code: string; status: string };
export type FakeLine = { id: string; price_id: string; quantity: number; tax_rate: string; totals: Totals };
export type TransactionRecord = FakeRecord & {
  status: 'draft' | 'ready' | 'billed' | 'paid' | 'completed' | 'canceled' | 'past_due';
  customer_id: string | null;
  address_id: string | null;
  custom_data: Record<string, unknown> | null;
  currency_code: string;
  collection_mode: 'automatic' | 'manual';
  billing_details: PaddleBody<'transaction'>['billing_details'] | null;
  items: object[];
  details: { totals: Totals & Record<string, unknown>; line_items: FakeLine[]; [field: string]: unknown };
  payments: { status: string; captured_at: string | null; [field: string]: unknown }[];
  [field: string]: unknown;
};

/** Standard rates of the countries that the tests use. */
const TAX_RATES: Readonly<Record<string, number>> = { DE: 19, GB: 20, FR: 20 };
const MANUAL_CURRENCIES = ['USD', 'EUR', 'GBP'];
/** Lowest amount that Paddle collects (errors/transactions/transaction_balance_less_than_charge_limit). */
const AMOUNT_MIN = 70;

export type Announce = (event_type: string, data: object) => void;

export class PaddleBook {
  readonly records = new Map<string, FakeRecord>();
  /** Amount that is added to the first item of each new transaction. */
  surcharge = 0;
  /** Whether the account has a default payment link. */
  has_payment_link = true;
  readonly announce: Announce;
  #count = 0;

  constructor(announce: Announce) {
    this.announce = announce;
  }

  newId(prefix: string): string {
    this.#count += 1;
    return `${prefix}_${String(this.#count).padStart(26, '0')}`;
  }

  add<Fields extends object>(prefix: string, fields: Fields): FakeRecord & Fields {
    const now = new Date().toISOString();
    const record = { id: this.newId(prefix), ...fields, created_at: now, updated_at: now };
    this.records.set(record.id, record);
    return record;
  }

  find<Found extends FakeRecord>(id: string, prefix: string): Found {
    const found = this.records.get(id);
    if (found === undefined || !id.startsWith(`${prefix}_`)) throw refuseMissing(id);
    return found as Found;
  }

  /** Lists records, newest first. */
  list<Found extends FakeRecord>(prefix: string): Found[] {
    const all = [...this.records.values()].filter(({ id }) => id.startsWith(`${prefix}_`));
    return all.reverse() as Found[];
  }

  createCustomer({ email, name = null, custom_data = null, locale = 'en' }: PaddleBody<'customer'>): CustomerRecord {
    const existing = this.list<CustomerRecord>('ctm').find((one) => one.email === email);
    if (existing)
      throw new PaddleRefusal(
        'customer_already_exists',
        `customer email conflicts with customer of id ${existing.id}`,
        {
          status: 409,
        },
      );
    const fields = { email, name, custom_data, locale, status: 'active', marketing_consent: false, import_meta: null };
    const customer = this.add('ctm', fields);
    this.announce('customer.created', customer);
    return customer;
  }

  createAddress(customer_id: string, body: PaddleBody<'address'>): AddressRecord {
    this.find(customer_id, 'ctm');
    const optional = [
      'description',
      'first_line',
      'second_line',
      'city',
      'postal_code',
      'region',
      'custom_data',
    ] as const;
    const filled = Object.fromEntries(optional.map((name) => [name, body[name] ?? null]));
    const { country_code } = body;
    return this.add('add', { customer_id, country_code, ...filled, status: 'active', import_meta: null });
  }

  createTransaction(body: PaddleBody<'transaction'>): TransactionRecord {
    const { customer_id = null, address_id = null, currency_code, collection_mode, billing_details = null } = body;
    const customer = customer_id === null ? null : this.find<CustomerRecord>(customer_id, 'ctm');
    const address = address_id === null ? null : this.#findAddress(address_id, customer_id);
    if (!CURRENCIES.includes(currency_code))
      throw new PaddleRefusal('bad_request', 'Invalid request.', {
        errors: [{ field: 'currency_code', message: 'must be a supported currency' }],
      });
    if (collection_mode === 'automatic' && billing_details !== null)
      throw new PaddleRefusal(
        'transaction_billing_details_must_be_null',
        'billing_details must be null if collection_mode=automatic',
      );
    if (collection_mode === 'manual') this.#checkManual(body, { customer, address });
    const isPayable = collection_mode === 'automatic' || billing_details?.enable_checkout === true;
    if (isPayable && !this.has_payment_link)
      throw new PaddleRefusal(
        'transaction_default_checkout_url_not_set',
        'A Default Payment Link has not yet been defined within the Paddle Dashboard',
      );
    const details = this.#computeDetails(body, address?.country_code ?? '');
    if (Number(details.totals.total) < AMOUNT_MIN)
      throw new PaddleRefusal(
        'transaction_balance_less_than_charge_limit',
        'Transaction balance is less than what we can charge',
      );
    const isReady = customer !== null && address !== null;
    const transaction = this.add('txn', {
      ...{ status: isReady ? ('ready' as const) : ('draft' as const), customer_id, address_id, business_id: null },
      ...{ custom_data: body.custom_data ?? null, currency_code, origin: 'api', subscription_id: null },
      ...{ invoice_id: null, invoice_number: null, collection_mode, discount_id: null, billing_details },
      ...{ billing_period: null, items: details.items, details: details.shown, payments: [] as never[] },
      ...{ checkout: null as unknown, billed_at: null, revised_at: null },
    }) as TransactionRecord;
    transaction['checkout'] = { url: isPayable ? `https://pay.example/?_ptxn=${transaction.id}` : null };
    this.announce('transaction.created', transaction);
    return transaction;
  }

  #findAddress(id: string, customer_id: string | null): AddressRecord {
    const address = this.find<AddressRecord>(id, 'add');
    if (address.customer_id !== customer_id) throw refuseMissing(id);
    return address;
  }

  #checkManual(
    { currency_code, billing_details }: PaddleBody<'transaction'>,
    { customer, address }: { customer: CustomerRecord | null; address: AddressRecord | null },
  ): void {
    if (!MANUAL_CURRENCIES.includes(currency_code))
      throw new PaddleRefusal(
        'transaction_currency_code_not_valid_for_manual',
        'Currency code not valid for manual collection mode',
      );
    if (!billing_details)
      throw new PaddleRefusal(
        'transaction_billing_details_object_required',
        'billing_details must be non null if collection_mode=manual',
      );
    if (customer !== null && !customer.name)
      throw new PaddleRefusal(
        'transaction_customer_not_suitable_for_collection_mode',
        'Customer entity must be suitable for the transactions current collection mode',
      );
    const needed = ['country_code', 'postal_code', 'region', 'city', 'first_line'];
    if (address !== null && needed.some((field) => !(address as unknown as Record<string, unknown>)[field]))
      throw new PaddleRefusal(
        'transaction_address_not_suitable_for_collection_mode',
        'Address entity must be suitable for the transactions current collection mode',
      );
  }

  #computeDetails({ items, currency_code }: PaddleBody<'transaction'>, country: string) {
    const rate = TAX_RATES[country] ?? 0;
    const priced = items.map(({ price: { product, ...price }, quantity }, index) => {
      if (price.unit_price.currency_code !== currency_code) throw new Error('the fake converts no currencies');
      if (price.tax_mode !== 'external') throw new Error('the fake computes external taxes alone');
      const net = Number(price.unit_price.amount) * quantity + (index === 0 ? this.surcharge : 0);
      const totals = toTotals(net, computeTax(net, rate));
      const product_id = this.newId('pro');
      const made = {
        ...price,
        id: this.newId('pri'),
        product_id,
        name: price.name ?? null,
        custom_data: price.custom_data ?? null,
      };
      const filled = {
        ...made,
        type: 'custom',
        billing_cycle: null,
        trial_period: null,
        unit_price_overrides: [],
        status: 'active',
      };
      const line = {
        id: this.newId('txnitm'),
        price_id: made.id,
        quantity,
        proration: null,
        tax_rate: String(rate / 100),
      };
      const kept = {
        ...product,
        id: product_id,
        description: product.description ?? null,
        image_url: null,
        status: 'active',
      };
      return {
        item: { price: filled, quantity, proration: null },
        line: { ...line, unit_totals: totals, totals, product: kept },
      };
    });
    const sum = (field: 'subtotal' | 'tax') =>
      priced.reduce((total, { line }) => total + Number(line.totals[field]), 0);
    const totals = toTotals(sum('subtotal'), sum('tax'));
    const balance = totals.total;
    const more = { credit: '0', credit_to_balance: '0', balance, grand_total: balance, grand_total_tax: totals.tax };
    const shown = {
      tax_rates_used: [{ tax_rate: String(rate / 100), totals }],
      totals: { ...totals, ...more, fee: null, earnings: null, currency_code },
      adjusted_totals: null,
      payout_totals: null,
      adjusted_payout_totals: null,
      line_items: priced.map(({ line }) => line),
    };
    return { items: priced.map(({ item }) => item), shown, totals };
  }

  updateTransaction(id: string, { status }: PaddleBody<'update'>): TransactionRecord {
    const transaction = this.find<TransactionRecord>(id, 'txn');
    const from = transaction.status;
    const isAllowed =
      status === 'billed' ? from === 'ready' : status === 'canceled' && (from === 'ready' || from === 'billed');
    if (!isAllowed)
      throw new PaddleRefusal(
        'transaction_invalid_status_change',
        `Invalid attempt to change status from '${from}' to '${status}'`,
      );
    if (status === 'billed') {
      const billed_at = new Date().toISOString();
      Object.assign(transaction, { invoice_number: `325-${10_000 + this.#count}`, billed_at });
    }
    this.#setStatus(transaction, status as TransactionRecord['status']);
    return transaction;
  }

  /** The customer pays all that is due, by card on the page or by bank transfer. Paddle completes the transaction a moment later. */
  payTransaction(id: string, { isProcessed = true }: { isProcessed?: boolean } = {}): void {
    const transaction = this.find<TransactionRecord>(id, 'txn');
    if (!['ready', 'billed', 'past_due'].includes(transaction.status)) throw new Error(`it is ${transaction.status}`);
    const captured_at = new Date().toISOString();
    const amount = String(transaction.details.totals['balance']);
    transaction.payments.unshift(this.#newAttempt({ amount, status: 'captured', error_code: null, captured_at }));
    transaction.details.totals['balance'] = '0';
    this.#setStatus(transaction, 'paid');
    if (isProcessed) this.completeTransaction(id);
  }

  completeTransaction(id: string): void {
    this.#setStatus(this.find<TransactionRecord>(id, 'txn'), 'completed');
  }

  declinePayment(id: string): void {
    const transaction = this.find<TransactionRecord>(id, 'txn');
    const amount = String(transaction.details.totals['balance']);
    transaction.payments.unshift(
      this.#newAttempt({ amount, status: 'error', error_code: 'declined', captured_at: null }),
    );
    this.announce('transaction.payment_failed', transaction);
  }

  /** The payment terms of an issued invoice end. */
  makePastDue(id: string): void {
    this.#setStatus(this.find<TransactionRecord>(id, 'txn'), 'past_due');
  }

  #newAttempt(fields: { amount: string; status: string; error_code: string | null; captured_at: string | null }) {
    const payment_attempt_id = `00000000-0000-4000-8000-${String(++this.#count).padStart(12, '0')}`;
    const stored_payment_method_id = payment_attempt_id;
    const method_details = { type: 'wire_transfer', card: null };
    const more = { payment_method_id: null, stored_payment_method_id, method_details };
    return { payment_attempt_id, ...more, created_at: new Date().toISOString(), ...fields };
  }

  #setStatus(transaction: TransactionRecord, status: TransactionRecord['status']): void {
    Object.assign(transaction, { status, updated_at: new Date().toISOString() });
    this.announce(`transaction.${status}`, transaction);
  }
}

/** Rounds half up to the lowest denomination. */
export function computeTax(net: number, rate: number): number {
  return Math.floor((net * rate + 50) / 100);
}

export function toTotals(net: number, tax: number): Totals {
  return { subtotal: String(net), discount: '0', tax: String(tax), total: String(net + tax) };
}
