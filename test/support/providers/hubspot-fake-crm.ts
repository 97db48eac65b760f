/**
 * The records of an account at HubSpot, by its public documentation: developers.hubspot.com, "Invoices", "Payments API",
 * "Line items", "Discounts", "Contacts", "Companies", "Deals", "Pipelines", "Properties" (unique values), "Associate records" (type ids), "Error handling".
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { minorUnits } from '../../../core/foundation/money.ts';

export class CrmRefusal extends Error {
  readonly status: number;
  readonly category: string;
  readonly errors: readonly object[];

  constructor(status: number, category: string, message: string, errors: readonly object[] = []) {
    super(message);
    this.status = status;
    this.category = category;
    this.errors = errors;
  }
}

export type CrmRecord = {
  readonly id: string;
  readonly properties: Record<string, string | null>;
  readonly createdAt: string;
  archived: boolean;
};
export type CrmInput = { properties?: Record<string, unknown>; associations?: CrmAssociation[] };
type CrmAssociation = {
  to: { id: string | number };
  types: { associationCategory: string; associationTypeId: number }[];
};

type Property = {
  readonly type: 'string' | 'number' | 'datetime' | 'enumeration';
  readonly options?: readonly string[];
  readonly is_unique?: boolean;
  readonly is_read_only?: boolean;
};

const text: Property = { type: 'string' };
const number: Property = { type: 'number' };
const datetime: Property = { type: 'datetime' };
const computed: Property = { type: 'number', is_read_only: true };
const oneOf = (...options: string[]): Property => ({ type: 'enumeration', options });

export const TYPES = {
  contacts: '0-1',
  companies: '0-2',
  deals: '0-3',
  line_items: '0-8',
  invoices: '0-53',
  discounts: '0-84',
  commerce_payments: '0-101',
} as const;
export type CrmType = keyof typeof TYPES;

const PROPERTIES: Readonly<Record<CrmType, Readonly<Record<string, Property>>>> = {
  contacts: {
    email: { type: 'string', is_unique: true },
    ...{ firstname: text, lastname: text, company: text, phone: text },
    ...{ address: text, city: text, state: text, zip: text, country: text },
  },
  companies: {
    domain: text,
    ...{ name: text, description: text, phone: text },
    ...{ address: text, address2: text, city: text, state: text, zip: text, country: text },
  },
  deals: {
    ...{ dealname: text, amount: number, deal_currency_code: text, closedate: datetime, description: text },
    pipeline: oneOf('default'),
    dealstage: oneOf(
      ...['appointmentscheduled', 'qualifiedtobuy', 'presentationscheduled', 'decisionmakerboughtin'],
      ...['contractsent', 'closedwon', 'closedlost'],
    ),
  },
  line_items: {
    ...{ name: text, description: text, quantity: number, price: number, amount: computed },
    hs_line_item_currency_code: text,
  },
  invoices: {
    ...{ hs_currency: text, hs_invoice_date: datetime, hs_due_date: datetime },
    ...{ hs_comments: text, hs_purchase_order_number: text },
    hs_invoice_status: oneOf('draft', 'open', 'paid', 'voided'),
    ...{ hs_amount_billed: computed, hs_balance_due: computed, hs_amount_paid: computed },
    ...{ hs_invoice_link: { ...text, is_read_only: true }, hs_number: { ...text, is_read_only: true } },
  },
  discounts: {
    ...{ hs_label: text, hs_value: number, hs_sort_order: number },
    hs_type: oneOf('FIXED', 'PERCENT'),
  },
  commerce_payments: {
    ...{ hs_initial_amount: number, hs_currency_code: text, hs_initiated_date: datetime, hs_refunds_amount: number },
    ...{ hs_reference_number: text, hs_internal_comment: text, hs_customer_email: text },
    hs_latest_status: oneOf(
      ...['processing', 'succeeded', 'failed', 'partially_refunded', 'refunded', 'processing_refund'],
      ...['disputed_won', 'disputed_lost', 'disputed_action_required', 'disputed_awaiting_decision'],
    ),
    hs_payment_method_type: oneOf('card', 'ach', 'cash', 'check', 'wire_transfer', 'other', 'sepa', 'bacs', 'pads'),
    hs_processor_type: oneOf('hs_payments', 'byo_stripe', 'none', 'quickbooks', 'xero'),
    hs_number_of_associated_invoices: computed,
  },
};

const ASSOCIATIONS: Readonly<Record<number, readonly [CrmType, CrmType]>> = {
  3: ['deals', 'contacts'],
  177: ['invoices', 'contacts'],
  280: ['companies', 'contacts'],
  341: ['deals', 'companies'],
  387: ['commerce_payments', 'contacts'],
  410: ['line_items', 'invoices'],
  412: ['discounts', 'invoices'],
  542: ['commerce_payments', 'invoices'],
};

/** Statuses of payments whose money is at the seller. */
const PAID = ['succeeded', 'partially_refunded', 'processing_refund', 'disputed_won', 'disputed_action_required'];

