/**
 * Payment records and credit notes of Stripe's fake: money that did not pass through Stripe
 * (docs.stripe.com/api/payment-record/report, /invoices/attach_payment, /credit_notes;
 * docs.stripe.com/invoicing/partial-payments, docs.stripe.com/invoicing/integration/programmatic-credit-notes).
 */
import type { Grammar, Parameters } from './stripe-fake-parameters.ts';
import { type InvoiceRecord, type StripeBook, type StripeRecord, seconds } from './stripe-fake-records.ts';
import { StripeRefusal } from './stripe-fake-refusal.ts';
import type { StripeOperation } from './stripe-fake-routes.ts';

export type CreditNoteRecord = StripeRecord & { invoice: string; total: number; status: 'issued' | 'void' };
type ReportedRecord = StripeRecord & { amount: { value: number; currency: string } };

const CUSTOM: Grammar = { display_name: 'text', type: 'text' };
const REPORT: Grammar = {
  'amount_requested!': { 'currency!': 'text', 'value!': 'integer' },
  'initiated_at!': 'integer',
  'payment_method_details!': { type: ['custom'], custom: CUSTOM, payment_method: 'text' },
  customer_details: { customer: 'text', email: 'text', name: 'text', phone: 'text' },
  guaranteed: { 'guaranteed_at!': 'integer' },
  outcome: ['failed', 'guaranteed'],
  processor_details: { 'type!': ['custom'], custom: { 'payment_reference!': 'text' } },
  description: 'text',
  metadata: 'map',
};
const NOTE_LINE: Grammar = {
  'type!': ['custom_line_item', 'invoice_line_item'],
  description: 'text',
  quantity: 'integer',
  unit_amount: 'integer',
};
const NOTE: Grammar = {
  'invoice!': 'text',
  lines: { list_of: NOTE_LINE },
  ...{ amount: 'integer', credit_amount: 'integer', out_of_band_amount: 'integer', refund_amount: 'integer' },
  ...{ email_type: ['credit_note', 'none'], memo: 'text', metadata: 'map' },
  reason: ['duplicate', 'fraudulent', 'order_change', 'product_unsatisfactory'],
};
const LIST: Grammar = { limit: 'integer', starting_after: 'text', ending_before: 'text' };

export const MONEY_OUT_OPERATIONS: readonly StripeOperation[] = [
  {
    method: 'POST',
    path: /^payment_records\/report_payment$/,
    grammar: REPORT,
    run: ({ book, parameters }) => reportPayment(book, parameters),
  },
  {
    method: 'GET',
    path: /^payment_records$/,
    grammar: { ...LIST, created_after: 'integer', created_before: 'integer' },
    run: ({ book, parameters }) => {
      const after = Number(parameters['created_after'] ?? 0);
      return toList(book.list('payment_record').filter(({ created }) => created > after));
    },
  },
  {
    method: 'POST',
    path: /^invoices\/(\w+)\/attach_payment$/,
    grammar: { payment_intent: 'text', payment_record: 'text' },
    run: ({ book, id, parameters: { payment_intent, payment_record } }) =>
      payment_intent === undefined
        ? attachRecord(book, id, String(payment_record))
        : book.showInvoice(book.attachPayment(id, String(payment_intent))),
  },
  {
    method: 'POST',
    path: /^credit_notes$/,
    grammar: NOTE,
    run: ({ book, parameters }) => createNote(book, parameters),
  },
  {
    method: 'GET',
    path: /^credit_notes$/,
    grammar: { ...LIST, invoice: 'text', customer: 'text' },
    run: ({ book, parameters }) => {
      const notes = book.list<CreditNoteRecord>('credit_note');
      return toList(notes.filter(({ invoice }) => invoice === (parameters['invoice'] ?? invoice)));
    },
  },
  {
    method: 'GET',
    path: /^credit_notes\/(\w+)$/,
    grammar: {},
    run: ({ book, id }) => book.find('credit_note', id),
  },
  { method: 'POST', path: /^credit_notes\/(\w+)\/void$/, grammar: {}, run: ({ book, id }) => voidNote(book, id) },
];

/** Builds a list of one page: these lists are short in the tests. */
function toList(data: readonly StripeRecord[]) {
  return { object: 'list', url: '/v1', has_more: false, data };
}

