/**
 * Client of the API of Zoho Books, version 3, for one organization (zoho.com/books/api/v3). Numbers in answers are texts,
 * so that no digit is lost (exact-json.ts).
 */
import type { AccountSettings } from '../account.ts';
import { type ExactJson, writeExactJson } from '../exact-json.ts';
import { isMissing, ProviderError } from '../provider-error.ts';
import { type QueryParameters, sendRequest } from '../send-request.ts';
import { buildAnswerError } from './errors.ts';
import type { ZohoRecords } from './records.ts';

const PAGE_SIZE = '200';
/** Ids are digits. Any other text is no id of a record. */
const ID = /^\d{1,25}$/;

type ZohoRecordName = keyof ZohoRecords;

/** Path of each type of record, which is also the field of its lists. */
const PATHS: Readonly<Record<ZohoRecordName, string>> = {
  contact: 'contacts',
  invoice: 'invoices',
  payment: 'customerpayments',
  creditnote: 'creditnotes',
};

type OrganizationAccess = {
  readonly api_domain: string;
  /** Null for requests that concern no organization. */
  readonly organization_id: string | null;
  readonly access_token: string;
};
type BooksRequest = { readonly parameters?: QueryParameters; readonly body?: ExactJson };
/** A record, and what follows its id in a path, such as `status/sent`. */
type RecordPart = { readonly id: string; readonly part?: string };

export class ZohoBooksClient {
  readonly #base: URL;
  readonly #organization: QueryParameters;
  readonly #authorization: string;
  readonly #beforeRequest: () => Promise<void>;

  constructor(
    { api_domain, organization_id, access_token }: OrganizationAccess,
    { address, beforeRequest = async () => {} }: AccountSettings,
  ) {
    this.#beforeRequest = beforeRequest;
    this.#base = new URL('/books/v3/', address ?? api_domain);
    this.#organization = organization_id === null ? {} : { organization_id };
    this.#authorization = `Zoho-oauthtoken ${access_token}`;
  }

  /** Reads a record; null if it does not exist. */
  async read<Name extends ZohoRecordName>(name: Name, id: string): Promise<ZohoRecords[Name] | null> {
    if (!ID.test(id)) return null;
    try {
      return await this.fetchField('GET', `${PATHS[name]}/${id}`, name);
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** Lists all pages of the records that meet the parameters. */
  list<Name extends ZohoRecordName>(name: Name, parameters: QueryParameters): AsyncGenerator<ZohoRecords[Name]> {
    return this.listPages(PATHS[name], PATHS[name], parameters);
  }

  /** Lists all pages of a list at a path. */
  async *listPages<Item>(path: string, field: string, parameters: QueryParameters = {}): AsyncGenerator<Item> {
    for (let page = 1; ; page++) {
      const paging = { page: String(page), per_page: PAGE_SIZE };
      const answer = await this.#send('GET', path, { parameters: { ...parameters, ...paging } });
      yield* findList(answer, field) as Item[];
      const context = answer['page_context'] as { has_more_page?: boolean } | undefined;
      if (context?.has_more_page !== true) return;
    }
  }

  async create<Name extends ZohoRecordName>(name: Name, request: BooksRequest): Promise<ZohoRecords[Name]> {
    return await this.fetchField('POST', PATHS[name], name, request);
  }

  /** Posts to a part of a record. */
  async post(name: ZohoRecordName, { id, part = '' }: RecordPart, body?: ExactJson): Promise<void> {
    await this.#send('POST', `${PATHS[name]}/${id}/${part}`, body === undefined ? {} : { body });
  }

  /** Deletes a record, or a part of it; no effect if it does not exist. */
  async delete(name: ZohoRecordName, { id, part }: RecordPart): Promise<void> {
    try {
      await this.#send('DELETE', `${PATHS[name]}/${id}${part === undefined ? '' : `/${part}`}`);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  /** Lists the entries of a part of a record, such as the payments of an invoice. */
  async listParts<Item>(name: ZohoRecordName, { id, part = '' }: RecordPart, field: string): Promise<readonly Item[]> {
    return findList(await this.#send('GET', `${PATHS[name]}/${id}/${part}`), field) as Item[];
  }

  /** Sends a request, and returns the field of the answer that contains the result. */
  async fetchField<Result>(
    method: 'GET' | 'POST',
    path: string,
    field: string,
    request: BooksRequest = {},
  ): Promise<Result> {
    const result = (await this.#send(method, path, request))[field];
    if (typeof result !== 'object' || result === null)
      throw new ProviderError('wait', `Zoho Books: an answer without ${field}`);
    return result as Result;
  }

  async #send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    { parameters = {}, body }: BooksRequest = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams({ ...this.#organization, ...parameters }).toString();
    await this.#beforeRequest();
    const answer = await sendRequest('Zoho Books', url, {
      method,
      headers: {
        authorization: this.#authorization,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: writeExactJson(body) }),
    });
    const error = buildAnswerError(answer);
    if (error !== null) throw error;
    return answer.body as Readonly<Record<string, unknown>>;
  }
}

/** Finds the list in an answer. The OpenAPI document of Zoho names the list of payments with an underscore, the API without. */
function findList(answer: Readonly<Record<string, unknown>>, field: string): readonly unknown[] {
  const list = answer[field] ?? answer[field.replace('customerpayments', 'customer_payments')];
  if (!Array.isArray(list)) throw new ProviderError('wait', `Zoho Books: an answer without ${field}`);
  return list;
}
