/**
 * Texts within the limits of Nomod (nomod.com/docs/api-reference/generate-invoice, /generate-link, /create-contact). Nomod has no metadata,
 * so our ids are in notes.
 */

import { createHash } from 'node:crypto';
import { cutCharacters } from '../pushed-records.ts';

const NUMBER_MAX = 30;
const NOTE_MAX = 280;
const TITLE_MAX = 50;

/** Builds the number of an invoice; one that is too long is replaced by our id or a digest. */
export function toInvoiceNumber(invoice_number: string, invoice_id: string): string {
  if (invoice_number.length <= NUMBER_MAX) return invoice_number;
  return invoice_id.length <= NUMBER_MAX ? invoice_id : toDigest(invoice_id);
}

/** Builds a hexadecimal text that stands for a key. */
export function toDigest(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, NUMBER_MAX);
}

type NamedInvoice = { readonly invoice_id: string; readonly invoice_number: string };

/** Builds the note of an invoice: our number and id, then further text as far as it fits. */
export function toInvoiceNote({ invoice_number, invoice_id }: NamedInvoice, text: string): string {
  return cutCharacters(`${cutCharacters(`Invoice ${invoice_number}`, TITLE_MAX)} (${invoice_id}): ${text}`, NOTE_MAX);
}

/** Whether the note names our record, as `toInvoiceNote` and the note of a page write it. */
export function hasNoteId(note: string | null | undefined, id: string): boolean {
  return (note ?? '').includes(`(${id})`);
}

export function toTitle(invoice_number: string): string {
  return cutCharacters(`Invoice ${invoice_number}`, TITLE_MAX);
}
