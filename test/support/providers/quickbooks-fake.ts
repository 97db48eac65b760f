/**
 * A small stateful fake of QuickBooks Online with its token endpoint, by its public documentation:
 * developer.intuit.com, "Set up OAuth 2.0" (grants, rotation of refresh tokens, revocation), "Basics of the API"
 * (paths, minor version, request ids), "Error handling", "Limits and throttles", "Webhooks". Records:
 * quickbooks-fake-books.ts.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { JsonNumber, parseExactJson } from '../../../integrations/exact-json.ts';
import { writeExactAnswer } from './exact-answer.ts';
import { FakeServer, readBody } from './fake-server.ts';
import { BookFault, type BookRecord, QuickBooksBooks } from './quickbooks-fake-books.ts';

/**
 * Failures of the next request at a path. `lost_request`: the connection breaks before the request takes effect. `lost_answer`: it breaks
 * after the effect. `html`: the answer is the page of a proxy with status 200.
 */
type Disturbance = 'lost_request' | 'lost_answer' | 'unavailable' | 'rate_limit' | 'fault_in_200' | 'html';
type Answer = { status: number; body: unknown };

const NAMES = ['Customer', 'Item', 'Invoice', 'Payment', 'CreditMemo', 'CompanyInfo'];
const AMOUNTS = new Set(['Amount', 'TotalAmt', 'Balance', 'RemainingCredit', 'UnappliedAmt', 'Qty', 'UnitPrice']);

export class QuickBooksFake extends FakeServer<Disturbance> {
  readonly books = new QuickBooksBooks();
  override retry_after_seconds: number | null = null;
  /** Bodies of the requests, unparsed. */
  readonly bodies: string[] = [];
  /** Refresh tokens in the order in which they were sent. */
  readonly refreshed: string[] = [];
  /** Whether an old refresh token is accepted until its successor is used. */
  has_grace = false;
  app = { client_id: 'client', client_secret: 'client-secret' };
  access_token = 'access-0';
  refresh_token = 'refresh-0';
  #previous_refresh_token: string | null = null;
  readonly #codes = new Map<string, string>();
  readonly #answers = new Map<string, Answer>();
  #number = 0;

  get secrets() {
    const { realm_id } = this.books;
    return {
      ...this.app,
      environment: 'sandbox' as const,
      realm_id,
      income_account_id: '79',
      webhook_verifier_token: 'verifier',
    };
  }

  /**
   * Grants access as the company's owner does on the page; returns the parameters with which the browser is sent back.
   */
  consent(page: string): { code: string; state: string; realm_id: string } {
    const parameters = new URL(page).searchParams;
    const code = `code-${++this.#number}`;
    this.#codes.set(code, parameters.get('redirect_uri')!);
    return { code, state: parameters.get('state')!, realm_id: this.books.realm_id };
  }

  expireAccessToken(): void {
    this.access_token = `expired-${++this.#number}`;
  }

  /** Ends the access, as the company's owner can. */
  revoke(): void {
    this.expireAccessToken();
    this.refresh_token = `revoked-${this.#number}`;
    this.#previous_refresh_token = null;
  }

