import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { z } from 'zod';
import { buildApp } from '../../api/app.ts';
import { answerWithStatus, idParams, type Route, route } from '../../api/http/route.ts';
import { sendStream } from '../../api/http/send-stream.ts';
import { routes as ownRoutes } from '../../api/resources.ts';
import { invalid, unavailable } from '../../core/foundation/error.ts';
import { explainInvalid } from '../../core/foundation/why-invalid.ts';
import { makeHttpServer } from '../../process/http-server.ts';
import { VERSION } from '../../process/version.ts';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

const MIB = 1024 * 1024;
const base = { summary: 'for this test', tag: 'Test', access: 'meter:read', success: 200 } as const;

/** Routes that do what no route of the product should. */
const probes: Route[] = [
  route({
    ...base,
    method: 'get',
    path: '/probe/:id',
    operation_id: 'byId',
    params: idParams,
    handle: async ({ params }) => params,
  }),
  route({
    ...base,
    method: 'get',
    path: '/probe/static',
    operation_id: 'static',
    handle: async () => ({ static: true }),
  }),
  route({
    ...base,
    method: 'post',
    path: '/probe/echo',
    operation_id: 'echo',
    body: z.object({ name: z.string(), items: z.array(z.union([z.object({ n: z.number() }), z.string()])).optional() }),
    answer: z.object({ name: z.string(), unset: z.string() }),
    handle: async ({ body }) => body,
  }),
  route({
    ...base,
    method: 'delete',
    path: '/probe/echo',
    operation_id: 'deleteWithBody',
    body: z.object({ end_date: z.string().optional() }).nullish(),
    handle: async ({ body }) => ({ body }),
  }),
  route({
    ...base,
    method: 'post',
    path: '/probe/raw',
    operation_id: 'raw',
    raw_body: true,
    handle: async (_input, { request }) => ({ buffer: Buffer.isBuffer(request.body), length: request.body.length }),
  }),
  route({
    ...base,
    method: 'get',
    path: '/probe/query',
    operation_id: 'query',
    query: z.record(z.string(), z.unknown()),
    handle: async ({ query }) => query,
  }),
  route({
    ...base,
    method: 'post',
    path: '/probe/two-statuses',
    operation_id: 'twoStatuses',
    other_success: 202,
    handle: async () => answerWithStatus(202, { late: true }),
  }),
  route({
    ...base,
    method: 'delete',
    path: '/probe/nothing',
    operation_id: 'nothing',
    success: 204,
    handle: async () => ({ dropped: true }),
  }),
  route({
    ...base,
    method: 'post',
    path: '/probe/fail/:id',
    operation_id: 'fail',
    params: idParams,
    handle: async ({ params }, { services: { postgres }, scope }) => {
      if (params.id === 'bug') throw new Error('the secret is swordfish');
      if (params.id === 'zod') z.object({ a: z.string() }).parse({}, { error: explainInvalid });
      if (params.id === 'away') throw unavailable('the log');
      if (params.id === 'refused') throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
      if (params.id === 'sql') await postgres.raw('select swordfish from pg_catalog.nowhere');
      if (params.id === 'unique') await postgres('tenants').insert({ id: scope.tenant_id, name: 'x' });
      if (params.id === 'timeout') await postgres.raw(`set local statement_timeout = 1; select pg_sleep(1)`);
      if (params.id === 'parameters')
        await postgres.raw(`select 1 where 1 in (${Array(65_600).fill('?').join()})`, Array(65_600).fill(1));
      if (params.id === 'nan') return { value: Number.NaN };
      throw invalid('field', 'is wrong', { allowed: ['a'] });
    },
    answer: z.object({ value: z.number() }),
  }),
  route({
    ...base,
    method: 'get',
    path: '/probe/file/:id',
    operation_id: 'file',
    params: idParams,
    file_type: 'text/csv',
    handle: ({ params }, context) => {
      const pieces = async function* () {
        if (params.id === 'first') throw unavailable('the store of files');
        if (params.id === 'empty') return;
        yield Buffer.from('a,b\n');
        if (params.id === 'second') throw unavailable('the store of files');
      };
      const size_bytes = { empty: 0, second: 8 }[params.id] ?? 4;
      return sendStream(Readable.from(pieces()), { type: 'text/csv', name: 'a.csv', zips: false, size_bytes }, context);
    },
  }),
];

