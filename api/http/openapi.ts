/** The OpenAPI 3.1 document at /v1/openapi.json, built from the shapes that decode requests and encode answers. */
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { VERSION } from '../../process/version.ts';
import { buildCodeSamples } from './code-samples.ts';
import { ERRORS, listContentTypes, listErrorStatuses } from './declared-answers.ts';
import { ErrorAnswer } from './errors.ts';
import { type Example, readExamples } from './examples.ts';
import { finishSchemas, type OpenApiDocument } from './finish-schemas.ts';
import { ANY, describeShape } from './json-schemas.ts';
import { describeInQuery } from './list.ts';
import type { Route } from './route.ts';
import { PLAIN_NAME } from './session-cookie.ts';
import { hasCondition, hasEntityTag } from './target.ts';

export function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  const document = createDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'Farthing',
        version: VERSION,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/v1' }],
      security: [{ ApiKeyAuth: [] }, { BearerAuth: [] }, { SessionCookie: [] }],
      tags: listTags(routes),
      paths: buildPaths(routes, readExamples(routes)),
      components: {
        securitySchemes: {
          ApiKeyAuth: { type: 'apiKey', in: 'header', name: 'x-api-key' },
          BearerAuth: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key, or a token of `POST /auth/login`; then X-Environment-ID names the environment.',
          },
          SessionCookie: {
            type: 'apiKey',
            in: 'cookie',
            name: PLAIN_NAME,
            description:
              'Browser session of `POST /auth/session`, for pages of this service; over https its name is `__Host-farthing`. X-Environment-ID or the query parameter `environment_id` names the environment. A change needs the header `X-Farthing-Console: 1`. Refused together with a key or token.',
          },
        },
        responses: errorResponses(),
      },
    },
    { allowEmptySchema: ANY, override: describeShape },
  );
  return finishSchemas(document);
}

export const DESCRIPTION =
  'Usage metering and billing. Amounts and quantities are decimal numbers as text. The schemas of requests describe the ' +
  'form of answers; a request may also have decimals as JSON numbers, and enum values in any case. [The rules](/docs/rules/) define ' +
  'how usage is counted, priced, prorated and invoiced; [Errors](/docs/rules/errors.md) explains error codes. ' +
  'Answers from 4 KiB on are compressed if `Accept-Encoding` allows it.';

export function listTags(routes: readonly Route[]): { name: string; description?: string }[] {
  const names = [...new Set(routes.map((route) => route.tag))].sort(compareAlphabetically);
  return names.map((name) => ({ name, description: TAGS[name] }));
}

/** Case-insensitive order for readers. */
const compareAlphabetically = (one: string, other: string) => one.localeCompare(other, 'en');

