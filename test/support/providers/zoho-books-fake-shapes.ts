/**
 * Fields and parameters that requests to Zoho Books may have, with their types, as its public documentation lists them
 * (zoho.com/books/api/v3: Contacts, Invoices, Customer Payments, Credit Notes; its OpenAPI documents). Only those that
 * belong to accounts of tenants are here; any other is refused.
 */
import { BooksRefusal } from './zoho-books-fake-refusal.ts';

type Shape = 'text' | 'number' | 'boolean' | readonly [Shape] | { readonly [field: string]: Shape };

const ADDRESS = {
  address: 'text',
  street2: 'text',
  city: 'text',
  state: 'text',
  zip: 'text',
  country: 'text',
} as const;
const LINES = [{ name: 'text', description: 'text', rate: 'number', quantity: 'number', tax_id: 'text' }] as const;
const APPLIED = [{ invoice_id: 'text', amount_applied: 'number' }] as const;

type Creation = { readonly fields: Readonly<Record<string, Shape>>; readonly required: readonly string[] };

export const BODIES: Readonly<Record<string, Creation>> = {
  contacts: {
    fields: {
      ...{ contact_name: 'text', company_name: 'text', contact_type: 'text', currency_id: 'text', notes: 'text' },
      billing_address: ADDRESS,
      contact_persons: [{ first_name: 'text', last_name: 'text', email: 'text', is_primary_contact: 'boolean' }],
    },
    required: ['contact_name'],
  },
  invoices: {
    fields: {
      ...{ customer_id: 'text', currency_id: 'text', invoice_number: 'text', reference_number: 'text', date: 'text' },
      ...{ due_date: 'text', is_inclusive_tax: 'boolean', notes: 'text', line_items: LINES },
    },
    required: ['customer_id', 'line_items'],
  },
  customerpayments: {
    fields: {
      ...{ customer_id: 'text', payment_mode: 'text', amount: 'number', date: 'text', reference_number: 'text' },
      ...{ description: 'text', account_id: 'text', invoices: APPLIED },
    },
    required: ['customer_id', 'payment_mode', 'amount', 'date', 'invoices'],
  },
  creditnotes: {
    fields: {
      ...{ customer_id: 'text', currency_id: 'text', creditnote_number: 'text', reference_number: 'text' },
      ...{ date: 'text', is_draft: 'boolean', is_inclusive_tax: 'boolean', notes: 'text', line_items: LINES },
    },
    required: ['customer_id', 'date', 'line_items'],
  },
  application: { fields: { invoices: APPLIED }, required: ['invoices'] },
};

const PAGING = ['page', 'per_page'];
/** Parameters besides `organization_id`, by method and path. */
export const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  'GET contacts': [...PAGING, 'search_text', 'contact_name', 'filter_by'],
  'GET invoices': [...PAGING, 'reference_number', 'customer_id', 'invoice_number', 'status'],
  'GET customerpayments': [...PAGING, 'reference_number', 'customer_id'],
  'GET creditnotes': [...PAGING, 'reference_number', 'customer_id', 'creditnote_number', 'status'],
  'GET settings/currencies': PAGING,
  'GET organizations': PAGING,
  'POST invoices': ['send', 'ignore_auto_number_generation'],
  'POST creditnotes': ['invoice_id', 'ignore_auto_number_generation'],
};

const LENGTHS: Readonly<Record<string, number>> = {
  contact_name: 200,
  name: 100,
  description: 2_000,
  invoice_number: 100,
  creditnote_number: 100,
  reference_number: 100,
};

/** Checks a parsed body, whose numbers are JavaScript numbers. */
export function checkBody(name: string, body: unknown): void {
  const { fields, required } = BODIES[name]!;
  checkShape(body, fields, 'JSONString');
  for (const field of required)
    if ((body as Record<string, unknown>)[field] === undefined) throw refuse(field, 'is missing');
}

function checkShape(value: unknown, shape: Shape, field: string): void {
  if (typeof shape === 'string') {
    const type = shape === 'text' ? 'string' : shape;
    if (typeof value !== type) throw refuse(field, `is no ${shape}`);
    if (typeof value === 'string' && value.length > (LENGTHS[field] ?? 10_000)) throw refuse(field, 'is too long');
  } else if (isList(shape)) {
    if (!Array.isArray(value)) throw refuse(field, 'is no list');
    for (const one of value) checkShape(one, shape[0], field);
  } else {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refuse(field, 'is no object');
    for (const [name, one] of Object.entries(value)) {
      const inner = shape[name];
      if (inner === undefined) throw refuse(name, 'is unknown');
      checkShape(one, inner, name);
    }
  }
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

export function checkParameters(name: string, parameters: URLSearchParams): void {
  const known = PARAMETERS[name] ?? [];
  for (const parameter of parameters.keys())
    if (parameter !== 'organization_id' && !known.includes(parameter)) throw refuse(parameter, 'is unknown');
}

function refuse(field: string, why: string): BooksRefusal {
  return new BooksRefusal(2, `Invalid value passed for ${field}: it ${why}`);
}
