/**
 * Bodies of pushed records. Each line is one amount: without quantity and unit price QuickBooks multiplies and rounds
 * nothing. The private note contains the id of our record, by which it is found again.
 */
import type { PushedInvoiceLine } from '../../core/platform/integration/pushed-lines.ts';
import type { PushedCreditNote, PushedCustomer, PushedInvoice, PushedPayment } from '../account.ts';
import { checkSum, cutText, toDay, toJsonAmount } from '../books-documents.ts';
import { type ExactJson, JsonNumber } from '../exact-json.ts';

const NAME_MAX = 100;
const NUMBER_MAX = 21;
const DESCRIPTION_MAX = 4_000;

/** Country of the company, which decides the tax fields of a record. */
type Company = { readonly Country?: string };
type SalesTerms = { readonly item_id: string; readonly company: Company };
type SalesDocument = {
  readonly provider_customer_id: string;
  readonly currency: string;
  readonly lines: readonly PushedInvoiceLine[];
  readonly total: string;
};

export function toNote(kind: 'customer' | 'invoice' | 'payment' | 'credit note', id: string): string {
  return `Farthing ${kind} ${id}`;
}

/** Builds a display name, which must be unique and contain no colons or control characters. */
export function toDisplayName({ name, external_id }: Pick<PushedCustomer, 'name' | 'external_id'>): string {
  const plain = (text: string) =>
    text
      .replace(/[:\p{Cc}]/gu, ' ')
      .replace(/ +/g, ' ')
      .trim();
  return cutText(plain(name) || plain(external_id), NAME_MAX);
}

export function toCustomerBody(customer: PushedCustomer): ExactJson {
  const { email, address, customer_id } = customer;
  const billing = {
    Line1: address.line1,
    Line2: address.line2,
    City: address.city,
    CountrySubDivisionCode: address.state,
    PostalCode: address.postal_code,
    Country: address.country,
  };
  const filled = Object.fromEntries(Object.entries(billing).filter(([, text]) => text !== ''));
  return {
    DisplayName: toDisplayName(customer),
    PrimaryEmailAddr: email === '' ? undefined : { Address: email },
    BillAddr: Object.keys(filled).length === 0 ? undefined : filled,
    Notes: toNote('customer', customer_id),
  };
}

export function toInvoiceBody(invoice: PushedInvoice, terms: SalesTerms): ExactJson {
  return {
    ...toSalesBody(invoice, terms),
    DocNumber: toDocNumber(invoice.invoice_number),
    TxnDate: toDay(invoice.issued_at),
    DueDate: toDay(invoice.due_date),
    PrivateNote: toNote('invoice', invoice.invoice_id),
  };
}

export function toCreditMemoBody(note: PushedCreditNote, terms: SalesTerms): ExactJson {
  return {
    ...toSalesBody(note, terms),
    DocNumber: toDocNumber(note.credit_note_number),
    CustomerMemo: note.reason === '' ? undefined : { value: cutText(note.reason, 1_000) },
    PrivateNote: toNote('credit note', note.credit_note_id),
  };
}

export function toPaymentBody(payment: PushedPayment): ExactJson {
  const { provider_customer_id, provider_invoice_id, amount, currency, reference } = payment;
  const Amount = toAmount(amount, currency);
  return {
    CustomerRef: { value: provider_customer_id },
    CurrencyRef: { value: currency.toUpperCase() },
    TotalAmt: Amount,
    TxnDate: toDay(payment.paid_at),
    PaymentRefNum: reference === '' ? undefined : cutText(reference, NUMBER_MAX),
    PrivateNote: toNote('payment', payment.payment_id),
    Line: [{ Amount, LinkedTxn: [{ TxnId: provider_invoice_id, TxnType: 'Invoice' }] }],
  };
}

/** Builds the payment of 0 that applies a credit memo to an invoice. */
export function toApplicationBody(note: PushedCreditNote, credit_memo_id: string): ExactJson {
  const Amount = toAmount(note.total, note.currency);
  const toLine = (TxnType: string, TxnId: string) => ({ Amount, LinkedTxn: [{ TxnId, TxnType }] });
  return {
    CustomerRef: { value: note.provider_customer_id },
    CurrencyRef: { value: note.currency.toUpperCase() },
    TotalAmt: new JsonNumber('0'),
    PrivateNote: toNote('credit note', note.credit_note_id),
    Line: [toLine('Invoice', note.provider_invoice_id), toLine('CreditMemo', credit_memo_id)],
  };
}

/**
 * Builds the body. Taxes are lines of their own, so QuickBooks must add none: in the USA each line has the tax code
 * NON, elsewhere no line has a code.
 */
function toSalesBody(document: SalesDocument, { item_id, company }: SalesTerms): Record<string, ExactJson | undefined> {
  checkSum(document, 'QuickBooks');
  const { currency } = document;
  const isAmerican = company.Country === undefined || /^(US|USA|United States)$/i.test(company.Country);
  return {
    CustomerRef: { value: document.provider_customer_id },
    CurrencyRef: { value: currency.toUpperCase() },
    GlobalTaxCalculation: isAmerican ? undefined : 'NotApplicable',
    Line: document.lines.map(({ amount, description, period_start }) => ({
      DetailType: 'SalesItemLineDetail',
      Amount: toAmount(amount, currency),
      Description: cutText(description, DESCRIPTION_MAX),
      SalesItemLineDetail: {
        ItemRef: { value: item_id },
        TaxCodeRef: isAmerican ? { value: 'NON' } : undefined,
        ServiceDate: toDay(period_start),
      },
    })),
  };
}

function toAmount(amount: string, currency: string): JsonNumber {
  return toJsonAmount(amount, { currency, provider_name: 'QuickBooks' });
}

/** Omits a number that is too long, because its beginning could be the number of another document. */
function toDocNumber(number: string): string | undefined {
  return number === '' || number.length > NUMBER_MAX ? undefined : number;
}
