/**
 * A small stateful fake of Whop, by its public documentation: docs.whop.com/developer/troubleshooting, /developer/api/idempotency,
 * /developer/guides/webhooks. Records: whop-fake-book.ts. Whop stores the keys of newer operations only; here those of checkout configurations.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';
import { COMPANY, type Fields, filterTimes, WhopBook } from './whop-fake-book.ts';
import { WhopRefusal } from './whop-fake-refusal.ts';

/**
 * Failures of the next request at a path. Without an effect: `lost_request` breaks the connection, `fault` answers 500, `rate_limit` 429, and
 * `html` the page of a proxy with status 200. After the effect: `lost_answer` breaks the connection, `lost_fault` answers 500.
 */
export const WHOP_DISTURBANCES = ['lost_request', 'lost_answer', 'fault', 'lost_fault', 'rate_limit', 'html'] as const;
type Disturbance = (typeof WHOP_DISTURBANCES)[number];

type Answer = { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };
type Call = {
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Fields;
  readonly key: string | undefined;
};

/** Records of a page of a list, so that searches read several. */
const PAGE = 3;

export class WhopFake extends FakeServer<Disturbance> {
  readonly keys = new Set(['key_fake']);
  readonly events: Fields[] = [];
  /** Body of the last request that had one. */
  last_body = '';
  readonly book = new WhopBook((type, data) => {
    const id = `msg_${this.events.length + 1}`;
    const timestamp = new Date().toISOString();
    this.events.push({ id, type, api_version: 'v1', timestamp, company_id: COMPANY, data: structuredClone(data) });
  });
  readonly #answers = new Map<string, { call: string; answer: Answer }>();

  forgetKeys(): void {
    this.#answers.clear();
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    if (text !== '') this.last_body = text;
    const { pathname, searchParams } = new URL(request.url!, 'http://fake');
    const name = `${request.method} ${pathname.replace(/^\/api\/v1\//, '')}`;
    this.requests.push(name);
    await this.passBarrier(name);
    const disturbance = this.takeDisturbance(name);
    if (disturbance === 'lost_request') return breakAnswer(response);
    if (disturbance === 'html')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
    const { authorization = '', 'idempotency-key': key, 'api-version-date': date } = request.headers;
    const body = text === '' ? {} : JSON.parse(text);
    const call = { name, query: Object.fromEntries(searchParams), body, key: key as string | undefined };
    const access = { authorization, date: String(date) };
    const answer = this.#answer(access, call, disturbance);
    if (disturbance === 'lost_answer') return breakAnswer(response);
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(JSON.stringify(answer.body));
  }

  #answer(
    { authorization, date }: { authorization: string; date: string },
    call: Call,
    disturbance: Disturbance | null,
  ): Answer {
    try {
      if (this.is_revoked || !this.keys.has(authorization.replace(/^Bearer /, ''))) throw new WhopRefusal(401);
      if (date !== '2026-07-20') throw new WhopRefusal(400, `the tests do not use the version ${date}`);
      if (disturbance === 'rate_limit') throw new WhopRefusal(429);
      if (disturbance === 'fault') throw new WhopRefusal(500);
      const answer = this.#runOnce(call);
      if (disturbance === 'lost_fault') throw new WhopRefusal(500);
      return answer;
    } catch (error) {
      if (!(error instanceof WhopRefusal)) throw error;
      return { status: error.status, body: error.body, headers: error.status === 429 ? this.retryHeaders : {} };
    }
  }

  /** Repeats the answer of a key, also a refusal. */
  #runOnce(call: Call): Answer {
    const { name, body, key } = call;
    const isKept = key !== undefined && name === 'POST checkout_configurations';
    const stored = isKept ? this.#answers.get(key) : undefined;
    const text = JSON.stringify(body);
    if (stored !== undefined && stored.call !== text)
      throw new WhopRefusal(400, 'the key was used for another request');
    if (stored !== undefined) return stored.answer;
    const answer = this.#run(call);
    if (isKept) this.#answers.set(key, { call: text, answer });
    return answer;
  }

  #run({ name, query, body }: Call): Answer {
    for (const { at, query: parameters = NOTHING, body: allowed = {}, run } of OPERATIONS) {
      const found = at.exec(name);
      if (found === null) continue;
      for (const field of Object.keys(query)) if (!parameters.test(field)) throw unknownField(field);
      checkFields(body, allowed);
      const result = structuredClone(run(this.book, { id: found[1] ?? '', query, body }));
      return { status: 200, body: Array.isArray(result) ? toPage(result, query) : result };
    }
    throw new WhopRefusal(404);
  }
}

type Shape = { readonly [field: string]: Shape | true };

function checkFields(value: unknown, allowed: Shape): void {
  if (Array.isArray(value)) return value.forEach((one) => checkFields(one, allowed));
  for (const [field, inner] of Object.entries(value as Fields)) {
    const shape = Object.hasOwn(allowed, field) ? allowed[field] : undefined;
    if (shape === undefined) throw unknownField(field);
    if (shape !== true) checkFields(inner, shape);
  }
}

