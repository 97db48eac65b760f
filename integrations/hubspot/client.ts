/**
 * Client of HubSpot's API for objects, associations and properties, version 2026-03 (developers.hubspot.com, "Objects",
 * "Associations", "Properties").
 */
import type { AccountSettings } from '../account.ts';
import { encodeSegment } from '../path-segment.ts';
import { isMissing, ProviderError } from '../provider-error.ts';
import { sendRequest } from '../send-request.ts';
import { buildRefusal } from './errors.ts';
import { type HubSpotInput, type HubSpotRecord, type HubSpotType, READ_PROPERTIES, toTypeId } from './records.ts';

const HOST = 'https://api.hubapi.com';
const VERSION = '2026-03';
/** Maximum number of records in one request. */
const BATCH = 100;
const PAGE = 500;

type AssociatedPage = {
  /** Either form names the associated record, depending on the type. */
  readonly results: readonly { readonly id?: string; readonly toObjectId?: string }[];
  readonly paging?: { readonly next?: { readonly after: string } };
};
type BatchAnswer = { readonly results: readonly HubSpotRecord[]; readonly errors?: readonly { message?: string }[] };
type AccountDetails = { readonly portalId: string; readonly uiDomain?: string };
type ClientRequest = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: object;
};

export class HubSpotClient {
  readonly #base: URL;
  readonly #authorization: string;
  readonly #beforeRequest: () => Promise<void>;

  constructor(access_token: string, { address, beforeRequest = async () => {} }: AccountSettings) {
    this.#base = new URL('/', address ?? HOST);
    this.#authorization = `Bearer ${access_token}`;
    this.#beforeRequest = beforeRequest;
  }

  readAccount(): Promise<AccountDetails> {
    return this.#send({ method: 'GET', path: `account-info/${VERSION}/details` });
  }

  /** Reads a record by its id, or by the value of a unique property; null if it does not exist, or was deleted. */
  async read(
    type: HubSpotType,
    id: string,
    { by, is_archived = false }: { readonly by?: string; readonly is_archived?: boolean } = {},
  ): Promise<HubSpotRecord | null> {
    const segment = encodeSegment(id);
    if (segment === null) return null;
    const parameters = {
      properties: (READ_PROPERTIES[type] ?? []).join(','),
      ...(by === undefined ? {} : { idProperty: by }),
      ...(is_archived ? { archived: 'true' } : {}),
    };
    return await this.#ignoreMissing({ method: 'GET', path: toPath(type, segment), parameters });
  }

  /** Reads records by their ids, in any order. Records that do not exist are left out. */
  async readAll(type: HubSpotType, ids: readonly string[]): Promise<HubSpotRecord[]> {
    const found: HubSpotRecord[] = [];
    for (const some of toBatches(ids)) {
      const body = { inputs: some.map((id) => ({ id })), properties: READ_PROPERTIES[type] ?? [] };
      const path = toPath(type, 'batch/read');
      found.push(...(await this.#send<BatchAnswer>({ method: 'POST', path, body })).results);
    }
    return found;
  }

  create(type: HubSpotType, body: HubSpotInput): Promise<HubSpotRecord> {
    return this.#send({ method: 'POST', path: toPath(type), body });
  }

  async createAll(type: HubSpotType, inputs: readonly HubSpotInput[]): Promise<void> {
    for (const some of toBatches(inputs)) {
      const path = toPath(type, 'batch/create');
      const { errors = [] } = await this.#send<BatchAnswer>({ method: 'POST', path, body: { inputs: some } });
      const [refused] = errors;
      if (refused) throw new ProviderError('person', `HubSpot: ${refused.message ?? 'a line was refused'}`);
    }
  }

  async update(type: HubSpotType, id: string, properties: HubSpotInput['properties']): Promise<void> {
    await this.#send({ method: 'PATCH', path: toPath(type, id), body: { properties } });
  }

  async delete(type: HubSpotType, id: string): Promise<void> {
    await this.#ignoreMissing({ method: 'DELETE', path: toPath(type, id) });
  }

  async deleteAll(type: HubSpotType, ids: readonly string[]): Promise<void> {
    for (const some of toBatches(ids)) {
      const body = { inputs: some.map((id) => ({ id })) };
      await this.#send({ method: 'POST', path: toPath(type, 'batch/archive'), body });
    }
  }

  /** Lists the ids of the associated records of a type; empty if the record does not exist. */
  async listAssociated(type: HubSpotType, id: string, to: HubSpotType): Promise<string[]> {
    const ids: string[] = [];
    const segment = encodeSegment(id);
    if (segment === null) return ids;
    for (let after: string | undefined; ; ) {
      const page: AssociatedPage | null = await this.#ignoreMissing({
        method: 'GET',
        path: toPath(type, `${segment}/associations/${toTypeId(to)}`),
        parameters: { limit: String(PAGE), ...(after === undefined ? {} : { after }) },
      });
      ids.push(...(page?.results ?? []).flatMap((one) => one.toObjectId ?? one.id ?? []));
      after = page?.paging?.next?.after;
      if (after === undefined) return [...new Set(ids)];
    }
  }

  async hasProperty(type: HubSpotType, name: string): Promise<boolean> {
    return (await this.#ignoreMissing({ method: 'GET', path: `${toPropertiesPath(type)}/${name}` })) !== null;
  }

  /** Creates a text property without duplicate values, and its group. Returns false if the property exists. */
  async createIdProperty(type: HubSpotType, name: string): Promise<boolean> {
    const path = toPropertiesPath(type);
    if (await this.hasProperty(type, name)) return false;
    const group = { name: 'farthing', label: 'Farthing' };
    await this.#ignoreTaken({ method: 'POST', path: `${path}/groups`, body: group });
    const property = { name, label: 'Farthing id', groupName: group.name, type: 'string', fieldType: 'text' };
    await this.#ignoreTaken({ method: 'POST', path, body: { ...property, hasUniqueValue: true } });
    return true;
  }

  async #ignoreMissing<Answer>(request: ClientRequest): Promise<Answer | null> {
    try {
      return await this.#send<Answer>(request);
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async #ignoreTaken(request: ClientRequest): Promise<void> {
    try {
      await this.#send(request);
    } catch (error) {
      if (!(error instanceof ProviderError) || error.provider_code !== 'CONFLICT') throw error;
    }
  }

  async #send<Answer>({ method, path, parameters = {}, body }: ClientRequest): Promise<Answer> {
    const url = new URL(path, this.#base);
    url.search = new URLSearchParams(parameters).toString();
    await this.#beforeRequest();
    const answer = await sendRequest('HubSpot', url, {
      method,
      headers: { authorization: this.#authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.status === 204) return {} as Answer;
    if (answer.status < 200 || answer.status >= 300 || !isRecord(answer.body)) throw buildRefusal(answer);
    return answer.body as Answer;
  }
}

/** A gateway may answer an error with a status of success. */
function isRecord(body: unknown): boolean {
  return typeof body === 'object' && body !== null && (body as { readonly status?: unknown }).status !== 'error';
}

function toPath(type: HubSpotType, rest?: string): string {
  const path = `crm/objects/${VERSION}/${toTypeId(type)}`;
  return rest === undefined ? path : `${path}/${rest}`;
}

function toPropertiesPath(type: HubSpotType): string {
  return `crm/properties/${VERSION}/${toTypeId(type)}`;
}

function toBatches<One>(all: readonly One[]): One[][] {
  return Array.from({ length: Math.ceil(all.length / BATCH) }, (_, index) =>
    all.slice(index * BATCH, (index + 1) * BATCH),
  );
}