export class HubSpotCrm {
  /** Currencies of the account. */
  currencies = ['USD', 'EUR', 'JPY'];
  /** Rate of a tax that the account adds to new invoices. */
  tax_rate = '0';
  /** Number of reads for which the total of a draft is not computed yet. */
  delayed_reads = 0;
  /** Total of a draft during these reads; null if there is none yet. */
  delayed_total: string | null = null;
  /** Whether the account lets people delete open invoices. */
  can_delete_open = false;
  readonly #records = new Map<CrmType, Map<string, CrmRecord>>();
  readonly #links: { from: CrmType; id: string; to: CrmType; to_id: string }[] = [];
  readonly #custom = new Map<CrmType, Map<string, Property>>();
  readonly #groups = new Set<string>();
  #id = 100;

  list(type: CrmType): CrmRecord[] {
    return [...this.#all(type).values()].filter(({ archived }) => !archived).map((one) => this.#compute(type, one));
  }

  get(type: CrmType, id: string, { by, is_archived = false }: { by?: string; is_archived?: boolean } = {}): CrmRecord {
    if (by !== undefined && !this.#define(type)[by]?.is_unique)
      throw new CrmRefusal(400, 'VALIDATION_ERROR', `${by} is not a unique property of ${type}`);
    const found = by
      ? this.list(type).find(({ properties }) => properties[by] === id && id !== '')
      : this.#all(type).get(id);
    if (found === undefined || found.archived !== is_archived)
      throw new CrmRefusal(404, 'OBJECT_NOT_FOUND', 'resource not found');
    return this.#compute(type, found);
  }

  create(type: CrmType, { properties = {}, associations = [] }: CrmInput): CrmRecord {
    const values = this.#parse(type, properties, null);
    this.#checkRequired(type, values);
    for (const one of associations) this.#checkAssociation(type, one);
    const id = String(++this.#id);
    const record = { id, properties: { ...values }, createdAt: new Date().toISOString(), archived: false };
    if (type === 'invoices') record.properties['hs_invoice_status'] ??= 'draft';
    if (type === 'commerce_payments') record.properties['hs_latest_status'] ??= 'processing';
    this.#all(type).set(id, record);
    for (const { to, types } of associations)
      this.link(type, id, ASSOCIATIONS[types[0]!.associationTypeId]![1], String(to.id));
    return this.#compute(type, record);
  }

  update(type: CrmType, id: string, properties: Record<string, unknown>): CrmRecord {
    const record = this.get(type, id);
    const values = this.#parse(type, properties, id);
    if (type === 'invoices') this.#checkTransition(record, values['hs_invoice_status']);
    Object.assign(record.properties, values);
    return this.#compute(type, record);
  }

  archive(type: CrmType, id: string): void {
    const record = this.get(type, id);
    const status = record.properties['hs_invoice_status'];
    if (type === 'invoices' && status !== 'draft' && !(status === 'open' && this.can_delete_open))
      throw new CrmRefusal(400, 'VALIDATION_ERROR', `An invoice that is ${status} cannot be deleted`);
    record.archived = true;
  }

  link(from: CrmType, id: string, to: CrmType, to_id: string): void {
    if (from === 'line_items' && this.listLinked(from, id, to).length > 0)
      throw new CrmRefusal(400, 'VALIDATION_ERROR', 'A line item belongs to one record');
    this.#links.push({ from, id, to, to_id });
  }

  /** Associated records that exist, in both directions. */
  listLinked(type: CrmType, id: string, to: CrmType): string[] {
    const ids = this.#links.flatMap((link) => {
      if (link.from === type && link.id === id && link.to === to) return link.to_id;
      return link.to === type && link.to_id === id && link.from === to ? link.id : [];
    });
    return ids.filter((one) => this.#all(to).get(one)?.archived === false);
  }

  hasProperty(type: CrmType, name: string): boolean {
    return this.#define(type)[name] !== undefined;
  }

  createGroup(type: CrmType, name: string): void {
    if (this.#groups.has(`${type}.${name}`)) throw new CrmRefusal(409, 'CONFLICT', `Group ${name} already exists`);
    this.#groups.add(`${type}.${name}`);
  }

  createProperty(
    type: CrmType,
    { name, groupName, is_unique }: { name: string; groupName: string; is_unique: boolean },
  ) {
    if (this.hasProperty(type, name)) throw new CrmRefusal(409, 'CONFLICT', `Property ${name} already exists`);
    if (!this.#groups.has(`${type}.${groupName}`))
      throw new CrmRefusal(400, 'VALIDATION_ERROR', `Property group ${groupName} does not exist`);
    this.#custom.set(type, (this.#custom.get(type) ?? new Map()).set(name, { type: 'string', is_unique }));
  }

  #all(type: CrmType): Map<string, CrmRecord> {
    const all = this.#records.get(type) ?? new Map<string, CrmRecord>();
    this.#records.set(type, all);
    return all;
  }

  #define(type: CrmType): Readonly<Record<string, Property>> {
    return { ...PROPERTIES[type], ...Object.fromEntries(this.#custom.get(type) ?? []) };
  }

  #parse(type: CrmType, properties: Record<string, unknown>, own_id: string | null): Record<string, string | null> {
    const values: Record<string, string | null> = {};
    for (const [name, value] of Object.entries(properties)) {
      const property = this.#define(type)[name];
      if (property === undefined) throw refuse(name, 'PROPERTY_DOESNT_EXIST', `Property "${name}" does not exist`);
      if (property.is_read_only) throw refuse(name, 'READ_ONLY_VALUE', `"${name}" is a read only property`);
      if (typeof value !== 'string') throw refuse(name, 'INVALID_TYPE', `${name} must be a string`);
      checkValue(name, value, property);
      if (property.is_unique && value !== '') this.#checkUnique(type, { name, value, own_id });
      values[name] = value === '' ? null : value;
    }
    for (const name of ['hs_currency', 'hs_currency_code', 'deal_currency_code'])
      if (values[name] && !this.currencies.includes(values[name]))
        throw refuse(name, 'INVALID_OPTION', `${values[name]} was not one of the allowed options`);
    return values;
  }

  #checkUnique(type: CrmType, { name, value, own_id }: { name: string; value: string; own_id: string | null }): void {
    const other = this.list(type).find(({ id, properties }) => properties[name] === value && id !== own_id);
    if (other === undefined) return;
    if (name === 'email') throw new CrmRefusal(409, 'CONFLICT', `Contact already exists. Existing ID: ${other.id}`);
    throw refuse(name, 'CONFLICTING_UNIQUE_VALUE', `${name} must be unique, ${value} is taken`);
  }

  #checkRequired(type: CrmType, values: Readonly<Record<string, string | null>>): void {
    const required = {
      invoices: ['hs_currency'],
      commerce_payments: ['hs_initial_amount', 'hs_initiated_date'],
      deals: ['dealname', 'dealstage'],
    };
    for (const name of required[type as keyof typeof required] ?? [])
      if (!values[name]) throw refuse(name, 'REQUIRED_FIELD', `${name} is required`);
    if (type === 'companies' && !values['name'] && !values['domain'])
      throw new CrmRefusal(400, 'VALIDATION_ERROR', 'one of name, domain is required');
    if (type === 'contacts' && !values['email'] && !values['firstname'] && !values['lastname'])
      throw new CrmRefusal(400, 'VALIDATION_ERROR', 'one of email, firstname, lastname is required');
  }

  #checkAssociation(from: CrmType, { to, types }: CrmAssociation): void {
    const [kind, ...others] = types;
    const pair = kind?.associationCategory === 'HUBSPOT_DEFINED' ? ASSOCIATIONS[kind.associationTypeId] : undefined;
    if (pair?.[0] !== from || others.length > 0)
      throw new CrmRefusal(400, 'VALIDATION_ERROR', `invalid association type of ${from}: ${JSON.stringify(types)}`);
    this.get(pair[1], String(to.id));
  }

