/**
 * Client of Whop's API (docs.whop.com/api-reference, /developer/api/idempotency). The date pins the version of its invoices: later ones have
 * another form.
 */
import { createHash } from 'node:crypto';
import type { AccountSettings } from '../account.ts';
import { type ExactJson, writeExactJson } from '../exact-json.ts';
import { isMissing, ProviderError } from '../provider-error.ts';
import { sendRequest } from '../send-request.ts';
import { buildWhopError } from './errors.ts';
import { isWhopId } from './records.ts';

const HOSTS = { production: 'https://api.whop.com', sandbox: 'https://sandbox-api.whop.com' } as const;
const API_DATE = '2026-07-20';
const PAGE = '100';
/** Order of a search: the sought record is near the begin of those that are younger than its first request. */
export const OLDEST_FIRST = { order: 'created_at', direction: 'asc' } as const;
/** Maximum number of pages that a search reads. */
const PAGES_MAX = 50;

export type WhopAccess = {
  readonly api_key: string;
  readonly company_id: string;
  readonly environment: keyof typeof HOSTS;
  readonly product_id?: string | undefined;
};
type Parameters = Readonly<Record<string, string>>;
type WhopRequest = {
  readonly parameters?: Parameters;
  readonly body?: ExactJson;
  /** Our key. Whop stores the answers of newer operations for a day; for the others it ignores the key. */
  readonly key?: string;
};
type ListPage<Found> = {
  readonly data: readonly Found[];
  readonly page_info?: { readonly has_next_page?: boolean; readonly end_cursor?: string | null };
};

export class WhopClient {
  readonly #base: URL;
  readonly #authorization: string;
  readonly #beforeRequest: () => Promise<void>;

  constructor({ api_key, environment }: WhopAccess, { address, beforeRequest = async () => {} }: AccountSettings) {
    this.#base = new URL('/api/v1/', address ?? HOSTS[environment]);
    this.#authorization = `Bearer ${api_key}`;
    this.#beforeRequest = beforeRequest;
  }

  /** Reads a record; null if it does not exist. */
  async find<Found>(collection: string, id: string): Promise<Found | null> {
    if (!isWhopId(id)) return null;
    try {
      return (await this.#send('GET', `${collection}/${id}`, {})) as Found;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** Lists the records of all pages. Throws if there are too many to search, because the sought one may be among the rest. */
  async *list<Found>(collection: string, parameters: Parameters): AsyncGenerator<Found> {
    let after: Parameters = {};
    for (let page = 0; page < PAGES_MAX; page++) {
      const answer = await this.#send('GET', collection, { parameters: { ...parameters, first: PAGE, ...after } });
      const { data, page_info } = answer as ListPage<Found>;
      if (!Array.isArray(data)) throw new ProviderError('wait', `Whop: a list of ${collection} without data`);
      yield* data;
      if (!page_info?.has_next_page || !page_info.end_cursor) return;
      after = { after: page_info.end_cursor };
    }
    throw new ProviderError('wait', `Whop has more ${collection} than are searched (${PAGES_MAX} pages)`, {
      is_of_record: true,
    });
  }

  async post<Answer>(path: string, request: Omit<WhopRequest, 'parameters'> = {}): Promise<Answer> {
    return (await this.#send('POST', path, request)) as Answer;
  }

  /** Deletes a record; no effect if it does not exist. */
  async remove(path: string): Promise<void> {
    try {
      await this.#send('DELETE', path, {});
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  async #send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    { parameters = {}, body, key }: WhopRequest,
  ): Promise<unknown> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams(parameters).toString();
    await this.#beforeRequest();
    const headers = {
      authorization: this.#authorization,
      'api-version-date': API_DATE,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': toKeyText(key) }),
    };
    const content = body === undefined ? {} : { body: writeExactJson(body) };
    const answer = await sendRequest('Whop', url, { method, headers, ...content });
    const isSuccess = answer.status >= 200 && answer.status < 300;
    // A deleted record, and a state that was changed, are answered with `true` or nothing.
    const isReadable = method === 'DELETE' || answer.body === true || isRecord(answer.body);
    if (isSuccess && isReadable) return answer.body;
    throw buildWhopError(answer);
  }
}

/** No record has an error: a gateway may answer one with a status of success. */
function isRecord(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !('error' in body);
}

/** A key has at most 255 bytes, so it is a digest. */
function toKeyText(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