  forgetRequestIds(): void {
    this.#answers.clear();
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const url = new URL(request.url!, 'http://fake');
    const path = url.pathname.replace(`/v3/company/${this.books.realm_id}/`, '');
    const name = `${request.method} ${path}`;
    this.requests.push(name);
    if (text !== '') this.bodies.push(text);
    const disturbance = this.takeDisturbance(name);
    await this.passBarrier(name);
    if (disturbance === 'lost_request') return void request.socket.destroy();
    const answer =
      disturb(disturbance) ??
      (path === '/oauth2/v1/tokens/bearer' ? this.#issue(request, text) : this.#answer(request, { url, path, text }));
    if (disturbance === 'lost_answer') return void request.socket.destroy();
    if (disturbance === 'html')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Gateway</h1>');
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      intuit_tid: `tid-${this.requests.length}`,
      ...(answer.status === 429 ? this.retryHeaders : {}),
    });
    response.end(writeExactAnswer(answer.body, AMOUNTS));
  }

  #issue(request: IncomingMessage, text: string): Answer {
    const form = new URLSearchParams(text);
    const { client_id, client_secret } = this.app;
    const expected = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
    if (request.headers.authorization !== expected) return { status: 401, body: { error: 'invalid_client' } };
    if (form.get('grant_type') === 'authorization_code') {
      const code = form.get('code')!;
      const isValid = this.#codes.get(code) === form.get('redirect_uri');
      this.#codes.delete(code);
      return isValid ? this.#rotate() : { status: 400, body: { error: 'invalid_grant' } };
    }
    const token = form.get('refresh_token')!;
    this.refreshed.push(token);
    const isKnown = token === this.refresh_token || (this.has_grace && token === this.#previous_refresh_token);
    return isKnown && !this.is_revoked ? this.#rotate() : { status: 400, body: { error: 'invalid_grant' } };
  }

  #rotate(): Answer {
    this.#previous_refresh_token = this.refresh_token;
    this.#number++;
    this.access_token = `access-${this.#number}-${'a'.repeat(20)}`;
    this.refresh_token = `refresh-${this.#number}-${'r'.repeat(20)}`;
    const { access_token, refresh_token } = this;
    const lives = { expires_in: new JsonNumber('3600'), x_refresh_token_expires_in: new JsonNumber('8726400') };
    return { status: 200, body: { token_type: 'bearer', access_token, refresh_token, ...lives } };
  }

  #answer(request: IncomingMessage, call: Call): Answer {
    const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
    if (this.is_revoked || token !== this.access_token) return refuseToken(token);
    if (!request.url!.startsWith(`/v3/company/${this.books.realm_id}/`)) return toFault('3100', 'No such company', 403);
    if (call.url.searchParams.get('minorversion') !== '75') return toFault('2000', 'minorversion is missing', 400);
    const request_id = call.url.searchParams.get('requestid');
    if (request_id !== null && request_id.length > 50) return toFault('2050', 'requestid is too long', 400);
    const stored = request_id === null ? undefined : this.#answers.get(request_id);
    if (stored !== undefined) return stored;
    try {
      const answer: Answer = { status: 200, body: structuredClone(this.#run(request.method!, call)) };
      if (request_id !== null) this.#answers.set(request_id, answer);
      return answer;
    } catch (error) {
      if (error instanceof BookFault) return toFault(error.code, error.message, 400, error.detail);
      throw error;
    }
  }

  #run(method: string, { url, path, text }: Call): unknown {
    if (path === 'query') {
      const { name, records } = this.books.query(url.searchParams.get('query')!);
      return { QueryResponse: records.length === 0 ? {} : { [name]: records }, time: new Date().toISOString() };
    }
    const [lower = '', id = ''] = path.split('/');
    const name = NAMES.find((one) => one.toLowerCase() === lower);
    if (name === undefined) throw new BookFault('120', 'Unsupported operation', path);
    if (method === 'GET') return { [name]: this.books.read(name, decodeURIComponent(id)) };
    if (/"(?:Amount|TotalAmt)":"/.test(text))
      throw new BookFault('2010', 'Request has invalid or unsupported property');
    const body = parseExactJson(text) as BookRecord;
    const operation = url.searchParams.get('operation');
    if (operation === null) return { [name]: this.books.create(name, body) };
    return { [name]: this.books.end(name, operation, body) };
  }
}

type Call = { url: URL; path: string; text: string };

function disturb(what: Disturbance | null): Answer | null {
  if (what === 'unavailable') return { status: 503, body: {} };
  if (what === 'rate_limit') return toFault('3001', 'ThrottleExceeded', 429);
  if (what === 'fault_in_200') return toFault('6000', 'A business validation error has occurred', 200, 'closed period');
  return null;
}

function toFault(code: string, Message: string, status: number, Detail = Message): Answer {
  return { status, body: { Fault: { type: 'ValidationFault', Error: [{ code, Message, Detail }] } } };
}

/** Builds the refusal of a token: field names in lower case, and a text that quotes the token. */
function refuseToken(token: string): Answer {
  const message = 'message=AuthenticationFailed; errorCode=003200; statusCode=401';
  const error = [{ message, detail: `Token expired: ${token}`, code: '3200', element: null }];
  return { status: 401, body: { warnings: null, fault: { error, type: 'AUTHENTICATION' } } };
}

export function signIntuitBody(body: string, token: string): string {
  return createHmac('sha256', token).update(body).digest('base64');
}
