/**
 * Bodies of pushed records. Each line is a rate with quantity 1, so Zoho Books multiplies nothing; lines name no item and
 * no tax. The reference number is the id of our record, by which it is found again.
 */
import type { PushedInvoiceLine } from '../../core/platform/integration/pushed-lines.ts';
import type { PushedCreditNote, PushedCustomer, PushedInvoice, PushedPayment } from '../account.ts';
import { checkSum, cutText, toDay, toJsonAmount } from '../books-documents.ts';
import { type ExactJson, JsonNumber } from '../exact-json.ts';
import type { ZohoCurrency } from './records.ts';

const PROVIDER_NAME = 'Zoho Books';
const NAME_MAX = 200;
const ADDRESS_MAX = 500;
const LINE_NAME_MAX = 100;
const DESCRIPTION_MAX = 2_000;
const NUMBER_MAX = 100;
const NOTES_MAX = 5_000;

type BilledDocument = {
  readonly provider_customer_id: string;
  readonly currency: string;
  readonly lines: readonly PushedInvoiceLine[];
  readonly total: string;
};
/** A request that creates a record. */
export type RecordCreation = { readonly parameters?: Readonly<Record<string, string>>; readonly body: ExactJson };

/** Builds the name of a contact, which is usually unique in an organization. */
export function toContactName({ name, external_id }: Pick<PushedCustomer, 'name' | 'external_id'>): string {
  const plain = (text: string) => text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return cutText(plain(name) || plain(external_id), NAME_MAX);
}

/** Builds the note of a contact, by which it is found again. */
export function toContactNote(customer_id: string): string {
  return `Farthing customer ${customer_id}`;
}

export function toContactBody(customer: PushedCustomer): ExactJson {
  const { address, email, customer_id } = customer;
  const billing = {
    address: address.line1,
    street2: address.line2,
    city: address.city,
    state: address.state,
    zip: address.postal_code,
    country: address.country,
  };
  const filled = Object.entries(billing).flatMap(([field, text]) =>
    text === '' ? [] : [[field, cutText(text, ADDRESS_MAX)] as const],
  );
  return {
    contact_name: toContactName(customer),
    contact_type: 'customer',
    billing_address: filled.length === 0 ? undefined : Object.fromEntries(filled),
    contact_persons: email === '' ? undefined : [{ email, is_primary_contact: true }],
    notes: toContactNote(customer_id),
  };
}

export function toInvoiceRequest(invoice: PushedInvoice, currency: ZohoCurrency): RecordCreation {
  const { invoice_number, invoice_id } = invoice;
  const date = toDay(invoice.issued_at);
  const body = {
    ...toSalesBody(invoice, currency),
    ...(hasNumber(invoice_number) ? { invoice_number } : {}),
    reference_number: invoice_id,
    date,
    due_date: toDueDay(invoice.due_date, date),
  };
  return { parameters: toNumbering(invoice_number), body };
}

/** Zoho Books refuses a due date before the date of the invoice. */
function toDueDay(due_date: string | null, date: string | undefined): string | undefined {
  const due = toDay(due_date);
  return due !== undefined && date !== undefined && due < date ? date : due;
}

/** Builds the request of a draft, which is opened later. */
export function toCreditNoteRequest(note: PushedCreditNote, currency: ZohoCurrency): RecordCreation {
  const { credit_note_number: creditnote_number, credit_note_id, reason } = note;
  const body = {
    ...toSalesBody(note, currency),
    ...(hasNumber(creditnote_number) ? { creditnote_number } : {}),
    reference_number: credit_note_id,
    // Zoho Books requires a date, and a credit note has none: the day of the first attempt.
    date: toDay(note.key_created_at.toISOString()),
    notes: reason === '' ? undefined : cutText(reason, NOTES_MAX),
    is_draft: true,
  };
  return { parameters: toNumbering(creditnote_number), body };
}

export function toPaymentBody(payment: PushedPayment): ExactJson {
  const { provider_customer_id, provider_invoice_id, payment_id, reference } = payment;
  const amount = toJsonAmount(payment.amount, { currency: payment.currency, provider_name: PROVIDER_NAME });
  return {
    customer_id: provider_customer_id,
    payment_mode: 'others',
    amount,
    date: toDay(payment.paid_at),
    reference_number: payment_id,
    description: reference === '' ? undefined : cutText(reference, DESCRIPTION_MAX),
    invoices: [{ invoice_id: provider_invoice_id, amount_applied: amount }],
  };
}

/** Builds the body that applies an amount of a credit note to its invoice. */
export function toApplicationBody({ provider_invoice_id, currency }: PushedCreditNote, amount: string): ExactJson {
  const amount_applied = toJsonAmount(amount, { currency, provider_name: PROVIDER_NAME });
  return { invoices: [{ invoice_id: provider_invoice_id, amount_applied }] };
}

function toSalesBody(
  document: BilledDocument,
  { currency_id, price_precision }: ZohoCurrency,
): Record<string, ExactJson | undefined> {
  checkSum(document, PROVIDER_NAME);
  const use = { currency: document.currency, provider_name: PROVIDER_NAME, decimals_max: Number(price_precision) };
  return {
    customer_id: document.provider_customer_id,
    currency_id,
    is_inclusive_tax: false,
    line_items: document.lines.map(({ amount, description }) => ({
      name: cutText(description, LINE_NAME_MAX),
      description: description.length > LINE_NAME_MAX ? cutText(description, DESCRIPTION_MAX) : undefined,
      rate: toJsonAmount(amount, use),
      quantity: new JsonNumber('1'),
    })),
  };
}

/** A number that is too long is omitted, because its beginning could be the number of another document. Zoho Books then numbers the document. */
function hasNumber(number: string): boolean {
  return number !== '' && number.length <= NUMBER_MAX;
}

function toNumbering(number: string): Readonly<Record<string, string>> {
  return hasNumber(number) ? { ignore_auto_number_generation: 'true' } : {};
}
