import { expect } from 'chai';
import { z } from 'zod';
import { describeWebhooks, listReceivedProviders } from '../../actions/delivery/inbound/receive-webhook.ts';
import { listContentTypes } from '../../api/http/declared-answers.ts';
import { routes } from '../../api/resources.ts';
import { ID_PREFIX } from '../../core/foundation/id.ts';
import { findIgnoredKeys } from '../../core/foundation/ignored-keys.ts';
import { completeKeys } from '../../core/foundation/json/complete-keys.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import {
  type ApiContent,
  type ApiDocument,
  type ApiOperation,
  type ApiSchema,
  followReference,
} from '../support/openapi.ts';

/** Properties whose name says all: who made a record and when, an address, the id of what is named. */
const SAYS_ALL =
  /^(id|(tenant|environment|meter|event)_id|(created|updated)_(at|by)|timestamp|event_name|contact|phone|address_(line[12]|city|state|postal_code))$/;

type Described = { info: Named; tags: Named[] };
type Named = { name: string; description: string };

describe('the OpenAPI document', () => {
  let api: TestApi;
  let document: ApiDocument;
  before(async () => {
    api = await startTestApi();
    const answer = await api.request('GET', '/openapi.json', { key: null });
    expect(answer.status).to.equal(200);
    document = answer.body as unknown as ApiDocument;
  });
  after(() => api.stop());

  const operations = () =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );

  it('is OpenAPI 3.1 with an API key or a token as its security schemes', () => {
    expect(document.openapi).to.match(/^3\.1\.\d$/);
    expect(document.info).to.include.keys('title', 'version');
    expect(document.components.securitySchemes.ApiKeyAuth).to.deep.equal({
      type: 'apiKey',
      in: 'header',
      name: 'x-api-key',
    });
    expect(document.components.securitySchemes.BearerAuth).to.deep.include({ type: 'http', scheme: 'bearer' });
    expect(document.security).to.deep.equal([{ ApiKeyAuth: [] }, { BearerAuth: [] }, { SessionCookie: [] }]);
    expect(document.components.securitySchemes.SessionCookie).to.deep.include({ in: 'cookie', name: 'farthing' });
  });

  it('covers every route, with its success and its refusals', () => {
    expect(operations()).to.have.length(routes.length);
    for (const route of routes) {
      const operation = document.paths[route.path.replace(/:(\w+)/g, '{$1}')]![route.method]!;
      expect(operation.operationId).to.equal(route.operation_id);
      expect(operation.responses, route.operation_id).to.include.keys(String(route.success), '400', '500', '503');
      if (route.access !== 'public') {
        expect(operation.responses, route.operation_id).to.include.keys('401', '403', '429');
        expect(operation.description, route.operation_id).to.contain(`\`${route.access}\``);
      }
      const taken = ['application/json', ...Object.keys(route.also_takes ?? {})];
      if (route.body) expect(operation.requestBody!.content, route.operation_id).to.have.all.keys(taken);
      const kinds = listContentTypes(route);
      if (kinds.length > 0)
        expect(operation.responses[route.success]!.content, route.operation_id).to.have.all.keys(kinds);
    }
  });

  it('says of each operation what happens, beside who may ask for it', () => {
    const silent = operations().filter(({ operation }) => {
      const said = (operation.description ?? '').replace(/Needs the permission `[\w:]+`\.$/, '').trim();
      return !/^[A-Z`].{20,}[.)]$/s.test(said) || said === operation.summary;
    });
    expect(silent.map(({ operation }) => operation.operationId)).to.deep.equal([]);
  });

  it('says of each parameter, and of each condition of a search, what it means', () => {
    const silent = operations().flatMap(({ path, operation }) => {
      const parameters = (operation.parameters ?? []).map(({ name, description, schema }) => ({
        name,
        description: description ?? schema.description,
      }));
      const { $ref } = operation.requestBody?.content!['application/json']!.schema ?? {};
      const searched = path.endsWith('/search') && $ref ? followReference(document, $ref).properties! : {};
      const conditions = Object.entries(searched).map(([name, { description }]) => ({ name, description }));
      return [...parameters, ...conditions]
        .filter(({ description }) => !/^[A-Z`].+\.$/s.test(description ?? ''))
        .map(({ name }) => `${operation.operationId}: ${name}`);
    });
    expect(silent).to.deep.equal([]);
  });

  it('says of each property of a body, of an answer and of an error what it means', () => {
    const holders = operations().flatMap(({ operation }) => [
      operation.requestBody,
      ...Object.values(operation.responses),
    ]);
    const all: (ApiContent | undefined)[] = [...holders, ...Object.values(document.components.responses)];
    const schemas = all.flatMap((one) => Object.values(one?.content ?? {}).map(({ schema }) => schema));
    const seen = new Set<ApiSchema>();
    const silent = schemas.flatMap((schema) => undescribed(document, { schema, where: '', seen }));
    expect(seen.size).to.be.greaterThan(200);
    expect(silent.filter((name) => !SAYS_ALL.test(name.split(': ')[1]!))).to.deep.equal([]);
  });

  it('says of a page how long it may be and where it may begin, in a query string as in a body', () => {
    const pages = operations().flatMap(({ operation }) => {
      const { $ref } = operation.requestBody?.content?.['application/json']?.schema ?? {};
      const body = $ref === undefined ? {} : followReference(document, $ref).properties;
      const query = Object.fromEntries((operation.parameters ?? []).map(({ name, schema }) => [name, schema]));
      return [query, body ?? {}].filter(
        (one: Record<string, ApiSchema>) => one.filters !== undefined && one.limit !== undefined,
      );
    });
    expect(pages.length).to.be.greaterThan(50);
    for (const page of pages) {
      // A body may also send null or "" for the default.
      const [limit, offset] = [page.limit!, page.offset!].map((one) => ({ ...one, ...one.anyOf?.[0] }));
      expect(limit).to.deep.include({ type: 'integer', minimum: 1, maximum: 1000 });
      expect(limit!.description).to.match(/Default:? 50\./);
      expect(offset).to.deep.include({ type: 'integer', minimum: 0 });
      expect(offset!.description).to.match(/Default:? 0\./);
      expect(offset).to.not.have.property('maximum');
    }
  });

  it('names no bound that nobody has set', () => {
    expect(JSON.stringify(document)).to.not.contain(String(Number.MAX_SAFE_INTEGER));
  });

  it('says of a list in a query string what the server takes there', async () => {
    const lists = operations().filter(({ method, path, operation }) => {
      const names = (operation.parameters ?? []).map((one) => one.name);
      // Those under a record's id have the same shape, and need the record.
      return method === 'get' && names.includes('filters') && !path.includes('{');
    });
    expect(lists.map(({ path }) => path)).to.include.members([
      '/customers',
      '/meters',
      '/plans',
      '/prices',
      '/invoices',
    ]);
    for (const { path, operation } of lists) {
      const of = (name: string) => operation.parameters!.find((one) => one.name === name)!;
      expect([of('filters').schema.type, of('sort').schema.type], path).to.deep.equal(['string', 'string']);
      expect(of('metadata'), path).to.include({ style: 'deepObject', explode: true });
      const filters = encodeURIComponent((of('filters').schema.example ?? of('filters').example) as string);
      const { status, text } = await api.request('GET', `${path}?filters=${filters}&sort=created_at`);
      expect(status, `${path} ${text}`).to.equal(200);
    }
  });

  it('names each operation once, and each of its parameters', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).to.equal(ids.length);
    for (const { path, operation } of operations()) {
      const declared = (operation.parameters ?? []).filter((one) => one.in === 'path');
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      expect(
        declared.map((one) => one.name),
        operation.operationId,
      ).to.have.members(inPath);
      for (const one of declared) expect(one.required, operation.operationId).to.equal(true);
    }
  });

  it('refers to nothing that is not there', () => {
    const refs: string[] = [];
    walk(document, (node) => {
      if (typeof node.$ref === 'string') refs.push(node.$ref);
    });
    expect(refs.length).to.be.greaterThan(50);
    for (const ref of refs) {
      const target = ref
        .slice(2)
        .split('/')
        .reduce<unknown>(
          (node, step) => (node as Walked | undefined)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')],
          document,
        );
      expect(target, ref).to.be.an('object');
    }
  });

  it('has schemas that JSON Schema knows', () => {
    const types = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      walk(schema, (node) => {
        if (Array.isArray(node.enum)) expect(node.enum, name).to.not.deep.equal([]);
        if (typeof node.type === 'string' && !(node.properties as Walked | undefined)?.type)
          expect(types.has(node.type), `${name}: ${node.type}`).to.equal(true);
        if (Array.isArray(node.required) && node.properties)
          expect(node.properties, name).to.include.keys(...node.required, ...Object.keys(node.properties));
      });
    }
  });

  it('calls every key of an answer required, null where it may be unset', () => {
    const meter = document.components.schemas.MeterResponse!;
    expect(meter.required).to.have.members(Object.keys(meter.properties!));
    expect(document.components.schemas.CreateMeterRequest!.required).to.have.members([
      'name',
      'event_name',
      'aggregation',
    ]);
  });

  it('has examples that the routes take', () => {
    for (const route of routes.filter(({ body }) => body)) {
      const operation = document.paths[route.path.replace(/:(\w+)/g, '{$1}')]![route.method]!;
      const { example } = operation.requestBody!.content!['application/json']!;
      expect(example, route.operation_id).to.be.an('object');
      expect(route.body?.safeParse(example).error, route.operation_id).to.equal(undefined);
      expect(findIgnoredKeys(route.body!, example), route.operation_id).to.deep.equal([]);
    }
  });

  it('has an example of each success: with every key that the answer has, and no other', () => {
    const empty = listReceivedProviders().filter((name) => describeWebhooks(name).wants_empty_answer);
    const bodiless = routes.filter(
      ({ success, path }) => success === 204 || empty.some((name) => path.startsWith(`/webhooks/${name}/`)),
    );
    const json = routes.filter(({ answer }) => answer);
    const files = routes.filter(({ file_type }) => file_type !== undefined);
    expect(new Set([...bodiless, ...json, ...files]).size).to.equal(routes.length);
    for (const route of files) {
      const operation = document.paths[route.path.replace(/:(\w+)/g, '{$1}')]![route.method]!;
      const { example } = operation.responses[route.success]!.content![route.file_type!]!;
      expect(example, route.operation_id).to.match(BEGINNINGS[route.file_type!]!);
    }
    for (const route of json) {
      const operation = document.paths[route.path.replace(/:(\w+)/g, '{$1}')]![route.method]!;
      const { example } = operation.responses[route.success]!.content!['application/json']!;
      // A few answers are a bare list.
      expect(example, route.operation_id).to.be.an(route.answer instanceof z.ZodArray ? 'array' : 'object');
      expect(z.safeParse(route.answer!, example).error, route.operation_id).to.equal(undefined);
      expect(completeKeys(route.answer!, example), route.operation_id).to.deep.equal(example);
    }
  });

  it('names what is there in its examples: an id of each kind by its prefix, and only of records that it shows', () => {
    const shown = new Set<string>();
    const named: [key: string, id: string][] = [];
    for (const { operation } of operations())
      walkExamples(operation, (record) => {
        // Signing up makes records, and shows no more of them.
        if ('token' in record) for (const key of ['user_id', 'tenant_id']) shown.add(record[key] as string);
        for (const [key, value] of Object.entries(record))
          if (key === 'id' || key === 'workflow_id') shown.add(value as string);
          else if (typeof value === 'string' && /^[a-z_]+_[0-9A-Z]{26}$/.test(value)) named.push([key, value]);
      });
    expect(named.length).to.be.greaterThan(500);
    for (const [key, value] of named) {
      const kind = PREFIX_OF[key];
      if (kind) expect(value, key).to.match(new RegExp(`^${kind}_[0-9A-Z]{26}$`));
      // No answer shows more of these records than their ids: keys, requests, runs, credited lines, pages, and records at providers.
      if (
        ![
          'api_key',
          'run_id',
          'secret_id',
          'request_id',
          'parent_line_item_id',
          'gateway_payment_id',
          'gateway_refund_id',
          'checkout_invoice_id',
          'checkout_payment_id',
          'provider_session_id',
          'session_id',
        ].includes(key)
      )
        expect(shown, key).to.include(value);
    }
  });
});

