/**
 * A small stateful fake of Zoho Books with its token endpoint, by its public documentation: zoho.com/books/api/v3 (OAuth,
 * Introduction: organization id, response, pagination, limits; Errors) and zoho.com/accounts/protocol/oauth/multi-dc.html.
 * Records: zoho-books-fake-books.ts. Fields: zoho-books-fake-shapes.ts.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { JsonNumber, parseExactJson } from '../../../integrations/exact-json.ts';
import { writeExactAnswer } from './exact-answer.ts';
import { FakeServer, readBody } from './fake-server.ts';
import { type BooksRecord, ZohoBooksBooks } from './zoho-books-fake-books.ts';
import { BooksRefusal } from './zoho-books-fake-refusal.ts';
import { checkBody, checkParameters } from './zoho-books-fake-shapes.ts';

/**
 * Failures of the next request at a path. `lost_request`: the connection breaks before the request takes effect. `lost_answer`: it breaks
 * after the effect. `html`: the answer is the page of a proxy with status 200.
 */
type Disturbance =
  | 'lost_request'
  | 'lost_answer'
  | 'unavailable'
  | 'rate_limit'
  | 'day_limit'
  | 'refusal_in_200'
  | 'html';
type Answer = { status: number; body: unknown };

const AMOUNTS = new Set([
  ...['rate', 'quantity', 'item_total', 'total', 'balance', 'payment_made', 'credits_applied', 'write_off_amount'],
  ...['amount', 'amount_applied', 'credited_amount', 'price_precision'],
]);
const RECORD_FIELDS: Readonly<Record<string, string>> = {
  contacts: 'contact',
  invoices: 'invoice',
  customerpayments: 'payment',
  creditnotes: 'creditnote',
};
/** Fields that only the details of a record have. */
const DETAILS = ['notes', 'line_items', 'invoices'];

export class ZohoBooksFake extends FakeServer<Disturbance> {
  readonly books = new ZohoBooksBooks();
  /** Zoho sends no `Retry-After`. */
  override retry_after_seconds: number | null = null;
  /** Bodies of the requests, unparsed. */
  readonly bodies: string[] = [];
  /** Refresh tokens in the order in which they were sent. */
  readonly refreshed: string[] = [];
  app = { client_id: '1000.CLIENT', client_secret: 'client-secret' };
  access_token = '1000.access-0';
  refresh_token = '1000.refresh-0';
  api_domain = 'https://www.zohoapis.com';
  /** Organizations of the user besides that of the books. */
  other_organizations: { organization_id: string; name: string }[] = [];
  page_size = 200;
  is_throttled = false;
  readonly #codes = new Map<string, string>();
  #number = 0;

  get secrets() {
    const { organization_id } = this.books;
    return { ...this.app, organization_id, webhook_secret: 'webhookSecret1' };
  }

  /** Grants access as the owner does on the page; returns the parameters with which the browser is sent back. */
  consent(page: string) {
    const parameters = new URL(page).searchParams;
    const code = `1000.code-${++this.#number}`;
    this.#codes.set(code, parameters.get('redirect_uri')!);
    return { code, state: parameters.get('state')!, location: 'us', accounts_server: 'https://accounts.zoho.com' };
  }

