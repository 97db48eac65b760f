import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import type { Request } from 'express';
import { authenticate, forgetKeys } from '../../../api/http/auth.ts';
import { toFarthingError } from '../../../api/http/errors.ts';
import { type Route, route } from '../../../api/http/route.ts';
import { routes as ownRoutes } from '../../../api/resources.ts';
import { hashApiKey } from '../../../storage/foundation/secrets/api-key.ts';
import { connectPostgres } from '../../../storage/postgres/pool/postgres.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { cutTo } from '../../support/cut.ts';
import { testStores } from '../../support/stores.ts';

const probe = (access: Route['access'], method: Route['method'] = 'get') =>
  route({
    method,
    path: `/probe/${access.replace(':', '-')}`,
    operation_id: `probe ${access}`,
    summary: 'for this test',
    tag: 'Test',
    access,
    success: 200,
    handle: async (_input, { scope, principal }) => ({ ...scope, ...principal }),
  });

const routes = [
  ...ownRoutes,
  probe('public'),
  probe('tenant:read'),
  probe('meter:read'),
  probe('self:write', 'put'),
  probe('event:read'),
  probe('event:write', 'post'),
  probe('customer:read'),
  probe('customer:write', 'post'),
];

describe('authentication', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ routes, now: '2026-03-15T12:00:00Z' });
  });
  after(() => api.stop());

  it('the key decides tenant, environment, principal and roles', async () => {
    const { status, body } = await api.request('GET', '/probe/meter-read');
    expect(status).to.equal(200);
    expect(body).to.deep.include({ ...api.scope, roles: ['super_admin'] });
    const other = await api.otherTenant();
    const { body: theirs } = await api.request('GET', '/probe/meter-read', { key: other.key });
    expect(theirs).to.deep.include(other.scope);
  });

  it('takes the key as a bearer, too, also when it is known already', async () => {
    const { key: other } = await api.otherTenant();
    for (const key of [api.key, other, other]) {
      const headers = { authorization: `bearer ${key}` };
      const { status, body } = await api.request('GET', '/probe/meter-read', { key: null, headers });
      expect(status).to.equal(200);
      expect(body).to.deep.equal((await api.request('GET', '/probe/meter-read', { key })).body);
    }
  });

  const waits = (key: string) =>
    `POST /v1/probe/event-write HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n` +
    'Content-Length: 2\r\nExpect: 100-continue\r\n\r\n';

  it('asks for the body of who waits to be asked once its key is accepted, and refuses another key without it', async () => {
    const { port } = new URL(api.url);
    const exchange = async (key: string) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(waits(key));
      const [first] = (await once(socket, 'data')) as [Buffer];
      return { socket, first: first.toString() };
    };
    const accepted = await exchange(api.key);
    expect(accepted.first).to.equal('HTTP/1.1 100 Continue\r\n\r\n');
    accepted.socket.write('{}');
    const [answer] = (await once(accepted.socket, 'data')) as [Buffer];
    expect(answer.toString()).to.match(/^HTTP\/1\.1 200 /);
    accepted.socket.destroy();
    const refused = await exchange('sk_00000000000000000000000000');
    expect(refused.first).to.match(/^HTTP\/1\.1 401 /);
    // Whether the body comes or not, the next request is on another connection.
    await once(refused.socket, 'close');
  });

  it('while Postgres is away a key that was seen in the last minute is known, others are not', async () => {
    const address = new URL((await testStores()).postgres_url);
    const way = await cutTo({ host: address.hostname, port: Number(address.port) });
    const { rows } = await api.services.postgres.raw('select current_database() as name');
    Object.assign(address, { host: `127.0.0.1:${way.port}`, pathname: `/${rows[0].name}` });
    address.searchParams.delete('host');
    const postgres = connectPostgres(address.href);
    const services = { ...api.services, postgres };
    const headers: Record<string, string> = { 'x-api-key': api.key };
    const request = { headers, get: (name: string) => headers[name] } as Request;
    const at = (seconds: number) => new Date(Date.parse('2026-03-15T12:00:00Z') + seconds * 1000);
    try {
      const known = await authenticate(request, 'event:write', services, at(0));
      way.hang();
      const first = authenticate(request, 'event:write', services, at(20));
      expect(await authenticate(request, 'event:write', services, at(20)), 'beside one who waits').to.deep.equal(known);
      await way.cut();
      expect(await first, 'who waited').to.deep.equal(known);
      way.goOn();
      // Later than it would be taken for fresh.
      expect(await authenticate(request, 'event:write', services, at(30))).to.deep.equal(known);
      forgetKeys(services);
      const refused = await authenticate(request, 'event:write', services, at(30)).catch((error) => error);
      expect(toFarthingError(refused)).to.include({ code: 'service_unavailable' });
    } finally {
      await postgres.destroy();
      await way.close();
    }
  });

  it('the key itself is nowhere in the database', async () => {
    const rows = await api.services.postgres('secrets').select('*');
    expect(JSON.stringify(rows)).to.not.contain(api.key);
    expect(rows.map((row) => row.key_hash)).to.include(hashApiKey(api.key));
  });

  describe('401 with the error record', () => {
    const rows: [string, string | null, Record<string, string>][] = [
      ['no key', null, {}],
      ['an empty key', '', {}],
      ['an unknown key', 'sk_00000000000000000000000000', {}],
      ['an unknown key as a bearer', null, { authorization: 'Bearer sk_00000000000000000000000000' }],
      ['a token that is none', null, { authorization: 'Bearer abc.def.ghi' }],
      ['another scheme', null, { authorization: 'Basic YTpi' }],
    ];
    for (const [what, key, headers] of rows) {
      it(what, async () => {
        const { status, body, headers: answered } = await api.request('GET', '/probe/meter-read', { key, headers });
        expect(status).to.equal(401);
        expect(answered.get('www-authenticate')).to.equal('Bearer realm="farthing"');
        expect(body).to.deep.include({ http_status_code: 401, success: false });
        expect(body.error!.message).to.equal(body.message);
      });
    }

    it('an expired key, from the instant that it expires', async () => {
      const { body } = await api.request('POST', '/secrets/api/keys', {
        body: { name: 'short', type: 'private_key', expires_at: '2026-03-15T13:00:00Z' },
      });
      const ask = async () => (await api.request('GET', '/probe/meter-read', { key: body.api_key })).status;
      expect(await ask()).to.equal(200);
      api.setNow('2026-03-15T12:59:59.999Z');
      expect(await ask()).to.equal(200);
      api.setNow('2026-03-15T13:00:00Z');
      expect(await ask()).to.equal(401);
    });

    it('a revoked key, at once', async () => {
      const { body } = await api.request('POST', '/secrets/api/keys', { body: { name: 'k', type: 'private_key' } });
      const ask = async () => (await api.request('GET', '/probe/meter-read', { key: body.api_key })).status;
      expect(await ask()).to.equal(200);
      expect((await api.request('DELETE', `/secrets/api/keys/${body.secret.id}`)).status).to.equal(204);
      expect(await ask()).to.equal(401);
    });

    it('but not where a route is public', async () => {
      expect((await api.request('GET', '/probe/public', { key: null })).status).to.equal(200);
    });
  });

  describe('roles', () => {
    it('add up', async () => {
      const both = await api.keyWithRoles(['event_ingestor', 'event_reader'], { user_type: 'service_account' });
      expect((await api.request('GET', '/probe/event-read', { key: both })).status).to.equal(200);
      expect((await api.request('POST', '/probe/event-write', { key: both })).status).to.equal(200);
      expect((await api.request('GET', '/probe/customer-read', { key: both })).status).to.equal(403);
    });

    it('a refused request changes nothing', async () => {
      const key = await api.keyWithRoles(['all_reader']);
      const body = { name: 'x', event_name: 'x', aggregation: { type: 'COUNT' } };
      expect((await api.request('POST', '/meters', { key, body })).status).to.equal(403);
      expect((await api.request('GET', '/meters')).body.items).to.deep.equal([]);
    });
  });

  describe('environments', () => {
    it('a key is for its own, and a header that names another is refused on every kind of route', async () => {
      const { body: other } = await api.request('POST', '/environments', {
        body: { name: 'Other', type: 'development' },
      });
      const ask = <Path extends string>(path: Path, environment: string) =>
        api.request('GET', path, { headers: { 'x-environment-id': environment } });
      expect((await ask('/probe/meter-read', api.scope.environment_id)).status).to.equal(200);
      for (const path of ['/probe/meter-read', '/environments', '/users/me']) {
        const { status, body } = await ask(path, other.id);
        expect([status, body.code, body.details!.environment_id], path).to.deep.equal([
          403,
          'permission_denied',
          api.scope.environment_id,
        ]);
      }
    });

    it('a key is made for the environment that is asked for, and reaches it alone', async () => {
      const { body: other } = await api.request('POST', '/environments', {
        body: { name: 'Live', type: 'production' },
      });
      const wanted = { name: 'live', type: 'private_key', environment_id: other.id };
      const made = await api.request('POST', '/secrets/api/keys', { body: wanted });
      expect([made.status, made.body.secret.environment_id]).to.deep.equal([201, other.id]);
      const { body } = await api.request('GET', '/probe/meter-read', { key: made.body.api_key });
      expect(body).to.deep.include({ tenant_id: api.scope.tenant_id, environment_id: other.id });
      const listed = await api.request('GET', '/secrets/api/keys', { key: made.body.api_key });
      expect(listed.body.items.map((key: { id: string }) => key.id)).to.deep.equal([made.body.secret.id]);
    });

    it('of another tenant, or one that is not there, no key is made, nor by a writer for another', async () => {
      const theirs = (await api.otherTenant()).scope.environment_id;
      const { body: other } = await api.request('POST', '/environments', {
        body: { name: 'More', type: 'development' },
      });
      const key = await api.keyWithRoles(['all_writer']);
      const before = await api.services.postgres('secrets').count();
      const rows = [
        [api.key, theirs, 400],
        [api.key, 'env_unknown', 400],
        [key, other.id, 403],
      ] as const;
      for (const [who, environment_id, status] of rows) {
        const body = { name: 'k', type: 'private_key', environment_id };
        expect((await api.request('POST', '/secrets/api/keys', { key: who, body })).status).to.equal(status);
      }
      expect(await api.services.postgres('secrets').count()).to.deep.equal(before);
    });

    it('a key without one takes it from the header, which must belong to the tenant', async () => {
      const { key, user_id, scope } = await api.otherTenant();
      await api.services.postgres('secrets').where({ user_id }).update({ environment_id: null });
      const ask = <Path extends string>(path: Path, environment?: string) =>
        api.request('GET', path, { key, headers: environment ? { 'x-environment-id': environment } : {} });
      expect((await ask('/probe/meter-read', scope.environment_id)).body).to.deep.include(scope);
      for (const refused of [undefined, 'env_unknown', api.scope.environment_id]) {
        const { status, body } = await ask('/probe/meter-read', refused);
        expect(status).to.equal(403);
        expect(body.code).to.equal('permission_denied');
      }
      for (const path of ['/probe/tenant-read', '/environments', '/users/me', `/tenants/${scope.tenant_id}`])
        expect((await ask(path)).status, path).to.equal(200);
    });
  });

  it('a suspended tenant reads and does not write', async () => {
    const { key, scope } = await api.otherTenant();
    await api.services.postgres('tenants').where('id', scope.tenant_id).update({ suspended: true });
    expect((await api.request('GET', '/probe/meter-read', { key })).status).to.equal(200);
    for (const [method, path] of [
      ['POST', '/probe/customer-write'],
      ['PUT', '/probe/self-write'],
    ] as const) {
      const { status, body } = await api.request(method, path, { key });
      expect([status, body.code], path).to.deep.equal([403, 'permission_denied']);
    }
  });

  it('notes when a key was used last', async () => {
    const { body } = await api.request('GET', '/secrets/api/keys');
    expect(body.items[0]!.last_used_at).to.be.a('string');
  });
});
