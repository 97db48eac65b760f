/**
 * Whether an invoice that is computed anew says what it said (docs/rules/invoices.md, "From draft to final"). When that was
 * computed, and how far the log had been counted then, is no part of what it says.
 */
import { parseInstant } from '../time/instant.ts';
import type { Invoice, InvoiceLineItem } from './record.ts';

/** Of the records, and of what a line was computed from. */
const VOLATILE_FIELDS = new Set([
  'id',
  'created_at',
  'updated_at',
  'created_by',
  'updated_by',
  'last_computed_at',
  'as_of',
  'high_water',
]);

type StoredInvoice = { readonly invoice: Invoice; readonly line_items: readonly InvoiceLineItem[] };
type ComputedInvoice = { readonly fields: Partial<Invoice>; readonly lines: readonly InvoiceLineItem[] };

/** What is computed has a value, or null, for every field that a computation writes. */
export function isSameInvoice({ invoice, line_items }: StoredInvoice, { fields, lines }: ComputedInvoice): boolean {
  const isSameLine = (line: InvoiceLineItem, index: number) => hasSameFields(line_items[index]!, line);
  return line_items.length === lines.length && hasSameFields(invoice, fields) && lines.every(isSameLine);
}

type InvoiceFields = Readonly<Record<string, unknown>>;

/** By the fields of the second. */
function hasSameFields(stored: InvoiceFields, computed: InvoiceFields): boolean {
  return Object.keys(computed).every(
    (field) => VOLATILE_FIELDS.has(field) || isSameValue(stored[field], computed[field]),
  );
}

function isSameValue(a: unknown, b: unknown): boolean {
  const [one, other] = [a ?? null, b ?? null];
  if (one === other) return true;
  if (typeof one === 'string' && typeof other === 'string') return isSameInstant(one, other);
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  return (
    hasSameFields(one as InvoiceFields, other as InvoiceFields) &&
    hasNoOtherFields(one as InvoiceFields, other as InvoiceFields)
  );
}

/** What only the first has is nothing. Each field is compared once: both ways, what lies deep would be compared many times. */
function hasNoOtherFields(one: InvoiceFields, other: InvoiceFields): boolean {
  const isNothing = (field: string) => one[field] === null || one[field] === undefined;
  return Object.keys(one).every(
    (field) => Object.hasOwn(other, field) || VOLATILE_FIELDS.has(field) || isNothing(field),
  );
}

const WHOLE_SECOND = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/;

/** The database leaves out a fraction that is zero. */
function isSameInstant(one: string, other: string): boolean {
  if (!one.endsWith('Z') || !other.endsWith('Z')) return false;
  // Most differ in nothing else, and need not be read.
  if (WHOLE_SECOND.test(one) && one.replace('.000Z', 'Z') === other) return true;
  if (WHOLE_SECOND.test(other) && other.replace('.000Z', 'Z') === one) return true;
  const instant = parseInstant(one);
  return instant !== undefined && instant === parseInstant(other);
}
