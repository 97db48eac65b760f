/**
 * A small stateful fake of Razorpay, by its public documentation; Razorpay's library talks to it. Requests:
 * razorpay.com/docs/api/authentication, /docs/errors, /docs/api/refunds/normal-refunds-idempotent,
 * /docs/webhooks/validate-test. Records: razorpay-fake-book.ts.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';
import { type Parameters, RazorpayBook, type RazorpayRecord, seconds } from './razorpay-fake-book.ts';
import { RazorpayRefusal } from './razorpay-fake-refusal.ts';

/**
 * Failures of the next request at a path. Without an effect: `lost_request` breaks the connection, `fault` answers 500, `rate_limit`
 * answers 429, and `html` and `bad_gateway` answer the page of a proxy with status 200 and 502. After the effect: `lost_answer` breaks the
 * connection, `lost_fault` answers 500.
 */
export type Disturbance =
  | 'lost_request'
  | 'lost_answer'
  | 'fault'
  | 'lost_fault'
  | 'rate_limit'
  | 'html'
  | 'bad_gateway';

type Answer = { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };
type Call = { readonly name: string; readonly input: Parameters; readonly refund_key: string | undefined };
export type RazorpayEvent = { readonly event_id: string; readonly body: string; readonly event: string };

export class RazorpayFake extends FakeServer<Disturbance> {
  /** Ids of the keys of the account with their secrets. */
  readonly keys = new Set(['rzp_test_fake:secret_fake', 'rzp_live_fake:secret_fake']);
  readonly book: RazorpayBook;
  readonly events: RazorpayEvent[] = [];
  readonly #refunds = new Map<string, { body: string; answer: unknown }>();

  constructor() {
    super();
    this.book = new RazorpayBook((event, parts) => this.#record(event, parts));
  }

  #record(event: string, parts: Record<string, RazorpayRecord>): void {
    const payload = Object.fromEntries(Object.entries(parts).map(([name, entity]) => [name, { entity }]));
    const common = { entity: 'event', account_id: 'acc_fake', event, contains: Object.keys(parts) };
    const body = JSON.stringify({ ...common, payload, created_at: seconds() });
    this.events.push({ event_id: `evt${String(this.events.length + 1).padStart(11, '0')}`, event, body });
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const { pathname, searchParams } = new URL(request.url!, 'http://fake');
    const name = `${request.method} ${pathname.replace(/^\/v1\//, '')}`;
    this.requests.push(name);
    const input = request.method === 'GET' ? Object.fromEntries(searchParams) : text === '' ? {} : JSON.parse(text);
    const disturbance = this.takeDisturbance(name);
    if (disturbance === 'lost_request') return breakAnswer(response);
    if (disturbance === 'html' || disturbance === 'bad_gateway')
      return void response
        .writeHead(disturbance === 'html' ? 200 : 502, { 'content-type': 'text/html' })
        .end('<h1>Bad gateway</h1>');
    const refund_key = request.headers['x-refund-idempotency'] as string | undefined;
    const answer = this.#answer(request.headers.authorization ?? '', { name, input, refund_key }, disturbance);
    if (disturbance === 'lost_answer') return breakAnswer(response);
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(JSON.stringify(answer.body));
  }

  #answer(authorization: string, call: Call, disturbance: Disturbance | null): Answer {
    const fault = new RazorpayRefusal(500, 'The server encountered an error.', { code: 'SERVER_ERROR', reason: 'NA' });
    try {
      const credentials = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString('utf8');
      if (this.is_revoked || !this.keys.has(credentials))
        throw new RazorpayRefusal(401, 'Authentication failed', { reason: 'NA' });
      if (disturbance === 'rate_limit') throw new RazorpayRefusal(429, 'Too many requests', { reason: 'NA' });
      if (disturbance === 'fault') throw fault;
      const body = structuredClone(this.#run(call));
      if (disturbance === 'lost_fault') throw fault;
      return { status: 200, body };
    } catch (error) {
      if (!(error instanceof RazorpayRefusal)) throw error;
      return { status: error.status, body: error.body, headers: error.status === 429 ? this.retryHeaders : {} };
    }
  }

  #run(call: Call): unknown {
    for (const { at, allowed, run } of OPERATIONS) {
      const found = at.exec(call.name);
      if (found === null) continue;
      const unknown = Object.keys(call.input).find((name) => !allowed.includes(name));
      if (unknown !== undefined)
        throw new RazorpayRefusal(400, `${unknown} is/are not required and should not be sent`, { field: unknown });
      if (call.name.endsWith('/refund')) return this.#refundOnce(found[1]!, call);
      return run(this.book, { id: found[1] ?? '', input: call.input });
    }
    throw new RazorpayRefusal(400, 'The requested URL was not found on the server.');
  }

  #refundOnce(payment_id: string, { input, refund_key }: Call): unknown {
    if (refund_key === undefined) return this.book.createRefund(payment_id, input);
    if (!/^[\w-]{10,}$/.test(refund_key)) throw new RazorpayRefusal(400, 'The idempotency key is not valid');
    const body = `${payment_id} ${JSON.stringify(input)}`;
    const stored = this.#refunds.get(refund_key);
    if (stored !== undefined && stored.body !== body)
      throw new RazorpayRefusal(400, 'Different request with the same idempotency key has already been processed.');
    const answer = stored?.answer ?? this.book.createRefund(payment_id, input);
    this.#refunds.set(refund_key, { body, answer });
    return answer;
  }
}

