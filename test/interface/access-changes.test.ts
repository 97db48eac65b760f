/**
 * Two processes of the interface on one Postgres. Their clock stands still, so that nothing which one of them remembers of a key
 * grows old: what changes in the other, or in the database, is heard or never known.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { buildApp } from '../../api/app.ts';
import { listenForAccessChanges } from '../../api/http/access-changes.ts';
import { makeHttpServer } from '../../process/http-server.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import { hashApiKey, makeApiKey } from '../../storage/foundation/secrets/api-key.ts';
import { listen, type PostgresListener } from '../../storage/postgres/pool/listen.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type Cut, cutTo } from '../support/cut.ts';
import { until } from '../support/until.ts';

const LONG_AGO = new Date('2026-01-01T00:00:00Z');

describe('what changes for a key', () => {
  let api: TestApi;
  let second: { url: string; stop(): Promise<void> };
  let changes: PostgresListener;
  let way: Cut;

  before(async () => {
    api = await startTestApi();
    const url = readUrl(api.services.postgres);
    const services = { ...api.services, postgres: connectPostgres(url, { idle_timeout_ms: 500 }) };
    const address = new URL(url);
    way = await cutTo({ host: address.hostname, port: Number(address.port) });
    address.searchParams.delete('host');
    changes = listenForAccessChanges(services, Object.assign(address, { host: `127.0.0.1:${way.port}` }).href);
    const server = makeHttpServer(buildApp(services));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    second = {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      stop: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
        await services.postgres.destroy();
      },
    };
    await until('the second one hears', async () => (await listeners()) > 0);
  });
  after(async () => {
    await changes.close();
    await second.stop();
    await way.close();
    await api.stop();
  });

  const listeners = async () => Number((await api.services.postgres.raw(HEARING)).rows[0].count);
  const asked = async (key: string, method = 'GET') =>
    (await api.request(method, `${second.url}/v1/features`, { key, ...(method === 'POST' ? { body: feature() } : {}) }))
      .status;
  const feature = () => ({ name: `Seats ${newId('feature')}`, type: 'boolean' });

  /** A key that the second process knows, and whose it is. */
  async function knownKey() {
    const { key, scope, user_id } = await api.otherTenant();
    expect([await asked(key), await asked(key, 'POST')]).to.deep.equal([200, 201]);
    const [secret] = await api.services.postgres('secrets').where({ key_hash: hashApiKey(key) });
    return { key, scope, user_id, secret_id: secret.id as string };
  }
  type Known = Awaited<ReturnType<typeof knownKey>>;

  const cases: [what: string, change: (known: Known) => Promise<unknown>, read: number, write: number][] = [
    [
      'a key that another process revokes',
      ({ key, secret_id }) => api.request('DELETE', `/secrets/api/keys/${secret_id}`, { key }),
      401,
      401,
    ],
    ['a key that expires sooner', ({ secret_id }) => patch('secrets', secret_id, { expires_at: LONG_AGO }), 401, 401],
    [
      'a key that is taken away',
      ({ secret_id }) => api.services.postgres('secrets').where({ id: secret_id }).delete(),
      401,
      401,
    ],
    ['a user who has other roles', ({ user_id }) => patch('users', user_id, { roles: ['event_ingestor'] }), 403, 403],
    ['a user who is archived', ({ user_id }) => patch('users', user_id, { status: 'archived' }), 401, 401],
    ['a tenant that is suspended', ({ scope }) => patch('tenants', scope.tenant_id, { suspended: true }), 200, 403],
  ];
  const patch = async (table: string, id: string, changed: object) =>
    api.services.postgres(table).where({ id }).update(changed);

  for (const [what, change, read, write] of cases)
    it(`${what} is known in every process at once`, async () => {
      const known = await knownKey();
      const other = await knownKey();
      await change(known);
      await until(what, async () => (await asked(known.key, 'POST')) === write);
      expect([await asked(known.key), await asked(other.key, 'POST')]).to.deep.equal([read, 201]);
    });

  it('a clock of its own that an environment gets is known in every process at once', async () => {
    const { key, scope } = await knownKey();
    const instants = { frozen_time: LONG_AGO, advanced_from: LONG_AGO, advanced_at: new Date() };
    const progress = { instants: 0, done: {} };
    await api.services.postgres('test_clocks').insert({ id: newId('test_clock'), ...scope, ...instants, progress });
    await until('what it makes is of that instant', async () => {
      const { body } = await api.request('POST', `${second.url}/v1/features`, { key, body: feature() });
      return Date.parse(body.created_at as string) === LONG_AGO.getTime();
    });
  });

  it('a key that was tried before it was made works as soon as it is', async () => {
    const { scope, user_id } = await api.otherTenant();
    const key = makeApiKey('private_key');
    expect(await asked(key)).to.equal(401);
    const row = { ...scope, user_id, name: 'Late', type: 'private_key', display_id: 'sk_00***00' };
    await api.services.postgres('secrets').insert({ id: newId('secret'), ...row, key_hash: hashApiKey(key) });
    // Sooner than a wrong key is looked up again.
    await until('it works', async () => (await asked(key)) === 200, 4_000);
  });

  it('what is undone is not told, nor when a key was used', async () => {
    const heard: string[] = [];
    const { promise: begun, resolve } = withResolvers();
    const url = readUrl(api.services.postgres);
    const listener = listen(url, {
      channel: 'access_changed',
      heard: (one) => heard.push(one),
      begun: resolve,
      lost: () => {},
    });
    await begun;
    const [used, undone, told] = [await knownKey(), await knownKey(), await knownKey()];
    heard.length = 0;
    await patch('secrets', used.secret_id, { last_used_at: LONG_AGO });
    const transaction = await api.services.postgres.transaction();
    await transaction('secrets').where({ id: undone.secret_id }).update({ status: 'archived' });
    await transaction.rollback();
    await patch('secrets', told.secret_id, { status: 'archived' });
    await until('it is told', async () => heard.length > 0);
    await listener.close();
    expect(heard).to.deep.equal([told.scope.tenant_id]);
  });

  it('what was told while nobody heard is forgotten when the connection is there again', async () => {
    const known = await knownKey();
    await way.cut();
    await until('nobody hears', async () => (await listeners()) === 0);
    await patch('secrets', known.secret_id, { status: 'archived' });
    expect(await asked(known.key), 'not heard yet, and not older than 5 s').to.equal(200);
    await way.restore();
    await until('it is refused', async () => (await asked(known.key)) === 401);
    expect(api.logged()).to.contain('changes of keys are not heard');
  });
});

const HEARING = `select count(*) from pg_stat_activity where datname = current_database()
  and application_name = 'farthing listener' and query not ilike 'select pg_backend_pid%'`;

function withResolvers() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
