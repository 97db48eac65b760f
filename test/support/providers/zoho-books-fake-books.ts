/**
 * Records of one organization in Zoho Books' fake, as its public documentation describes them (zoho.com/books/api/v3:
 * Contacts, Invoices, Customer Payments, Credit Notes, Currency, Organizations; zoho.com/invoice/api/v3 for the codes of
 * refusals). Amounts are decimal texts.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { BooksRefusal } from './zoho-books-fake-refusal.ts';

type Fields = Record<string, unknown>;
export type BooksRecord = Fields & { readonly id: string };
type Line = { name: string; rate: string; quantity: string; item_total?: string };
type Applied = { invoice_id: string; amount_applied: string };
/** Application of a payment or a credit note to an invoice. */
type Link = { id: string; source: string; source_id: string; invoice_id: string; amount: string };

const ID_FIELDS: Readonly<Record<string, string>> = {
  contacts: 'contact_id',
  invoices: 'invoice_id',
  customerpayments: 'payment_id',
  creditnotes: 'creditnote_id',
};

const CURRENCIES = [
  ['USD', '2'],
  ['EUR', '2'],
  ['KWD', '3'],
  ['JPY', '0'],
] as const;

export class ZohoBooksBooks {
  readonly organization_id = '10234695';
  readonly records = new Map<string, BooksRecord>();
  readonly links: Link[] = [];
  readonly currencies = CURRENCIES.map(([currency_code, price_precision], index) => ({
    currency_id: String(460_000_000_000_097 + index),
    ...{ currency_code, price_precision, is_base_currency: index === 0 },
  }));
  /** Tax that the organization adds to each line; 0 adds none. */
  tax_rate = '0';
  /** Number of decimals to which the organization rounds the total of a document; null rounds nothing. */
  rounds_to: number | null = null;
  /** Whether a setting applies each new credit note to the oldest invoice of its customer. */
  applies_credits = false;
  /** Whether documents need an approval before they are sent. */
  needs_approval = false;
  #number = 982_000_000_567_000;

  list(name: string): BooksRecord[] {
    return [...this.records].filter(([key]) => key.startsWith(`${name}:`)).map(([, record]) => record);
  }

  read(name: string, id: string): BooksRecord {
    const record = this.records.get(`${name}:${id}`);
    if (record === undefined) throw new BooksRefusal(1002, `${name} does not exist.`, 404);
    return record;
  }

  createContact(fields: Fields): BooksRecord {
    if (this.list('contacts').some(({ contact_name }) => contact_name === fields['contact_name']))
      throw new BooksRefusal(3062, `The customer "${fields['contact_name']}" already exists.`);
    return this.#add('contacts', { status: 'active', currency_id: this.currencies[0]!.currency_id, ...fields });
  }

