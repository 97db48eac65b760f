/** Builds the call of the published client that sends the example of an operation, for the documentation. */
import { Flexprice } from '@flexprice/sdk';
import { HTTPClient } from '@flexprice/sdk/lib/http.js';
import type { Route } from '../../api/http/route.ts';

/** Methods of the client whose names differ from the id of the operation. */
const OTHER_NAMES: Record<string, string> = {
  clonePlan: 'postPlansIdClone',
  listTaxRates: 'getTaxRates',
  getCustomerWallets: 'getWalletsByCustomerId',
  getCustomerWalletsByKey: 'getCustomerWallets',
};

type Method = { readonly called: string; readonly parameters: readonly string[] };

/** Methods of the client by name; each is in one group. */
const METHODS = methodsOf(new Flexprice({ serverURL: 'http://localhost' }));

function methodsOf(client: Flexprice): Map<string, Method> {
  const namesOf = (of: object) => Object.getOwnPropertyNames(Object.getPrototypeOf(of));
  const groups = namesOf(client).filter((name) => name !== 'constructor');
  const all = groups.flatMap((group) => {
    const methods = client[group as keyof Flexprice] as unknown as Record<string, () => unknown>;
    const names = namesOf(methods).filter((name) => name !== 'constructor');
    return names.map((name): [string, Method] => [
      name,
      { called: `client.${group}.${name}`, parameters: parametersOf(methods[name]!) },
    ]);
  });
  return new Map(all);
}

/** Names of the parameters in the source of a method; the last one is the options of the call. */
function parametersOf(method: () => unknown): string[] {
  const [, inside] = /\(([^)]*)\)/.exec(method.toString())!;
  return inside!.split(/\s*,\s*/).filter((name) => name !== 'options');
}

export function hasMethod({ operation_id, signed }: Route): boolean {
  // For webhooks of providers (`signed`), the client's methods send no body, so they cannot send the example.
  return signed === undefined && METHODS.has(OTHER_NAMES[operation_id] ?? operation_id);
}

/**
 * Fields that the client sends in place of those of the example. Undefined omits a field that the client does not know,
 * or that only other providers have. The client requires some fields that have defaults in the API.
 */
const RECURRING = { billing_cadence: 'RECURRING' };
const INSTEAD: Record<string, object> = {
  createUser: { name: undefined },
  listRbacRoles: { user_type: undefined },
  createCustomer: { timezone: undefined },
  createFeature: { meter: { reset_usage: 'BILLING_PERIOD' } },
  createPrice: { ...RECURRING, price_unit_type: 'FIAT' },
  createPricesBulk: { items: { ...RECURRING, price_unit_type: 'FIAT' } },
  createCoupon: { coupon_code: undefined },
  queryCoupon: { coupon_codes: undefined },
  queryCostsheet: { lookup_key: undefined, limit: undefined },
  createSubscription: RECURRING,
  updateSubscription: { metadata: undefined },
  createSubscriptionLineItem: { price: RECURRING, quantity: Number },
  deleteSubscriptionLineItem: { proration_behavior: undefined },
  voidInvoice: { metadata: undefined },
  createPayment: { payment_gateway: undefined },
  ingestEvent: { properties: { tokens: String } },
  ingestEventsBulk: { events: { properties: { tokens: String } } },
  queryWalletTransaction: { credits_available_gt: Number },
};
const TEXT_EXPAND = new Set(['queryAddon', 'queryEntitlement', 'queryAlertLog']);
/** Names of path parameters that the client has changed. */
const OTHER_PARAMETERS: Record<string, Record<string, string>> = {
  listSubscriptionSchedules: { id: 'subscriptionId' },
  getWalletTransactions: { id: 'idPathParameter' },
};

type Asked = { readonly query: Readonly<Record<string, unknown>>; readonly body: unknown };

/** Converts the example of an operation to a request that the client can send, with the names of the API. */
export function toClientRequest(route: Route, requested: string, example: unknown): Asked {
  const { operation_id: id } = route;
  const query = queryOf(route, requested);
  const expand = TEXT_EXPAND.has(id) ? { expand: (paths: string[]) => paths.join(',') } : {};
  const instead = { ...INSTEAD[id], ...expand };
  if (example === undefined) return { query: changed(query, instead) as Record<string, unknown>, body: undefined };
  return { query, body: changed(example, instead) };
}

/** Replaces values. Each entry of a list is changed in the same way. */
function changed(value: unknown, instead: object): unknown {
  if (Array.isArray(value)) return value.map((one) => changed(one, instead));
  if (typeof value !== 'object' || value === null) return value;
  const fields: Record<string, unknown> = { ...value };
  for (const [key, other] of Object.entries(instead)) {
    if (other === undefined) delete fields[key];
    else if (typeof other === 'function') fields[key] = fields[key] === undefined ? undefined : other(fields[key]);
    else if (typeof other === 'object') fields[key] = changed(fields[key], other);
    else fields[key] = other;
  }
  return fields;
}

