/**
 * A small stateful fake of Stripe, by its public documentation; Stripe's library talks to it. Requests:
 * docs.stripe.com/api/authentication, /errors, /expanding_objects, /idempotent_requests, /pagination,
 * docs.stripe.com/rate-limits, /webhooks, /search. Records: stripe-fake-records.ts. If it accepts a request that
 * stripe-mock refuses, this file has a fault (test/integrations/stripe/contract.test.ts).
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';
import { MONEY_OUT_OPERATIONS } from './stripe-fake-money-out.ts';
import { checkParameters, type Parameters, parseForm } from './stripe-fake-parameters.ts';
import { type InvoiceRecord, StripeBook, type StripeRecord, seconds } from './stripe-fake-records.ts';
import { StripeRefusal } from './stripe-fake-refusal.ts';
import { STRIPE_OPERATIONS } from './stripe-fake-routes.ts';

/**
 * Failures of the next request at a path. `lost_request`: the connection breaks within the answer, and the request has no effect.
 * `lost_answer`: it breaks there after the effect. `closed`: it closes after the effect and before the answer, so the library repeats the
 * request once. `fault`: status 500 without an effect, stored under the idempotency key; `lost_fault`: likewise, after the effect.
 * `unavailable`: status 503, and `refused`: status 400, both without an effect and not stored. `html`: the page of a proxy with status 200
 * and no effect.
 */
export type Disturbance =
  | 'closed'
  | 'lost_request'
  | 'lost_answer'
  | 'fault'
  | 'lost_fault'
  | 'unavailable'
  | 'rate_limit'
  | 'refused'
  | 'html';

type Answer = { status: number; body: unknown; headers?: Record<string, string> };
type StoredAnswer = { fingerprint: string; answer: Answer | null };
type StripeEvent = { id: string; type: string; created: number; data: { object: unknown }; [field: string]: unknown };

export class StripeFake extends FakeServer<Disturbance> {
  /** Keys of the account. */
  readonly keys = new Set(['sk_test_fake', 'sk_live_fake', 'rk_test_fake']);
  readonly book: StripeBook;
  readonly events: StripeEvent[] = [];
  /** Every request is answered with 503 and has no effect. */
  isAway = false;
  /** Method and path of requests that the restricted key may not send. */
  readonly forbidden: RegExp[] = [];
  #indexed = new Set<string>();
  readonly #answers = new Map<string, StoredAnswer>();
  #limit: { requests: number; per_ms: number } | null = null;
  #recent: number[] = [];

  constructor() {
    super();
    this.book = new StripeBook((type, object) => {
      const id = `evt_${String(this.events.length + 1).padStart(14, '0')}`;
      const common = { object: 'event', api_version: '2026-10-28.endive', livemode: false, pending_webhooks: 1 };
      this.events.push({ ...common, id, type, created: seconds(), data: { object: structuredClone(object) } });
    });
  }

  limitRate(limit: { requests: number; per_ms: number } | null): void {
    this.#limit = limit;
  }

  /** Forgets all keys, as Stripe forgets those older than a day. */
  forgetKeys(): void {
    this.#answers.clear();
  }

  /** Adds all records to the search index. At Stripe this happens later, by itself. */
  indexSearch(): void {
    this.#indexed = new Set(this.book.records.keys());
  }

  listInvoices(): InvoiceRecord[] {
    return this.book.list('invoice');
  }