describe('the documentation page', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());
  const get = (path: string) => api.request('GET', api.url + path, { key: null });

  it('is where the root of the service leads', async () => {
    const root = await fetch(`${api.url}/`, { redirect: 'manual' });
    expect([root.status, root.headers.get('location')]).to.deep.equal([302, '/docs/']);
  });

  it('loads from this host only', async () => {
    const page = await get('/docs/');
    expect(page.status).to.equal(200);
    const policy = page.headers.get('content-security-policy')!;
    expect(policy).to.match(/default-src 'none'/);
    expect(policy).to.not.match(/https?:|\*|unsafe-eval/);
    const scripts = policy.split(';').find((part) => part.trim().startsWith('script-src'));
    expect(scripts?.trim()).to.equal("script-src 'self'");
    const start = await get('/docs/start.js');
    expect(start.headers.get('content-type')).to.match(/^text\/javascript/);
    for (const text of [page.text, start.text]) expect(text).to.not.match(/(https?:)?\/\/[a-z]/i);
  });

  it('finds everything that it asks for', async () => {
    const { text } = await get('/docs/');
    const files = [...text.matchAll(/(?:src|href)="([^"#]+)/g)].map((match) => new URL(match[1]!, `${api.url}/docs/`));
    expect(files.length).to.be.above(20);
    for (const { pathname } of files) expect((await get(pathname)).status, pathname).to.equal(200);
    expect((await get('/docs/swagger-ui-bundle.js')).status).to.equal(200);
    const bare = await fetch(`${api.url}/docs`, { redirect: 'manual' });
    expect([bare.status, bare.headers.get('location')]).to.deep.equal([301, '/docs/']);
  });

  it('lists every operation, and has a document of each tag with its operations alone', async () => {
    const { text } = await get('/docs/');
    const listed = [...text.matchAll(/<a href="#\/([^/"]+)\/(\w+)">/g)].map(([, tag, id]) => `${tag} ${id}`);
    expect(listed).to.have.members(routes.map(({ tag, operation_id }) => `${tag} ${operation_id}`));
    const whole = (await get('/v1/openapi.json')).body as unknown as ApiDocument;
    const documents = [...text.matchAll(/data-tag="([^"]+)" data-document="([^"]+)"/g)];
    expect(documents).to.have.length(new Set(routes.map(({ tag }) => tag)).size);
    for (const [, tag, file] of documents) {
      const part = (await get(`/docs/${file}`)).body as unknown as ApiDocument;
      const operations = Object.entries(part.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
      );
      expect(operations.map(({ operation }) => operation.operationId)).to.have.members(
        routes.filter((route) => route.tag === tag).map(({ operation_id }) => operation_id),
      );
      for (const { path, method, operation } of operations)
        expect(operation, operation.operationId).to.deep.equal(whole.paths[path]![method]);
    }
    expect((await get('/docs/operations/none.json')).status).to.equal(404);
  });

  it('serves nothing else of the package', async () => {
    for (const file of ['package.json', 'index.html', 'swagger-ui.js.map', '../package.json', '%2e%2e/package.json'])
      expect((await get(`/docs/${file}`)).status, file).to.equal(404);
  });
});