function reportPayment(book: StripeBook, parameters: Parameters): ReportedRecord {
  const { currency, value } = parameters['amount_requested'] as { currency: string; value: number };
  if (value <= 0) throw new StripeRefusal(400, { message: 'Invalid integer', param: 'amount_requested[value]' });
  const guaranteed = parameters['outcome'] === 'guaranteed';
  if (guaranteed !== (parameters['guaranteed'] !== undefined))
    throw new StripeRefusal(400, { message: '`guaranteed` goes with the outcome of this name.', param: 'guaranteed' });
  const amount = { currency, value };
  const metadata = (parameters['metadata'] ?? {}) as Record<string, string>;
  return book.add('pr', 'payment_record', { amount, amount_requested: amount, metadata, created: seconds() });
}

function attachRecord(book: StripeBook, id: string, record_id: string): StripeRecord {
  const record = book.find<ReportedRecord>('payment_record', record_id);
  if (book.list('invoice_payment').some(({ payment }) => isPaymentOf(payment, record_id)))
    throw new StripeRefusal(400, { message: 'The payment record is attached to an invoice already.' });
  return book.showInvoice(book.attachRecord(id, record));
}

function isPaymentOf(payment: unknown, record_id: string): boolean {
  return (payment as { payment_record?: string }).payment_record === record_id;
}

/** Creates a credit note, as a request or a person in the dashboard does. It lowers the remaining amount first; the request must say how the excess is returned. */
export function createNote(book: StripeBook, parameters: Parameters): CreditNoteRecord {
  const invoice = book.find<InvoiceRecord>('invoice', String(parameters['invoice']));
  if (invoice.status !== 'open' && invoice.status !== 'paid')
    throw new StripeRefusal(400, { message: `You cannot credit an invoice that is ${invoice.status}.` });
  const lines = (parameters['lines'] ?? []) as { unit_amount?: number; quantity?: number }[];
  const listed = lines.reduce((sum, { unit_amount = 0, quantity = 1 }) => sum + unit_amount * quantity, 0);
  const total = Number(parameters['amount'] ?? listed);
  const before = book.list<CreditNoteRecord>('credit_note');
  const credited = before.filter((note) => note.invoice === invoice.id && note.status === 'issued');
  const rest = invoice.total - credited.reduce((sum, note) => sum + note.total, 0);
  if (total <= 0 || total > rest)
    throw new StripeRefusal(400, { message: `The sum of credit notes is more than the invoice, ${rest} is left.` });
  const pre_payment_amount = Math.min(total, invoice.amount_remaining);
  const post_payment_amount = total - pre_payment_amount;
  const { out_of_band_amount = 0, credit_amount = 0, refund_amount = 0 } = parameters as Record<string, number>;
  if (out_of_band_amount + credit_amount + refund_amount !== post_payment_amount)
    throw new StripeRefusal(400, {
      message: `The sum of refunds, credits and out of band amounts must equal ${post_payment_amount}.`,
    });
  const note = book.add('cn', 'credit_note', {
    ...{ invoice: invoice.id, customer: invoice.customer, currency: invoice.currency, total, amount: total },
    ...{ pre_payment_amount, post_payment_amount, out_of_band_amount, status: 'issued' as const },
    refunds: refund_amount === 0 ? [] : [refundPart(book, invoice.id, refund_amount)],
    metadata: (parameters['metadata'] ?? {}) as Record<string, string>,
  });
  book.announce('credit_note.created', note);
  invoice['post_payment_credit_notes_amount'] =
    Number(invoice['post_payment_credit_notes_amount']) + post_payment_amount;
  if (pre_payment_amount > 0) book.lowerRemaining(invoice, pre_payment_amount);
  return note;
}

/** Refunds the payment of the invoice, as a credit note with a refund amount does. */
function refundPart(book: StripeBook, invoice_id: string, amount: number) {
  const paid = book.listPayments(invoice_id).find(({ status }) => status === 'paid')!;
  const refund = book.refundPayment(paid.payment.payment_intent!, amount).id;
  return { amount_refunded: amount, payment_record_refund: null, refund, type: 'refund' };
}

function voidNote(book: StripeBook, id: string): CreditNoteRecord {
  const note = book.find<CreditNoteRecord>('credit_note', id);
  const invoice = book.find<InvoiceRecord>('invoice', note.invoice);
  if (note.status === 'void' || invoice.status !== 'open')
    throw new StripeRefusal(400, { message: 'You can only void credit notes of open invoices.' });
  note.status = 'void';
  book.announce('credit_note.voided', note);
  book.lowerRemaining(invoice, -Number(note['pre_payment_amount']));
  return note;
}
