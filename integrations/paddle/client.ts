/**
 * Client of Paddle Billing, version 1 of its API (developer.paddle.com/api-reference/about). Paddle has no idempotency
 * keys, so its callers search for a record before they create it.
 */
import type { AccountSettings } from '../account.ts';
import { type ExactJson, writeExactJson } from '../exact-json.ts';
import { ProviderError } from '../provider-error.ts';
import { type ProviderAnswer, type QueryParameters, sendRequest } from '../send-request.ts';
import { buildPaddleError } from './errors.ts';

const HOSTS = { live: 'https://api.paddle.com', sdbx: 'https://sandbox-api.paddle.com' } as const;
const API_VERSION = '1';

const API_KEY = /^pdl_(live|sdbx)_apikey_\w+$/;
type PaddleMode = keyof typeof HOSTS;

/** Whether the key is for live or sandbox accounts; null for a key that does not show it. */
export function findMode(api_key: string): PaddleMode | null {
  return (API_KEY.exec(api_key)?.[1] as PaddleMode | undefined) ?? null;
}

type Identified = { readonly id: string };

export class PaddleClient {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #beforeRequest: () => Promise<void>;

  constructor(api_key: string, { address, beforeRequest = async () => {} }: AccountSettings) {
    this.#base = address ?? new URL(HOSTS[findMode(api_key) ?? 'sdbx']);
    this.#headers = {
      authorization: `Bearer ${api_key}`,
      'content-type': 'application/json',
      'paddle-version': API_VERSION,
    };
    this.#beforeRequest = beforeRequest;
  }

  async read<Found>(path: string, parameters: QueryParameters = {}): Promise<Found> {
    return readData(await this.#send('GET', path, { parameters })) as Found;
  }

  /** Reads a record; null if it does not exist. */
  async find<Found>(path: string): Promise<Found | null> {
    try {
      return await this.read<Found>(path);
    } catch (error) {
      if (error instanceof ProviderError && error.is_missing) return null;
      throw error;
    }
  }

  /** Lists the records of all pages. The address of the next page in an answer is not called, because the key is for this host only. */
  async list<Found extends Identified>(path: string, parameters: QueryParameters): Promise<Found[]> {
    const found: Found[] = [];
    for (let after: QueryParameters = {}; ; ) {
      const answer = await this.#send('GET', path, { parameters: { ...parameters, ...after } });
      const page = readData(answer) as readonly Found[];
      found.push(...page);
      const last = page.at(-1);
      if (last === undefined || !hasMore(answer)) return found;
      after = { after: last.id };
    }
  }

  async create<Created>(path: string, body: ExactJson): Promise<Created> {
    return readData(await this.#send('POST', path, { body })) as Created;
  }

  async update<Updated>(path: string, body: ExactJson): Promise<Updated> {
    return readData(await this.#send('PATCH', path, { body })) as Updated;
  }

  async #send(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    { parameters = {}, body }: { readonly parameters?: QueryParameters; readonly body?: ExactJson },
  ): Promise<ProviderAnswer> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams(parameters).toString();
    await this.#beforeRequest();
    const answer = await sendRequest('Paddle', url, {
      method,
      headers: this.#headers,
      ...(body === undefined ? {} : { body: writeExactJson(body) }),
    });
    if (answer.status !== 200 && answer.status !== 201) throw buildPaddleError(answer);
    return answer;
  }
}

/** Throws if the answer has no data, such as the page of a gateway with status 200. */
function readData({ body }: ProviderAnswer): unknown {
  const data = (body as { data?: unknown } | null | undefined)?.data;
  if (typeof data !== 'object' || data === null) throw new ProviderError('wait', 'Paddle: an answer without data');
  return data;
}

function hasMore({ body }: ProviderAnswer): boolean {
  const { meta } = body as { meta?: { pagination?: { has_more?: unknown } } };
  return meta?.pagination?.has_more === true;
}
