/** Columns of exported customers (docs/rules/exports.md, "Customers and subscriptions"). */
import type { Customer } from '../../catalog/customer/record.ts';
import { defineExportColumns } from './column.ts';
import { toExportMicroseconds } from './invoices.ts';

const { text, word, instant } = defineExportColumns<Customer>();

export const CUSTOMER_COLUMNS = [
  word('id', ({ id }) => id),
  text('external_id', (customer) => customer.external_id),
  text('name', ({ name }) => name),
  text('email', ({ email }) => email),
  text('contact', ({ contact }) => contact),
  text('address_line1', (customer) => customer.address_line1),
  text('address_line2', (customer) => customer.address_line2),
  text('address_city', (customer) => customer.address_city),
  text('address_state', (customer) => customer.address_state),
  text('address_postal_code', (customer) => customer.address_postal_code),
  word('address_country', (customer) => customer.address_country),
  word('timezone', ({ timezone }) => timezone),
  word('tax_exempt', (customer) => customer.tax_exempt),
  text('tax_ids', (customer) => (customer.tax_ids ?? []).map(({ value }) => value).join(' ')),
  word('parent_customer_id', (customer) => customer.parent_customer_id ?? null),
  word('status', ({ status }) => status),
  instant('created_at', (customer) => toExportMicroseconds(customer.created_at)),
  instant('updated_at', (customer) => toExportMicroseconds(customer.updated_at)),
];
