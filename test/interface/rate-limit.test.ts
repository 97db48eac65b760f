// How often a key may come, and how often an address may be wrong.
import { expect } from 'chai';
import { clientAddress } from '../../api/http/rate-limit.ts';
import { makeApiKey } from '../../storage/foundation/secrets/api-key.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('rate limits', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({
      config: { RATE_LIMIT_REQUESTS: '20', RATE_LIMIT_WRONG_KEYS: '5', TRUSTED_PROXIES: '1' },
    });
  });
  after(() => api.stop());

  const ask = (key: string, address = '192.0.2.1') =>
    api.request('GET', '/plans', { key, headers: { 'x-forwarded-for': address } });

  /** How many statements look a key up, as Postgres has counted them. */
  const lookUps = (work: () => Promise<unknown>) => {
    let asked = 0;
    const count = ({ sql }: { sql: string }) => {
      if (/from secrets s\s+join users/.test(sql)) asked += 1;
    };
    api.services.postgres.on('query', count);
    return work()
      .finally(() => api.services.postgres.removeListener('query', count))
      .then(() => asked);
  };

  it('each answer says what is left; beyond it 429 with Retry-After, for this key alone', async () => {
    const key = await api.keyWithRoles(['all_reader']);
    const first = await ask(key);
    expect(first.headers.get('ratelimit-policy')).to.equal('"key";q=20;w=60');
    expect(first.headers.get('ratelimit')).to.match(/^"key";r=19;t=(?:60|59)$/);
    for (let left = 18; left >= 0; left--) expect((await ask(key)).headers.get('ratelimit')).to.contain(`r=${left};`);
    const { status, body, headers } = await ask(key);
    expect([status, body.code]).to.deep.equal([429, 'too_many_requests']);
    expect(body.details).to.include({ limit: 20, window_seconds: 60 });
    expect(headers.get('retry-after')).to.equal(String(body.details!.retry_after_seconds));
    expect(Number(headers.get('retry-after'))).to.be.within(1, 60);
    expect(headers.get('ratelimit')).to.contain('r=0;');
    expect((await ask(await api.keyWithRoles(['all_reader']))).status).to.equal(200);
  });

  it('a wrong key is looked up once, however often it comes', async () => {
    const key = makeApiKey('private_key');
    const statuses: number[] = [];
    const asked = await lookUps(async () => {
      for (let i = 0; i < 4; i++) statuses.push((await ask(key, '192.0.2.2')).status);
    });
    expect([statuses, asked]).to.deep.equal([[401, 401, 401, 401], 1]);
  });

  it('an address that guesses is refused before Postgres is asked; known keys and other addresses go on', async () => {
    const known = await api.keyWithRoles(['all_reader']);
    expect((await ask(known, '192.0.2.3')).status).to.equal(200);
    for (let i = 0; i < 5; i++) expect((await ask(makeApiKey('private_key'), '192.0.2.3')).status).to.equal(401);
    let refused = 0;
    const asked = await lookUps(async () => {
      for (let i = 0; i < 3; i++) refused += Number((await ask(makeApiKey('private_key'), '192.0.2.3')).status === 429);
    });
    expect([refused, asked]).to.deep.equal([3, 0]);
    expect((await ask(known, '192.0.2.3')).status).to.equal(200);
    expect((await ask(makeApiKey('private_key'), '192.0.2.4')).status).to.equal(401);
    // Also when it is looked up anew, and when another tenant has changed its keys.
    const another = await api.otherTenant();
    const wanted = { name: 'New', type: 'private_key' };
    expect((await api.request('POST', '/secrets/api/keys', { key: another.key, body: wanted })).status).to.equal(201);
    expect((await ask(known, '192.0.2.3')).status).to.equal(200);
    // And when their own has, as by revoking one that somebody still sends.
    const { body: own } = await api.request('POST', '/secrets/api/keys', { body: wanted });
    expect((await api.request('DELETE', `/secrets/api/keys/${own.secret.id}`)).status).to.equal(204);
    expect((await ask(known, '192.0.2.3')).status).to.equal(200);
    api.setNow('2026-03-15T12:00:10Z');
    expect(await lookUps(async () => expect((await ask(known, '192.0.2.3')).status).to.equal(200))).to.equal(1);
  });

  it('a key that is made works at once, also where keys were wrong just before', async () => {
    expect((await ask(makeApiKey('private_key'), '192.0.2.5')).status).to.equal(401);
    const { body } = await api.request('POST', '/secrets/api/keys', { body: { name: 'New', type: 'private_key' } });
    expect((await ask(body.api_key, '192.0.2.5')).status).to.equal(200);
  });

  const addresses: [string, string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:0db8:0001:0002::1', '2001:db8:1:2'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['', ''],
  ];
  for (const [ip, counted] of addresses)
    it(`${ip || 'no address'} counts as ${counted || 'one of its own'}`, () =>
      expect(clientAddress({ ip })).to.equal(counted));
});