describe('the pages of the rules', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());
  const get = (path: string) => api.request('GET', api.url + path, { key: null });

  it('are found from the OpenAPI document', async () => {
    const { body } = (await get('/v1/openapi.json')) as unknown as { body: Described };
    for (const { name, description } of body.tags) expect(description, name).to.be.a('string');
    const described = [body.info, ...body.tags].map((one) => one.description).join('\n');
    const linked = [...described.matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1]!);
    expect(linked.length).to.be.greaterThan(8);
    for (const link of linked) {
      const [url, anchor] = link.split('#');
      const { status, text } = await get(url!);
      expect(status, link).to.equal(200);
      if (anchor) expect(text, link).to.contain(`id="${anchor}"`);
    }
  });

  it('answer a question by way of the index', async () => {
    const index = await get('/docs/rules/');
    const row = index.text.split('<tr>').find((part) => part.includes('What is charged for a part of a period?'));
    expect(row).to.contain('href="proration.md"');
    const page = await get('/docs/rules/proration.md');
    expect(page.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    expect(page.text)
      .to.match(/<h1 id="[a-z-]+">/)
      .and.to.match(/<h2 id="[a-z-]+">/);
    const bare = await fetch(`${api.url}/docs/rules`, { redirect: 'manual' });
    expect([bare.status, bare.headers.get('location')]).to.deep.equal([301, '/docs/rules/']);
  });

  it('lead to nothing that is not there, and load nothing from elsewhere', async () => {
    const seen = new Set<string>();
    const open = [`${api.url}/docs/rules/`];
    for (let url = open.pop(); url !== undefined; url = open.pop()) {
      if (seen.has(url)) continue;
      seen.add(url);
      const { status, text, headers } = await api.request('GET', url, { key: null });
      expect(status, url).to.equal(200);
      if (!headers.get('content-type')?.startsWith('text/html') || url.endsWith('/docs/')) continue;
      expect(headers.get('content-security-policy')).to.match(/default-src 'none';style-src 'self'/);
      expect(text).to.not.match(/<script|style="|src="http/);
      for (const [, href] of text.matchAll(/href="([^"#]+)/g)) open.push(new URL(href!, url).href);
    }
    expect(seen.size).to.be.greaterThan(15);
  });

  it('serve nothing else of the repository', async () => {
    for (const path of ['/docs/operations.md', '/docs/rules/%2e%2e/operations.md', '/docs/rules/unknown.md'])
      expect((await get(path)).status, path).to.equal(404);
    expect((await api.request('POST', `${api.url}/docs/rules/events.md`)).status).to.equal(405);
  });
});

/** A PDF is shown by its first line. */
const BEGINNINGS: Record<string, RegExp> = {
  'text/event-stream': /^retry: \d+\n\n/,
  'text/csv': /^\w+(,\w+)+\r\n/,
  'application/pdf': /^%PDF-/,
  'application/x-ndjson': /^\{"event_id":"call-1",.+\}\n/,
};

const PREFIX_OF: Record<string, string> = {
  tenant_id: ID_PREFIX.tenant,
  environment_id: ID_PREFIX.environment,
  created_by: ID_PREFIX.user,
  updated_by: ID_PREFIX.user,
  user_id: ID_PREFIX.user,
  customer_id: ID_PREFIX.customer,
  plan_id: ID_PREFIX.plan,
  price_id: ID_PREFIX.price,
  meter_id: ID_PREFIX.meter,
  feature_id: ID_PREFIX.feature,
  subscription_id: ID_PREFIX.subscription,
  subscription_line_item_id: ID_PREFIX.subscription_line_item,
  invoice_id: ID_PREFIX.invoice,
  connection_id: ID_PREFIX.connection,
  scheduled_task_id: ID_PREFIX.scheduled_task,
  run_id: ID_PREFIX.run,
};

/** Every object within the examples of an operation. */
function walkExamples(operation: ApiOperation, visit: (record: Walked) => void): void {
  const contents = [operation.requestBody, ...Object.values(operation.responses)].flatMap((one) =>
    one?.content ? [one.content] : [],
  );
  for (const content of contents) walk(content['application/json']?.example, visit);
}

/** A schema, what it refers to, and the branches of these. */
function branchesOf(document: ApiDocument, schema: ApiSchema): ApiSchema[] {
  const target = schema.$ref ? [followReference(document, schema.$ref)] : [];
  const within = [...target, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  return [schema, ...within.flatMap((branch) => branchesOf(document, branch))];
}

type Looked = { schema: ApiSchema; where: string; seen: Set<ApiSchema> };
/** Any object of the document or of its examples. */
type Walked = Record<string, unknown>;

/** Properties, of what is within, too, that have no sentence: neither on themselves nor on what they refer to. */
function undescribed(document: ApiDocument, { schema, where, seen }: Looked): string[] {
  return branchesOf(document, schema).flatMap((branch) => {
    if (seen.has(branch)) return [];
    seen.add(branch);
    const at = schema.$ref?.split('/').at(-1) ?? where;
    const inner = [branch.items, branch.additionalProperties].filter((node) => typeof node === 'object');
    const properties = Object.entries(branch.properties ?? {});
    const silent = properties.filter(
      ([, property]) =>
        !branchesOf(document, property).some(({ description }) => /^[\w`].+\.$/s.test(description ?? '')),
    );
    return [
      ...silent.map(([name]) => `${at}: ${name}`),
      ...properties.flatMap(([name, property]) =>
        undescribed(document, { schema: property, where: `${at}.${name}`, seen }),
      ),
      ...inner.flatMap((node) => undescribed(document, { schema: node, where: `${at}[]`, seen })),
    ];
  });
}

function walk(node: unknown, visit: (node: Walked) => void): void {
  if (typeof node !== 'object' || node === null) return;
  visit(node as Walked);
  for (const [key, inner] of Object.entries(node)) if (key !== 'example' && key !== 'default') walk(inner, visit);
}