function unknownField(field: string): WhopRefusal {
  return new WhopRefusal(400, `${field} is unknown`);
}

function toPage(records: readonly { id: string }[], { after, first = '100' }: Call['query']) {
  const start = after === undefined ? 0 : records.findIndex(({ id }) => id === after) + 1;
  const data = records.slice(start, start + Math.min(PAGE, Number(first)));
  const has_next_page = start + data.length < records.length;
  const end_cursor = data.at(-1)?.id ?? null;
  return {
    data,
    page_info: { has_next_page, has_previous_page: start > 0, start_cursor: data[0]?.id ?? null, end_cursor },
  };
}

type Operation = {
  readonly at: RegExp;
  /** Names of parameters. */
  readonly query?: RegExp;
  readonly body?: Shape;
  run(book: WhopBook, request: { id: string } & Pick<Call, 'query' | 'body'>): unknown;
};

const NOTHING = /^$/;
const TIMES = 'first|after|created_after|created_before|direction|order';
const PRICE = { plan_type: true, initial_price: true, currency: true, internal_notes: true } as const;
const OWN_PLAN = { ...PRICE, title: true, visibility: true, force_create_new_plan: true, product_id: true } as const;

const OPERATIONS: readonly Operation[] = [
  { at: /^GET companies\/(\w+)$/, run: (_book, { id }) => showCompany(id) },
  {
    at: /^GET invoices$/,
    query: new RegExp(`^(?:company_id|product_ids\\[\\]|statuses\\[\\]|${TIMES})$`),
    run: (book, { query }) => book.listInvoices(query),
  },
  {
    at: /^POST invoices$/,
    body: {
      ...{ company_id: true, collection_method: true, due_date: true, charge_buyer_fee: true, product_id: true },
      ...{ email_address: true, customer_name: true, member_id: true, save_as_draft: true, product: { title: true } },
      plan: { ...PRICE, adaptive_pricing_enabled: true },
      line_items: { label: true, unit_price: true, quantity: true },
    },
    run: (book, { body }) => book.createInvoice(body),
  },
  { at: /^GET invoices\/(\w+)$/, run: (book, { id }) => book.find(book.invoices, id) },
  { at: /^DELETE invoices\/(\w+)$/, run: (book, { id }) => book.deleteInvoice(id) },
  { at: /^POST invoices\/(\w+)\/void$/, run: (book, { id }) => book.endInvoice(id, 'void') },
  {
    at: /^GET payments$/,
    query: new RegExp(`^(?:company_id|plan_ids\\[\\]|checkout_configuration_ids\\[\\]|${TIMES})$`),
    run: (book, { query }) => book.listPayments(query),
  },
  {
    at: /^POST payments$/,
    body: {
      ...{ company_id: true, member_id: true, payment_method_id: true, metadata: true },
      plan: { ...OWN_PLAN, product: { external_identifier: true, title: true } },
    },
    run: (book, { body }) => book.createPayment(body),
  },
  { at: /^GET payments\/(\w+)$/, run: (book, { id }) => book.find(book.payments, id) },
  {
    at: /^POST payments\/(\w+)\/refund$/,
    body: { partial_amount: true },
    run: (book, { id, body }) => book.refundPayment(id, body),
  },
  { at: /^POST payments\/(\w+)\/void$/, run: (book, { id }) => book.voidPayment(id) },
  {
    at: /^GET checkout_configurations$/,
    query: new RegExp(`^(?:account_id|plan_id|${TIMES})$`),
    run: (book, { query }) => filterTimes([...book.checkouts.values()], query),
  },
  {
    at: /^POST checkout_configurations$/,
    body: {
      ...{ account_id: true, mode: true, redirect_url: true, metadata: true },
      plan: { ...OWN_PLAN, stock: true, unlimited_stock: true },
    },
    run: (book, { body }) => book.createCheckout(body),
  },
  { at: /^GET checkout_configurations\/(\w+)$/, run: (book, { id }) => book.find(book.checkouts, id) },
  { at: /^DELETE checkout_configurations\/(\w+)$/, run: (book, { id }) => book.deleteCheckout(id) ?? null },
  {
    at: /^GET setup_intents$/,
    query: new RegExp(`^(?:company_id|${TIMES})$`),
    run: (book, { query }) => filterTimes([...book.setups.values()], query),
  },
  { at: /^GET setup_intents\/(\w+)$/, run: (book, { id }) => book.find(book.setups, id) },
];

function showCompany(id: string): Fields {
  if (id !== COMPANY) throw new WhopRefusal(404);
  return { id, title: 'Fake Company', route: 'fake' };
}

/** Signs a delivery with the characters of the secret, as Whop does. */
export function signWhopBody(body: string, secret: string, { id = 'msg_1', now = new Date() } = {}) {
  const timestamp = String(Math.floor(now.getTime() / 1_000));
  const digest = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` };
}
