/**
 * A small stateful fake of one site of Chargebee, by its public documentation; Chargebee's library talks to it. Requests: apidocs.chargebee.com,
 * "Error handling and rate limits", "Idempotent requests", "Pagination", "Events". Records: chargebee-fake-site.ts.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { checkParameters, type Input } from './chargebee-fake-parameters.ts';
import { ChargebeeRefusal, refuseMissing } from './chargebee-fake-refusal.ts';
import { ChargebeeSite, type InvoiceRecord, type SiteRecord } from './chargebee-fake-site.ts';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';

/**
 * Failures of the next request at a path. Without an effect: `lost_request` breaks the connection, `fault` answers 500, `rate_limit` answers
 * 429, `bad_gateway` answers the page of a proxy. After the effect: `lost_answer` breaks the connection.
 */
export type Disturbance = 'lost_request' | 'lost_answer' | 'fault' | 'rate_limit' | 'bad_gateway';

type Call = {
  readonly method: string;
  readonly path: string;
  readonly fields: URLSearchParams;
  readonly key: string | undefined;
};
type Answer = { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };
export type SiteEvent = { id: string; event_type: string; [field: string]: unknown };

export const API_KEY = 'test_fake_key_of_the_site';

export class ChargebeeFake extends FakeServer<Disturbance> {
  /** API keys of the site. */
  readonly keys = new Set([API_KEY]);
  readonly site: ChargebeeSite;
  readonly events: SiteEvent[] = [];
  /** Bodies of the requests, as sent. */
  readonly bodies: string[] = [];
  readonly #answers = new Map<string, { request: string; body: unknown }>();

  constructor() {
    super();
    this.site = new ChargebeeSite((event_type, content) => this.#record(event_type, content));
  }

  #record(event_type: string, content: Record<string, SiteRecord>): void {
    const id = `ev___test__${String(this.events.length + 1).padStart(8, '0')}`;
    const common = { id, object: 'event', api_version: 'v2', source: 'api', webhook_status: 'scheduled' };
    this.events.push({ ...common, event_type, occurred_at: this.site.now, content: structuredClone(content) });
  }

