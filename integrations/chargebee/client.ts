/**
 * Requests to one site of Chargebee (apidocs.chargebee.com, API version 2). The key is the user name of HTTP Basic. A
 * repeated POST with one idempotency key returns the first result, for half an hour.
 */
import { createHash } from 'node:crypto';
import type { AccountSettings } from '../account.ts';
import { isMissing, ProviderError } from '../provider-error.ts';
import { type ProviderAnswer, sendRequest } from '../send-request.ts';
import { buildChargebeeError } from './errors.ts';
import { encodeForm, type Form } from './form.ts';
import type { ChargebeeRecords } from './records.ts';

/** Maximum page size of a list. */
const PAGE = 100;
/**
 * Age of a key from which the record is searched for before the request is repeated. Chargebee forgets a key after 30
 * minutes ("Idempotent requests"); the margin covers a slow request.
 */
export const KEY_SECONDS = 1_200;

type SiteCredentials = { readonly site: string; readonly api_key: string };
type ChargebeeName = keyof ChargebeeRecords;
type Found = { readonly [Name in ChargebeeName]?: ChargebeeRecords[Name] };

export class ChargebeeClient {
  readonly #base: URL;
  readonly #authorization: string;
  readonly #beforeRequest: () => Promise<void>;

  constructor({ site, api_key }: SiteCredentials, { address, beforeRequest = async () => {} }: AccountSettings) {
    this.#base = new URL('/api/v2/', address ?? `https://${site}.chargebee.com`);
    this.#authorization = `Basic ${Buffer.from(`${api_key}:`).toString('base64')}`;
    this.#beforeRequest = beforeRequest;
  }

  /** Reads a record; null if it does not exist. */
  async read<Name extends ChargebeeName>(name: Name, id: string): Promise<ChargebeeRecords[Name] | null> {
    const path = toPath(id);
    if (path === null) return null;
    try {
      const record = (await this.#send(`${name}s/${path}`))[name];
      // An id with a slash could name a path of another operation.
      return record?.id === id ? record : null;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** Reads a record that must exist. */
  async load<Name extends ChargebeeName>(name: Name, id: string): Promise<ChargebeeRecords[Name]> {
    const record = await this.read(name, id);
    if (record !== null) return record;
    throw new ProviderError('person', `Chargebee has no ${name} ${JSON.stringify(id)}`, { is_missing: true });
  }

  /** Lists records, page by page. */
  async *list<Name extends ChargebeeName>(name: Name, filter: Form): AsyncGenerator<ChargebeeRecords[Name]> {
    for (let offset: string | undefined; ; ) {
      const answer = await this.#request(`${name}s?${encodeForm({ limit: PAGE, ...filter, offset })}`, {
        method: 'GET',
      });
      const { list, next_offset } = answer as { list?: readonly Found[]; next_offset?: string };
      if (!Array.isArray(list)) throw new ProviderError('wait', `Chargebee: an answer without a list of ${name}s`);
      for (const found of list as readonly Found[]) yield found[name]!;
      if (next_offset === undefined) return;
      offset = next_offset;
    }
  }

  /** Checks the key with the smallest list. */
  async check(): Promise<void> {
    await this.#request('customers?limit=1', { method: 'GET' });
  }

  /** Posts to a collection, such as `invoices/create_for_charge_items_and_charges`. */
  async create<Name extends ChargebeeName>(
    path: string,
    name: Name,
    { form, key }: { form: Form; key: string },
  ): Promise<ChargebeeRecords[Name]> {
    return pickRecord(await this.#send(path, { form, key }), name);
  }

  /** Posts an operation of a record, such as `void`. */
  async act(
    [name, id, operation]: readonly [ChargebeeName, string, string],
    { form = {}, key }: { form?: Form; key: string },
  ): Promise<Found> {
    const path = toPath(id);
    if (path === null) throw new ProviderError('person', `Chargebee has no ${name} ${JSON.stringify(id)}`);
    return await this.#send(`${name}s/${path}/${operation}`, { form, key });
  }

  async #send(path: string, post?: { readonly form: Form; readonly key: string }): Promise<Found> {
    if (post === undefined) return (await this.#request(path, { method: 'GET' })) as Found;
    const headers = {
      'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
      'chargebee-idempotency-key': toIdempotencyKey(path, post.key),
    };
    return (await this.#request(path, { method: 'POST', headers, body: encodeForm(post.form).toString() })) as Found;
  }

  async #request(path: string, request: SiteRequest): Promise<object> {
    await this.#beforeRequest();
    const { method, headers, body } = request;
    const answer = await sendRequest('Chargebee', new URL(path, this.#base), {
      method,
      headers: { authorization: this.#authorization, ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return checkAnswer(answer);
  }
}

type SiteRequest = {
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** Throws for an error, also with a success status, because no record of Chargebee has an `api_error_code`. */
function checkAnswer(answer: ProviderAnswer): object {
  const { status, body } = answer;
  const isObject = typeof body === 'object' && body !== null;
  if (status !== 200 || !isObject || 'api_error_code' in body) throw buildChargebeeError(answer);
  return body;
}

/** Returns the record of an answer. An answer without it does not show whether the request had an effect. */
export function pickRecord<Name extends ChargebeeName>(answer: Found, name: Name): ChargebeeRecords[Name] {
  const record = answer[name];
  if (record === undefined) throw new ProviderError('wait', `Chargebee: an answer without ${name}`);
  return record as ChargebeeRecords[Name];
}

/** A key has at most 100 characters and belongs to one operation, so it is a digest of both. */
function toIdempotencyKey(path: string, key: string): string {
  return createHash('sha256').update(`${path} ${key}`).digest('hex');
}

/** Encodes an id, which may contain slashes; null for an id that would name another path. */
function toPath(id: string): string | null {
  const segments = id.split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) return null;
  return segments.map(encodeURIComponent).join('/');
}