  /** Posts an event, signed with each of the secrets, and returns the status of the answer. */
  async sendEvent(event: StripeEvent, { url, secrets }: { url: string; secrets: readonly string[] }): Promise<number> {
    const body = JSON.stringify(event);
    const headers = {
      'content-type': 'application/json',
      'stripe-signature': signStripeBody(body, secrets, seconds()),
    };
    return (await fetch(url, { method: 'POST', headers, body })).status;
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await readBody(request);
    const { pathname, search } = new URL(request.url!, 'http://fake');
    const text = request.method === 'POST' ? sent : search.slice(1);
    const path = pathname.replace(/^\/v1\//, '');
    const name = `${request.method} ${path}`;
    this.requests.push(name);
    const disturbance = this.takeDisturbance(name);
    if (disturbance === 'lost_request') return breakAnswer(response);
    const answer = disturbance === 'html' ? null : await this.#answer(request, { name, path, text, disturbance });
    if (disturbance === 'closed') return void request.socket.destroy();
    if (disturbance === 'lost_answer') return breakAnswer(response);
    if (answer === null)
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
    const request_id = `req_${this.requests.length}`;
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      'request-id': request_id,
      ...answer.headers,
    });
    response.end(JSON.stringify(answer.body));
  }

  async #answer(request: IncomingMessage, call: StripeCall): Promise<Answer> {
    try {
      this.#checkAccess(request.headers.authorization ?? '', call.name);
      this.#checkRate(call.disturbance);
      if (call.disturbance === 'unavailable' || this.isAway)
        throw new StripeRefusal(503, { type: 'api_error', message: 'Unavailable' });
      if (call.disturbance === 'refused') throw new StripeRefusal(400, { message: 'Refused' });
      const key = request.headers['idempotency-key'];
      if (typeof key !== 'string' || request.method !== 'POST') {
        await this.passBarrier(call.name);
        return this.#run(call);
      }
      return await this.#runOnce(key, call);
    } catch (error) {
      return toAnswer(error);
    }
  }

  #checkAccess(authorization: string, name: string): void {
    const key = authorization.replace(/^Bearer /, '');
    if (this.is_revoked || !this.keys.has(key))
      throw new StripeRefusal(401, { message: `Invalid API Key provided: ${key.slice(0, 8)}****${key.slice(-4)}` });
    if (key.startsWith('rk_') && this.forbidden.some((at) => at.test(name)))
      throw new StripeRefusal(403, {
        message: `The provided key '${key.slice(0, 8)}****' does not have the required permissions`,
      });
  }

  #checkRate(disturbance: Disturbance | null): void {
    const now = performance.now();
    this.#recent = this.#recent.filter((at) => this.#limit !== null && at > now - this.#limit.per_ms);
    if (disturbance !== 'rate_limit' && (this.#limit === null || this.#recent.length < this.#limit.requests)) {
      this.#recent.push(now);
      return;
    }
    const headers = { ...this.retryHeaders, 'stripe-rate-limited-reason': 'global-rate' };
    throw new StripeRefusal(429, { code: 'rate_limit', message: 'Request rate limit exceeded' }, headers);
  }

  /** Runs a request once per key: a repetition gets the first answer. Refused parameters are not stored. */
  async #runOnce(key: string, call: StripeCall): Promise<Answer> {
    if (key.length > 255) throw new StripeRefusal(400, { message: 'Idempotency keys must be at most 255 characters.' });
    const fingerprint = `${call.name}?${call.text}`;
    const stored = this.#answers.get(key);
    if (stored !== undefined && stored.fingerprint !== fingerprint)
      throw new StripeRefusal(400, {
        type: 'idempotency_error',
        message: 'Keys for idempotent requests can only be used with the same parameters they were first used with.',
      });
    if (stored?.answer === null)
      throw new StripeRefusal(409, {
        code: 'idempotency_key_in_use',
        message: 'There is another request with this key in progress.',
      });
    if (stored !== undefined) return { ...stored.answer!, headers: { 'idempotent-replayed': 'true' } };
    parseCall(call);
    this.#answers.set(key, { fingerprint, answer: null });
    await this.passBarrier(call.name);
    const answer = this.#runStored(call);
    this.#answers.set(key, { fingerprint, answer });
    return answer;
  }

  #runStored(call: StripeCall): Answer {
    const fault = new StripeRefusal(500, { type: 'api_error', message: 'An unknown error occurred' });
    try {
      if (call.disturbance === 'fault') throw fault;
      const answer = this.#run(call);
      if (call.disturbance === 'lost_fault') throw fault;
      return answer;
    } catch (error) {
      return toAnswer(error);
    }
  }

  #run(call: StripeCall): Answer {
    const { operation, id, parameters } = parseCall(call);
    const result = operation.run({ id, parameters, book: this.book, isIndexed: (one) => this.#indexed.has(one) });
    const body = structuredClone(result) as StripeRecord;
    for (const path of (parameters['expand'] ?? []) as string[]) this.#expand(body, path);
    return { status: 200, body };
  }

  /** Replaces ids by their records. The payments of an invoice are included only on request. */
  #expand(body: StripeRecord, path: string): void {
    const [first = '', ...names] = path.split('.');
    if (names.length > 3)
      throw new StripeRefusal(400, { message: 'You cannot expand more than 4 levels of a property' });
    if (first === 'payments' && body.object === 'invoice' && body['payments'] === undefined) {
      const data = this.book.listPayments(body.id);
      body['payments'] = {
        object: 'list',
        has_more: data.length > 10,
        url: '/v1/invoice_payments',
        data: structuredClone(data.slice(0, 10)),
      };
    }
    this.#expandWithin(body, [first, ...names], path);
  }

  #expandWithin(record: Record<string, unknown> | null, [name, ...names]: string[], path: string): void {
    if (name === undefined || record === null) return;
    const value = record[name];
    // A payment outside Stripe has no payment intent.
    if (value === undefined && record['type'] !== undefined) return;
    if (value === undefined) throw new StripeRefusal(400, { message: `This property cannot be expanded (${path}).` });
    if (typeof value === 'string') record[name] = structuredClone(this.book.records.get(value) ?? value);
    for (const one of Array.isArray(value) ? value : [record[name]])
      this.#expandWithin(one as Record<string, unknown>, names, path);
  }
}

type StripeCall = { name: string; path: string; text: string; disturbance: Disturbance | null };

function parseCall({ name, path, text }: StripeCall) {
  const method = name.split(' ')[0];
  const operation = [...STRIPE_OPERATIONS, ...MONEY_OUT_OPERATIONS].find(
    (one) => one.method === method && one.path.test(path),
  );
  if (operation === undefined) throw new StripeRefusal(404, { message: `Unrecognized request URL (${name}).` });
  const parameters: Parameters = checkParameters(parseForm(text), operation.grammar);
  return { operation, id: operation.path.exec(path)![1] ?? '', parameters };
}

function toAnswer(error: unknown): Answer {
  if (error instanceof StripeRefusal) return { status: error.status, body: error.body, headers: error.headers };
  throw error;
}

/** Builds `t=…,v1=…`, with one `v1` per secret, as while a secret is rotated. */
export function signStripeBody(body: string, secrets: readonly string[], time: number): string {
  const sign = (secret: string) => createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
  return [`t=${time}`, ...secrets.map((secret) => `v1=${sign(secret)}`)].join(',');
}
