/** Texts within the limits of Razorpay (razorpay.com/docs/api/customers, /docs/api/orders). */

import { createHash } from 'node:crypto';
import { cutCharacters } from '../pushed-records.ts';

const NAME_MIN = 3;
const NAME_MAX = 50;
const EMAIL_MAX = 64;
const RECEIPT_MAX = 40;
const NOTE_MAX = 256;

/**
 * Builds a name of ASCII letters, digits, spaces, and `.'()`, which Razorpay allows. The original name is in the notes.
 */
export function toRazorpayName(name: string, fallback: string): string {
  const sanitized = sanitizeName(name);
  return sanitized.length >= NAME_MIN ? sanitized : sanitizeName(`Customer ${fallback}`);
}

function sanitizeName(name: string): string {
  const letters = name.normalize('NFKD').replace(/\p{M}/gu, '');
  const allowed = letters.replace(/[^A-Za-z0-9.'()]+/g, ' ').trim();
  return allowed.slice(0, NAME_MAX).trim();
}

/** Returns an empty email if it is too long, because a shortened address could belong to somebody else. */
export function toRazorpayEmail(email: string): string {
  return email.length <= EMAIL_MAX ? email : '';
}

/** Builds the notes of a record: empty values are omitted, long ones shortened. */
export function toNotes(values: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values)
      .filter((entry): entry is [string, string] => entry[1] !== null && entry[1] !== '')
      .map(([name, value]) => [name, cutCharacters(value, NOTE_MAX)]),
  );
}

/** Reads a note. Razorpay returns an empty list if there are no notes. */
export function readNote({ notes }: { readonly notes?: unknown }, name: string): string | null {
  const value = (notes as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'string' ? value : null;
}

/** Builds the receipt of an invoice, which the customer sees as its number. */
export function toInvoiceReceipt(invoice_number: string, invoice_id: string): string {
  return invoice_number.length <= RECEIPT_MAX ? invoice_number : toReference(invoice_id);
}

/** Builds a receipt, reference or idempotency key from our key: 40 hexadecimal digits. */
export function toReference(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, RECEIPT_MAX);
}

type IdPrefix = 'cust' | 'inv' | 'pay' | 'order' | 'plink' | 'rfnd' | 'disp' | 'token';

/** Whether the text has the form of an id, so that no other text becomes part of a URL. */
export function isRazorpayId(id: string, ...prefixes: readonly IdPrefix[]): boolean {
  return prefixes.some((prefix) => id.startsWith(`${prefix}_`)) && /^[a-z]+_[A-Za-z0-9]{1,40}$/.test(id);
}
