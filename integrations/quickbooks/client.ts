/**
 * Client of the accounting API of QuickBooks Online for one company, minor version 75 (developer.intuit.com, "Basics of
 * the API"). Numbers in responses remain strings, so that no digit is lost (exact-json.ts).
 */
import { createHash } from 'node:crypto';
import type { AccountSettings } from '../account.ts';
import { type ExactJson, writeExactJson } from '../exact-json.ts';
import { encodeSegment } from '../path-segment.ts';
import { ProviderError } from '../provider-error.ts';
import { sendRequest } from '../send-request.ts';
import { buildStatusError } from '../status-error.ts';
import { buildFaultError, isFault, isMissing, readFault, STALE } from './errors.ts';
import type { QuickBooksRecord, QuickBooksRecords } from './records.ts';

const HOSTS = {
  production: 'https://quickbooks.api.intuit.com',
  sandbox: 'https://sandbox-quickbooks.api.intuit.com',
} as const;
const MINOR_VERSION = '75';
const PAGE = 1_000;
const REQUEST_ID_LENGTH = 40;
/** Maximum attempts of a change. An attempt fails if somebody else changes the record at the same time. */
const CHANGES_MAX = 3;

type CompanyAccess = {
  readonly environment: 'sandbox' | 'production';
  readonly realm_id: string;
  readonly access_token: string;
};
type RecordName = keyof QuickBooksRecords;
type Keyed = { readonly key: string };

export class QuickBooksClient {
  readonly #base: URL;
  readonly #authorization: string;
  readonly #beforeRequest: () => Promise<void>;

  constructor(
    { environment, realm_id, access_token }: CompanyAccess,
    { address, beforeRequest = async () => {} }: AccountSettings,
  ) {
    this.#beforeRequest = beforeRequest;
    this.#base = new URL(`/v3/company/${realm_id}/`, address ?? HOSTS[environment]);
    this.#authorization = `Bearer ${access_token}`;
  }

  /** Reads a record; null if it does not exist, or was deleted. */
  async read<Name extends RecordName>(name: Name, id: string): Promise<QuickBooksRecords[Name] | null> {
    const segment = encodeSegment(id);
    if (segment === null) return null;
    try {
      return await this.#send('GET', name, { path: `${name.toLowerCase()}/${segment}` });
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** Queries all pages. `condition` is written with `quote`. */
  async *query<Name extends RecordName>(name: Name, condition = ''): AsyncGenerator<QuickBooksRecords[Name]> {
    const where = condition === '' ? '' : ` where ${condition}`;
    for (let start = 1; ; start += PAGE) {
      const query = `select * from ${name}${where} orderby Id startposition ${start} maxresults ${PAGE}`;
      const answer = await this.#send<'QueryResponse'>('GET', 'QueryResponse', {
        path: 'query',
        parameters: { query },
      });
      const page = (answer[name] ?? []) as QuickBooksRecords[Name][];
      yield* page;
      if (page.length < PAGE) return;
    }
  }

  /** Creates a record. QuickBooks answers a repeated request id with the first result. */
  async create<Name extends RecordName>(name: Name, body: ExactJson, { key }: Keyed): Promise<QuickBooksRecords[Name]> {
    const parameters = { requestid: toRequestId(key) };
    return await this.#send('POST', name, { path: name.toLowerCase(), parameters, body });
  }

  /**
   * Voids or deletes a record; no effect if it does not exist. `isDone` checks the current state of the record before
   * each attempt.
   */
  async end<Name extends 'Invoice' | 'Payment' | 'CreditMemo'>(
    name: Name,
    { id, operation, key, isDone = () => false }: RecordEnd<QuickBooksRecords[Name]>,
  ): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const record: QuickBooksRecords[Name] | null = await this.read(name, id);
      if (record === null || isDone(record)) return;
      const body = { Id: record.Id, SyncToken: record.SyncToken };
      const parameters = { operation, requestid: toRequestId(`${key}:${operation}:${record.SyncToken}`) };
      try {
        await this.#send('POST', name, { path: name.toLowerCase(), parameters, body });
        return;
      } catch (error) {
        if (isMissing(error)) return;
        if (!isFault(error, STALE) || attempt === CHANGES_MAX) throw error;
      }
    }
  }

  async #send<Name extends RecordName | 'QueryResponse'>(
    method: 'GET' | 'POST',
    name: Name,
    { path, parameters = {}, body }: CompanyRequest,
  ): Promise<(QuickBooksRecords & { QueryResponse: Record<string, unknown> })[Name]> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams({ ...parameters, minorversion: MINOR_VERSION }).toString();
    await this.#beforeRequest();
    const answer = await sendRequest('QuickBooks', url, {
      method,
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: writeExactJson(body) }),
    });
    const fault = readFault(answer.body);
    if (fault !== null) throw buildFaultError(answer, fault);
    const records = answer.body as Partial<QuickBooksRecords & { QueryResponse: Record<string, unknown> }> | undefined;
    if (answer.status !== 200 || records === undefined) throw buildStatusError('QuickBooks', answer);
    const record = records[name];
    if (record === undefined) throw new ProviderError('wait', `QuickBooks: an answer without ${name}`);
    return record as (QuickBooksRecords & { QueryResponse: Record<string, unknown> })[Name];
  }
}

type RecordEnd<Found extends QuickBooksRecord> = Keyed & {
  readonly id: string;
  readonly operation: 'void' | 'delete';
  isDone?(record: Found): boolean;
};
type CompanyRequest = {
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: ExactJson;
};

/** A request id has at most 50 characters, so it is a digest of the key. */
function toRequestId(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, REQUEST_ID_LENGTH);
}

/** Quotes a text for the query language. */
export function quote(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
