/** The OpenAPI 3.1 document at /v1/openapi.json, written from the same shapes that decode requests and encode answers. */
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { VERSION } from '../../process/version.ts';
import { buildCodeSamples } from './code-samples.ts';
import { ErrorAnswer } from './errors.ts';
import { type Example, readExamples } from './examples.ts';
import { ANY, describeShape } from './json-schemas.ts';
import { describeInQuery } from './list.ts';
import type { Route } from './route.ts';

type OpenApiDocument = ReturnType<typeof createDocument>;

export function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  return createDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'Farthing',
        version: VERSION,
        description:
          'Usage metering and billing. Amounts and quantities are decimal numbers as text. How usage is counted, priced, ' +
          'prorated and invoiced is in [the rules](/docs/rules/); what an error means, in [Errors](/docs/rules/errors.md).',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/v1' }],
      security: [{ ApiKeyAuth: [] }, { BearerAuth: [] }],
      tags: [...new Set(routes.map((route) => route.tag))]
        .sort(compareAlphabetically)
        .map((name) => ({ name, description: TAGS[name] })),
      paths: buildPaths(routes, readExamples(routes)),
      components: {
        securitySchemes: {
          ApiKeyAuth: { type: 'apiKey', in: 'header', name: 'x-api-key' },
          // The token of `POST /auth/login`; X-Environment-ID names the environment beside it.
          BearerAuth: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        },
        responses: errorResponses(),
      },
    },
    { allowEmptySchema: ANY, override: describeShape },
  );
}

/** As a reader looks for them, whether a letter is a capital or not. */
const compareAlphabetically = (one: string, other: string) => one.localeCompare(other, 'en');

const TAGS: Record<string, string> = {
  'Audit log': 'Who changed what, and when: [records](/docs/rules/records.md#the-audit-log).',
  'Add-ons': 'What is sold beside a plan: [records](/docs/rules/records.md#add-ons).',
  AI: 'Descriptions in words become requests: [prices in words](/docs/rules/parsing.md).',
  'API keys': 'Who may ask for what: [permissions](/docs/permissions.md).',
  Customers: 'Who is billed: [records](/docs/rules/records.md).',
  Entitlements: 'What may be used: [entitlements](/docs/rules/entitlements.md).',
  Reservations: 'Whether it may be used now, and what is held meanwhile: [reservations](/docs/rules/reservations.md).',
  Environments: 'Production, staging and others of one tenant, each with records of its own.',
  Events: 'What customers did: [events](/docs/rules/events.md), [identity](/docs/rules/identity.md).',
  Features: 'What a plan entitles to: [records](/docs/rules/records.md).',
  Invoices: 'What is charged: [invoices](/docs/rules/invoices.md), [numbers](/docs/rules/numbers.md).',
  'Meter usage': 'What meters measured: [usage](/docs/rules/usage.md), [windows](/docs/rules/windows.md).',
  Meters: 'Which events count, and how they become a number: [metering](/docs/rules/metering.md).',
  Plans: 'Prices that are sold together: [subscriptions](/docs/rules/subscriptions.md).',
  Prices: 'What a quantity costs: [pricing](/docs/rules/pricing.md).',
  'Price units':
    'Currencies of your own, in which prices may be stated: [pricing](/docs/rules/pricing.md#prices-in-units-of-your-own).',
  Groups: 'Prices or features that belong together: [records](/docs/rules/records.md#groups).',
  Payments: 'How an invoice is paid, collected, tried again and given back: [payments](/docs/rules/payments.md).',
  Wallets: 'What a customer has been given back: [wallets](/docs/rules/wallets.md).',
  Coupons: 'What is taken off, for how long, and when it may be redeemed: [coupons](/docs/rules/coupons.md).',
  Taxes: 'Rates, and what is taxed with them: [taxes](/docs/rules/taxes.md).',
  Connections:
    'Whereto something is written, and with which credentials: [connections](/docs/rules/exports.md#connections).',
  Costs:
    'What something costs you, and what is left: [cost sheets](/docs/rules/pricing.md#cost-sheets), [costs](/docs/rules/costs.md).',
  Dashboard: 'Who brings how much, and what recurs: [revenue](/docs/rules/revenue.md).',
  Alerts: 'When a balance is low, or much was spent: [alerts](/docs/rules/alerts.md).',
  'Credit grants': 'Who gets credits, how often, and for how long: [credit grants](/docs/rules/credits.md).',
  'Credit notes': 'What of an invoice was taken back: [credit notes](/docs/rules/credit-notes.md).',
  Roles: 'What a key may do: [permissions](/docs/permissions.md).',
  Settings: 'What is wanted otherwise than by default: [records](/docs/rules/records.md).',
  'Signing in': 'People sign in with email and password, programs have [API keys](/docs/permissions.md).',
  'Scheduled tasks': 'What is exported again and again: [scheduled exports](/docs/rules/exports.md#scheduled-exports).',
  Subscriptions:
    'Who pays for what, and when: [subscriptions](/docs/rules/subscriptions.md), [periods](/docs/rules/periods.md), ' +
    '[proration](/docs/rules/proration.md).',
  Tasks:
    'Usage, invoices and credits as files: [exports](/docs/rules/exports.md); files that come in: [imports](/docs/rules/imports.md); how far either is: [tasks](/docs/rules/tasks.md).',
  Tenants: 'The company whose customers are billed.',
  'Test clocks': 'What time it is in an environment of your own, and years in a minute: [clock](/docs/rules/clock.md).',
  Users: 'People and service accounts: [permissions](/docs/permissions.md).',
  Webhooks:
    'What is told when a record changes: [system events, endpoints, deliveries](/docs/rules/webhooks.md), signed as Standard Webhooks has it.',
  Workflows:
    'Long work that a request asked for: [invoices computed later](/docs/rules/invoices.md#invoices-computed-later).',
};

