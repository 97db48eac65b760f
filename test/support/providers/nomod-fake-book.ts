/**
 * Records of Nomod's fake, and the effects of requests on them (nomod.com/docs/api-reference/create-contact, /generate-invoice, /list-invoice,
 * /edit-invoice, /generate-link, /list-link, /links/update, /fetch-charges, /charges/detail, /refund-charge). The documentation does not say
 * how a charge names its invoice, so here it has the note of the invoice alone.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { NomodRefusal } from './nomod-fake-refusal.ts';

export type NomodFields = { readonly [name: string]: unknown };
export type NomodFakeRecord = { id: string; created: string; [name: string]: unknown };
type Kind = 'customers' | 'invoices' | 'links' | 'charges';

const LIMITS: Readonly<Record<string, number>> = {
  ...{ first_name: 150, last_name: 150, phone_number: 15, business_name: 50, job_title: 50, country: 2, street: 100 },
  ...{ city: 100, zip_code: 16, invoice_number: 30, title: 50, note: 280, currency: 3 },
};
const CURRENCIES = ['AED', 'USD', 'KWD'];
/** Part that Nomod adds to the amount unless the request declines it. */
const SERVICE_FEE = '0.03';

export class NomodBook {
  readonly records: Readonly<Record<Kind, NomodFakeRecord[]>> = { customers: [], invoices: [], links: [], charges: [] };
  /** Amount added to each new invoice and link, which Nomod does not do. */
  surcharge = '0';
  readonly #announce: (type: string, charge: NomodFakeRecord) => void;
  #count = 0;

  constructor(announce: (type: string, charge: NomodFakeRecord) => void) {
    this.#announce = announce;
  }

  makeId(): string {
    this.#count += 1;
    return `00000000-0000-4000-8000-${String(this.#count).padStart(12, '0')}`;
  }

