/**
 * Client of Xero's accounting API for one organisation (developer.xero.com, "Accounting API"). Each call that creates or changes has an
 * idempotency key, which Xero remembers for some minutes.
 */
import { createHash } from 'node:crypto';
import type { AccountSettings } from '../account.ts';
import { type ExactJson, writeExactJson } from '../exact-json.ts';
import { ProviderError } from '../provider-error.ts';
import { type ProviderAnswer, sendRequest } from '../send-request.ts';
import { buildStatusError } from '../status-error.ts';
import { buildAnswerError, buildRefusal, listMessages } from './errors.ts';
import { isXeroId, type XeroRecords } from './records.ts';

const HOST = 'https://api.xero.com';
const PAGE = 100;

type OrganisationAccess = { readonly tenant_id: string; readonly access_token: string };
type XeroRecordName = keyof XeroRecords;
type KeyedCall = { readonly key: string };
type XeroRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: ExactJson;
};

export class XeroClient {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #beforeRequest: () => Promise<void>;

  constructor(
    { tenant_id, access_token }: OrganisationAccess,
    { address, beforeRequest = async () => {} }: AccountSettings,
  ) {
    this.#beforeRequest = beforeRequest;
    this.#base = new URL('/api.xro/2.0/', address ?? HOST);
    this.#headers = { authorization: `Bearer ${access_token}`, 'xero-tenant-id': tenant_id };
  }

  async readOrganisation(): Promise<XeroRecords['Organisations']> {
    const [organisation] = await this.#sendFor('Organisations', { method: 'GET', path: 'Organisation' });
    return organisation ?? {};
  }

  /** Reads a record by its id; null if it does not exist. */
  async read<Name extends XeroRecordName>(name: Name, id: string): Promise<XeroRecords[Name] | null> {
    return isXeroId(id) ? await this.#find(name, `${name}/${id}`) : null;
  }

  /** Reads a contact by the number that this service gave it. */
  async readContactByNumber(contact_number: string): Promise<XeroRecords['Contacts'] | null> {
    return await this.#find('Contacts', `Contacts/${encodeURIComponent(contact_number)}`);
  }

  async #find<Name extends XeroRecordName>(name: Name, path: string): Promise<XeroRecords[Name] | null> {
    try {
      const [record] = await this.#sendFor(name, { method: 'GET', path });
      return record ?? null;
    } catch (error) {
      if (error instanceof ProviderError && error.is_missing) return null;
      throw error;
    }
  }

  /** Lists all pages of the records that changed since then. */
  async *list<Name extends XeroRecordName>(
    name: Name,
    { parameters, since }: { readonly parameters: Readonly<Record<string, string>>; readonly since: Date },
  ): AsyncGenerator<XeroRecords[Name]> {
    const headers = { 'if-modified-since': since.toISOString().replace(/\.\d+Z$/, 'Z') };
    for (let page = 1; ; page++) {
      const paged = { ...parameters, page: String(page), pageSize: String(PAGE) };
      const records = await this.#sendFor(name, { method: 'GET', path: name, parameters: paged, headers });
      yield* records;
      if (records.length < PAGE) return;
    }
  }

  /** Creates a record. PUT never changes an existing one, as POST does for a number that is taken. */
  async create<Name extends XeroRecordName>(
    name: Name,
    body: ExactJson,
    { key }: KeyedCall,
  ): Promise<XeroRecords[Name]> {
    return await this.#write(name, { method: 'PUT', path: name, headers: toKeyHeaders(key), body: { [name]: [body] } });
  }

  async setStatus<Name extends 'Invoices' | 'CreditNotes'>(
    name: Name,
    { id, status, key }: KeyedCall & { readonly id: string; readonly status: 'AUTHORISED' | 'DELETED' | 'VOIDED' },
  ): Promise<XeroRecords[Name]> {
    const body = { [name]: [{ Status: status }] };
    return await this.#write(name, { method: 'POST', path: `${name}/${id}`, headers: toKeyHeaders(key), body });
  }

  async deletePayment(id: string, { key }: KeyedCall): Promise<void> {
    const body = { Status: 'DELETED' };
    await this.#write('Payments', { method: 'POST', path: `Payments/${id}`, headers: toKeyHeaders(key), body });
  }

  /** Applies a part of a credit note to an invoice. */
  async allocate(credit_note_id: string, body: ExactJson, { key }: KeyedCall): Promise<void> {
    await this.#write('Allocations', {
      method: 'PUT',
      path: `CreditNotes/${credit_note_id}/Allocations`,
      headers: toKeyHeaders(key),
      body: { Allocations: [body] },
    });
  }

  async deleteAllocation(credit_note_id: string, allocation_id: string): Promise<void> {
    const path = `CreditNotes/${credit_note_id}/Allocations/${allocation_id}`;
    try {
      await this.#send({ method: 'DELETE', path });
    } catch (error) {
      if (!(error instanceof ProviderError && error.is_missing)) throw error;
    }
  }

  /** A refused record may come in an answer with status 200. */
  async #write<Name extends XeroRecordName>(name: Name, request: XeroRequest): Promise<XeroRecords[Name]> {
    const [record] = await this.#sendFor(name, request);
    if (record === undefined) throw new ProviderError('wait', `Xero: an answer without ${name}`);
    const { HasErrors, HasValidationErrors, StatusAttributeString } = record as Partial<XeroRecords['Invoices']>;
    const messages = listMessages(record);
    if (messages.length > 0 && (HasErrors || HasValidationErrors || StatusAttributeString === 'ERROR'))
      throw buildRefusal(messages);
    return record;
  }

  async #sendFor<Name extends XeroRecordName>(name: Name, request: XeroRequest): Promise<readonly XeroRecords[Name][]> {
    const { body } = await this.#send(request);
    const records = (body as Readonly<Record<string, unknown>>)[name];
    if (!Array.isArray(records)) throw new ProviderError('wait', `Xero: an answer without ${name}`);
    return records as XeroRecords[Name][];
  }

  async #send({ method, path, parameters = {}, headers = {}, body }: XeroRequest): Promise<ProviderAnswer> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams(parameters).toString();
    await this.#beforeRequest();
    const answer = await sendRequest('Xero', url, {
      method,
      headers: {
        ...this.#headers,
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: writeExactJson(body) }),
    });
    const { status } = answer;
    if (status === 200 && typeof answer.body === 'object' && answer.body !== null) return answer;
    // Some answers to an unknown id are a page or a plain text.
    if (status === 404) throw new ProviderError('person', 'Xero: no such record', { is_missing: true });
    throw buildAnswerError(answer) ?? buildStatusError('Xero', answer);
  }
}

/** A key has at most 128 characters, so it is a digest. */
function toKeyHeaders(key: string): Readonly<Record<string, string>> {
  return { 'idempotency-key': createHash('sha256').update(key).digest('hex') };
}