  expireAccessToken(): void {
    this.access_token = `expired-${++this.#number}`;
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const url = new URL(request.url!, 'http://fake');
    const path = url.pathname.replace('/books/v3/', '').replace(/^\//, '');
    const name = `${request.method} ${path}`;
    this.requests.push(name);
    if (text !== '') this.bodies.push(text);
    const disturbance = this.takeDisturbance(name);
    await this.passBarrier(name);
    if (disturbance === 'lost_request') return void request.socket.destroy();
    const answer =
      disturb(disturbance) ??
      (path === 'oauth/v2/token' ? this.#issue(request, url, text) : this.#answer(request, { url, path, text }));
    if (disturbance === 'lost_answer') return void request.socket.destroy();
    if (disturbance === 'html')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Gateway</h1>');
    response.writeHead(answer.status, {
      'content-type': 'application/json;charset=UTF-8',
      ...(answer.status === 429 ? this.retryHeaders : {}),
    });
    response.end(writeExactAnswer(answer.body, AMOUNTS));
  }

  #issue(request: IncomingMessage, url: URL, text: string): Answer {
    if (request.method !== 'POST' || url.search !== '') return { status: 400, body: { error: 'invalid_request' } };
    if (this.is_throttled) return { status: 400, body: { error: 'Access Denied', status: 'failure' } };
    const form = new URLSearchParams(text);
    const { client_id, client_secret } = this.app;
    if (form.get('client_id') !== client_id || form.get('client_secret') !== client_secret)
      return { status: 200, body: { error: 'invalid_client' } };
    if (form.get('grant_type') === 'authorization_code') {
      const code = form.get('code')!;
      const isValid = this.#codes.get(code) === form.get('redirect_uri');
      this.#codes.delete(code);
      if (!isValid) return { status: 200, body: { error: 'invalid_code' } };
      this.refresh_token = `1000.refresh-${++this.#number}-${'r'.repeat(20)}`;
      return this.#renew({ refresh_token: this.refresh_token });
    }
    this.refreshed.push(form.get('refresh_token')!);
    const isKnown = form.get('refresh_token') === this.refresh_token && !this.is_revoked;
    return isKnown ? this.#renew({}) : { status: 200, body: { error: 'invalid_code' } };
  }

  #renew(tokens: { refresh_token?: string }): Answer {
    this.access_token = `1000.access-${++this.#number}-${'a'.repeat(20)}`;
    const { access_token, api_domain } = this;
    const body = { ...tokens, access_token, api_domain, token_type: 'Bearer', expires_in: new JsonNumber('3600') };
    return { status: 200, body };
  }

  #answer(request: IncomingMessage, call: Call): Answer {
    const token = /^Zoho-oauthtoken (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (this.is_revoked || token !== this.access_token) return toRefusal(57, 'Not authorized', 401);
    const { url, path } = call;
    const organization_id = url.searchParams.get('organization_id');
    if (path !== 'organizations' && organization_id !== this.books.organization_id)
      return toRefusal(6_041, 'This user is not associated with the CompanyID/CompanyName', 400);
    try {
      checkParameters(`${request.method} ${path}`, url.searchParams);
      const { status = 200, ...body } = this.#run(request.method!, call);
      return { status, body: { code: new JsonNumber('0'), message: 'success', ...structuredClone(body) } };
    } catch (error) {
      if (error instanceof BooksRefusal) return toRefusal(error.code, error.message, error.status);
      throw error;
    }
  }

  #run(method: string, { url, path, text }: Call): Record<string, unknown> & { status?: number } {
    const { books } = this;
    if (path === 'organizations') return this.#page(url, path, [this.#organization, ...this.other_organizations]);
    if (path === `organizations/${books.organization_id}`) return { organization: this.#organization };
    if (path === 'settings/currencies') return this.#page(url, 'currencies', books.currencies);
    const [name = '', id, part, part_id] = path.split('/');
    const field = RECORD_FIELDS[name];
    if (field === undefined) throw new BooksRefusal(5, 'Invalid URL Passed', 404);
    const operation = [method, id === undefined ? '' : 'id', part === 'status' ? `status/${part_id}` : (part ?? '')];
    switch (operation.join(' ').trim()) {
      case 'GET':
        return this.#page(url, name, this.#search(name, url.searchParams).map(toListed));
      case 'POST':
        return { status: 201, [field]: this.#show(name, this.#create(name, url.searchParams, text)) };
      case 'GET id':
        return { [field]: this.#show(name, books.read(name, id!)) };
      case 'DELETE id':
        books.delete(name, id!);
        return {};
      case 'GET id payments':
        return { payments: this.#listApplied('customerpayments', id!) };
      case 'GET id creditsapplied':
        return { credits: this.#listApplied('creditnotes', id!) };
      case 'GET id invoices':
        return { invoices_credited: this.#listCredited(id!) };
      case 'POST id invoices':
        checkBody('application', JSON.parse(text));
        books.applyCreditNote(id!, (parseExactJson(text) as { invoices: [] }).invoices);
        return {};
      case 'DELETE id invoices':
        books.unlink(part_id!);
        return {};
      case 'POST id status/sent':
      case 'POST id status/open':
      case 'POST id status/void':
        books.setStatus(name, id!, part_id!);
        return {};
      default:
        throw new BooksRefusal(5, 'Invalid URL Passed', 404);
    }
  }

  get #organization() {
    return { organization_id: this.books.organization_id, name: 'Zillum', currency_code: 'USD' };
  }

  #create(name: string, parameters: URLSearchParams, text: string): BooksRecord {
    checkBody(name, JSON.parse(text));
    const fields = parseExactJson(text) as Record<string, unknown>;
    const isNumbered = parameters.get('ignore_auto_number_generation') === 'true';
    if (name === 'contacts') return this.books.createContact(fields);
    if (name === 'invoices') return this.books.createInvoice(fields, isNumbered);
    if (name === 'creditnotes') return this.books.createCreditNote(fields, isNumbered);
    return this.books.createPayment(fields);
  }

  #search(name: string, parameters: URLSearchParams): BooksRecord[] {
    const has = (text: unknown, part: string) => String(text ?? '').includes(part);
    return this.books
      .list(name)
      .filter((record) =>
        [...parameters].every(([parameter, value]) => {
          if (['organization_id', 'page', 'per_page', 'filter_by'].includes(parameter)) return true;
          if (parameter !== 'search_text') return record[parameter] === value;
          return has(record['contact_name'], value) || has(record['notes'], value);
        }),
      )
      .filter(({ status }) => parameters.get('filter_by') === 'Status.All' || status !== 'inactive');
  }

  #page(url: URL, field: string, records: readonly object[]): Record<string, unknown> {
    const page = Number(url.searchParams.get('page') ?? '1');
    const per_page = Math.min(Number(url.searchParams.get('per_page') ?? '200'), this.page_size);
    const has_more_page = records.length > page * per_page;
    return { [field]: records.slice((page - 1) * per_page, page * per_page), page_context: { has_more_page } };
  }

  /** Adds the invoices to which the record is applied. */
  #show(name: string, { id, ...record }: BooksRecord): object {
    const links = this.books.listLinks(({ source, source_id }) => source === name && source_id === id);
    if (name === 'customerpayments')
      return { ...record, invoices: links.map(({ invoice_id, amount }) => ({ invoice_id, amount_applied: amount })) };
    if (name !== 'creditnotes') return record;
    return { ...record, invoices: links.map(({ invoice_id, amount }) => ({ invoice_id, amount })) };
  }

