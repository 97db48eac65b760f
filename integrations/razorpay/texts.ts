/** Texts within the limits of Razorpay (razorpay.com/docs/api/customers, /docs/api/orders). */
import { createHash } from 'node:crypto';

const NAME_MIN = 3;
const NAME_MAX = 50;
const EMAIL_MAX = 64;
const RECEIPT_MAX = 40;
const NOTE_MAX = 256;

/** A name may have ASCII letters, digits, spaces, and `.'()`. The original is in the notes. */
export function toRazorpayName(name: string, fallback: string): string {
  const sanitized = sanitizeName(name);
  return sanitized.length >= NAME_MIN ? sanitized : sanitizeName(`Customer ${fallback}`);
}

function sanitizeName(name: string): string {
  const letters = name.normalize('NFKD').replace(/\p{M}/gu, '');
  const allowed = letters.replace(/[^A-Za-z0-9.'()]+/g, ' ').trim();
  return allowed.slice(0, NAME_MAX).trim();
}

/** Empty if it is too long: a shortened address is that of somebody else. */
export function toRazorpayEmail(email: string): string {
  return email.length <= EMAIL_MAX ? email : '';
}

/** Empty values are left out, long ones are cut. */
export function toNotes(values: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values)
      .filter((entry): entry is [string, string] => entry[1] !== null && entry[1] !== '')
      .map(([name, value]) => [name, cutText(value, NOTE_MAX)]),
  );
}

/** Empty notes are an empty list at Razorpay. */
export function readNote({ notes }: { readonly notes?: unknown }, name: string): string | null {
  const value = (notes as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'string' ? value : null;
}

export function cutText(text: string, max: number): string {
  return [...text].slice(0, max).join('');
}

/** Receipt of an invoice, which the customer sees as its number. */
export function toInvoiceReceipt(invoice_number: string, invoice_id: string): string {
  return invoice_number.length <= RECEIPT_MAX ? invoice_number : toReference(invoice_id);
}

/** Our key as a receipt, a reference or an idempotency key of Razorpay: 40 hexadecimal digits. */
export function toReference(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, RECEIPT_MAX);
}

type IdPrefix = 'cust' | 'inv' | 'pay' | 'order' | 'plink' | 'rfnd' | 'disp' | 'token';

/** Other texts never become part of a path. */
export function isRazorpayId(id: string, ...prefixes: readonly IdPrefix[]): boolean {
  return prefixes.some((prefix) => id.startsWith(`${prefix}_`)) && /^[a-z]+_[A-Za-z0-9]{1,40}$/.test(id);
}
