/**
 * Client of Moyasar's API (docs.moyasar.com/api/authentication, /errors, /api/metadata). Moyasar has no sandbox address: the key decides
 * whether money moves.
 */
import type { AccountSettings } from '../account.ts';
import type { ExactJson } from '../exact-json.ts';
import { isMissing, ProviderError } from '../provider-error.ts';
import { buildAnswerError, sendJson } from '../send-json.ts';
import type { ProviderAnswer } from '../send-request.ts';
import { isMoyasarId, type MoyasarInvoice, type MoyasarPayment, readMetadata } from './records.ts';

const HOST = 'https://api.moyasar.com';
/** Maximum number of pages that a search reads. */
const PAGES_MAX = 50;

type MoyasarRequest = {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: ExactJson;
};
type InvoicePage = {
  readonly invoices: readonly MoyasarInvoice[];
  readonly meta?: { readonly next_page?: string | null };
};

export class MoyasarClient {
  readonly #base: URL;
  readonly #authorization: string;
  readonly #beforeRequest: () => Promise<void>;

  constructor(secret_key: string, { address, beforeRequest = async () => {} }: AccountSettings) {
    this.#base = new URL('/v1/', address ?? HOST);
    this.#authorization = `Basic ${Buffer.from(`${secret_key}:`).toString('base64')}`;
    this.#beforeRequest = beforeRequest;
  }

  async findInvoice(id: string): Promise<MoyasarInvoice | null> {
    return await this.#find<MoyasarInvoice>(`invoices/${id}`, id);
  }

  async findPayment(id: string): Promise<MoyasarPayment | null> {
    return await this.#find<MoyasarPayment>(`payments/${id}`, id);
  }

  async createInvoice(body: ExactJson): Promise<MoyasarInvoice> {
    return await this.#send({ method: 'POST', path: 'invoices', body });
  }

  async cancelInvoice(id: string): Promise<MoyasarInvoice> {
    return await this.#send({ method: 'PUT', path: `invoices/${id}/cancel` });
  }

  async createPayment(body: ExactJson): Promise<MoyasarPayment> {
    return await this.#send({ method: 'POST', path: 'payments', body });
  }

  async updatePayment(id: string, body: ExactJson): Promise<void> {
    await this.#send({ method: 'PUT', path: `payments/${id}`, body });
  }

  async voidPayment(id: string): Promise<void> {
    await this.#send({ method: 'POST', path: `payments/${id}/void` });
  }

  async refundPayment(id: string, body: ExactJson): Promise<MoyasarPayment> {
    return await this.#send({ method: 'POST', path: `payments/${id}/refund`, body });
  }

  /** Reads the first page of invoices, which fails with wrong credentials. */
  async checkCredentials(): Promise<void> {
    await this.#listPage({ page: '1' });
  }

  /**
   * Lists the invoices with this metadata, newest first. The result is filtered here, too, so that a filter that Moyasar ignores finds no
   * foreign invoice.
   */
  async listInvoices(name: string, value: string): Promise<MoyasarInvoice[]> {
    const found: MoyasarInvoice[] = [];
    for (let page = 1; page <= PAGES_MAX; page++) {
      const { invoices, meta } = await this.#listPage({ [`metadata[${name}]`]: value, page: String(page) });
      found.push(...invoices.filter((invoice) => readMetadata(invoice, name) === value));
      if (!meta?.next_page) break;
    }
    return found;
  }

  async #listPage(parameters: Readonly<Record<string, string>>): Promise<InvoicePage> {
    const page = await this.#send<InvoicePage>({ method: 'GET', path: 'invoices', parameters });
    if (!Array.isArray(page.invoices)) throw new ProviderError('wait', 'Moyasar: a list without invoices');
    return page;
  }

  async #find<Found>(path: string, id: string): Promise<Found | null> {
    if (!isMoyasarId(id)) return null;
    try {
      return await this.#send<Found>({ method: 'GET', path });
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async #send<Body>({ method, path, parameters = {}, body }: MoyasarRequest): Promise<Body> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams(parameters).toString();
    await this.#beforeRequest();
    const headers = { authorization: this.#authorization };
    const answer = await sendJson(url, { provider_name: 'Moyasar', method, headers, body });
    if (answer.status >= 200 && answer.status < 300 && isRecord(answer.body)) return answer.body as Body;
    throw buildMoyasarError(answer);
  }
}

/** No record has errors: a gateway may answer an error with a status of success. */
function isRecord(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !('errors' in body);
}

type MoyasarErrorBody = { readonly type?: unknown; readonly message?: unknown; readonly errors?: unknown };

/** Reads the message and the refused fields, such as `Validation Failed (amount: must be an integer)`. */
function buildMoyasarError(answer: ProviderAnswer): ProviderError {
  const { type, message, errors } = (answer.body ?? {}) as MoyasarErrorBody;
  const fields = Object.entries(typeof errors === 'object' && errors !== null ? errors : {});
  const refused = fields.map(([field, reasons]) => `${field}: ${[reasons].flat().join(', ')}`).join('; ');
  const text = typeof message === 'string' ? message : '';
  return buildAnswerError(answer, {
    provider_name: 'Moyasar',
    text: refused === '' ? text : `${text} (${refused})`,
    provider_code: typeof type === 'string' ? type : null,
  });
}