  createInvoice(fields: Fields, isNumbered: boolean): BooksRecord {
    const { date = '2026-11-30', due_date = date } = fields as { date?: string; due_date?: string };
    if (due_date < date) throw new BooksRefusal(2, 'The due date is before the date of the invoice.');
    const number = this.#toNumber('invoices', 'invoice_number', { fields, isNumbered });
    const sale = this.#toSale(fields);
    return this.#add('invoices', {
      ...{ ...fields, ...sale, date, due_date, invoice_number: number, status: 'draft' },
      ...{ payment_made: '0', credits_applied: '0', write_off_amount: '0' },
      invoice_url: `https://books.zoho.com/SecurePayment?CInvoiceID=${number}`,
    });
  }

  createCreditNote(fields: Fields, isNumbered: boolean): BooksRecord {
    const number = this.#toNumber('creditnotes', 'creditnote_number', { fields, isNumbered });
    const { is_draft = false, ...others } = fields;
    const status = is_draft ? 'draft' : 'open';
    return this.#add('creditnotes', { ...others, ...this.#toSale(fields), creditnote_number: number, status });
  }

  createPayment(fields: Fields): BooksRecord {
    const invoices = fields['invoices'] as Applied[];
    const applied = invoices.reduce((sum, { amount_applied }) => sum.plus(amount_applied), new Decimal(0));
    const amount = new Decimal(String(fields['amount']));
    if (amount.lte(0) || applied.gt(amount)) throw new BooksRefusal(24_016, 'More is applied than was paid.');
    const customer = this.#readCustomer(fields);
    for (const { invoice_id, amount_applied } of invoices) this.#checkPayable(customer, invoice_id, amount_applied);
    const { currency_code } = this.#findCurrency(String(customer['currency_id']));
    const billed = this.read('invoices', invoices[0]!.invoice_id);
    const payment = this.#add('customerpayments', {
      ...{ ...fields, amount: amount.toFixed(), status: 'success' },
      currency_code: billed['currency_code'] ?? currency_code,
    });
    for (const one of invoices) this.link('customerpayments', payment.id, one);
    return payment;
  }

  /** Applies a part of a credit note or payment to an invoice. */
  link(source: string, source_id: string, { invoice_id, amount_applied: amount }: Applied): void {
    this.links.push({ id: this.#nextId(), source, source_id, invoice_id, amount });
    this.settle();
  }

  applyCreditNote(id: string, invoices: readonly Applied[]): void {
    const note = this.read('creditnotes', id);
    if (note['status'] === 'closed') throw new BooksRefusal(12_003, 'Credit notes in closed status cannot be applied');
    if (note['status'] !== 'open') throw new BooksRefusal(12_004, 'Credit notes in this status cannot be applied');
    for (const { invoice_id, amount_applied } of invoices) {
      const { status, balance } = this.read('invoices', invoice_id);
      if (status === 'draft') throw new BooksRefusal(12_005, 'Credits cannot be applied to invoices in draft status');
      if (status === 'paid') throw new BooksRefusal(12_006, 'Credits cannot be applied to invoices in closed status');
      if (status === 'void') throw new BooksRefusal(12_007, 'Credits cannot be applied to invoices in void status');
      if (new Decimal(amount_applied).gt(Decimal.min(String(balance), String(note['balance']))))
        throw new BooksRefusal(12_008, 'The amount exceeds what is open');
      this.link('creditnotes', id, { invoice_id, amount_applied });
    }
  }

  unlink(id: string): void {
    const index = this.links.findIndex((link) => link.id === id);
    if (index === -1) throw new BooksRefusal(1002, 'The application does not exist.', 404);
    this.links.splice(index, 1);
    this.settle();
  }

  setStatus(name: string, id: string, status: string): void {
    const record = this.read(name, id);
    const from = String(record['status']);
    if (status === 'sent' || status === 'open') {
      if (this.needs_approval) throw new BooksRefusal(4_026, 'The document has to be approved first.');
      if (from === 'void') throw new BooksRefusal(4_027, 'A void document cannot be sent.');
    }
    if (status === 'void') {
      const isApplied = this.links.some(({ source, source_id }) => source === name && source_id === id);
      if (isApplied) throw new BooksRefusal(12_009, 'An applied credit note cannot be void.');
      this.#releaseInvoice(id);
    }
    record['status'] = status;
    if (status === 'open' && this.applies_credits) this.#applyToOldest(record);
    this.settle();
  }

  delete(name: string, id: string): void {
    this.read(name, id);
    const isPaid = name === 'invoices' && this.links.some(({ invoice_id }) => invoice_id === id);
    if (isPaid) throw new BooksRefusal(4_028, 'Invoices with payments or credits cannot be deleted.');
    const kept = this.links.filter(({ source, source_id }) => source !== name || source_id !== id);
    this.links.splice(0, this.links.length, ...kept);
    this.records.delete(`${name}:${id}`);
    this.settle();
  }

  /** Computes what the links leave open of each invoice and credit note. */
  settle(): void {
    for (const invoice of this.list('invoices')) {
      const paid = this.#sum(({ source, invoice_id }) => source === 'customerpayments' && invoice_id === invoice.id);
      const credited = this.#sum(({ source, invoice_id }) => source === 'creditnotes' && invoice_id === invoice.id);
      const balance = new Decimal(String(invoice['total'])).minus(paid).minus(credited);
      const isOpen = !['draft', 'void'].includes(String(invoice['status']));
      const isTouched = !paid.plus(credited).isZero();
      const open = isTouched ? 'partially_paid' : 'sent';
      Object.assign(invoice, {
        ...{ payment_made: paid.toFixed(), credits_applied: credited.toFixed() },
        balance: invoice['status'] === 'void' ? '0' : balance.toFixed(),
        ...(isOpen ? { status: balance.lte(0) ? 'paid' : open } : {}),
      });
    }
    for (const note of this.list('creditnotes')) {
      const used = this.#sum(({ source, source_id }) => source === 'creditnotes' && source_id === note.id);
      const balance = new Decimal(String(note['total'])).minus(used);
      const isLive = note['status'] === 'open' || note['status'] === 'closed';
      const status = balance.isZero() ? 'closed' : 'open';
      Object.assign(note, { balance: balance.toFixed(), ...(isLive ? { status } : {}) });
    }
  }

  listLinks(isWanted: (link: Link) => boolean): Link[] {
    return this.links.filter(isWanted);
  }

  #sum(isWanted: (link: Link) => boolean): Decimal {
    return this.listLinks(isWanted).reduce((sum, { amount }) => sum.plus(amount), new Decimal(0));
  }

  #releaseInvoice(id: string): void {
    const kept = this.links.filter(({ invoice_id }) => invoice_id !== id);
    this.links.splice(0, this.links.length, ...kept);
  }

  #applyToOldest(note: BooksRecord): void {
    const invoice = this.list('invoices').find(({ customer_id }) => customer_id === note['customer_id'])!;
    const amount_applied = Decimal.min(String(invoice['balance']), String(note['total'])).toFixed();
    this.link('creditnotes', note.id, { invoice_id: invoice.id, amount_applied });
  }

  #checkPayable(customer: BooksRecord, invoice_id: string, amount: string): void {
    const { customer_id, status, balance } = this.read('invoices', invoice_id);
    if (customer_id !== customer.id) throw new BooksRefusal(24_017, 'The invoice is of another customer.');
    if (status === 'draft' || status === 'void' || new Decimal(amount).gt(String(balance)))
      throw new BooksRefusal(24_016, 'The amount entered is more than the balance due for this invoice');
  }

  #toNumber(name: string, field: string, { fields, isNumbered }: { fields: Fields; isNumbered: boolean }): string {
    const given = fields[field];
    if (given !== undefined && !isNumbered) throw new BooksRefusal(4_097, `${field} is generated automatically`);
    if (given === undefined && isNumbered) throw new BooksRefusal(2, `${field} is missing`);
    const number = String(given ?? `AUTO-${this.#nextId()}`);
    if (this.list(name).some((other) => other[field] === number))
      throw new BooksRefusal(1001, `${field} "${number}" already exists.`);
    return number;
  }

  #toSale(fields: Fields): Fields {
    const customer = this.#readCustomer(fields);
    const currency = this.#findCurrency(String(fields['currency_id'] ?? customer['currency_id']));
    const places = Number(currency.price_precision);
    const lines = (fields['line_items'] as Line[]).map((line) => {
      if (!new Decimal(line.quantity).gt(0)) throw new BooksRefusal(2, 'Invalid value passed for quantity');
      return { ...line, item_total: new Decimal(line.rate).times(line.quantity).toDecimalPlaces(places).toFixed() };
    });
    if (lines.length === 0) throw new BooksRefusal(2, 'Invalid value passed for line_items');
    const sub_total = lines.reduce((sum, { item_total }) => sum.plus(item_total), new Decimal(0));
    const taxed = sub_total.plus(sub_total.times(this.tax_rate).toDecimalPlaces(places));
    const total = this.rounds_to === null ? taxed : taxed.toDecimalPlaces(this.rounds_to);
    if (total.isNegative()) throw new BooksRefusal(2, 'The total cannot be negative.');
    const { currency_id, currency_code } = currency;
    const line_items = lines.map((line) => ({ ...line, line_item_id: this.#nextId() }));
    return { line_items, currency_id, currency_code, total: total.toFixed(), balance: total.toFixed() };
  }

  #readCustomer(fields: Fields): BooksRecord {
    const found = this.records.get(`contacts:${fields['customer_id']}`);
    if (found === undefined) throw new BooksRefusal(3004, 'The Customer field can neither be blank nor incorrect.');
    return found;
  }

  #findCurrency(id: string) {
    const found = this.currencies.find(({ currency_id }) => currency_id === id);
    if (found === undefined) throw new BooksRefusal(2, 'Invalid value passed for currency_id');
    return found;
  }

  #add(name: string, fields: Fields): BooksRecord {
    const id = this.#nextId();
    const record = { ...fields, id, [ID_FIELDS[name]!]: id, created_time: new Date().toISOString() };
    this.records.set(`${name}:${id}`, record);
    return record;
  }

  #nextId(): string {
    return String(++this.#number);
  }
}
