/**
 * A small stateful fake of Paddle Billing, by its public documentation; Paddle's library talks to it. Requests:
 * developer.paddle.com/api-reference/about/authentication, /about/errors, /about/pagination, /about/rate-limiting,
 * /api-root/get-api-root, /webhooks/signature-verification. Records: paddle-fake-book.ts, paddle-fake-adjustments.ts.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';
import { PaddleAdjustments } from './paddle-fake-adjustments.ts';
import { type FakeRecord, PaddleBook } from './paddle-fake-book.ts';
import { parseBody } from './paddle-fake-fields.ts';
import { PaddleRefusal, refuseField } from './paddle-fake-refusal.ts';

/**
 * Failures of the next request at a path. Without an effect: `lost_request` breaks the connection, `fault` answers 500, `rate_limit` answers
 * 429, and `html` answers the page of a proxy with status 200. After the effect: `lost_answer` breaks the connection, `lost_fault` answers
 * 500.
 */
type Disturbance = 'lost_request' | 'lost_answer' | 'fault' | 'lost_fault' | 'rate_limit' | 'html';

type Answer = { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };
type Call = {
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
};
type ListCall = { readonly path: string; readonly query: Call['query']; readonly page_max: number };
export type PaddleEvent = { readonly event_type: string; readonly body: string };

const FAULT = new PaddleRefusal('internal_error', 'An unexpected error has occurred', { status: 500 });

export class PaddleFake extends FakeServer<Disturbance> {
  api_key = 'pdl_sdbx_apikey_01gtgztp8f4kek3yd4g1wrksa3_q6TGTJyvoIz7LDtXT65bX7_AQO';
  readonly account = { id: '12345', name: 'Acme Sandbox' };
  readonly book = new PaddleBook((event_type, data) => this.#record(event_type, data));
  readonly adjustments = new PaddleAdjustments(this.book);
  readonly events: PaddleEvent[] = [];
  /** Bodies of the requests, unparsed. */
  readonly bodies: string[] = [];

  #record(event_type: string, data: object): void {
    const number = String(this.events.length + 1).padStart(26, '0');
    const about = { event_id: `evt_${number}`, event_type, occurred_at: new Date().toISOString() };
    this.events.push({ event_type, body: JSON.stringify({ ...about, notification_id: `ntf_${number}`, data }) });
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const { pathname, searchParams } = new URL(request.url!, 'http://fake');
    const name = `${request.method} ${pathname.slice(1)}`;
    this.requests.push(name);
    if (text !== '') this.bodies.push(text);
    const disturbance = this.takeDisturbance(name);
    await this.passBarrier(name);
    if (disturbance === 'lost_request') return breakAnswer(response);
    if (disturbance === 'html')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
    const call = { name, query: Object.fromEntries(searchParams), body: text === '' ? undefined : JSON.parse(text) };
    const answer = this.#answer(request.headers.authorization ?? '', call, disturbance);
    if (disturbance === 'lost_answer') return breakAnswer(response);
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(JSON.stringify(answer.body));
  }

  #answer(authorization: string, call: Call, disturbance: Disturbance | null): Answer {
    try {
      const key = authorization.replace(/^bearer /i, '');
      if (this.is_revoked || key !== this.api_key)
        throw new PaddleRefusal('forbidden', "You aren't permitted to perform this request.", { status: 403 });
      if (disturbance === 'rate_limit')
        throw new PaddleRefusal('too_many_requests', 'Too many requests', { status: 429 });
      if (disturbance === 'fault') throw FAULT;
      const body = structuredClone(this.#run(call));
      if (disturbance === 'lost_fault') throw FAULT;
      return { status: call.name.startsWith('POST ') ? 201 : 200, body };
    } catch (error) {
      if (!(error instanceof PaddleRefusal)) throw error;
      return { status: error.status, body: error.body, headers: error.status === 429 ? this.retryHeaders : {} };
    }
  }