describe('conventions', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ routes: [...probes, ...ownRoutes] });
  });
  after(() => api.stop());

  describe('every answer', () => {
    const paths = ['/v1/meters', '/v1/nowhere', '/health', '/ready', '/metrics', '/docs/', '/v1/openapi.json'];
    for (const path of paths) {
      it(`${path} carries a request id and the hardening headers`, async () => {
        const { headers } = await api.request('GET', api.url + path);
        expect(headers.get('x-request-id')).to.match(/^req_[0-9A-Z]{26}$/);
        expect(headers.get('x-content-type-options')).to.equal('nosniff');
        expect(headers.get('x-frame-options')).to.equal('DENY');
        expect(headers.get('referrer-policy')).to.equal('no-referrer');
        expect(headers.get('content-security-policy')).to.contain("default-src 'none'");
        expect(headers.get('access-control-allow-origin')).to.equal('*');
        expect(headers.get('x-powered-by')).to.equal(null);
      });
    }

    it('echoes a harmless X-Request-ID and replaces any other', async () => {
      const echo = async (id: string) =>
        (await api.request('GET', '/meters', { headers: { 'x-request-id': id } })).headers.get('x-request-id');
      expect(await echo('trace-1.A_b')).to.equal('trace-1.A_b');
      for (const id of ['a b', '<script>', 'x'.repeat(129), '{"a":1}']) expect(await echo(id)).to.match(/^req_/);
    });

    it('answers a preflight for any page', async () => {
      const { status, headers } = await api.request('OPTIONS', '/meters', {
        key: null,
        headers: { origin: 'https://example.com', 'access-control-request-method': 'PUT' },
      });
      expect(status).to.equal(204);
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
        expect(headers.get('access-control-allow-methods')).to.contain(method);
    });
  });

  it('what a key has asked for is kept by no cache', async () => {
    for (const path of ['/meters', '/meters/none', '/nowhere'])
      expect((await api.request('GET', path)).headers.get('cache-control'), path).to.equal('no-store');
    expect((await api.request('GET', `${api.url}/docs/`)).headers.get('cache-control')).to.not.equal('no-store');
  });

  it('a file that fails before its first byte is an error, and later a broken connection', async () => {
    const failed = await api.request('GET', '/probe/file/first');
    expect([failed.status, failed.body.code]).to.deep.equal([503, 'service_unavailable']);
    expect(failed.headers.get('content-type')).to.match(/json/);
    for (const name of ['content-disposition', 'content-encoding']) expect(failed.headers.get(name)).to.equal(null);
    const broken = await api.request('GET', '/probe/file/second').catch((error: unknown) => error);
    expect(broken).to.be.an.instanceOf(Error);
    for (const [id, length] of [['empty', '0'] as const, ['whole', '4'] as const]) {
      const sent = await api.request('GET', `/probe/file/${id}`);
      expect([sent.status, sent.headers.get('content-length')], id).to.deep.equal([200, length]);
    }
  });

  describe('the log', () => {
    it('has the request id in every line and no key in any', async () => {
      await api.request('GET', '/meters?secret=swordfish', {
        headers: { 'x-request-id': 'logged-1', authorization: 'Bearer hidden-token' },
      });
      await api.request('POST', '/probe/fail/bug', { headers: { 'x-request-id': 'logged-2' } });
      const lines = api.logged().trim().split('\n');
      for (const line of lines) expect(line).to.match(/"(request_id|id)":"[^"]+"/);
      expect(lines.filter((line) => line.includes('"logged-1"'))).to.have.length(1);
      expect(lines.filter((line) => line.includes('"logged-2"')).length).to.be.greaterThan(0);
      expect(lines.find((line) => line.includes('"logged-2"') && line.includes('"stack"'))).to.contain(
        'conventions.test',
      );
      expect(api.logged()).to.not.contain(api.key);
      expect(api.logged()).to.not.contain('hidden-token');
      expect(api.logged()).to.not.contain('secret=swordfish');
    });

    it('hides a key also where a whole request is logged by mistake', async () => {
      const probe = route({
        ...base,
        method: 'get',
        path: '/probe-log',
        operation_id: 'probeLog',
        handle: async (_input, { log, request }) => {
          log.warn({ headers: request.headers }, 'careless');
          return {};
        },
      });
      const other = await startTestApi({ routes: [probe] });
      try {
        await other.request('GET', '/probe-log');
        expect(other.logged()).to.contain('careless');
        expect(other.logged()).to.contain('[redacted]');
        expect(other.logged()).to.not.contain(other.key);
      } finally {
        await other.stop();
      }
    });
  });

  describe('routing', () => {
    it('prefers a static path to a parameter, in whatever order they are listed', async () => {
      expect((await api.request('GET', '/probe/static')).body).to.deep.equal({ static: true });
      expect((await api.request('GET', '/probe/other')).body).to.deep.equal({ id: 'other' });
    });

    it('serves /v1/v1 as /v1', async () => {
      expect((await api.request('GET', '/v1/meters')).status).to.equal(200);
      expect((await api.request('GET', '/v1/v1/meters')).status).to.equal(404);
    });

    it('404 with the error record for an unknown path', async () => {
      const { status, body } = await api.request('GET', '/nowhere');
      expect(status).to.equal(404);
      expect(body).to.deep.include({ code: 'not_found', http_status_code: 404, success: false });
    });

    const wrongMethods: [method: string, path: string, allow: string][] = [
      ['PUT', '/meters', 'GET, HEAD, OPTIONS, POST'],
      ['PATCH', '/meters/meter_1', 'DELETE, GET, HEAD, OPTIONS, PUT'],
      ['POST', '/probe/static', 'GET, HEAD, OPTIONS'],
      ['DELETE', '/probe/raw', 'OPTIONS, POST'],
      // Words are no ids.
      ['GET', '/customers/search', 'OPTIONS, POST'],
      ['DELETE', '/plans/search', 'OPTIONS, POST'],
      ['PUT', '/invoices/preview', 'OPTIONS, POST'],
      ['PATCH', '/customers/search', 'OPTIONS, POST'],
      ['DELETE', '/prices/units', 'GET, HEAD, OPTIONS, POST'],
      ['POST', '/openapi.json', 'GET, HEAD, OPTIONS'],
    ];
    for (const [method, path, allow] of wrongMethods) {
      it(`405 for ${method} ${path}, with what is allowed`, async () => {
        const { status, body, headers } = await api.request(method, path, { key: null });
        expect([status, headers.get('allow')]).to.deep.equal([405, allow]);
        expect(body).to.deep.include({ code: 'invalid_operation', http_status_code: 405, success: false });
      });
    }

    it('405 for HEAD of a word, without a body', async () => {
      const { status, headers } = await api.request('HEAD', '/customers/search');
      expect([status, headers.get('allow')]).to.deep.equal([405, 'OPTIONS, POST']);
    });

    it('404 tells a long id by its beginning', async () => {
      const id = 'x'.repeat(3_000);
      const { status, body, text } = await api.request('GET', `/customers/${id}`);
      expect([status, body.message]).to.deep.equal([404, `customer ${id.slice(0, 100)}… not found`]);
      expect(body.details!.id).to.equal(`${id.slice(0, 100)}…`);
      expect(text.length).to.be.below(600);
    });

    const LONG = 'x'.repeat(60_000);
    const IDS = { field: 'created_at', operator: 'in', data_type: 'array', value: { array: Array(15).fill(LONG) } };
    const repeated: [what: string, path: string, body: unknown, message: RegExp, about: object][] = [
      [
        'a filter of many long texts',
        '/plans/search',
        { filters: [IDS] },
        /^filters: created_at is a date, not a string$/,
        { filter: { field: 'created_at', operator: 'in', data_type: 'array' } },
      ],
      ['a text in the place of a number', '/plans/search', { limit: LONG }, /^limit: /, {}],
      [
        'five hundred faults',
        '/otlp/v1/metrics',
        { resourceMetrics: Array(500).fill('x') },
        /^resourceMetrics\[0\]: /,
        {},
      ],
      ['faults of long names', '/customers', { external_id: 'a', metadata: longNames(90) }, /^metadata\.0x+/, {}],
    ];
    for (const [what, path, body, message, about] of repeated)
      it(`400 tells ${what} at no great length`, async () => {
        const { status, body: answer, text } = await api.request('POST', path, { body });
        expect([status, answer.code], text).to.deep.equal([400, 'validation_error']);
        expect(answer.message).to.match(message);
        expect(answer.details).to.deep.include(about);
        for (const fault of (answer.details!.faults as object[] | undefined) ?? [])
          expect(fault).to.have.all.keys('field', 'message');
        expect(text.length).to.be.below(12_000);
      });

    it('an event may be called as a path is: 405 where there is none', async () => {
      const ask = <Method extends string>(method: Method, key?: null) => api.request(method, '/events/bulk', { key });
      const { status, headers, body } = await ask('GET');
      expect([status, headers.get('allow'), body.code]).to.deep.equal([405, 'OPTIONS, POST', 'invalid_operation']);
      expect((await ask('HEAD')).status).to.equal(405);
      const event = { event_id: 'bulk', event_name: 'called', external_customer_id: 'acme' };
      expect((await api.request('POST', '/events', { body: event })).status).to.equal(202);
      const found = await ask('GET');
      expect([found.status, found.body.event?.id], found.text).to.deep.equal([200, 'bulk']);
    });

    it('405 outside /v1 as well', async () => {
      for (const path of ['/', '/ready', '/metrics', '/docs/']) {
        const { status, headers } = await api.request('PUT', api.url + path, { key: null });
        expect([status, headers.get('allow')], path).to.deep.equal([405, 'GET, HEAD, OPTIONS']);
      }
    });

    it('400 for a path that is not correctly encoded', async () => {
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      socket.write(`GET /v1/meters/%E0%A4%A HTTP/1.1\r\nHost: x\r\nx-api-key: ${api.key}\r\nConnection: close\r\n\r\n`);
      let text = '';
      socket.on('data', (part) => {
        text += part;
      });
      await once(socket, 'close');
      expect(text).to.match(/^HTTP\/1\.1 400 /);
      expect(text).to.contain('"validation_error"');
    });

    it('refuses a table of contents with two routes of one name or place', async () => {
      const twin = { ...probes[0]!, operation_id: 'twin', path: '/probe/:other' };
      let error: unknown;
      await startTestApi({ routes: [...probes, twin] }).then(
        (started) => started.stop(),
        (thrown) => {
          error = thrown;
        },
      );
      expect(String(error)).to.contain('two routes');
    });
  });

  describe('query strings', () => {
    const rows: [string, unknown][] = [
      ['a=1', { a: '1' }],
      ['a=1&a=2', { a: ['1', '2'] }],
      ['a[]=1', { a: ['1'] }],
      ['metadata[plan]=gold&metadata[seat]=2', { metadata: { plan: 'gold', seat: '2' } }],
      ['a=%20b+c', { a: ' b c' }],
    ];
    for (const [query, expected] of rows) {
      it(query, async () => {
        expect((await api.request('GET', `/probe/query?${query}`)).body).to.deep.equal(expected);
      });
    }

    for (const name of ['__proto__', '__proto__[a]', 'x[__proto__]'])
      it(`400 for ${name}, which would filter nothing`, async () => {
        const { status, body } = await api.request('GET', `/probe/query?y=3&${name}=1`);
        expect([status, body.details?.field]).to.deep.equal([400, name]);
      });

    it('400 for a parameter that the operation has not, by its name', async () => {
      for (const [path, name] of [
        ['/meters?event_nmae=call', 'event_nmae'],
        ['/meters?limit=1&constructor=1', 'constructor'],
        ['/probe/static?limit=1', 'limit'],
      ]) {
        const { status, body } = await api.request('GET', path!);
        expect([status, body.code, body.details], path).to.deep.equal([400, 'validation_error', { field: name }]);
      }
    });

    it('400 for bytes that are not UTF-8, where a per cent sign of its own is one', async () => {
      expect((await api.request('GET', '/probe/query?a=100%')).body).to.deep.equal({ a: '100%' });
      const { status, body, headers } = await api.request('GET', '/probe/query?a=%C3%28');
      expect([status, body.code]).to.deep.equal([400, 'validation_error']);
      expect(headers.get('cache-control')).to.equal('no-store');
    });

    it('keeps every one of many repeated keys', async () => {
      const query = Array.from({ length: 500 }, (_, i) => `a=${i}`).join('&');
      expect((await api.request('GET', `/probe/query?${query}`)).body.a).to.have.length(500);
    });
  });

  describe('bodies', () => {
    const body = JSON.stringify({ name: 'Ä' });
    for (const [encoding, compressed] of [
      ['gzip', gzipSync(body)],
      ['deflate', deflateSync(body)],
      ['br', brotliCompressSync(body)],
    ] as const) {
      it(`reads ${encoding}`, async () => {
        const answer = await api.request('POST', '/probe/echo', {
          body: compressed,
          headers: { 'content-encoding': encoding },
        });
        expect(answer.body).to.deep.equal({ name: 'Ä', unset: null });
      });
    }

    const refused: [what: string, body: Buffer | string, headers: Record<string, string>, message: RegExp][] = [
      ['broken JSON', '{"name":', {}, /^the body is not valid JSON$/],
      [
        'text of another type',
        'name=x',
        { 'content-type': 'application/x-www-form-urlencoded' },
        /must be JSON.*x-www-form-urlencoded/,
      ],
      ['text without a type', '{}', { 'content-type': '' }, /must be JSON/],
      ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, /not UTF-8/],
      [
        'a type with another text than UTF-8',
        '{}',
        { 'content-type': 'application/json; charset=latin1' },
        /must be UTF-8.*latin1/,
      ],
      ['an array', '[]', {}, /^body: /],
      ['null', 'null', {}, /^body: /],
      ['a wrong type in a list', '{"name":"x","items":[{"n":"1"}]}', {}, /^items\[0\]\.n: /],
      ['a compression that we do not know', '{}', { 'content-encoding': 'zstd' }, /encoding is not supported/],
      ['a broken compression', 'not gzip', { 'content-encoding': 'gzip' }, /cannot be read/],
      ['100 levels', `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`, {}, /nested deeper/],
    ];
    it('a route that reads the bytes itself refuses the same bytes', async () => {
      const refusedRaw = refused.filter(([what]) => /type|UTF-8|compression/.test(what) && !/list/.test(what));
      expect(refusedRaw).to.have.length(6);
      for (const [what, sent, headers, message] of refusedRaw) {
        const { status, body } = await api.request('POST', '/probe/raw', { body: sent, headers });
        expect(status, what).to.equal(400);
        expect(body.message, what).to.match(message);
      }
    });

    it('a route that takes no body refuses the same, and takes none of whatever type', async () => {
      const refusedAll = refused.filter(
        ([what]) => /type|UTF-8|compression|JSON|levels/.test(what) && !/list/.test(what),
      );
      expect(refusedAll).to.have.length(8);
      for (const [method, path] of [
        ['POST', '/probe/two-statuses'],
        ['DELETE', '/probe/nothing'],
        ['GET', '/probe/query'],
      ] as const) {
        for (const [what, sent, headers, message] of refusedAll) {
          const { status, body } = await api.request(method, path, { body: sent, headers });
          expect(status, `${method} ${what}`).to.equal(400);
          expect(body.message, what).to.match(message);
        }
        const none = await api.request(method, path, { body: '', headers: { 'content-type': 'text/plain' } });
        expect(none.status, none.text).to.be.within(200, 299);
      }
    });

    it('a charset that is UTF-8 may be said in any way', async () => {
      for (const said of ['; charset=utf-8', ';charset="UTF-8"', '; charset=utf8; boundary=x', '; profile=x'])
        expect(
          (
            await api.request('POST', '/probe/echo', {
              body: '{"name":"Ä"}',
              headers: { 'content-type': `application/json${said}` },
            })
          ).body.name,
        ).to.equal('Ä');
    });

    for (const [what, sent, headers, message] of refused) {
      it(`400 for ${what}`, async () => {
        const answer = await api.request('POST', '/probe/echo', { body: sent, headers });
        expect(answer.status).to.equal(400);
        expect(answer.body.code).to.equal('validation_error');
        expect(answer.body.message).to.match(message);
        expect(answer.text).to.not.contain('xxxx');
      });
    }

    const large: [what: string, body: Buffer | string, headers: Record<string, string>][] = [
      ['more than 1 MiB', JSON.stringify({ name: 'x'.repeat(MIB) }), {}],
      [
        'more than 1 MiB inflated',
        gzipSync(JSON.stringify({ name: 'x'.repeat(20 * MIB) })),
        { 'content-encoding': 'gzip' },
      ],
    ];
    for (const [what, sent, headers] of large) {
      it(`413 for ${what}`, async () => {
        const { status, body } = await api.request('POST', '/probe/echo', { body: sent, headers });
        expect(status).to.equal(413);
        expect(body).to.deep.include({
          code: 'validation_error',
          http_status_code: 413,
          message: 'request body too large',
        });
      });
    }

    it('takes up to 1 MiB', async () => {
      const items = Array(17).fill('x'.repeat(60_000));
      const name = 'x'.repeat(MIB - JSON.stringify({ name: '', items }).length);
      expect((await api.request('POST', '/probe/echo', { body: { name, items } })).status).to.equal(200);
    });

    it('gives a raw route the inflated bytes, up to 32 MiB of them', async () => {
      const gzip = { 'content-encoding': 'gzip' };
      const full = await api.request('POST', '/probe/raw', { body: gzipSync(Buffer.alloc(32 * MIB)), headers: gzip });
      expect(full.body).to.deep.equal({ buffer: true, length: 32 * MIB });
      const over = await api.request('POST', '/probe/raw', {
        body: gzipSync(Buffer.alloc(32 * MIB + 1)),
        headers: gzip,
      });
      expect(over.status).to.equal(413);
      expect(over.body.message).to.equal('request body too large');
      expect((await api.request('POST', '/probe/raw')).body).to.deep.equal({ buffer: true, length: 0 });
    });

    it('takes a body of no bytes for no body, and reads the body of a DELETE', async () => {
      const remove = (sent?: unknown) => api.request('DELETE', '/probe/echo', { body: sent });
      const none = await remove('');
      expect(none.status).to.equal(200);
      expect(none.body).to.deep.equal({ body: null });
      expect((await remove()).body).to.deep.equal({ body: null });
      expect((await remove({ end_date: 'x' })).body).to.deep.equal({ body: { end_date: 'x' } });
    });

    it('refuses keys that it does not know, by name', async () => {
      const answer = await api.request('POST', '/probe/echo', { body: { nmae: 'x', items: ['a', { n: 1, m: 2 }] } });
      expect(answer.status).to.equal(400);
      expect(answer.body.message).to.equal('nmae: is no key of this request; did you mean name?');
      expect((answer.body.details!.faults as { field: string }[]).map((fault) => fault.field)).to.deep.equal([
        'nmae',
        'items[1].m',
      ]);
    });
  });

  describe('answers', () => {
    it('can have a second success status', async () => {
      const { status, body } = await api.request('POST', '/probe/two-statuses');
      expect([status, body]).to.deep.equal([202, { late: true }]);
    });

    it('204 has no body', async () => {
      const { status, text, headers } = await api.request('DELETE', '/probe/nothing');
      expect([status, text, headers.get('content-type')]).to.deep.equal([204, '', null]);
    });
  });

  describe('errors', () => {
    const rows: [string, number, string, RegExp][] = [
      ['validation', 400, 'validation_error', /^field: is wrong$/],
      ['zod', 400, 'validation_error', /^a: is required$/],
      ['bug', 500, 'internal_error', /^an unexpected error occurred$/],
      ['nan', 500, 'internal_error', /^an unexpected error occurred$/],
      ['sql', 500, 'database_error', /^the database could not answer$/],
      ['parameters', 500, 'database_error', /^the database could not answer$/],
      ['unique', 409, 'already_exists', /exists already/],
      ['away', 503, 'service_unavailable', /^the log is not available/],
      ['refused', 503, 'service_unavailable', /^the database is not available/],
      ['timeout', 503, 'service_unavailable', /^the database is not available/],
    ];
    for (const [id, http_status, code, message] of rows) {
      it(`${id}: ${http_status} ${code}`, async () => {
        const { status, body, text, headers } = await api.request('POST', `/probe/fail/${id}`);
        expect(status).to.equal(http_status);
        expect(body).to.have.all.keys('code', 'http_status_code', 'message', 'details', 'success', 'error');
        expect(body).to.deep.include({ code, http_status_code: http_status, success: false });
        expect(body.message).to.match(message);
        expect(body.error).to.deep.equal({ message: body.message, internal_error: null });
        expect(text).to.not.contain('swordfish');
        expect(headers.get('retry-after')).to.equal(http_status === 503 ? '1' : null);
      });
    }

    it('does not repeat what was sent at any length', async () => {
      const { status, text } = await api.request('GET', `/meters/${'m'.repeat(10_000)}`);
      expect(status).to.be.oneOf([400, 404]);
      expect(text.length).to.be.below(2_500);
    });

    it('tells the details', async () => {
      const { body } = await api.request('POST', '/probe/fail/validation');
      expect(body.details).to.deep.equal({ field: 'field', allowed: ['a'] });
    });
  });
});