/** `requested` is the path with its query string. */
export function clientCall(route: Route, requested: string, example: unknown): string {
  const { called, parameters } = METHODS.get(OTHER_NAMES[route.operation_id] ?? route.operation_id)!;
  const { query, body } = toClientRequest(route, requested, example);
  const named: Record<string, unknown> = { ...pathOf(route, requested), ...(inClientWords(query) as object) };
  const sent = inClientWords(body);
  const whole = { ...named, ...(sent as object | undefined) };
  const request = Object.keys(whole).length === 0 && body === undefined ? undefined : whole;
  const given = parameters.map((name) => (name === 'request' ? request : name === 'body' ? sent : named[name]));
  while (given.length > 0 && given.at(-1) === undefined) given.pop();
  return `\nconst answer = await ${called}(${given.map((value) => literal(value)).join(', ')});\n`;
}

function pathOf(route: Route, asked: string): Record<string, string> {
  const parts = asked.split('?')[0]!.split('/');
  const names = OTHER_PARAMETERS[route.operation_id] ?? {};
  const named = route.path.split('/').flatMap((part, at): [string, string][] => {
    const name = part.slice(1);
    return part.startsWith(':') ? [[names[name] ?? camel(name), decodeURIComponent(parts[at]!)]] : [];
  });
  return Object.fromEntries(named);
}

/** Parses the query string as the operation does. `expand` stays a text for the client. */
function queryOf({ query: shape }: Route, asked: string): Record<string, unknown> {
  const given = Object.fromEntries(new URLSearchParams(asked.split('?')[1] ?? ''));
  const read = (shape?.safeParse(given).data ?? {}) as Record<string, unknown>;
  const valueOf = (name: string, text: string) => {
    const value = read[name];
    const isPlain = typeof value === 'number' || typeof value === 'boolean' || Array.isArray(value);
    return isPlain && name !== 'expand' ? value : text;
  };
  return Object.fromEntries(Object.entries(given).map(([name, text]) => [name, valueOf(name, text)]));
}

/** Keys below these fields are chosen by customers, so their spelling is not changed. */
const NAMED_BY_CUSTOMERS = new Set(['metadata', 'properties', 'config_value', 'headers', 'credentials']);

function inClientWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inClientWords);
  if (typeof value !== 'object' || value === null) return value;
  const words = Object.entries(value).map(([key, inner]) => [
    camel(key),
    NAMED_BY_CUSTOMERS.has(key) ? inner : inClientWords(inner),
  ]);
  return Object.fromEntries(words);
}

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

const WIDTH = 72;

/** Formats a value as a literal of TypeScript. */
function literal(value: unknown, indent = ''): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
  if (typeof value !== 'object' || value === null) return String(value);
  const isList = Array.isArray(value);
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  const key = (name: string) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`);
  const parts = (inner: string) =>
    isList
      ? value.map((one) => literal(one, inner))
      : Object.entries(value).map(([name, one]) => `${key(name)}: ${literal(one, inner)}`);
  const short = parts(indent).join(', ');
  const inLine = isList || short === '' ? `${open}${short}${close}` : `${open} ${short} ${close}`;
  if (indent.length + inLine.length <= WIDTH && !inLine.includes('\n')) return inLine;
  const inner = `${indent}  `;
  return `${open}\n${parts(inner)
    .map((part) => `${inner}${part},\n`)
    .join('')}${indent}${close}`;
}

export type Sent = { readonly method: string; readonly path: string; readonly body: unknown };

/** Runs a sample as it is written. Its client gets a fixed answer; returns the request that it would have sent. */
export async function sentByClient(
  source: string,
  answer: { status: number; body: unknown; type: string },
): Promise<Sent> {
  let sent: Sent | undefined;
  const fetcher = async (input: RequestInfo | URL): Promise<Response> => {
    const request = input as Request;
    const { pathname, search } = new URL(request.url);
    const text = await request.text();
    sent = { method: request.method, path: pathname + search, body: text === '' ? undefined : JSON.parse(text) };
    const content =
      answer.status === 204 ? null : typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    return new Response(content, { status: answer.status, headers: { 'content-type': answer.type } });
  };
  class Recorded extends Flexprice {
    constructor(options: ConstructorParameters<typeof Flexprice>[0]) {
      super({ ...options, httpClient: new HTTPClient({ fetcher }) });
    }
  }
  const [imported, ...rest] = source.split('\n');
  if (imported !== `import { Flexprice } from '@flexprice/sdk';`) throw new Error(`not a sample: ${imported}`);
  const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor;
  await new AsyncFunction('Flexprice', rest.join('\n'))(Recorded);
  if (!sent) throw new Error('nothing was sent');
  return sent;
}