  #run({ name, query, body }: Call): unknown {
    for (const { at, filters = [], page_max, run } of OPERATIONS) {
      const found = at.exec(name);
      if (found === null) continue;
      const allowed = page_max === undefined ? filters : [...filters, ...PAGED];
      const unknown = Object.keys(query).find((field) => !allowed.includes(field));
      if (unknown !== undefined) throw refuseField(unknown, 'is not allowed');
      const data = run(this, { id: found[1] ?? '', body });
      return page_max === undefined
        ? toAnswer(data)
        : this.#page(data as FakeRecord[], { path: name.slice('GET '.length), query, page_max });
    }
    throw new PaddleRefusal('invalid_url', `The URL ${name} was not found`, { status: 404 });
  }

  #page(all: readonly FakeRecord[], { path, query, page_max }: ListCall): unknown {
    const { per_page = String(Math.min(page_max, 50)), after, 'created_at[GTE]': since, ...filters } = query;
    if (!/^\d+$/.test(per_page) || Number(per_page) > page_max) throw refuseField('per_page', `at most ${page_max}`);
    const { order_by: _order, ...wanted } = filters;
    const matching = all.filter(
      (record) =>
        (since === undefined || record.created_at >= since) &&
        Object.entries(wanted).every(([field, values]) => values.split(',').includes(String(record[field as 'id']))),
    );
    const begin = after === undefined ? 0 : matching.findIndex(({ id }) => id === after) + 1;
    const data = matching.slice(begin, begin + Number(per_page));
    const has_more = begin + data.length < matching.length;
    const following = new URLSearchParams({ ...query, after: data.at(-1)?.id ?? '' });
    const next = `${this.url.origin}/${path}?${following}`;
    const pagination = { per_page: Number(per_page), next, has_more, estimated_total: matching.length };
    return { data, meta: { request_id: 'request', pagination } };
  }
}

function toAnswer(data: unknown): object {
  return { data, meta: { request_id: 'request' } };
}

const PAGED = ['per_page', 'after', 'order_by'];

type Operation = {
  readonly at: RegExp;
  readonly filters?: readonly string[];
  /** Maximum page size of a list. */
  readonly page_max?: number;
  run(fake: PaddleFake, request: { id: string; body: unknown }): unknown;
};

const OPERATIONS: readonly Operation[] = [
  {
    at: /^GET $/,
    run: ({ account }) => ({
      api: { name: 'Paddle API', version: '1', environment: 'sandbox' },
      caller: { auth_type: 'api_key', account, permissions: [] },
    }),
  },
  { at: /^POST customers$/, run: ({ book }, { body }) => book.createCustomer(parseBody('customer', body)) },
  { at: /^GET customers\/(\w+)$/, run: ({ book }, { id }) => book.find(id, 'ctm') },
  {
    at: /^POST customers\/(\w+)\/addresses$/,
    run: ({ book }, { id, body }) => book.createAddress(id, parseBody('address', body)),
  },
  {
    at: /^GET customers\/(\w+)\/addresses$/,
    filters: ['status', 'id'],
    page_max: 200,
    run: ({ book }, { id }) =>
      book.list<FakeRecord & { customer_id: string }>('add').filter((address) => address.customer_id === id),
  },
  { at: /^POST transactions$/, run: ({ book }, { body }) => book.createTransaction(parseBody('transaction', body)) },
  {
    at: /^GET transactions$/,
    filters: ['customer_id', 'status', 'id', 'collection_mode', 'created_at[GTE]'],
    page_max: 30,
    run: ({ book }) => book.list('txn'),
  },
  { at: /^GET transactions\/(\w+)$/, run: ({ book }, { id }) => book.find(id, 'txn') },
  {
    at: /^PATCH transactions\/(\w+)$/,
    run: ({ book }, { id, body }) => book.updateTransaction(id, parseBody('update', body)),
  },
  { at: /^POST adjustments$/, run: ({ adjustments }, { body }) => adjustments.create(parseBody('adjustment', body)) },
  {
    at: /^GET adjustments$/,
    filters: ['transaction_id', 'action', 'status', 'customer_id', 'id'],
    page_max: 50,
    run: ({ book }) => book.list('adj'),
  },
];

/** Signs a webhook at a time in Unix seconds, with each of the secrets. */
export function signPaddleBody(body: string, secrets: readonly string[], time: number): string {
  const signatures = secrets.map((secret) => createHmac('sha256', secret).update(`${time}:${body}`).digest('hex'));
  return [`ts=${time}`, ...signatures.map((signature) => `h1=${signature}`)].join(';');
}