  #checkTransition({ id, properties }: CrmRecord, status: string | null | undefined): void {
    const from = properties['hs_invoice_status'];
    if (status === undefined || status === from) return;
    const has = (type: CrmType) => this.listLinked('invoices', id, type).length > 0;
    if (from === 'draft' && status === 'open') {
      if (has('contacts') && has('line_items')) return;
      throw new CrmRefusal(400, 'VALIDATION_ERROR', 'An open invoice needs a contact and a line item');
    }
    if (from === 'open' && status === 'voided' && !has('commerce_payments')) return;
    throw new CrmRefusal(400, 'VALIDATION_ERROR', `An invoice that is ${from} cannot become ${status}`);
  }

  #compute(type: CrmType, record: CrmRecord): CrmRecord {
    const { id, properties } = record;
    if (type === 'commerce_payments')
      properties['hs_number_of_associated_invoices'] = String(this.listLinked(type, id, 'invoices').length);
    if (type === 'invoices') this.#computeInvoice(record);
    return record;
  }

  #computeInvoice({ id, properties }: CrmRecord): void {
    const places = minorUnits((properties['hs_currency'] ?? 'USD').toLowerCase());
    const read = (to: CrmType) => this.listLinked('invoices', id, to).map((one) => this.#all(to).get(one)!.properties);
    const sum = (amounts: Decimal[]) => amounts.reduce((all, one) => all.plus(one), new Decimal(0));
    const lines = read('line_items').map(({ price, quantity }) =>
      new Decimal(price ?? 0).times(quantity ?? 1).toDecimalPlaces(places),
    );
    const discounts = read('discounts').map(({ hs_value }) => new Decimal(hs_value ?? 0));
    const net = sum(lines).minus(sum(discounts));
    const billed = net.times(new Decimal(1).plus(properties['_tax_rate'] ?? this.tax_rate)).toDecimalPlaces(places);
    const paid = sum(
      read('commerce_payments')
        .filter(({ hs_latest_status }) => PAID.includes(hs_latest_status ?? ''))
        .map((one) => new Decimal(one['hs_initial_amount'] ?? 0).minus(one['hs_refunds_amount'] ?? 0)),
    );
    const balance = Decimal.max(0, billed.minus(paid));
    Object.assign(properties, {
      hs_amount_billed: billed.toFixed(),
      hs_amount_paid: paid.toFixed(),
      hs_balance_due: balance.toFixed(),
    });
    const status = properties['hs_invoice_status'];
    if (status === 'open' || status === 'paid') {
      properties['hs_invoice_status'] = balance.isZero() ? 'paid' : 'open';
      properties['hs_number'] = `INV-${id}`;
      properties['hs_invoice_link'] = `https://invoice.example/${id}`;
      properties['_tax_rate'] ??= this.tax_rate;
    }
  }
}

function refuse(name: string, error: string, message: string): CrmRefusal {
  const facts = [{ isValid: false, message, error, name }];
  return new CrmRefusal(400, 'VALIDATION_ERROR', `Property values were not valid: ${JSON.stringify(facts)}`);
}

function checkValue(name: string, value: string, { type, options }: Property): void {
  if (value === '') return;
  if (type === 'number' && !/^-?\d+(?:\.\d+)?$/.test(value))
    throw refuse(name, 'INVALID_NUMBER', `${value} was not a valid number`);
  if (type === 'datetime' && Number.isNaN(Date.parse(value)))
    throw refuse(name, 'INVALID_DATE', `${value} was not a valid date`);
  if (options && !options.includes(value))
    throw refuse(name, 'INVALID_OPTION', `${value} was not one of the allowed options: ${options.join(', ')}`);
}