  #listApplied(name: string, invoice_id: string): object[] {
    this.books.read('invoices', invoice_id);
    const links = this.books.listLinks((link) => link.source === name && link.invoice_id === invoice_id);
    return links.map(({ id, source_id, amount }) => {
      const { date, reference_number = '' } = this.books.read(name, source_id);
      if (name === 'creditnotes')
        return { creditnote_id: source_id, creditnotes_invoice_id: id, amount_applied: amount, credited_date: date };
      return { payment_id: source_id, invoice_payment_id: id, invoice_id, amount, date, reference_number };
    });
  }

  #listCredited(creditnote_id: string): object[] {
    const links = this.books.listLinks(
      ({ source, source_id }) => source === 'creditnotes' && source_id === creditnote_id,
    );
    return links.map(({ id, invoice_id, amount }) => ({
      ...{ creditnote_id, invoice_id, creditnote_invoice_id: id, credited_amount: amount },
    }));
  }

  /** The default payload of a webhook about a record. */
  showPayload(name: string, record: BooksRecord): object {
    return { [RECORD_FIELDS[name]!]: this.#show(name, record) };
  }
}

type Call = { url: URL; path: string; text: string };

function toListed(record: BooksRecord): object {
  return Object.fromEntries(Object.entries(record).filter(([field]) => field !== 'id' && !DETAILS.includes(field)));
}

function disturb(what: Disturbance | null): Answer | null {
  if (what === 'unavailable') return { status: 503, body: {} };
  if (what === 'rate_limit') return toRefusal(44, 'You have exceeded the maximum number of requests per minute', 429);
  if (what === 'day_limit') return toRefusal(45, 'You have exceeded the maximum call rate limit per day', 429);
  if (what === 'refusal_in_200') return toRefusal(4_001, 'The period is closed', 200);
  return null;
}

function toRefusal(code: number, message: string, status: number): Answer {
  return { status, body: { code: new JsonNumber(String(code)), message } };
}

type ZohoWebhook = { readonly query?: string; readonly body: string; readonly isForm?: boolean };

/** Signs as "How Do I Secure My Webhooks" describes it: parameters sorted by name, without separators, then the JSON. */
export function signZohoWebhook({ query = '', body, isForm = false }: ZohoWebhook, secret: string): string {
  const parameters = [...new URLSearchParams(query), ...(isForm ? new URLSearchParams(body) : [])];
  const names = parameters.map(([name]) => name).sort();
  const sorted = names.map((name) => `${name}${parameters.find(([one]) => one === name)![1]}`).join('');
  return createHmac('sha256', secret)
    .update(sorted + (isForm ? '' : body))
    .digest('hex');
}