const TAGS: Record<string, string> = {
  'Audit log': 'History of changes with their authors and times: [records](/docs/rules/records.md#the-audit-log).',
  'Add-ons': 'Products sold in addition to a plan: [records](/docs/rules/records.md#add-ons).',
  AI: 'Conversion of descriptions in words to requests: [prices in words](/docs/rules/parsing.md).',
  'API keys': 'Keys of the API and their rights: [permissions](/docs/permissions.md).',
  Customers: 'Parties that are billed: [records](/docs/rules/records.md).',
  Entitlements: 'Rights to use features, with their limits: [entitlements](/docs/rules/entitlements.md).',
  Reservations:
    'Checks whether usage is allowed now, and holds on balances meanwhile: [reservations](/docs/rules/reservations.md).',
  Environments: 'Production, staging and other environments of one tenant, each with separate records.',
  Events: 'Usage reported for customers: [events](/docs/rules/events.md), [identity](/docs/rules/identity.md).',
  Features: 'Capabilities that a plan entitles to: [records](/docs/rules/records.md).',
  Invoices: 'Bills and their lines: [invoices](/docs/rules/invoices.md), [numbers](/docs/rules/numbers.md).',
  'Meter usage': 'Measurements of meters: [usage](/docs/rules/usage.md), [windows](/docs/rules/windows.md).',
  Meters: 'Rules that select events and aggregate them to a number: [metering](/docs/rules/metering.md).',
  Plans: 'Sets of prices that are sold together: [subscriptions](/docs/rules/subscriptions.md).',
  Prices: 'Cost of a quantity: [pricing](/docs/rules/pricing.md).',
  'Price units': 'Custom currencies for prices: [pricing](/docs/rules/pricing.md#prices-in-units-of-your-own).',
  Groups: 'Sets of prices or features: [records](/docs/rules/records.md#groups).',
  Checkout: 'Pages on which a customer pays before a request takes effect: [checkout](/docs/rules/checkout.md).',
  Payments: 'Payment, collection, retries and refunds of invoices: [payments](/docs/rules/payments.md).',
  Wallets: 'Balances and credits of customers: [wallets](/docs/rules/wallets.md).',
  Coupons: 'Discounts, their duration and their redemption: [coupons](/docs/rules/coupons.md).',
  Taxes: 'Tax rates and their assignment: [taxes](/docs/rules/taxes.md).',
  Connections:
    'Accounts at providers and export destinations, with their credentials: [integrations](/docs/integrations/README.md), ' +
    '[exports](/docs/rules/exports.md#connections).',
  Integrations:
    'Records of this service and their counterparts at providers: [integrations](/docs/integrations/README.md).',
  Costs:
    'Your own costs and margins: [cost sheets](/docs/rules/pricing.md#cost-sheets), [costs](/docs/rules/costs.md).',
  Dashboard: 'Revenue per customer and recurring revenue: [revenue](/docs/rules/revenue.md).',
  Alerts: 'Notifications about low balances and high spending: [alerts](/docs/rules/alerts.md).',
  'Credit grants':
    'Recurring and one-time grants of credits, with their expiry: [credit grants](/docs/rules/credits.md).',
  'Credit notes': 'Credited amounts of invoices: [credit notes](/docs/rules/credit-notes.md).',
  Roles: 'Sets of permissions for keys and users: [permissions](/docs/permissions.md).',
  Search: 'One search over all kinds of records: [search](/docs/rules/records.md#search).',
  Settings: 'Settings of the service that differ from their defaults: [records](/docs/rules/records.md).',
  'Signing in': 'Sign-in of people with email and password; programs use [API keys](/docs/permissions.md).',
  'Scheduled tasks': 'Recurring exports: [scheduled exports](/docs/rules/exports.md#scheduled-exports).',
  Subscriptions:
    'Contracts of customers with plans: [subscriptions](/docs/rules/subscriptions.md), ' +
    '[periods](/docs/rules/periods.md), [proration](/docs/rules/proration.md).',
  Tasks:
    'Exports of usage, invoices and credits as files: [exports](/docs/rules/exports.md); imports of files: ' +
    '[imports](/docs/rules/imports.md); progress of both: [tasks](/docs/rules/tasks.md).',
  Tenants: 'The company whose customers are billed.',
  'Test clocks':
    'Simulated time of an environment, which can be advanced by years in a minute: [clock](/docs/rules/clock.md).',
  Users: 'People and service accounts: [permissions](/docs/permissions.md).',
  Webhooks:
    'Notifications about changed records: [system events, endpoints, deliveries](/docs/rules/webhooks.md), signed ' +
    'according to Standard Webhooks.',
  Workflows:
    'Background work that a request started: [invoices computed later](/docs/rules/invoices.md#invoices-computed-later).',
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
      ...(hasCondition(route) ? { header: ConditionHeader } : {}),
    } as ZodOpenApiOperationObject['requestParams'],
    ...(route.body ? { requestBody: buildRequestBody(route, route.body) } : {}),
    ...(route.takes_file ? { requestBody: buildFileBody(route.takes_file) } : {}),
    responses: {
      [route.success]: buildSuccess(route, example),
      ...(route.file_type === 'application/pdf' ? NOT_MODIFIED : {}),
      ...(route.other_success === undefined ? {} : { [route.other_success]: buildSuccess(route, {}) }),
      ...buildErrors(route),
    },
    ...(samples.length > 0 ? { 'x-codeSamples': samples } : {}),
  } as ZodOpenApiOperationObject;
}

function buildDescription({ description, access }: Route): string {
  const needed = access === 'public' ? undefined : `Needs the permission \`${access}\`.`;
  return [description, needed].filter((text) => text !== undefined).join('\n\n');
}

const IdempotencyHeader = z.object({
  'Idempotency-Key': z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({
      description:
        'Makes the request safe to repeat. The first answer is stored for 48 hours and returned again for an equal ' +
        'request. 1 to 255 characters; a key that was used for a different request is refused.',
    }),
});

const ConditionHeader = z.object({
  'If-Match': z.string().optional().meta({
    description:
      'ETag of the record as you read it, or several. If the record has another state, it is not changed: 409 `version_conflict`.',
  }),
});

/** A shape carries an example that fits every operation with that shape; an operation may override it. */
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

/** A PDF has an ETag. */
const NOT_MODIFIED = { 304: { description: 'The PDF still has the ETag that `If-None-Match` names; no body.' } };

const FILE = { type: 'string', format: 'binary' } as const;
const RECORDS = { type: 'array', items: { type: 'object' } } as const;

function buildSuccess(route: Route, example: Example) {
  const { success, answer, file_type } = route;
  if (!answer && !file_type) return { description: success === 204 ? 'Done; no body.' : 'Done.' };
  const contents = listContentTypes(route).map((type) => {
    if (type === 'application/json') return [type, { schema: answer, ...shown(example.answer) }];
    return [type, { schema: FILE, ...(type === file_type ? shown(example.file) : {}) }];
  });
  const tag = hasEntityTag(route) ? { headers: { ETag } } : {};
  return { description: 'Success.', ...tag, content: Object.fromEntries(contents) };
}

const ETag = {
  description: 'State of the record, for `If-Match` of a change.',
  schema: { type: 'string', example: '"Wm9R3kq0bV1Zb0mJw2sXuA"' },
} as const;

const shown = (example: unknown) => (example === undefined ? {} : { example });

function buildErrors(route: Route): Record<string, { $ref: string }> {
  return Object.fromEntries(
    listErrorStatuses(route).map((status) => [status, { $ref: `#/components/responses/Error${status}` }]),
  );
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
