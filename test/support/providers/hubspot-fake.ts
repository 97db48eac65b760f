/**
 * A small stateful fake of HubSpot's API, by its public documentation (developers.hubspot.com): "Account information
 * API", "Objects", "Associations", "Properties", "Error handling", "API usage guidelines and limits", "Validating
 * requests". It serves the paths of version 2026-03, and those of version 3 and 4 for HubSpot's own library.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { breakAnswer, FakeServer, readBody } from './fake-server.ts';
import { type CrmInput, type CrmRecord, CrmRefusal, type CrmType, HubSpotCrm, TYPES } from './hubspot-fake-crm.ts';

type Disturbance = 'unavailable' | 'rate_limit' | 'daily_limit' | 'lost_answer' | 'html' | 'refusal';
type Answer = { readonly status: number; readonly body?: unknown };
type Call = { readonly method: string; readonly path: string; readonly url: URL; readonly text: string };

const PORTAL_ID = 4711;
const OBJECTS = /^\/crm\/(?:objects\/2026-03|v3\/objects|v4\/objects)\//;
const PROPERTIES = /^\/crm\/(?:properties\/2026-03|v3\/properties)\//;

export class HubSpotFake extends FakeServer<Disturbance> {
  readonly crm = new HubSpotCrm();
  readonly portal_id = String(PORTAL_ID);
  access_token = 'pat-na1-token';
  readonly client_secret = 'client-secret';
  /** Scopes that the app lacks for changes of properties. */
  missing_scopes: readonly string[] = [];
  /** Whether associations are listed with `id`, as in version 3, or with `toObjectId`. */
  has_v3_associations = false;

  get secrets() {
    return { access_token: this.access_token, client_secret: this.client_secret, app_id: '12345' };
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readBody(request);
    const url = new URL(request.url!, 'http://fake');
    const path = url.pathname.replace(OBJECTS, '').replace(PROPERTIES, 'properties/').replace(/^\//, '');
    const call = { method: request.method!, path, url, text };
    const name = `${call.method} ${path}`;
    this.requests.push(name);
    const disturbance = this.takeDisturbance(name);
    await this.passBarrier(name);
    const { status, body } = disturb(disturbance) ?? this.#answer(request, call);
    if (disturbance === 'lost_answer') return breakAnswer(response);
    if (disturbance === 'html')
      return void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Gateway</h1>');
    const headers = status === 429 ? this.retryHeaders : {};
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  }

  #answer(request: IncomingMessage, call: Call): Answer {
    if (this.is_revoked || request.headers.authorization !== `Bearer ${this.access_token}`)
      return toRefusal(new CrmRefusal(401, 'INVALID_AUTHENTICATION', 'Authentication credentials not found.'));
    try {
      if (/^account-info\/(?:2026-03|v3)\/details$/.test(call.path)) return this.#showAccount();
      if (call.path.startsWith('properties/')) return this.#runProperties(call);
      if (OBJECTS.test(call.url.pathname)) return this.#runObjects(call);
      throw new CrmRefusal(404, 'OBJECT_NOT_FOUND', 'resource not found');
    } catch (error) {
      if (error instanceof CrmRefusal) return toRefusal(error);
      throw error;
    }
  }

  #showAccount(): Answer {
    const [companyCurrency, ...additionalCurrencies] = this.crm.currencies;
    const account = { portalId: PORTAL_ID, accountType: 'STANDARD', companyCurrency, additionalCurrencies };
    return { status: 200, body: { ...account, timeZone: 'US/Eastern', uiDomain: 'app.hubspot.com' } };
  }

  #runProperties({ method, path, text }: Call): Answer {
    if (method === 'POST' && this.missing_scopes.length > 0)
      throw new CrmRefusal(
        403,
        'MISSING_SCOPES',
        "This app hasn't been granted all required scopes to make this call.",
        [
          {
            message: 'One or more of the following scopes are required.',
            context: { requiredGranularScopes: this.missing_scopes },
          },
        ],
      );
    const [, type_id = '', name] = path.split('/');
    const type = findType(type_id);
    if (method === 'GET' && name !== undefined) {
      if (!this.crm.hasProperty(type, name))
        throw new CrmRefusal(404, 'OBJECT_NOT_FOUND', `Property ${name} not found`);
      return { status: 200, body: { name } };
    }
    if (method !== 'POST') throw new CrmRefusal(405, 'METHOD_NOT_ALLOWED', 'Method not allowed');
    if (name === 'groups') {
      const group = parse(text, ['name', 'label', 'displayOrder']) as { name: string };
      this.crm.createGroup(type, group.name);
      return { status: 201, body: group };
    }
    const fields = ['name', 'label', 'groupName', 'type', 'fieldType', 'hasUniqueValue', 'description'];
    const property = parse(text, fields) as { name: string; groupName: string; type: string; hasUniqueValue?: boolean };
    if (property.type !== 'string')
      throw new CrmRefusal(400, 'VALIDATION_ERROR', 'this fake has text properties alone');
    this.crm.createProperty(type, { ...property, is_unique: property.hasUniqueValue === true });
    return { status: 201, body: property };
  }

  #runObjects({ method, path, url, text }: Call): Answer {
    const [type_id = '', id, more, to_id] = path.split('/').map(decodeURIComponent);
    const type = findType(type_id);
    if (id === 'batch' && method === 'POST') return this.#runBatch(type, more, text);
    if (more === 'associations' && method === 'GET') return this.#listAssociated(type, id!, findType(to_id ?? ''), url);
    if (more !== undefined) throw new CrmRefusal(404, 'OBJECT_NOT_FOUND', 'resource not found');
    if (id === undefined && method === 'POST')
      return { status: 201, body: show(this.crm.create(type, parse(text, ['properties', 'associations'])), null) };
    if (id !== undefined && method === 'GET') return this.#read(type, id, url.searchParams);
    if (id !== undefined && method === 'PATCH') {
      const { properties = {} } = parse(text, ['properties']) as CrmInput;
      return { status: 200, body: show(this.crm.update(type, id, properties), Object.keys(properties)) };
    }
    if (id !== undefined && method === 'DELETE') {
      this.crm.archive(type, id);
      return { status: 204 };
    }
    throw new CrmRefusal(405, 'METHOD_NOT_ALLOWED', 'Method not allowed');
  }

  #read(type: CrmType, id: string, parameters: URLSearchParams): Answer {
    checkNames([...parameters.keys()], ['properties', 'idProperty', 'archived']);
    const by = parameters.get('idProperty') ?? undefined;
    const is_archived = parameters.get('archived') === 'true';
    const names = parameters.getAll('properties').flatMap((list) => list.split(','));
    const shown = show(this.crm.get(type, id, { ...(by ? { by } : {}), is_archived }), names);
    if (type === 'invoices' && shown.properties['hs_invoice_status'] === 'draft' && this.crm.delayed_reads-- > 0)
      shown.properties['hs_amount_billed'] = this.crm.delayed_total;
    return { status: 200, body: shown };
  }

  #runBatch(type: CrmType, operation: string | undefined, text: string): Answer {
    const { inputs = [], properties = [] } = parse(text, ['inputs', 'properties']) as {
      inputs?: (CrmInput & { id?: string })[];
      properties?: string[];
    };
    if (inputs.length === 0 || inputs.length > 100)
      throw new CrmRefusal(400, 'VALIDATION_ERROR', 'inputs must have 1 to 100 entries');
    if (operation === 'create') {
      const results = inputs.map((input) => show(this.crm.create(type, input), null));
      return { status: 201, body: { status: 'COMPLETE', results } };
    }
    if (operation === 'archive') {
      for (const { id = '' } of inputs) this.crm.archive(type, id);
      return { status: 204 };
    }
    if (operation !== 'read') throw new CrmRefusal(404, 'OBJECT_NOT_FOUND', 'resource not found');
    const known = new Set(this.crm.list(type).map(({ id }) => id));
    const results = inputs.flatMap(({ id = '' }) => (known.has(id) ? show(this.crm.get(type, id), properties) : []));
    const isPart = results.length < inputs.length;
    const errors = isPart ? { numErrors: 1, errors: [{ status: 'error', category: 'OBJECT_NOT_FOUND' }] } : {};
    return { status: isPart ? 207 : 200, body: { status: 'COMPLETE', results, ...errors } };
  }

  /** Lists pages of two, so that each reader has to follow them. */
  #listAssociated(type: CrmType, id: string, to: CrmType, url: URL): Answer {
    checkNames([...url.searchParams.keys()], ['limit', 'after']);
    this.crm.get(type, id);
    const start = Number(url.searchParams.get('after') ?? 0);
    const ids = this.crm.listLinked(type, id, to);
    const results = ids
      .slice(start, start + 2)
      .map((one) => (this.has_v3_associations ? { id: one, type: `${type}_to_${to}` } : toAssociated(one)));
    const paging = ids.length > start + 2 ? { paging: { next: { after: String(start + 2) } } } : {};
    return { status: 200, body: { results, ...paging } };
  }
}

