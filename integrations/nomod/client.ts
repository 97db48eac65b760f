/** Client of Nomod's API (nomod.com/docs/api-reference/authentication, /requests-responses). */
import type { AccountSettings } from '../account.ts';
import type { ExactJson } from '../exact-json.ts';
import { isMissing, ProviderError } from '../provider-error.ts';
import { buildAnswerError, sendJson } from '../send-json.ts';
import type { ProviderAnswer } from '../send-request.ts';
import { isNomodId, type NomodCharge, type NomodCustomer, type NomodInvoice, type NomodLink } from './records.ts';

const HOST = 'https://api.nomod.com';
const PAGE = 100;

type NomodRecords = {
  readonly customers: NomodCustomer;
  readonly invoices: NomodInvoice;
  readonly links: NomodLink;
  readonly charges: NomodCharge;
};
type NomodRecordName = keyof NomodRecords;
type NomodRequest = {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: ExactJson;
};

export class NomodClient {
  readonly #base: URL;
  readonly #api_key: string;
  readonly #beforeRequest: () => Promise<void>;

  constructor(api_key: string, { address, beforeRequest = async () => {} }: AccountSettings) {
    this.#base = new URL('/v1/', address ?? HOST);
    this.#api_key = api_key;
    this.#beforeRequest = beforeRequest;
  }

  async find<Name extends NomodRecordName>(name: Name, id: string): Promise<NomodRecords[Name] | null> {
    if (!isNomodId(id)) return null;
    try {
      return await this.#send({ method: 'GET', path: `${name}/${id}` });
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async create<Name extends 'customers' | 'invoices' | 'links'>(
    name: Name,
    body: ExactJson,
  ): Promise<NomodRecords[Name]> {
    return await this.#send({ method: 'POST', path: name, body });
  }

  /** Changes the status of an invoice or a link, so that it can no longer be paid. */
  async close(name: 'invoices' | 'links', id: string): Promise<void> {
    const status = name === 'invoices' ? 'cancelled' : 'disabled';
    await this.#send({ method: 'PATCH', path: `${name}/${id}/edit`, body: { status } });
  }

  async refund(charge_id: string, amount: string): Promise<void> {
    await this.#send({ method: 'POST', path: `charges/${charge_id}/refund`, body: { amount } });
  }

  /** Reads the newest customer, which fails with a wrong key. */
  async checkCredentials(): Promise<void> {
    await this.#listPage('customers', { page: '1', page_size: '1' });
  }

  /** Lists the records of all pages, newest first. */
  async *list<Name extends NomodRecordName>(
    name: Name,
    parameters: Readonly<Record<string, string>> = {},
  ): AsyncGenerator<NomodRecords[Name]> {
    for (let page = 1; ; page++) {
      const paged = { ...parameters, page: String(page), page_size: String(PAGE) };
      const answer = await this.#listPage(name, paged);
      yield* answer.results;
      if (answer.next === null || answer.results.length === 0) return;
    }
  }

  async #listPage<Name extends NomodRecordName>(
    name: Name,
    parameters: Readonly<Record<string, string>>,
  ): Promise<NomodPage<NomodRecords[Name]>> {
    const page = await this.#send<NomodPage<NomodRecords[Name]>>({ method: 'GET', path: name, parameters });
    if (!Array.isArray(page.results)) throw new ProviderError('wait', `Nomod: a list of ${name} without results`);
    return page;
  }

  async #send<Body>({ method, path, parameters = {}, body }: NomodRequest): Promise<Body> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams(parameters).toString();
    await this.#beforeRequest();
    const headers = { 'x-api-key': this.#api_key };
    const answer = await sendJson(url, { provider_name: 'Nomod', method, headers, body });
    if (answer.status >= 200 && answer.status < 300 && isRecord(answer.body)) return answer.body as Body;
    throw buildNomodError(answer);
  }
}

type NomodPage<Found> = { readonly results: readonly Found[]; readonly next: string | null };

/** No record has an error: a gateway may answer one with a status of success. */
function isRecord(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !('error' in body);
}

/** Reads `{"error": {"message", "code"}}`, or the refused fields of a request. */
function buildNomodError(answer: ProviderAnswer): ProviderError {
  const body = (answer.body ?? {}) as { readonly error?: unknown };
  const { message, code } = (typeof body.error === 'object' && body.error !== null ? body.error : {}) as {
    readonly message?: unknown;
    readonly code?: unknown;
  };
  const known = typeof code === 'string' ? code : null;
  const fields = Object.entries(body).map(([field, reasons]) => `${field}: ${JSON.stringify(reasons)}`);
  const text = typeof message === 'string' ? message : fields.join('; ');
  return buildAnswerError(answer, {
    provider_name: 'Nomod',
    text: known === null ? text : `${text} (${known})`,
    provider_code: known,
  });
}

/** Rewrites the refusal of a currency, so that it names the currency. */
export function describeCurrencyRefusal(error: unknown, currency: string): unknown {
  const isOfCurrency = error instanceof ProviderError && error.provider_code === 'invalid_currency';
  if (!isOfCurrency) return error;
  const { provider_code, message } = error;
  return new ProviderError('person', `Nomod takes no payments in ${currency}: ${message}`, { provider_code });
}
