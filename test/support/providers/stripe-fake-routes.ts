/** Operations of Stripe's fake: path, parameters, effect (docs.stripe.com/api; the pages are named in stripe-fake-records.ts). */

import type { Grammar, Parameters } from './stripe-fake-parameters.ts';
import { listPaymentOperations } from './stripe-fake-payments.ts';
import type { InvoiceRecord, PaymentRecord, StripeBook, StripeRecord } from './stripe-fake-records.ts';
import { refuseMissing, StripeRefusal } from './stripe-fake-refusal.ts';

export type OperationCall = {
  readonly id: string;
  readonly parameters: Parameters;
  readonly book: StripeBook;
  readonly isIndexed: (id: string) => boolean;
};
export type StripeOperation = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: RegExp;
  readonly grammar: Grammar;
  run(call: OperationCall): unknown;
};

const ADDRESS: Grammar = {
  line1: 'text',
  line2: 'text',
  city: 'text',
  state: 'text',
  postal_code: 'text',
  country: 'text',
};
const PERIOD: Grammar = { 'start!': 'integer', 'end!': 'integer' };
const RANGE: Grammar = { gt: 'integer', gte: 'integer', lt: 'integer', lte: 'integer' };
const PAGES: Grammar = { limit: 'integer', starting_after: 'text', ending_before: 'text', created: RANGE };
const SEARCH: Grammar = { 'query!': 'text', limit: 'integer', page: 'text' };
const CUSTOMER: Grammar = {
  ...{ name: 'text', email: 'text', phone: 'text', description: 'text', address: ADDRESS, metadata: 'map' },
};
const INVOICE: Grammar = {
  ...{ 'customer!': 'text', currency: 'text', description: 'text', footer: 'text', number: 'text', metadata: 'map' },
  ...{ collection_method: ['send_invoice', 'charge_automatically'], due_date: 'integer', days_until_due: 'integer' },
  ...{ auto_advance: 'flag', automatic_tax: { 'enabled!': 'flag' }, discounts: { list_of: { coupon: 'text' } } },
  pending_invoice_items_behavior: ['exclude', 'include'],
};
const LINE: Grammar = {
  ...{
    amount: 'integer',
    description: 'text',
    discountable: 'flag',
    invoice_item: 'text',
    metadata: 'map',
    period: PERIOD,
  },
};
const INVOICE_PAYMENTS: Grammar = {
  ...{ ...PAGES, invoice: 'text', status: 'text' },
  payment: { 'type!': ['payment_intent', 'charge', 'payment_record'], payment_intent: 'text' },
};
const PAYMENT: Grammar = { payment_method: 'text', paid_out_of_band: 'flag', off_session: 'flag' };

const post = (path: RegExp, grammar: Grammar, run: StripeOperation['run']): StripeOperation => ({
  method: 'POST',
  path,
  grammar,
  run,
});
const get = (path: RegExp, grammar: Grammar, run: StripeOperation['run']): StripeOperation => ({
  method: 'GET',
  path,
  grammar,
  run,
});
const del = (path: RegExp, run: StripeOperation['run']): StripeOperation => ({
  method: 'DELETE',
  path,
  grammar: {},
  run,
});

