/**
 * A small stateful fake of Moyasar, by its public documentation. Requests: docs.moyasar.com/api/authentication, /api/errors,
 * /webhook-reference. Records: moyasar-fake-book.ts. The page about errors does not name the type of an unknown id.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';
import { type Fields, MoyasarBook } from './moyasar-fake-book.ts';
import { MoyasarRefusal } from './moyasar-fake-refusal.ts';

/**
 * Failures of the next request at a path. Without an effect: `lost_request` breaks the connection, `fault` answers 500, `rate_limit` 429, and
 * `html` the page of a proxy with status 200. After the effect: `lost_answer` breaks the connection, `lost_fault` answers 500.
 */
export const MOYASAR_DISTURBANCES = [
  'lost_request',
  'lost_answer',
  'fault',
  'lost_fault',
  'rate_limit',
  'html',
] as const;
type Disturbance = (typeof MOYASAR_DISTURBANCES)[number];

type Answer = { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };
type Call = { readonly name: string; readonly query: Readonly<Record<string, string>>; readonly body: Fields };

export class MoyasarFake extends FakeServer<Disturbance> {
  readonly keys = new Set(['sk_test_fake', 'sk_live_fake']);
  /** Webhooks without their secret token. */
  readonly events: Readonly<Record<string, unknown>>[] = [];
  readonly book = new MoyasarBook((type, payment) => {
    const created_at = new Date().toISOString();
    this.events.push({ id: randomUUID(), type, created_at, account_name: 'Fake', live: false, data: { ...payment } });
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
    const answer = this.#answer(request.headers.authorization ?? '', call, disturbance);
    if (disturbance === 'lost_answer') return breakAnswer(response);
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(JSON.stringify(answer.body));
  }

  #answer(authorization: string, call: Call, disturbance: Disturbance | null): Answer {
    try {
      const credentials = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString('utf8');
      if (this.is_revoked || !this.keys.has(credentials.replace(/:$/, ''))) throw new MoyasarRefusal(401);
      if (disturbance === 'rate_limit') throw new MoyasarRefusal(429);
      if (disturbance === 'fault') throw new MoyasarRefusal(500);
      const body = structuredClone(this.#run(call));
      if (disturbance === 'lost_fault') throw new MoyasarRefusal(500);
      return { status: /^POST \w+$/.test(call.name) ? 201 : 200, body };
    } catch (error) {
      if (!(error instanceof MoyasarRefusal)) throw error;
      return { status: error.status, body: error.body, headers: error.status === 429 ? this.retryHeaders : {} };
    }
  }

  #run({ name, query, body }: Call): unknown {
    for (const { at, allowed, run } of OPERATIONS) {
      const found = at.exec(name);
      if (found === null) continue;
      for (const field of [...Object.keys(query), ...Object.keys(body)])
        if (!allowed.test(field)) throw new MoyasarRefusal(400, { [field]: ['is unknown'] });
      return run(this.book, { id: found[1] ?? '', query, body });
    }
    throw new MoyasarRefusal(404);
  }
}

type Operation = {
  readonly at: RegExp;
  /** Names of parameters. */
  readonly allowed: RegExp;
  run(book: MoyasarBook, request: { id: string } & Pick<Call, 'query' | 'body'>): unknown;
};

const NOTHING = /^$/;
const INVOICE = /^(?:amount|currency|description|callback_url|success_url|back_url|expired_at|metadata)$/;

const OPERATIONS: readonly Operation[] = [
  {
    at: /^GET invoices$/,
    allowed: /^(?:page|id|status|created\[[gl]t\]|metadata\[\w+\])$/,
    run: (book, { query }) => book.listInvoices(query),
  },
  { at: /^POST invoices$/, allowed: INVOICE, run: (book, { body }) => book.createInvoice(body) },
  { at: /^GET invoices\/([\w-]+)$/, allowed: NOTHING, run: (book, { id }) => book.showInvoice(id) },
  { at: /^PUT invoices\/([\w-]+)\/cancel$/, allowed: NOTHING, run: (book, { id }) => book.cancelInvoice(id) },
  {
    at: /^POST payments$/,
    allowed: /^(?:given_id|amount|currency|description|callback_url|source|metadata|apply_coupon)$/,
    run: (book, { body }) => book.createPayment(body),
  },
  { at: /^GET payments\/([\w-]+)$/, allowed: NOTHING, run: (book, { id }) => book.findPayment(id) },
  {
    at: /^PUT payments\/([\w-]+)$/,
    allowed: /^(?:description|metadata)$/,
    run: (book, { id, body }) => book.updatePayment(id, body),
  },
  {
    at: /^POST payments\/([\w-]+)\/refund$/,
    allowed: /^amount$/,
    run: (book, { id, body }) => book.refundPayment(id, body),
  },
  { at: /^POST payments\/([\w-]+)\/void$/, allowed: NOTHING, run: (book, { id }) => book.voidPayment(id) },
];
