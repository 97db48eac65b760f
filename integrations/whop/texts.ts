/** Texts by which records are found again at Whop, and names that people see there. */
import { isWhopId } from './records.ts';

const LABEL_MAX = 150;
/** Notes of a plan that was made for an invoice. They keep Whop from using one plan for two invoices of one amount. */
const NOTES = 'Farthing ';

type WhopNamedInvoice = { readonly invoice_id: string; readonly invoice_number: string };

/** Label of the first line: Whop has no other field of an invoice that its answers contain. */
export function toMarkedLabel(description: string, { invoice_id, invoice_number }: WhopNamedInvoice): string {
  return `${cutLabel(description)} (${invoice_number}, ${invoice_id})`;
}

export function isMarked(label: string, { invoice_id }: Pick<WhopNamedInvoice, 'invoice_id'>): boolean {
  return label.endsWith(`, ${invoice_id})`);
}

export function cutLabel(text: string): string {
  return [...text].slice(0, LABEL_MAX).join('');
}

export function toPlanNotes(invoice_id: string): string {
  return `${NOTES}${invoice_id}`;
}

export function isPlanOfInvoice({ internal_notes }: { readonly internal_notes?: string | null }): boolean {
  return internal_notes?.startsWith(NOTES) ?? false;
}

/** A payment method is charged together with its member, so its id here has both: `mber_…:payt_…`. */
export function toMethodId(member_id: string, payment_method_id: string): string {
  return `${member_id}:${payment_method_id}`;
}

export function parseMethodId(id: string): { member_id: string; payment_method_id: string } | null {
  const [member_id = '', payment_method_id = '', ...rest] = id.split(':');
  const isValid = rest.length === 0 && isWhopId(member_id) && isWhopId(payment_method_id);
  return isValid ? { member_id, payment_method_id } : null;
}