function toAssociated(id: string) {
  return { toObjectId: Number(id), associationTypes: [{ category: 'HUBSPOT_DEFINED', typeId: 1, label: null }] };
}

function findType(name: string): CrmType {
  const found = (Object.keys(TYPES) as CrmType[]).find((type) => type === name || TYPES[type] === name);
  if (found === undefined) throw new CrmRefusal(400, 'VALIDATION_ERROR', `Unable to infer object type from: ${name}`);
  return found;
}

function parse(text: string, fields: readonly string[]): Record<string, unknown> {
  const body = JSON.parse(text) as Record<string, unknown>;
  checkNames(Object.keys(body), fields);
  return body;
}

function checkNames(names: readonly string[], known: readonly string[]): void {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new CrmRefusal(400, 'VALIDATION_ERROR', `Unrecognized field "${unknown}"`);
}

/** Shows a record with these properties; null shows all. */
function show({ id, properties, createdAt, archived }: CrmRecord, names: readonly string[] | null) {
  const shown = Object.entries(properties).filter(([name]) => names?.includes(name) ?? !name.startsWith('_'));
  const values: Record<string, string | null> = { ...Object.fromEntries(shown), hs_object_id: id };
  return { id, properties: values, createdAt, updatedAt: createdAt, archived };
}

function toRefusal({ status, category, message, errors }: CrmRefusal): Answer {
  const body = {
    status: 'error',
    message,
    category,
    correlationId: 'c0ffee',
    ...(errors.length > 0 ? { errors } : {}),
  };
  return { status, body };
}

function disturb(what: Disturbance | null): Answer | null {
  if (what === 'unavailable') return { status: 503, body: {} };
  if (what === 'refusal')
    return toRefusal(new CrmRefusal(400, 'VALIDATION_ERROR', 'The request could not be understood.'));
  if (what !== 'rate_limit' && what !== 'daily_limit') return null;
  const policyName = what === 'rate_limit' ? 'TEN_SECONDLY_ROLLING' : 'DAILY';
  const message = `You have reached your ${policyName.toLowerCase()} limit.`;
  return { status: 429, body: { status: 'error', message, errorType: 'RATE_LIMIT', policyName } };
}

type SignedRequest = {
  readonly method: string;
  readonly url: string;
  readonly body: string;
  readonly timestamp: string;
};

export function signHubSpotRequest({ method, url, body, timestamp }: SignedRequest, secret: string): string {
  return createHmac('sha256', secret).update(`${method}${url}${body}${timestamp}`, 'utf8').digest('base64');
}