  /** Forgets the idempotency keys, as Chargebee does after half an hour. */
  forgetKeys(): void {
    this.#answers.clear();
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const { pathname, searchParams } = new URL(request.url!, 'http://fake');
    const path = decodeURIComponent(pathname.replace(/^\/api\/v2\//, ''));
    const method = request.method!;
    const name = `${method} ${path}`;
    this.requests.push(name);
    this.bodies.push(body);
    await this.passBarrier(name);
    const disturbance = this.takeDisturbance(name);
    if (disturbance === 'lost_request') return breakAnswer(response);
    if (disturbance === 'bad_gateway')
      return void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
    const key = request.headers['chargebee-idempotency-key'] as string | undefined;
    const fields = method === 'GET' ? searchParams : new URLSearchParams(body);
    const answer = this.#answer(request.headers.authorization ?? '', { method, path, fields, key }, disturbance);
    if (disturbance === 'lost_answer') return breakAnswer(response);
    response.writeHead(answer.status, { 'content-type': 'application/json;charset=utf-8', ...answer.headers });
    response.end(JSON.stringify(answer.body));
  }

  #answer(authorization: string, call: Call, disturbance: Disturbance | null): Answer {
    try {
      const given = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString('utf8');
      if (this.is_revoked || !given.endsWith(':') || !this.keys.has(given.slice(0, -1)))
        throw new ChargebeeRefusal(401, 'api_authentication_failed', 'Sorry, authentication failed. Invalid api key');
      if (disturbance === 'rate_limit')
        throw new ChargebeeRefusal(429, 'api_request_limit_exceeded', 'You are sending too many requests.', {
          type: 'operation_failed',
        });
      if (disturbance === 'fault')
        throw new ChargebeeRefusal(500, 'internal_error', 'Sorry, something went wrong.', { type: 'operation_failed' });
      return { status: 200, ...this.#runOnce(call) };
    } catch (error) {
      if (!(error instanceof ChargebeeRefusal)) throw error;
      return { status: error.status, body: error.body, headers: error.status === 429 ? this.retryHeaders : {} };
    }
  }

  /** Returns the first answer to a repeated request with its key. Only answers with an effect are stored. */
  #runOnce(call: Call): Omit<Answer, 'status'> {
    const { method, path, fields, key } = call;
    if (method !== 'POST' || key === undefined) return { body: structuredClone(this.#run(call)) };
    if (key.length > 100) throw new ChargebeeRefusal(400, 'param_wrong_value', 'The idempotency key is too long');
    const request = `${path}?${fields}`;
    const stored = this.#answers.get(key);
    if (stored !== undefined && stored.request !== request)
      throw new ChargebeeRefusal(422, 'unable_to_process_request', 'The idempotency key has been used already.');
    if (stored !== undefined) return { body: stored.body, headers: { 'chargebee-idempotency-replayed': 'true' } };
    const body = structuredClone(this.#run(call));
    this.#answers.set(key, { request, body });
    return { body };
  }

  #run({ method, path, fields }: Call): unknown {
    for (const [operation, run] of Object.entries(OPERATIONS)) {
      const found = new RegExp(`^${operation.replaceAll('*', '(.+)')}$`).exec(`${method} ${path}`);
      if (found !== null) return run(this.site, { id: found[1] ?? '', input: checkParameters(operation, fields) });
    }
    throw refuseMissing(path);
  }
}

type Operation = (site: ChargebeeSite, request: { id: string; input: Input }) => unknown;

function list(object: string, accept: (record: SiteRecord, input: Input) => boolean = () => true): Operation {
  return (site, { input }) => {
    const limit = input.integer('limit') ?? 10;
    const from = Number(JSON.parse(input.text('offset') ?? '["0"]')[0]);
    const all = site.list(object, (record) => accept(record, input));
    const next = from + limit < all.length ? { next_offset: JSON.stringify([String(from + limit)]) } : {};
    return { list: all.slice(from, from + limit).map((record) => ({ [object]: record })), ...next };
  };
}

const equals = (field: string) => (record: SiteRecord, input: Input) => record[field] === input.text(`${field}[is]`);
const retrieve =
  (object: string): Operation =>
  (site, { id }) => ({ [object]: site.find(object, id) });

/** Operations by method and path. Those of a record come before the record itself. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET customers': list('customer'),
  'POST customers': (site, { input }) => ({ customer: site.createCustomer(input) }),
  'GET invoices': list(
    'invoice',
    (record, input) =>
      equals('customer_id')(record, input) && record.updated_at > Number(input.text('updated_at[after]') ?? 0),
  ),
  'POST invoices/create_for_charge_items_and_charges': (site, { input }) => ({ invoice: site.createInvoice(input) }),
  'POST invoices/*/void': (site, { id }) => site.voidInvoice(id),
  'POST invoices/*/record_payment': (site, { id, input }) => site.recordPayment(id, input),
  'POST invoices/*/collect_payment': (site, { id, input }) => site.collectPayment(id, input),
  'POST invoices/*/record_refund': (site, { id, input }) => site.recordRefund(id, input),
  'POST invoices/*/refund': (site, { id, input }) => site.refundInvoice(id, input),
  'GET invoices/*': retrieve('invoice'),
  'GET customers/*': retrieve('customer'),
  'GET credit_notes': list('credit_note', equals('reference_invoice_id')),
  'POST credit_notes': (site, { input }) => {
    const credit_note = site.createCreditNote(input);
    return { credit_note, invoice: site.find<InvoiceRecord>('invoice', credit_note.reference_invoice_id) };
  },
  'POST credit_notes/*/void': (site, { id }) => ({ credit_note: site.voidCreditNote(id) }),
  'GET credit_notes/*': retrieve('credit_note'),
  'GET transactions': list('transaction', ({ id }, input) => JSON.parse(input.require('id[in]')).includes(id)),
  'POST transactions/*/delete_offline_transaction': (site, { id }) => ({ transaction: site.deleteOffline(id) }),
  'GET transactions/*': retrieve('transaction'),
  'GET payment_sources': list('payment_source', equals('customer_id')),
  'GET payment_sources/*': retrieve('payment_source'),
  'POST hosted_pages/collect_now': (site, { input }) => ({ hosted_page: site.createPage('collect_now', input) }),
  'POST hosted_pages/manage_payment_sources': (site, { input }) => ({
    hosted_page: site.createPage('manage_payment_sources', input),
  }),
  'GET hosted_pages/*': retrieve('hosted_page'),
  'GET comments': list(
    'comment',
    (record, input) =>
      record['entity_type'] === input.require('entity_type') && record['entity_id'] === input.require('entity_id'),
  ),
  'POST comments': (site, { input }) => ({ comment: site.createComment(input) }),
};