function buildPaths(routes: readonly Route[], exampleOfRoute: (route: Route) => Example): ZodOpenApiPathsObject {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method] = buildOperation(route, exampleOfRoute(route));
  }
  return paths as ZodOpenApiPathsObject;
}

function buildOperation(route: Route, example: Example): ZodOpenApiOperationObject {
  const samples = buildCodeSamples(route, requestExample(route), example);
  return {
    operationId: route.operation_id,
    summary: route.summary,
    tags: [route.tag],
    description: buildDescription(route),
    ...(route.access === 'public' ? { security: [] } : {}),
    requestParams: {
      ...(route.params ? { path: route.params } : {}),
      ...(route.query ? { query: describeInQuery(route.query) } : {}),
      ...(route.method === 'post' && route.access !== 'public' ? { header: IdempotencyHeader } : {}),
    } as ZodOpenApiOperationObject['requestParams'],
    ...(route.body ? { requestBody: buildRequestBody(route, route.body) } : {}),
    ...(route.takes_file ? { requestBody: buildFileBody(route.takes_file) } : {}),
    responses: { [route.success]: buildSuccess(route, example), ...buildErrors(route) },
    ...(samples.length > 0 ? { 'x-codeSamples': samples } : {}),
  } as ZodOpenApiOperationObject;
}

function buildDescription({ description, access }: Route): string {
  const needed = access === 'public' ? undefined : `Needs the permission \`${access}\`.`;
  return [description, needed].filter((text) => text !== undefined).join('\n\n');
}

const IdempotencyHeader = z.object({
  'Idempotency-Key': z.string().min(1).max(255).optional().meta({
    description: 'The first answer is kept for 48 hours and given again to the same request.',
  }),
});

/** A shape has the example that fits every operation which takes it; an operation may have one of its own. */
export function requestExample({ body, example }: Route): unknown {
  return example?.body ?? (body && z.globalRegistry.get(body)?.example);
}

function buildRequestBody(route: Route, body: NonNullable<Route['body']>) {
  return {
    required: !body.safeParse({}).success,
    content: { 'application/json': { schema: body, ...shown(requestExample(route)) }, ...route.also_takes },
  };
}

function buildFileBody(examples: NonNullable<Route['takes_file']>) {
  const contents = Object.entries(examples).map(([kind, example]) => [
    kind,
    { schema: typeof example === 'string' ? FILE : RECORDS, example },
  ]);
  return { required: true, content: Object.fromEntries(contents) };
}

const FILE = { type: 'string', format: 'binary' } as const;
const RECORDS = { type: 'array', items: { type: 'object' } } as const;

function buildSuccess({ success, answer, file_type }: Route, example: Example) {
  if (!answer && !file_type) return { description: success === 204 ? 'Done; no body.' : 'Done.' };
  const json = answer ? { 'application/json': { schema: answer, ...shown(example.answer) } } : {};
  const file = file_type === undefined ? {} : { [file_type]: { schema: FILE, ...shown(example.file) } };
  return { description: 'Done.', content: { ...json, ...file } };
}

const shown = (example: unknown) => (example === undefined ? {} : { example });

const ERRORS = {
  400: ['validation_error', 'name: is required'],
  401: ['permission_denied', 'the header x-api-key is missing'],
  403: ['permission_denied', 'this needs the permission meter:write'],
  404: ['not_found', 'meter meter_01 not found'],
  409: ['already_exists', 'a record with this lookup_key exists already'],
  413: ['validation_error', 'request body too large'],
  422: ['validation_error', 'Idempotency-Key: was used for another request'],
  429: ['too_many_requests', 'too many requests: try again in 2 seconds'],
  500: ['internal_error', 'an unexpected error occurred'],
  503: ['service_unavailable', 'the database is not available, try again'],
} as const;

function buildErrors(route: Route): Record<string, { $ref: string }> {
  const answered = Object.keys(ERRORS).filter((status) => {
    if (status === '401') return route.access !== 'public' || route.signed === true;
    // Whoever signs in may be refused, too.
    if (status === '403' || status === '429') return route.access !== 'public' || route.body !== undefined;
    if (status === '404') return mayNameARecord(route);
    if (status === '413') return route.body !== undefined || route.takes_file !== undefined;
    if (status === '409' || status === '422') return route.method === 'post';
    return true;
  });
  return Object.fromEntries(answered.map((status) => [status, { $ref: `#/components/responses/Error${status}` }]));
}

/** Lists and searches leave out what is not there; any other request may name it in its path, its body or its query string. */
function mayNameARecord({ path, body, query }: Route): boolean {
  if (path.includes(':')) return true;
  if (body) return !path.endsWith('/search');
  const names = query instanceof z.ZodObject ? Object.keys(query.shape) : [];
  return names.some((name) => /(^|_)id$/.test(name)) && !names.includes('limit');
}

function errorResponses() {
  return Object.fromEntries(
    Object.entries(ERRORS).map(([status, [code, message]]) => [
      `Error${status}`,
      {
        description: code,
        content: { 'application/json': { schema: ErrorAnswer, example: errorExample(status, code, message) } },
      },
    ]),
  );
}

function errorExample(status: string, code: string, message: string) {
  const error = { message, internal_error: null };
  return { code, http_status_code: Number(status), message, details: null, success: false, error };
}