type Operation = {
  readonly at: RegExp;
  readonly allowed: readonly string[];
  run(book: RazorpayBook, request: { id: string; input: Parameters }): unknown;
};

const PAGED = ['count', 'skip', 'from', 'to'];

function list(entity: string, filters: readonly string[] = []): Operation['run'] {
  return (book, { input: { count = '10', skip = '0', from: _from, to: _to, ...filter } }) => {
    if (Number(count) > 100) throw new RazorpayRefusal(400, 'The count may not be greater than 100.');
    const wanted = Object.fromEntries(Object.entries(filter).filter(([name]) => filters.includes(name)));
    const items = book.list(entity, wanted).slice(Number(skip), Number(skip) + Number(count));
    return entity === 'payment_link' ? { payment_links: items } : { entity: 'collection', count: items.length, items };
  };
}

function listOf(entity: string, field: string, page = '100'): Operation['run'] {
  return (book, { id, input: { count = page, skip = '0' } }) => {
    if (Number(count) > 100) throw new RazorpayRefusal(400, 'The count may not be greater than 100.');
    const items = book.list(entity, { [field]: id }).slice(Number(skip), Number(skip) + Number(count));
    return { entity: 'collection', count: items.length, items };
  };
}

function fetchOne(path: string, entity: string): Operation {
  return { at: new RegExp(`^GET ${path}/(\\w+)$`), allowed: [], run: (book, { id }) => book.find(entity, id) };
}

const CUSTOMER = ['name', 'email', 'contact', 'fail_existing', 'gstin', 'notes'];
const INVOICE = [
  ...['type', 'draft', 'customer_id', 'currency', 'description', 'receipt', 'partial_payment', 'sms_notify'],
  ...['email_notify', 'notes', 'line_items', 'expire_by', 'date', 'terms', 'comment'],
];
const ORDER = ['amount', 'currency', 'receipt', 'payment_capture', 'notes', 'method', 'partial_payment'];
const RECURRING = [
  ...['email', 'contact', 'amount', 'currency', 'order_id', 'customer_id', 'token', 'recurring', 'notes'],
  'description',
];
const LINK = [
  ...['amount', 'currency', 'accept_partial', 'reference_id', 'description', 'customer', 'notify', 'reminder_enable'],
  ...['notes', 'callback_url', 'callback_method', 'expire_by', 'first_min_partial_amount', 'upi_link', 'options'],
];

const OPERATIONS: readonly Operation[] = [
  { at: /^POST customers$/, allowed: CUSTOMER, run: (book, { input }) => book.createCustomer(input) },
  { at: /^GET customers$/, allowed: PAGED, run: list('customer') },
  { at: /^GET customers\/(\w+)\/tokens$/, allowed: [], run: listOf('token', 'customer_id') },
  fetchOne('customers', 'customer'),
  { at: /^POST invoices$/, allowed: INVOICE, run: (book, { input }) => book.createInvoice(input) },
  {
    at: /^GET invoices$/,
    allowed: [...PAGED, 'receipt', 'customer_id'],
    run: list('invoice', ['receipt', 'customer_id']),
  },
  { at: /^POST invoices\/(\w+)\/issue$/, allowed: [], run: (book, { id }) => book.issueInvoice(id) },
  { at: /^POST invoices\/(\w+)\/cancel$/, allowed: [], run: (book, { id }) => book.cancelInvoice(id) },
  { at: /^DELETE invoices\/(\w+)$/, allowed: [], run: (book, { id }) => book.deleteInvoice(id) },
  fetchOne('invoices', 'invoice'),
  { at: /^POST orders$/, allowed: ORDER, run: (book, { input }) => book.createOrder(input) },
  { at: /^GET orders$/, allowed: [...PAGED, 'receipt'], run: list('order', ['receipt']) },
  { at: /^GET orders\/(\w+)\/payments$/, allowed: [], run: listOf('payment', 'order_id') },
  {
    at: /^POST payments\/create\/recurring$/,
    allowed: RECURRING,
    run: (book, { input }) => book.createRecurring(input),
  },
  {
    at: /^POST payments\/(\w+)\/refund$/,
    allowed: ['amount', 'speed', 'notes', 'receipt'],
    run: (book, { id, input }) => book.createRefund(id, input),
  },
  // razorpay.com/docs/api/refunds/fetch-multiple-refund-payment: the last 10 by default.
  { at: /^GET payments\/(\w+)\/refunds$/, allowed: PAGED, run: listOf('refund', 'payment_id', '10') },
  fetchOne('payments', 'payment'),
  fetchOne('refunds', 'refund'),
  fetchOne('disputes', 'dispute'),
  { at: /^POST payment_links$/, allowed: LINK, run: (book, { input }) => book.createLink(input) },
  { at: /^GET payment_links\/?$/, allowed: [...PAGED, 'reference_id'], run: list('payment_link', ['reference_id']) },
  { at: /^POST payment_links\/(\w+)\/cancel$/, allowed: [], run: (book, { id }) => book.cancelLink(id) },
  fetchOne('payment_links', 'payment_link'),
];

export function signRazorpayBody(body: string, secret: string): string {
  return createHmac('sha256', secret).update(body).digest('hex');
}