export const STRIPE_OPERATIONS: readonly StripeOperation[] = [
  get(/^account$/, {}, () => ({
    id: 'acct_fake',
    object: 'account',
    email: null,
    business_profile: { name: 'Fake Ltd' },
  })),
  post(/^customers$/, CUSTOMER, ({ book, parameters }) => book.createCustomer(parameters)),
  get(/^customers$/, { ...PAGES, email: 'text' }, (call) => showPage(call, call.book.list('customer'), ['email'])),
  get(/^customers\/search$/, SEARCH, (call) => search(call, call.book.list('customer'))),
  get(/^customers\/(\w+)$/, {}, ({ book, id }) => book.find('customer', id)),
  del(/^customers\/(\w+)$/, ({ book, id }) => book.deleteCustomer(id)),
  post(/^invoiceitems$/, { ...LINE, 'customer!': 'text', currency: 'text', invoice: 'text' }, ({ book, parameters }) =>
    book.createItem(parameters),
  ),
  get(/^invoiceitems$/, { ...PAGES, customer: 'text', invoice: 'text' }, (call) =>
    showPage(call, call.book.list('invoiceitem'), ['customer', 'invoice']),
  ),
  del(/^invoiceitems\/(\w+)$/, ({ book, id }) => book.deleteItem(id)),
  post(/^invoices$/, INVOICE, ({ book, parameters }) => book.showInvoice(book.createInvoice(parameters))),
  get(/^invoices$/, { ...PAGES, customer: 'text', status: 'text' }, (call) => listInvoices(call)),
  get(/^invoices\/search$/, SEARCH, (call) =>
    search(
      call,
      call.book.list<InvoiceRecord>('invoice').map((one) => call.book.showInvoice(one)),
    ),
  ),
  get(/^invoices\/(\w+)$/, {}, ({ book, id }) => book.showInvoice(book.find('invoice', id))),
  del(/^invoices\/(\w+)$/, ({ book, id }) => book.deleteInvoice(id)),
  get(/^invoices\/(\w+)\/lines$/, PAGES, (call) => listLines(call)),
  post(
    /^invoices\/(\w+)\/add_lines$/,
    { 'lines!': { list_of: LINE }, invoice_metadata: 'map' },
    ({ book, id, parameters }) => book.showInvoice(book.addLines(id, parameters['lines'] as Parameters[])),
  ),
  post(
    /^invoices\/(\w+)\/remove_lines$/,
    { 'lines!': { list_of: { 'id!': 'text', 'behavior!': ['delete', 'unassign'] } }, invoice_metadata: 'map' },
    ({ book, id, parameters }) => book.showInvoice(book.removeLines(id, parameters['lines'] as Parameters[])),
  ),
  post(/^invoices\/(\w+)\/finalize$/, { auto_advance: 'flag' }, ({ book, id }) =>
    book.showInvoice(book.finalizeInvoice(id)),
  ),
  post(/^invoices\/(\w+)\/void$/, {}, ({ book, id }) => book.showInvoice(book.voidInvoice(id))),
  post(/^invoices\/(\w+)\/mark_uncollectible$/, {}, ({ book, id }) => book.showInvoice(book.markUncollectible(id))),
  post(/^invoices\/(\w+)\/pay$/, PAYMENT, ({ book, id, parameters }) =>
    book.showInvoice(
      book.payInvoice(id, {
        card: String(parameters['payment_method'] ?? ''),
        outside: parameters['paid_out_of_band'] === true,
      }),
    ),
  ),
  get(/^invoice_payments$/, INVOICE_PAYMENTS, (call) =>
    showPage(call, listInvoicePayments(call), ['invoice', 'status']),
  ),
  get(/^refunds$/, { ...PAGES, payment_intent: 'text', charge: 'text' }, (call) =>
    showPage(call, call.book.list('refund'), ['payment_intent', 'charge']),
  ),
  ...listPaymentOperations<OperationCall>({ showPage, search }),
  get(/^payment_intents\/(\w+)$/, {}, ({ book, id }) => book.find('payment_intent', id)),
];

function listInvoices(call: OperationCall) {
  const { data, ...page } = showPage(call, call.book.list<InvoiceRecord>('invoice'), ['customer', 'status']);
  return { ...page, data: data.map((invoice) => call.book.showInvoice(invoice)) };
}

function listInvoicePayments({ book, parameters }: OperationCall): PaymentRecord[] {
  const { payment_intent } = (parameters['payment'] ?? {}) as Record<string, string>;
  const all = book.list<PaymentRecord>('invoice_payment');
  return payment_intent === undefined ? all : all.filter((one) => one.payment.payment_intent === payment_intent);
}

function listLines(call: OperationCall) {
  const { book, id } = call;
  book.find('invoice', id);
  return showPage(call, book.lines.get(id)!, []);
}

/** Builds one page of a list (docs.stripe.com/api/pagination): 10 records by default, at most 100. */
function showPage<Listed extends StripeRecord>(
  { parameters }: OperationCall,
  records: readonly Listed[],
  filters: readonly string[],
) {
  const limit = Number(parameters['limit'] ?? 10);
  if (limit < 1 || limit > 100)
    throw new StripeRefusal(400, { message: 'This value must be between 1 and 100.', param: 'limit' });
  const { gt = -1, gte = 0, lt = Infinity, lte = Infinity } = (parameters['created'] ?? {}) as Record<string, number>;
  const matching = records.filter(
    (record) =>
      record.created > gt &&
      record.created >= gte &&
      record.created < lt &&
      record.created <= lte &&
      filters.every((name) => parameters[name] === undefined || record[name] === parameters[name]),
  );
  const after = findIndex(matching, parameters['starting_after']) ?? -1;
  const before = findIndex(matching, parameters['ending_before']);
  const start = before === undefined ? after + 1 : Math.max(0, before - limit);
  const data = matching.slice(start, before === undefined ? start + limit : before);
  const has_more = before === undefined ? start + limit < matching.length : start > 0;
  return { object: 'list', url: '/v1', has_more, data };
}

function findIndex(records: readonly StripeRecord[], id: unknown): number | undefined {
  if (id === undefined) return undefined;
  const index = records.findIndex((record) => record.id === id);
  if (index === -1) throw refuseMissing('object', String(id), 400, 'starting_after');
  return index;
}

/** Searches by metadata only (docs.stripe.com/search), and only records that are indexed. */
function search({ parameters, isIndexed }: OperationCall, records: readonly StripeRecord[]) {
  const asked = /^metadata\['(.+?)'\]:'((?:[^'\\]|\\.)*)'$/.exec(String(parameters['query']));
  if (asked === null)
    throw new StripeRefusal(400, { message: 'We were unable to parse your search query.', param: 'query' });
  const value = asked[2]!.replace(/\\(.)/g, '$1');
  const data = records.filter(({ id, metadata }) => isIndexed(id) && metadata[asked[1]!] === value);
  return { object: 'search_result', url: '/v1/search', has_more: false, next_page: null, data };
}
