/**
 * Compares a recomputed invoice with the stored one (docs/rules/invoices.md, "From draft to final"). The instant of the computation and the
 * log offsets are ignored.
 */
import { parseInstant } from '../../foundation/time/instant.ts';
import type { Invoice, InvoiceLineItem } from './record.ts';

/** Fields that differ between two equal computations. The comparison ignores them in the records and in `computed_from`. */
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

/**
 * Whether a computation changes nothing of the stored invoice. `fields` and `lines` have a value or null for every
 * field that a computation writes.
 */
export function isSameInvoice({ invoice, line_items }: StoredInvoice, { fields, lines }: ComputedInvoice): boolean {
  const isSameLine = (line: InvoiceLineItem, index: number) => hasSameFields(line_items[index]!, line);
  return line_items.length === lines.length && hasSameFields(invoice, fields) && lines.every(isSameLine);
}

type InvoiceFields = Readonly<Record<string, unknown>>;

/** Compares only the fields that `computed` has. */
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

/**
 * Whether all fields that only `one` has are null or undefined. `hasSameFields` compares common fields; calling it in both directions would
 * double the work at every level.
 */
function hasNoOtherFields(one: InvoiceFields, other: InvoiceFields): boolean {
  const isNothing = (field: string) => one[field] === null || one[field] === undefined;
  return Object.keys(one).every(
    (field) => Object.hasOwn(other, field) || VOLATILE_FIELDS.has(field) || isNothing(field),
  );
}

const WHOLE_SECOND = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/;

/** Whether both texts are one instant. The database omits a fraction that is zero. */
function isSameInstant(one: string, other: string): boolean {
  if (!one.endsWith('Z') || !other.endsWith('Z')) return false;
  // Most texts differ at most in a zero fraction. This check avoids parsing them.
  if (WHOLE_SECOND.test(one) && one.replace('.000Z', 'Z') === other) return true;
  if (WHOLE_SECOND.test(other) && other.replace('.000Z', 'Z') === one) return true;
  const instant = parseInstant(one);
  return instant !== undefined && instant === parseInstant(other);
}
