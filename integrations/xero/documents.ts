/**
 * Bodies of pushed records. Each line is one unit at the amount of the line, without tax. The reference contains the id of our record, by which
 * it is found again.
 */
import type { PushedInvoiceLine } from '../../core/platform/integration/pushed-lines.ts';
import type { PushedCreditNote, PushedCustomer, PushedInvoice, PushedPayment } from '../account.ts';
import { checkSum, cutText, toDay, toJsonAmount } from '../books-documents.ts';
import { type ExactJson, JsonNumber } from '../exact-json.ts';
import { isXeroId } from './records.ts';

const NAME_MAX = 255;
const EMAIL_MAX = 255;
const NUMBER_MAX = 255;
const REFERENCE_MAX = 255;
const DESCRIPTION_MAX = 4_000;
const ADDRESS_MAX = { line: 500, place: 255, code: 50 } as const;
/** Xero stores amounts of all currencies with two decimals. */
const DECIMALS_MAX = 2;

type XeroContent = {
  readonly provider_customer_id: string;
  readonly currency: string;
  readonly lines: readonly PushedInvoiceLine[];
  readonly total: string;
};

export function toReference(kind: 'invoice' | 'payment' | 'credit note' | 'refund', id: string): string {
  return `Farthing ${kind} ${id}`;
}

/** Builds a name, which no other active contact may have. */
export function toContactName({ name, external_id }: Pick<PushedCustomer, 'name' | 'external_id'>): string {
  const plain = (text: string) => text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return cutText(plain(name) || plain(external_id), NAME_MAX);
}

export function toContactBody(customer: PushedCustomer): ExactJson {
  const { email, address, customer_id } = customer;
  const mailing = {
    AddressLine1: cutText(address.line1, ADDRESS_MAX.line),
    AddressLine2: cutText(address.line2, ADDRESS_MAX.line),
    City: cutText(address.city, ADDRESS_MAX.place),
    Region: cutText(address.state, ADDRESS_MAX.place),
    PostalCode: cutText(address.postal_code, ADDRESS_MAX.code),
    Country: address.country,
  };
  const filled = Object.fromEntries(Object.entries(mailing).filter(([, text]) => text !== ''));
  return {
    Name: toContactName(customer),
    ContactNumber: customer_id,
    // A shortened email could belong to somebody else.
    EmailAddress: email === '' || email.length > EMAIL_MAX ? undefined : email,
    Addresses: Object.keys(filled).length === 0 ? undefined : [{ AddressType: 'POBOX', ...filled }],
  };
}

export function toInvoiceBody(invoice: PushedInvoice, sales_account: string): ExactJson {
  const day = toDay(invoice.issued_at);
  return {
    Type: 'ACCREC',
    ...toDocumentBody(invoice, sales_account),
    InvoiceNumber: toNumber(invoice.invoice_number),
    Reference: toReference('invoice', invoice.invoice_id),
    Date: day,
    // An authorised invoice has a due date.
    DueDate: toDay(invoice.due_date) ?? day,
  };
}

export function toCreditNoteBody(note: PushedCreditNote, sales_account: string): ExactJson {
  return {
    Type: 'ACCRECCREDIT',
    ...toDocumentBody(note, sales_account),
    CreditNoteNumber: toNumber(note.credit_note_number),
    Reference: toReference('credit note', note.credit_note_id),
  };
}

/** Builds the payment of an invoice. The reference begins with our id, because a long one is cut. */
export function toPaymentBody(payment: PushedPayment, payment_account: string): ExactJson {
  const { provider_invoice_id, amount, currency, payment_id, reference } = payment;
  return {
    Invoice: { InvoiceID: provider_invoice_id },
    Account: toAccount(payment_account),
    Date: toDay(payment.paid_at),
    Amount: toAmount(amount, currency),
    Reference: cutText(`${toReference('payment', payment_id)} ${reference}`.trim(), REFERENCE_MAX),
  };
}

type Refunded = { readonly id: string; readonly day: string | undefined; readonly payment_account: string };

/** Builds the payment that gives the money of a credit note back. */
export function toRefundBody(note: PushedCreditNote, { id, day, payment_account }: Refunded): ExactJson {
  return {
    CreditNote: { CreditNoteID: id },
    Account: toAccount(payment_account),
    Date: day,
    Amount: toAmount(note.total, note.currency),
    Reference: toReference('refund', note.credit_note_id),
  };
}

export function toAllocationBody(note: PushedCreditNote, day: string): ExactJson {
  return {
    Invoice: { InvoiceID: note.provider_invoice_id },
    Amount: toAmount(note.total, note.currency),
    Date: day,
  };
}

/** Builds the common fields. Taxes are lines of their own, so Xero must add none. */
function toDocumentBody(document: XeroContent, sales_account: string): Record<string, ExactJson | undefined> {
  checkSum(document, 'Xero');
  const { currency } = document;
  const account = isXeroId(sales_account) ? { AccountID: sales_account } : { AccountCode: sales_account };
  return {
    Contact: { ContactID: document.provider_customer_id },
    CurrencyCode: currency.toUpperCase(),
    LineAmountTypes: 'NoTax',
    LineItems: document.lines.map(({ amount, description }) => ({
      Description: cutText(description, DESCRIPTION_MAX),
      Quantity: new JsonNumber('1'),
      UnitAmount: toAmount(amount, currency),
      ...account,
    })),
    Status: 'DRAFT',
  };
}

function toAccount(account: string): ExactJson {
  return isXeroId(account) ? { AccountID: account } : { Code: account };
}

function toAmount(amount: string, currency: string): JsonNumber {
  return toJsonAmount(amount, { currency, provider_name: 'Xero', decimals_max: DECIMALS_MAX });
}

/** Omits a number that is too long, because its beginning could be the number of another document. */
function toNumber(number: string): string | undefined {
  return number === '' || number.length > NUMBER_MAX ? undefined : number;
}