  #add(kind: Kind, fields: NomodFields): NomodFakeRecord {
    const record = { id: this.makeId(), created: new Date().toISOString(), ...fields };
    this.records[kind].push(record);
    return record;
  }

  find(kind: Kind, id: string): NomodFakeRecord {
    const found = this.records[kind].find((one) => one.id === id);
    if (found === undefined) throw new NomodRefusal(404, 'not_found', 'Requested resource not found.');
    return found;
  }

  /** Lists records with these fields, newest first. */
  list(kind: Kind, { page = '1', page_size = '10', search = '', ...filters }: Readonly<Record<string, string>>) {
    const found = this.records[kind]
      .filter((one) => Object.entries(filters).every(([name, value]) => one[name] === value))
      .filter((one) => String(one['title'] ?? '').includes(search))
      .toReversed();
    const [first, size] = [(Number(page) - 1) * Number(page_size), Number(page_size)];
    const results = found.slice(first, first + size);
    const next = first + size < found.length ? `https://api.nomod.example/v1/${kind}?page=${Number(page) + 1}` : null;
    return { count: found.length, next, previous: null, results };
  }

  createCustomer(body: NomodFields): NomodFakeRecord {
    checkLengths(body);
    if (typeof body['first_name'] !== 'string' || body['first_name'] === '') throw refuseField('first_name');
    if (body['email'] !== undefined && !/^\S+@\S+$/.test(String(body['email'])))
      throw new NomodRefusal(400, 'invalid_email', 'Improperly formatted email address.');
    return this.#add('customers', { last_name: '', business_name: '', job_title: '', ...body });
  }

  createInvoice(body: NomodFields): NomodFakeRecord {
    const priced = this.#price(body);
    if (!this.records.customers.some(({ id }) => id === body['customer']))
      throw new NomodRefusal(400, 'invalid_customer', 'Customer does not exist.');
    if (!/^\d{4}-\d\d-\d\d$/.test(String(body['due_date']))) throw refuseField('due_date');
    if (String(body['due_date']) < new Date().toISOString().slice(0, 10))
      throw new NomodRefusal(400, 'invalid_due_date', 'The due date cannot be earlier than the start date.');
    const invoice = this.#add('invoices', { ...body, ...priced, status: 'unpaid', customer_id: body['customer'] });
    return Object.assign(invoice, { url: `https://nomod.example/invoice/${invoice.id}` });
  }

  createLink(body: NomodFields): NomodFakeRecord {
    const limit = body['payment_expiry_limit'];
    if (limit !== undefined && !(Number.isSafeInteger(limit) && Number(limit) >= 1))
      throw refuseField('payment_expiry_limit');
    const link = this.#add('links', { ...body, ...this.#price(body), status: 'enabled' });
    return Object.assign(link, { url: `https://nomod.example/link/${link.id}` });
  }

  #price(body: NomodFields): NomodFields {
    checkLengths(body);
    const { currency, items, allow_service_fee = true } = body;
    if (!CURRENCIES.includes(String(currency)))
      throw new NomodRefusal(400, 'invalid_currency', 'Unsupported or incorrect currency code.');
    if (!Array.isArray(items) || items.length === 0)
      throw new NomodRefusal(400, 'missing_required_items', 'At least one required item is missing.');
    const totals = (items as NomodFields[]).map(priceItem);
    const sum = Decimal.sum(...totals);
    const service_fee = allow_service_fee === false ? new Decimal(0) : sum.times(SERVICE_FEE).toDecimalPlaces(2);
    return { amount: sum.plus(service_fee).plus(this.surcharge).toFixed(3), service_fee: service_fee.toFixed(2) };
  }

  editInvoice(id: string, { status, title }: NomodFields): NomodFakeRecord {
    const invoice = this.find('invoices', id);
    const isOpen = invoice['status'] === 'unpaid' || invoice['status'] === 'overdue';
    if (status !== undefined && (status !== 'cancelled' || !isOpen))
      throw new NomodRefusal(400, 'invalid_status', `Invalid status for the invoice: it is ${invoice['status']}`);
    return Object.assign(invoice, { ...(status ? { status } : {}), ...(title ? { title } : {}) });
  }

  editLink(id: string, { status, title }: NomodFields): NomodFakeRecord {
    const link = this.find('links', id);
    if (status !== undefined && !['enabled', 'disabled'].includes(String(status)))
      throw new NomodRefusal(400, 'invalid_status', 'Invalid status for the link.');
    if (status !== undefined && status === link['status'])
      throw new NomodRefusal(400, `already_${status}`, `The resource is already ${status}.`);
    return Object.assign(link, { ...(status ? { status } : {}), ...(title ? { title } : {}) });
  }

  /** A person pays the invoice, or fails to. */
  payInvoice(id: string, status = 'paid'): NomodFakeRecord {
    const invoice = this.find('invoices', id);
    if (!['unpaid', 'overdue'].includes(String(invoice['status']))) throw new Error(`it is ${invoice['status']}`);
    if (status === 'paid') invoice['status'] = 'paid';
    return this.#charge(invoice, { type: 'invoice', status });
  }

  /** A person pays the link, or fails to. */
  payLink(id: string, status = 'paid'): NomodFakeRecord {
    const link = this.find('links', id);
    if (link['status'] !== 'enabled') throw new Error(`it is ${link['status']}`);
    const charge = this.#charge(link, { type: 'link', status, link_id: id });
    const paid = this.records.charges.filter((one) => one['link_id'] === id && one['status'] === 'paid');
    if (paid.length === link['payment_expiry_limit']) link['status'] = 'disabled';
    return charge;
  }

  #charge({ amount, currency, note, items }: NomodFields, fields: NomodFields & { status: string }): NomodFakeRecord {
    const common = { total: amount, currency, note, items, refund_total: '0.00', refunds: [], payment_method: 'card' };
    const charge = this.#add('charges', { ...common, ...fields });
    this.#announce(fields.status === 'paid' ? 'charge.completed' : 'charge.failed', charge);
    return charge;
  }

  refundCharge(id: string, { amount }: NomodFields): { message: string } {
    const charge = this.find('charges', id);
    if (!['paid', 'partially_refunded'].includes(String(charge['status'])))
      throw new NomodRefusal(400, 'charge_not_paid', 'The charge has not been successfully paid.');
    if (typeof amount !== 'string' || !/^\d+\.\d{2,3}$/.test(amount))
      throw new NomodRefusal(400, 'invalid_refund_amount', 'Invalid refund amount.');
    const sum = new Decimal(String(charge['refund_total'])).plus(amount);
    if (sum.gt(String(charge['total'])))
      throw new NomodRefusal(400, 'refund_amount_exceeds', 'Refund amount exceeds the total charge amount.');
    const isFull = sum.eq(String(charge['total']));
    const refunds = [...(charge['refunds'] as object[]), { created: new Date().toISOString(), amount }];
    Object.assign(charge, {
      refunds,
      refund_total: sum.toFixed(2),
      status: isFull ? 'refunded' : 'partially_refunded',
    });
    this.#announce(isFull ? 'charge.refunded' : 'charge.partially_refunded', charge);
    return { message: 'Succesfully refunded' };
  }
}

function checkLengths(body: NomodFields): void {
  for (const [name, max] of Object.entries(LIMITS)) if (String(body[name] ?? '').length > max) throw refuseField(name);
}

function refuseField(name: string): NomodRefusal {
  return new NomodRefusal(400, 'field_required', `${name} is missing, or not as the documentation says`);
}

function priceItem({ name, amount, quantity, ...rest }: NomodFields): Decimal {
  if (typeof name !== 'string' || name === '' || Object.keys(rest).length > 0) throw refuseField('items');
  if (typeof amount !== 'string' || !/^\d+\.\d{2,3}$/.test(amount) || Number(amount) <= 0)
    throw new NomodRefusal(400, 'invalid_amount', 'The amount must be greater than zero and within limits.');
  if (!Number.isSafeInteger(quantity) || Number(quantity) < 1) throw refuseField('items');
  return new Decimal(amount).times(Number(quantity));
}
