/**
 * A small stateful fake of Xero with its token endpoint, by its public documentation: developer.xero.com, "The standard authorization code
 * flow" (consent, rotation of refresh tokens, connections), "Requests and responses", "Response codes and errors", "OAuth 2.0 API limits",
 * "Idempotency", "Webhooks"; its OpenAPI document (xero-document.ts), against which it checks each request and its own answers. Records:
 * xero-fake-books.ts.
 */
import { createHmac, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { JsonNumber, parseExactJson, writeExactJson } from '../../../integrations/exact-json.ts';
import { FakeServer, readBody } from './fake-server.ts';
import { findXeroDocument, type XeroCall } from './xero-document.ts';
import {
  type BookDocument,
  type BookEntry,
  BookRefusal,
  type DocumentKind,
  toXeroDate,
  XeroBooks,
} from './xero-fake-books.ts';

/**
 * Failures of the next request at a path. `lost_request`: the connection breaks before the request takes effect. `lost_answer`: it breaks
 * after the effect. `html`: the answer is the page of a proxy with status 200.
 */
type Disturbance = 'lost_request' | 'lost_answer' | 'unavailable' | 'rate_limit' | 'html';
type Answer = { status: number; body: unknown };

const BASE = '/api.xro/2.0';
const KEY_MINUTES_FORM = /^[\w-]{1,128}$/;
const AMOUNTS = new Set([
  ...['Amount', 'Total', 'SubTotal', 'TotalTax', 'AmountDue', 'AmountPaid', 'AmountCredited', 'AppliedAmount'],
  ...['RemainingCredit', 'UnitAmount', 'Quantity', 'LineAmount', 'TaxAmount', 'page', 'pageSize', 'ErrorNumber'],
]);

export class XeroFake extends FakeServer<Disturbance> {
  readonly books = new XeroBooks();
  override retry_after_seconds: number | null = null;
  /** Bodies of the requests, unparsed. */
  readonly bodies: string[] = [];
  /** Differences between the calls and Xero's OpenAPI document. */
  readonly faults: string[] = [];
  /** Refresh tokens in the order in which they were sent. */
  readonly refreshed: string[] = [];
  readonly app = { client_id: 'client', client_secret: 'client-secret' };
  /** Organisations that the user has connected to the app, with the event of their consent. */
  readonly connections = [
    { tenantId: this.books.tenant_id, authEventId: randomUUID() as string, tenantName: 'Demo Company' },
  ];
  /** Whether a refused record is answered with status 200, as Xero does for `summarizeErrors=false`. */
  answers_refusals_with_200 = false;
  access_token = 'access-0';
  refresh_token = 'refresh-0';
  #previous_refresh_token: string | null = null;
  readonly #codes = new Map<string, string>();
  readonly #answers = new Map<string, { request: string; answer: Answer }>();
  #number = 0;

  get secrets() {
    return {
      ...this.app,
      tenant_id: this.books.tenant_id,
      webhook_key: 'webhook key',
      sales_account: '200',
      payment_account: '090',
    };
  }

  /** Grants access as the owner does on the page; returns the parameters with which the browser is sent back. */
  consent(page: string): { code: string; state: string } {
    const parameters = new URL(page).searchParams;
    const code = `code-${++this.#number}`;
    this.#codes.set(code, parameters.get('redirect_uri')!);
    return { code, state: parameters.get('state')! };
  }

  expireAccessToken(): void {
    this.access_token = `expired-${++this.#number}`;
  }

  forgetKeys(): void {
    this.#answers.clear();
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const url = new URL(request.url!, 'http://fake');
    const path = url.pathname.startsWith(`${BASE}/`) ? url.pathname.slice(BASE.length + 1) : url.pathname;
    const name = `${request.method} ${path}`;
    this.requests.push(name);
    if (text !== '') this.bodies.push(text);
    const disturbance = this.takeDisturbance(name);
    await this.passBarrier(name);
    if (disturbance === 'lost_request') return void request.socket.destroy();
    const answer = disturb(disturbance) ?? this.#answer(request, { url, path, text });
    if (disturbance === 'lost_answer') return void request.socket.destroy();
    if (disturbance === 'html')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Gateway</h1>');
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      ...(answer.status === 429 ? this.retryHeaders : {}),
    });
    response.end(writeAnswer(answer.body));
  }

  #answer(request: IncomingMessage, call: Call): Answer {
    if (call.path === '/connect/token') return this.#issue(request, call.text);
    const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
    if (this.is_revoked || token !== this.access_token)
      return { status: 401, body: { Title: 'Unauthorized', Status: '401', Detail: 'TokenExpired: token expired' } };
    if (call.path === '/connections') return this.#listConnections(call.url);
    if (request.headers['xero-tenant-id'] !== this.books.tenant_id)
      return { status: 403, body: { Title: 'Forbidden', Status: '403', Detail: 'AuthenticationUnsuccessful' } };
    const answer = this.#answerOnce(request, call);
    this.#check(request, call, answer);
    return answer;
  }

  #listConnections(url: URL): Answer {
    const event = url.searchParams.get('authEventId');
    const found = this.connections.filter(({ authEventId }) => event === null || authEventId === event);
    return { status: 200, body: found.map((one) => ({ id: randomUUID(), tenantType: 'ORGANISATION', ...one })) };
  }

  #issue(request: IncomingMessage, text: string): Answer {
    const form = new URLSearchParams(text);
    const { client_id, client_secret } = this.app;
    const expected = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
    if (request.headers.authorization !== expected) return { status: 400, body: { error: 'invalid_client' } };
    if (form.get('grant_type') === 'authorization_code') {
      const code = form.get('code')!;
      const isValid = this.#codes.get(code) === form.get('redirect_uri');
      this.#codes.delete(code);
      return isValid ? this.#rotate() : { status: 400, body: { error: 'invalid_grant' } };
    }
    const token = form.get('refresh_token')!;
    this.refreshed.push(token);
    const isKnown = token === this.refresh_token || token === this.#previous_refresh_token;
    return isKnown && !this.is_revoked ? this.#rotate() : { status: 400, body: { error: 'invalid_grant' } };
  }

  #rotate(): Answer {
    this.#previous_refresh_token = this.refresh_token;
    this.#number++;
    const claims = JSON.stringify({ jti: this.#number, authentication_event_id: this.connections[0]!.authEventId });
    this.access_token = `e30.${Buffer.from(claims).toString('base64url')}.signature`;
    this.refresh_token = `refresh-${this.#number}-${'r'.repeat(20)}`;
    const { access_token, refresh_token } = this;
    const expires_in = new JsonNumber('1800');
    return {
      status: 200,
      body: { token_type: 'Bearer', scope: 'offline_access', access_token, refresh_token, expires_in },
    };
  }

  /** Answers a repeated key with the first answer, and refuses it for another request. */
  #answerOnce(request: IncomingMessage, call: Call): Answer {
    const key = request.headers['idempotency-key'];
    if (typeof key !== 'string') return this.#run(request, call);
    if (!KEY_MINUTES_FORM.test(key)) return refuse('Idempotency-Key is not valid');
    const digest = `${request.method} ${request.url} ${call.text}`;
    const stored = this.#answers.get(key);
    if (stored !== undefined)
      return stored.request === digest ? stored.answer : refuse('Idempotency-Key was used for another request');
    const answer = this.#run(request, call);
    this.#answers.set(key, { request: digest, answer });
    return answer;
  }

  #run(request: IncomingMessage, call: Call): Answer {
    try {
      return { status: 200, body: structuredClone(this.#route(request, call)) };
    } catch (error) {
      if (!(error instanceof BookRefusal)) throw error;
      if (error.status === 404) return { status: 404, body: 'The resource you are looking for cannot be found' };
      return this.answers_refusals_with_200 ? acceptWithErrors(call.path, error.message) : refuse(error.message);
    }
  }

  #route(request: IncomingMessage, { path, url, text }: Call): unknown {
    const [name = '', id, part, part_id] = path.split('/').map(decodeURIComponent);
    const body = text === '' ? {} : (parseExactJson(text) as BookEntry);
    const [first = {}] = (body[part ?? name] ?? []) as BookEntry[];
    const { books } = this;
    if (/"(?:Amount|UnitAmount|Quantity)":"/.test(text)) throw new BookRefusal('A number cannot be a text');
    switch (`${request.method} ${name}${id === undefined ? '' : '/id'}${part === undefined ? '' : `/${part}`}`) {
      case 'GET Organisation':
        return { Organisations: [{ OrganisationID: books.tenant_id, Name: 'Demo Company', BaseCurrency: 'USD' }] };
      case 'PUT Contacts':
        return { Contacts: [books.createContact(first)] };
      case 'GET Contacts/id':
        return { Contacts: [books.readContact(id!)] };
      case 'GET Invoices':
      case 'GET CreditNotes':
        return this.#list(name as DocumentKind, url, request.headers['if-modified-since']);
      case 'PUT Invoices':
      case 'PUT CreditNotes': {
        const kind = name as DocumentKind;
        return { [name]: [this.#show(kind, books.createDocument(kind, first, readPlaces(url)))] };
      }
      case 'GET Invoices/id':
      case 'GET CreditNotes/id':
        return { [name]: [this.#show(name as DocumentKind, books.readDocument(name as DocumentKind, id!))] };
      case 'POST Invoices/id':
      case 'POST CreditNotes/id':
        return { [name]: [this.#show(name as DocumentKind, books.updateDocument(name as DocumentKind, id!, first))] };
      case 'PUT Payments':
        return { Payments: [showPayment(books.createPayment(first))] };
      case 'GET Payments/id':
        return { Payments: [showPayment(books.readPayment(id!))] };
      case 'POST Payments/id':
        if (body['Status'] !== 'DELETED') throw new BookRefusal('Only the status DELETED can be set');
        return { Payments: [showPayment(books.deletePayment(id!))] };
      case 'PUT CreditNotes/id/Allocations':
        return { Allocations: [showAllocation(books.allocate(id!, first))] };
      case 'DELETE CreditNotes/id/Allocations':
        return { ...showAllocation(books.deleteAllocation(id!, part_id!)), IsDeleted: true };
      default:
        throw new BookRefusal('The resource cannot be found', 404);
    }
  }

  #list(kind: DocumentKind, url: URL, since: string | undefined): unknown {
    const { ContactIDs, Statuses, where, page = '1', pageSize = '100' } = Object.fromEntries(url.searchParams);
    const condition = where === undefined ? null : /^Contact\.ContactID==guid\("([0-9a-f-]{36})"\)$/.exec(where);
    if (where !== undefined && condition === null) throw new BookRefusal(`cannot parse ${where}`);
    const contacts = ContactIDs?.split(',') ?? (condition === null ? null : [condition[1]!]);
    const found = this.books.documents[kind].filter(
      ({ Contact, Status, updated }) =>
        (contacts === null || contacts.includes(Contact.ContactID)) &&
        (Statuses === undefined || Statuses.split(',').includes(Status)) &&
        (since === undefined || updated >= Date.parse(since)),
    );
    const from = (Number(page) - 1) * Number(pageSize);
    const pagination = { page, pageSize };
    return { pagination, [kind]: found.slice(from, from + Number(pageSize)).map((one) => this.#show(kind, one)) };
  }

  /** Shows a document with all that is applied to it. */
  #show(kind: DocumentKind, document: BookDocument): unknown {
    const { id: _, updated, ...fields } = document;
    const { books } = this;
    const shown = {
      ...fields,
      Date: toXeroDate(String(document['Date'])),
      ...(document['DueDate'] === undefined ? {} : { DueDate: toXeroDate(String(document['DueDate'])) }),
      UpdatedDateUTC: `/Date(${updated}+0000)/`,
      Payments: books.listPayments(document).map(({ PaymentID, Amount, Date: day, Reference }) => ({
        ...{ PaymentID, Amount },
        ...(day === undefined ? {} : { Date: toXeroDate(String(day)) }),
        ...(Reference === undefined ? {} : { Reference }),
      })),
    };
    const rest = books.computeRest(document).toFixed();
    if (kind === 'CreditNotes')
      return {
        ...shown,
        RemainingCredit: rest,
        Allocations: books.allocations.filter(({ note }) => note === document).map(showAllocation),
      };
    const listApplied = (wanted: string, field: string) =>
      books.applied
        .filter(({ kind: one, invoice }) => one === wanted && invoice === document)
        .map(({ id, amount }) => ({ [field]: id, AppliedAmount: amount, Date: toXeroDate('2026-11-03') }));
    const notes = new Map<string, BookEntry>();
    for (const { note, invoice, Amount } of books.allocations)
      if (invoice === document) {
        const before = String(notes.get(note.id)?.['AppliedAmount'] ?? '0');
        notes.set(note.id, { CreditNoteID: note.id, AppliedAmount: String(Number(before) + Number(Amount)) });
      }
    return {
      ...shown,
      AmountDue: rest,
      AmountPaid: books.sumPaid(document).toFixed(),
      AmountCredited: books.sumCredited(document).toFixed(),
      CreditNotes: [...notes.values()],
      Prepayments: listApplied('Prepayments', 'PrepaymentID'),
      Overpayments: listApplied('Overpayments', 'OverpaymentID'),
    };
  }

  /** Notes how the call differs from the OpenAPI document, if that is there. */
  #check(request: IncomingMessage, { url, path, text }: Call, answer: Answer): void {
    const { method = '', headers } = request;
    // Xero's own library sends an empty object with requests that have no body.
    const isEmpty = text === '' || (text === '{}' && (method === 'GET' || method === 'DELETE'));
    const body: unknown = isEmpty ? undefined : JSON.parse(text);
    const call: XeroCall = { method, path: `/${path}`, search: url.searchParams, headers, body };
    const written: unknown = JSON.parse(writeAnswer(answer.body));
    this.faults.push(...(findXeroDocument()?.listFaults(call, { status: answer.status, body: written }) ?? []));
  }
}

type Call = { url: URL; path: string; text: string };

function readPlaces(url: URL): number {
  return url.searchParams.get('unitdp') === '4' ? 4 : 2;
}

function showPayment({ target, Account, Date: day, ...payment }: BookEntry & { target: BookDocument }): BookEntry {
  const { AccountID, Code } = Account as { AccountID: string; Code: string };
  const { InvoiceID, CreditNoteID } = target;
  return {
    ...payment,
    Account: { AccountID, Code },
    ...(day === undefined ? {} : { Date: toXeroDate(String(day)) }),
    ...(InvoiceID === undefined ? { CreditNote: { CreditNoteID } } : { Invoice: { InvoiceID } }),
  };
}

function showAllocation({ AllocationID, Amount, Date: day, invoice }: ReturnType<XeroBooks['allocate']>): BookEntry {
  return { AllocationID, Amount, Date: toXeroDate(day), Invoice: { InvoiceID: invoice.id } };
}

function disturb(what: Disturbance | null): Answer | null {
  if (what === 'unavailable') return { status: 503, body: { Title: 'The Organisation is offline' } };
  if (what === 'rate_limit') return { status: 429, body: '' };
  return null;
}

function refuse(Message: string): Answer {
  const Elements = [{ ValidationErrors: [{ Message }] }];
  const error = {
    ErrorNumber: '10',
    Type: 'ValidationException',
    Message: 'A validation exception occurred',
    Elements,
  };
  return { status: 400, body: error };
}

/** Builds the answer to a refused record, if errors are not summarized. */
function acceptWithErrors(path: string, Message: string): Answer {
  const [name = ''] = path.split('/');
  const flag = name === 'Contacts' || name === 'Payments' ? 'HasValidationErrors' : 'HasErrors';
  const refused = { [flag]: true, StatusAttributeString: 'ERROR', ValidationErrors: [{ Message }] };
  return { status: 200, body: { [name]: [refused] } };
}

/** Writes an answer with amounts as JSON numbers. */
function writeAnswer(body: unknown): string {
  const toNumbers = (value: unknown, field = ''): unknown => {
    if (value instanceof JsonNumber) return value;
    if (Array.isArray(value)) return value.map((one) => toNumbers(one));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toNumbers(one, name)]));
    return AMOUNTS.has(field) && value !== undefined ? new JsonNumber(String(value)) : value;
  };
  return writeExactJson(toNumbers(body) as Parameters<typeof writeExactJson>[0]);
}

export function signXeroBody(body: string, key: string): string {
  return createHmac('sha256', key).update(body).digest('base64');
}
