/**
 * Parameters of Chargebee's fake: form fields and query parameters, decoded and checked (apidocs.chargebee.com, the
 * "Input Parameters" of each operation; limits as in the types of its library).
 */
import { ChargebeeRefusal, refuseValue } from './chargebee-fake-refusal.ts';

/** Values by their names in brackets; those of a listed object by field, such as `charges[amount]`. */
export class Input {
  readonly #fields: URLSearchParams;

  constructor(fields: URLSearchParams) {
    this.#fields = fields;
  }

  get names(): string[] {
    return [...this.#fields.keys()];
  }

  text(name: string): string | undefined {
    return this.#fields.get(name) ?? undefined;
  }

  require(name: string): string {
    const text = this.text(name);
    if (text === undefined || text === '')
      throw new ChargebeeRefusal(400, 'param_should_not_be_blank', `${name} : cannot be blank`, { param: name });
    return text;
  }

  integer(name: string): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : Number(text);
  }

  /** Number of the objects in a list, such as `charges`. */
  count(list: string): number {
    const numbers = this.names.flatMap((name) => {
      const found = new RegExp(`^${list}\\[\\w+\\]\\[(\\d+)\\]$`).exec(name);
      return found === null ? [] : [Number(found[1])];
    });
    return numbers.length === 0 ? 0 : Math.max(...numbers) + 1;
  }
}

type Check = (text: string) => string | null;

const text =
  (max: number): Check =>
  (value) =>
    [...value].length > max ? `cannot be more than ${max} characters` : null;
const integer =
  (min: number): Check =>
  (value) => {
    if (!/^-?\d+$/.test(value)) return 'invalid value';
    return Number(value) < min ? `should be at least ${min}` : null;
  };
const oneOf =
  (...values: string[]): Check =>
  (value) =>
    values.includes(value) ? null : `should be one of ${values.join(', ')}`;
const email: Check = (value) => (/^\S+@\S+\.\S+$/.test(value) ? text(70)(value) : 'is invalid');
const json: Check = (value) => {
  try {
    return typeof JSON.parse(value) === 'object' ? null : 'must be JSON';
  } catch {
    return 'must be JSON';
  }
};
const idList: Check = (value) => (/^\[.*\]$/.test(value) ? json(value) : 'must be a list in brackets');
const seconds: Check = (value) => (/^\d{10}$/.test(value) ? null : 'invalid timestamp');
const boolean = oneOf('true', 'false');
const country: Check = (value) => (/^[A-Z]{2}$/.test(value) ? null : 'is no country code');

const PAGED = {
  limit: (value: string) => (Number(value) > 100 ? 'should be at most 100' : integer(1)(value)),
  offset: text(1_000),
};
const reasons = oneOf(
  'product_unsatisfactory',
  'service_unsatisfactory',
  'order_change',
  'order_cancellation',
  'waiver',
  'other',
);
const offline = oneOf('cash', 'check', 'bank_transfer', 'other', 'custom');

/** Parameters of each operation, with the check of each. */
const PARAMETERS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  'GET customers': PAGED,
  'POST customers': {
    ...{ id: text(50), first_name: text(150), last_name: text(150), company: text(250), email },
    ...{ auto_collection: oneOf('on', 'off'), net_term_days: integer(0), meta_data: json },
    ...{
      'billing_address[company]': text(250),
      'billing_address[line1]': text(150),
      'billing_address[line2]': text(150),
    },
    ...{ 'billing_address[city]': text(50), 'billing_address[state]': text(50), 'billing_address[zip]': text(20) },
    'billing_address[country]': country,
  },
  'GET invoices': {
    ...{ ...PAGED, 'customer_id[is]': text(50), 'updated_at[after]': seconds },
    'status[is]': oneOf('paid', 'posted', 'payment_due', 'not_paid', 'voided', 'pending'),
  },
  'POST invoices/create_for_charge_items_and_charges': {
    ...{
      customer_id: text(50),
      currency_code: text(3),
      auto_collection: oneOf('on', 'off'),
      invoice_note: text(2_000),
    },
    ...{ net_term_days: integer(0), po_number: text(100), payment_source_id: text(40) },
    ...{ 'charges[amount]': integer(1), 'charges[description]': text(250), 'charges[taxable]': boolean },
    ...{ 'charges[date_from]': seconds, 'charges[date_to]': seconds },
  },
  'POST invoices/*/void': { comment: text(300), void_reason_code: text(100) },
  'POST invoices/*/record_payment': {
    ...{ comment: text(300), 'transaction[amount]': integer(0), 'transaction[payment_method]': offline },
    ...{ 'transaction[reference_number]': text(100), 'transaction[date]': seconds },
  },
  'POST invoices/*/collect_payment': {
    ...{ amount: integer(1), payment_source_id: text(40), comment: text(300) },
    payment_initiator: oneOf('customer', 'merchant'),
  },
  'POST invoices/*/record_refund': {
    ...{ comment: text(300), customer_notes: text(2_000), 'transaction[amount]': integer(0) },
    ...{ 'transaction[payment_method]': offline, 'transaction[reference_number]': text(100) },
    ...{ 'transaction[date]': seconds, 'credit_note[reason_code]': reasons },
  },
  'POST invoices/*/refund': {
    ...{ refund_amount: integer(1), comment: text(300), customer_notes: text(2_000) },
    'credit_note[reason_code]': reasons,
  },
  'GET credit_notes': { ...PAGED, 'reference_invoice_id[is]': text(50) },
  'POST credit_notes': {
    ...{ reference_invoice_id: text(50), type: oneOf('adjustment', 'refundable', 'store'), total: integer(0) },
    ...{ reason_code: reasons, customer_notes: text(2_000), comment: text(300) },
  },
  'POST credit_notes/*/void': { comment: text(300) },
  'GET transactions': { ...PAGED, 'id[in]': idList },
  'POST transactions/*/delete_offline_transaction': { comment: text(300) },
  'GET payment_sources': { ...PAGED, 'customer_id[is]': text(50) },
  'POST hosted_pages/collect_now': { 'customer[id]': text(50), redirect_url: text(250), currency_code: text(3) },
  'POST hosted_pages/manage_payment_sources': { 'customer[id]': text(50), redirect_url: text(250) },
  'GET comments': { ...PAGED, entity_type: oneOf('invoice', 'customer'), entity_id: text(100) },
  'POST comments': { entity_type: oneOf('invoice', 'customer'), entity_id: text(100), notes: text(1_000) },
};

/** Refuses unknown parameters and wrong values. A listed field has an index, which is no part of its name. */
export function checkParameters(operation: string, fields: URLSearchParams): Input {
  const allowed = PARAMETERS[operation] ?? {};
  for (const [name, value] of fields) {
    const isListed = /^charges\[\w+\]\[\d+\]$/.test(name);
    const check = allowed[isListed ? name.replace(/\[\d+\]$/, '') : name];
    const isNamedLikeList = !isListed && name.startsWith('charges[');
    if (check === undefined || isNamedLikeList)
      throw new ChargebeeRefusal(400, 'param_not_supported', `${name} : parameter is not supported`, { param: name });
    const wrong = check(value);
    if (wrong !== null) throw refuseValue(name, wrong);
  }
  return new Input(fields);
}