describe('health', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());
  const get = (path: string, method = 'GET') => api.request(method, api.url + path, { key: null });

  it('GET and POST /health', async () => {
    for (const method of ['GET', 'POST']) {
      const { status, body } = await get('/health', method);
      expect([status, body]).to.deep.equal([200, { status: 'ok', version: VERSION }]);
    }
    expect((await get('/health', 'PUT')).status).to.equal(405);
  });

  it('/health says the version of package.json, of which the lock file and the newest section of the changelog are, too', async () => {
    const { body } = await get('/health');
    const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const { version } = JSON.parse(read('package.json'));
    const lock = JSON.parse(read('package-lock.json'));
    const sections = [...read('CHANGELOG.md').matchAll(/^## (.*)$/gm)].map(([, heading]) => heading!);
    // docs/releases.md
    const FORM = /^(\d+\.\d+\.\d+), (?:not released|\d{4}-\d\d-\d\d)$/;
    const newest = FORM.exec(sections[0]!)?.[1];
    expect([body.version, newest, lock.version, lock.packages[''].version]).to.deep.equal(Array(4).fill(version));
    for (const [at, heading] of sections.entries()) {
      expect(heading).to.match(FORM);
      if (at > 0) expect(heading, 'only the newest is not released').to.not.contain('not released');
    }
  });

  it('refuse a query parameter that they do not have, by its name', async () => {
    for (const [path, name] of [
      ['/health?verbose=1', 'verbose'],
      ['/metrics?name[]=http_requests', 'name'],
      ['/ready?fro=queries', 'fro'],
    ] as const) {
      const { status, body } = await get(path);
      expect([status, body.code, body.details], path).to.deep.equal([400, 'validation_error', { field: name }]);
      expect(body.message, path).to.match(new RegExp(`^${name}: is no query parameter of this operation`));
    }
  });

  it('/ready tells which part is away', async () => {
    const ready = await get('/ready');
    expect([ready.status, ready.body]).to.deep.equal([
      200,
      { status: 'ok', parts: { postgres: 'ok', clickhouse: 'ok', log: 'ok' } },
    ]);
    // A port that nothing listens on: what a database that is down looks like.
    const postgres = connectPostgres('postgres://nobody@127.0.0.1:1/nothing');
    const server = makeHttpServer(buildApp({ ...api.services, postgres }));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const away = await api.request('GET', `${url}/ready`, { key: null });
      expect([away.status, away.headers.get('retry-after')]).to.deep.equal([503, '1']);
      expect(away.body).to.deep.equal({
        status: 'unavailable',
        parts: { postgres: 'away', clickhouse: 'ok', log: 'ok' },
      });
      const asked = await api.request('GET', `${url}/v1/meters`);
      expect([asked.status, asked.headers.get('retry-after')]).to.deep.equal([503, '1']);
      expect(asked.body).to.deep.include({ code: 'service_unavailable', http_status_code: 503 });
      expect((await api.request('GET', `${url}/health`)).status).to.equal(200);
    } finally {
      server.closeAllConnections();
      server.close();
      await postgres.destroy();
    }
  });

  it('/ready is about accepting events, and for=queries about answering questions', async () => {
    // Nothing listens there.
    const clickhouse = connectClickHouse('http://127.0.0.1:1');
    const server = makeHttpServer(buildApp({ ...api.services, clickhouse }));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const parts = { postgres: 'ok', clickhouse: 'away', log: 'ok' };
    try {
      const ready = await api.request('GET', `${url}/ready`, { key: null });
      expect([ready.status, ready.body]).to.deep.equal([200, { status: 'ok', parts }]);
      const event = { event_name: 'call', event_id: 'while-away', external_customer_id: 'acme' };
      expect((await api.request('POST', `${url}/v1/events`, { body: event })).status).to.equal(202);
      const queries = await api.request('GET', `${url}/ready?for=queries`, { key: null });
      expect([queries.status, queries.body]).to.deep.equal([503, { status: 'unavailable', parts }]);
      const other = await api.request('GET', `${url}/ready?for=lunch`, { key: null });
      expect([other.status, other.body.code]).to.deep.equal([400, 'validation_error']);
      const misspelt = await api.request('GET', `${url}/ready?fro=queries`, { key: null });
      expect([misspelt.status, misspelt.body.message]).to.deep.equal([
        400,
        'fro: is no query parameter of this operation',
      ]);
    } finally {
      server.closeAllConnections();
      server.close();
      await clickhouse.close();
    }
  });

  it('/metrics counts by route template and status, never by tenant or path', async () => {
    await api.request('GET', '/meters/meter_unknown');
    await api.request('GET', '/no/such/path');
    for (const probe of ['/health', '/ready?for=queries']) expect((await get(probe)).status).to.equal(200);
    const { status, text } = await get('/metrics');
    expect(status).to.equal(200);
    expect(text).to.match(/http_request_duration_seconds_count\{method="GET",route="\/meters\/:id",status="404"\} 1/);
    expect(text).to.match(/http_request_duration_seconds_count\{method="GET",route="unmatched",status="404"\} 1/);
    // What asks for itself every few seconds is told apart: alerts are about requests.
    expect(text).to.match(/http_request_duration_seconds_count\{method="GET",route="probe",status="200"\} [1-9]/);
    expect(text).to.contain('process_cpu_seconds_total');
    expect(text).to.not.contain('meter_unknown');
    expect(text).to.not.contain(api.scope.tenant_id);
  });
});

/** Each of them as long as a name may be, with what is no text. */
function longNames(count: number): Record<string, unknown> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}${'x'.repeat(250)}`, 5]));
}
