/**
 * A small stateful fake of Nomod, by its public documentation. Requests: nomod.com/docs/api-reference/authentication, /requests-responses,
 * nomod.com/docs/webhooks/how-webhooks-work. Records: nomod-fake-book.ts.
 */
import { createHmac, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';
import { NomodBook, type NomodFields } from './nomod-fake-book.ts';
import { NomodRefusal } from './nomod-fake-refusal.ts';

/**
 * Failures of the next request at a path. Without an effect: `lost_request` breaks the connection, `fault` answers 500, `rate_limit` 429, and
 * `html` the page of a proxy with status 200. After the effect: `lost_answer` breaks the connection, `lost_fault` answers 500.
 */
export const NOMOD_DISTURBANCES = ['lost_request', 'lost_answer', 'fault', 'lost_fault', 'rate_limit', 'html'] as const;
type NomodDisturbance = (typeof NOMOD_DISTURBANCES)[number];

type NomodCall = {
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: NomodFields;
};

export class NomodFake extends FakeServer<NomodDisturbance> {
  readonly keys = new Set(['sk_test_fake.1', 'sk_live_fake.1']);
  readonly events: { readonly type: string; readonly data: { readonly id: string } & NomodFields }[] = [];
  readonly book = new NomodBook((type, { id, status, total, currency }) => {
    const objectId = `ch_${id.replaceAll('-', '')}`;
    const event = { type, eventId: randomUUID(), objectId, data: { id, status, total, currency } };
    this.events.push(event);
  });

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const { pathname, searchParams } = new URL(request.url!, 'http://fake');
    const name = `${request.method} ${pathname.replace(/^\/v1\//, '')}`;
    this.requests.push(name);
    await this.passBarrier(name);
    const disturbance = this.takeDisturbance(name);
    if (disturbance === 'lost_request') return breakAnswer(response);
    if (disturbance === 'html')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
    const call = { name, query: Object.fromEntries(searchParams), body: text === '' ? {} : JSON.parse(text) };
    const { status, body } = this.#answer(String(request.headers['x-api-key']), call, disturbance);
    if (disturbance === 'lost_answer') return breakAnswer(response);
    const retry = status === 429 ? this.retryHeaders : {};
    response.writeHead(status, { 'content-type': 'application/json', ...retry }).end(JSON.stringify(body));
  }

  #answer(key: string, call: NomodCall, disturbance: NomodDisturbance | null): { status: number; body: unknown } {
    try {
      if (this.is_revoked || !this.keys.has(key))
        throw new NomodRefusal(401, 'not_authenticated', 'Please use your API Key to authenticate');
      if (disturbance === 'rate_limit') throw new NomodRefusal(429, 'throttled', 'Request was throttled.');
      if (disturbance === 'fault') throw new NomodRefusal(500, 'server_error', 'A problem occurred on the server.');
      const body = structuredClone(this.#run(call));
      if (disturbance === 'lost_fault')
        throw new NomodRefusal(500, 'server_error', 'A problem occurred on the server.');
      return { status: /^POST \w+$/.test(call.name) ? 201 : 200, body };
    } catch (error) {
      if (!(error instanceof NomodRefusal)) throw error;
      return { status: error.status, body: error.body };
    }
  }

  #run({ name, query, body }: NomodCall): unknown {
    for (const { at, allowed, run } of OPERATIONS) {
      const found = at.exec(name);
      if (found === null) continue;
      for (const field of [...Object.keys(query), ...Object.keys(body)])
        if (!allowed.includes(field)) throw new NomodRefusal(400, 'invalid_field', `${field} is unknown`);
      return run(this.book, { id: found[1] ?? '', query, body });
    }
    throw new NomodRefusal(404, 'not_found', 'Requested resource not found.');
  }
}

type NomodOperation = {
  readonly at: RegExp;
  readonly allowed: readonly string[];
  run(book: NomodBook, request: { id: string } & Pick<NomodCall, 'query' | 'body'>): unknown;
};

const PAGED = ['page', 'page_size', 'search', 'id', 'currency', 'status', 'customer_id'];
const EDIT = ['status', 'title'];
const SALE = [
  ...['currency', 'items', 'discount_percentage', 'title', 'note', 'shipping_address_required', 'custom_fields'],
  ...['success_url', 'failure_url', 'allow_tabby', 'allow_tamara', 'allow_service_fee'],
];
const CUSTOMER = [
  ...['first_name', 'last_name', 'email', 'phone_number', 'business_name', 'job_title', 'country', 'province'],
  ...['street', 'city', 'zip_code'],
];

function readOperations(kind: 'customers' | 'invoices' | 'links' | 'charges', filters: readonly string[]) {
  return [
    {
      at: new RegExp(`^GET ${kind}$`),
      allowed: [...PAGED, ...filters],
      run: (book: NomodBook, { query }: Pick<NomodCall, 'query'>) => book.list(kind, query),
    },
    {
      at: new RegExp(`^GET ${kind}/([\\w-]+)$`),
      allowed: [],
      run: (book: NomodBook, { id }: { id: string }) => book.find(kind, id),
    },
  ];
}

const OPERATIONS: readonly NomodOperation[] = [
  ...readOperations('customers', []),
  ...readOperations('invoices', ['invoice_number', 'reference_id']),
  ...readOperations('links', ['reference_id']),
  ...readOperations('charges', ['link_id', 'type']),
  { at: /^POST customers$/, allowed: CUSTOMER, run: (book, { body }) => book.createCustomer(body) },
  {
    at: /^POST invoices$/,
    allowed: [...SALE, 'customer', 'invoice_number', 'due_date', 'starts_at', 'service_date'],
    run: (book, { body }) => book.createInvoice(body),
  },
  {
    at: /^PATCH invoices\/([\w-]+)\/edit$/,
    allowed: EDIT,
    run: (book, { id, body }) => book.editInvoice(id, body),
  },
  {
    at: /^POST links$/,
    allowed: [...SALE, 'allow_tip', 'payment_expiry_limit', 'expiry_date'],
    run: (book, { body }) => book.createLink(body),
  },
  { at: /^PATCH links\/([\w-]+)\/edit$/, allowed: EDIT, run: (book, { id, body }) => book.editLink(id, body) },
  {
    at: /^POST charges\/([\w-]+)\/refund$/,
    allowed: ['amount'],
    run: (book, { id, body }) => book.refundCharge(id, body),
  },
];

/** Headers of a webhook, signed at this time. */
export function signNomodWebhook(body: string, secret: string, now = new Date()): Record<string, string> {
  const [id, timestamp] = [`msg_${randomUUID()}`, String(Math.floor(now.getTime() / 1_000))];
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': `v1,${signature}` };
}
