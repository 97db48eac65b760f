/** People: sign-up, login, what a token may do and where, and passwords. */
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { makeToken } from '../../api/http/token.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

const NOW = '2026-03-15T12:00:00Z';
const JWT_SECRET = 'of these tests, and of nothing else at all';

type SignedUp = { token: string; user_id: string; tenant_id: string };

const ADA = { email: 'ada@first.example', password: 'not to be found 1' };

describe('signing in', () => {
  let api: TestApi;
  let ada: SignedUp;
  // Each hash of a password takes a tenth of a second, so the tests share a user where none of them locks it out.
  before(async () => {
    api = await startTestApi({ now: NOW, config: { JWT_SECRET } });
    ada = await signUp(ADA.email, { password: ADA.password, tenant_name: 'First', metadata: { from: 'fair' } });
  });
  after(() => api.stop());
  afterEach(() => api.setNow(NOW));

  const post = <Path extends string>(path: Path, body: unknown) => api.request('POST', path, { body, key: null });
  const signUp = async (email: string, more = {}) => {
    const { status, body } = await post('/auth/signup', { email, password: 'long enough', ...more });
    expect(status).to.equal(200);
    return body as SignedUp;
  };
  const as =
    (token: string, environment?: string) =>
    <Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) =>
      api.request(method, path, {
        body,
        key: null,
        headers: { authorization: `Bearer ${token}`, ...(environment ? { 'x-environment-id': environment } : {}) },
      });
  const environmentsOf = async (token: string): Promise<{ id: string; type: string }[]> =>
    (await as(token)('GET', '/environments')).body.environments;

  it('200 for a sign-up: a tenant, its first user, and two environments that can be used', async () => {
    expect(ada).to.have.all.keys('token', 'user_id', 'tenant_id');
    const me = await as(ada.token)('GET', '/users/me');
    expect(me.body).to.deep.include({ id: ada.user_id, email: ADA.email, roles: ['super_admin'] });
    expect([me.body.metadata, me.body.tenant!.name]).to.deep.equal([{ from: 'fair' }, 'First']);
    const environments = await environmentsOf(ada.token);
    expect(environments.map(({ type }) => type).sort()).to.deep.equal(['development', 'production']);
    for (const { id } of environments) {
      const feature = await as(ada.token, id)('POST', '/features', { name: 'Seats', type: 'boolean' });
      expect([feature.status, feature.body.environment_id]).to.deep.equal([201, id]);
      const key = await as(ada.token, id)('POST', '/secrets/api/keys', { name: 'k', type: 'private_key' });
      const seen = await api.request('GET', '/features', { key: key.body.api_key });
      expect(seen.body.items.map((one: { id: string }) => one.id)).to.deep.equal([feature.body.id]);
    }
  });

  it('409 for an email that signs in already, in any case, and nothing is made', async () => {
    const count = () => api.services.postgres('tenants').count();
    const before = await count();
    const { status, body } = await post('/auth/signup', { email: 'ADA@first.example', password: 'long enough' });
    expect([status, body.code]).to.deep.equal([409, 'already_exists']);
    expect(await count()).to.deep.equal(before);
  });

  const refused: [string, string, unknown, string][] = [
    ['/auth/signup', 'no email', { password: 'long enough' }, 'email'],
    ['/auth/signup', 'a wrong email', { email: 'nobody', password: 'long enough' }, 'email'],
    ['/auth/signup', 'no password', { email: 'a@example.com' }, 'password'],
    ['/auth/signup', 'a short password', { email: 'a@example.com', password: 'short' }, 'password'],
    ['/auth/login', 'no password', { email: 'a@example.com' }, 'password'],
  ];
  for (const [path, what, sent, field] of refused) {
    it(`400 for ${path} with ${what}`, async () => {
      const { status, body } = await post(path, sent);
      expect([status, body.details!.field]).to.deep.equal([400, field]);
    });
  }

  it('200 for a login with the email in any case; 403, the same, for a wrong password and a wrong email', async () => {
    const right = await post('/auth/login', { ...ADA, email: 'Ada@First.Example' });
    expect(right.status).to.equal(200);
    expect(right.body).to.include({ user_id: ada.user_id, tenant_id: ada.tenant_id });
    expect((await as(right.body.token)('GET', '/users/me')).status).to.equal(200);
    const wrong = await post('/auth/login', { ...ADA, password: 'Not to be found 1' });
    const nobody = await post('/auth/login', { ...ADA, email: 'nobody@example.com' });
    expect([wrong.status, wrong.body.code]).to.deep.equal([403, 'permission_denied']);
    expect(nobody.body).to.deep.equal(wrong.body);
  });

  it('429 after five wrong passwords, many at one time too, then for the right one, and of that email alone', async () => {
    await signUp('hurried@example.com');
    const login = (email: string, password: string) => post('/auth/login', { email, password });
    const guesses = Array.from({ length: 9 }, (_, i) => login('hurried@example.com', `guess ${i}`));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.toSorted()).to.deep.equal([...Array(5).fill(403), ...Array(4).fill(429)]);
    const { status, body, headers } = await login('hurried@example.com', 'long enough');
    expect([status, body.code]).to.deep.equal([429, 'too_many_requests']);
    expect(Number(headers.get('retry-after')), 'the quarter of an hour that the message speaks of').to.be.within(
      800,
      900,
    );
    expect((await login('other@example.com', 'wrong')).status).to.equal(403);
  });

  it('429 also for who guesses the current password in order to change it', async () => {
    const { token } = await signUp('changed@example.com');
    const change = (current_password: string) =>
      as(token)('PUT', '/users/me', { password: 'my own words', current_password });
    for (let i = 0; i < 5; i++) expect((await change(`guess ${i}`)).status).to.equal(403);
    expect((await change('long enough')).status).to.equal(429);
  });

  it('no password is kept, logged or read', async () => {
    const found = await as(ada.token)('POST', '/users/search', {});
    const tables = ['users', 'user_passwords', 'idempotency_keys'];
    const rows = await Promise.all(tables.map((table) => api.services.postgres(table).select('*')));
    expect(JSON.stringify(rows) + found.text + api.logged()).to.not.contain(ADA.password);
    expect(found.text).to.not.contain('scrypt');
  });

  describe('tokens', () => {
    it('the environment of the claim goes before that of the header', async () => {
      const { token, user_id, tenant_id } = ada;
      const [one, other] = (await environmentsOf(token)).map(({ id }) => id) as [string, string];
      const login = { ...ADA, environment_id: one };
      const bound = (await post('/auth/login', login)).body.token;
      const made = await as(bound, other)('POST', '/features', { name: 'Where', type: 'boolean' });
      expect([made.status, made.body.environment_id]).to.deep.equal([201, one]);
      const theirs = await makeToken(api.services, { user_id, tenant_id, ...environment(api) }, new Date(NOW));
      expect((await as(theirs, one)('GET', '/features')).status, "another tenant's in the claim").to.equal(403);
      const refusal = await post('/auth/login', { ...login, environment_id: api.scope.environment_id });
      expect([refusal.status, refusal.body.details!.field]).to.deep.equal([400, 'environment_id']);
    });

    it("without a claim the header is needed, and must name one of the tenant's", async () => {
      for (const environment of [undefined, 'env_unknown', api.scope.environment_id])
        expect((await as(ada.token, environment)('GET', '/features')).status).to.equal(403);
    });

    it('401 for one that is expired, forged, of another algorithm, without an end, or of nobody', async () => {
      const { token, user_id, tenant_id } = ada;
      const me = (given: string) => as(given)('GET', '/users/me');
      const signed = (key: string, alg = 'HS256', exp = Date.parse(NOW) / 1000 + 60) => {
        const made = new SignJWT({ user_id, tenant_id })
          .setProtectedHeader({ alg })
          .setIssuedAt(Date.parse(NOW) / 1000);
        return (exp ? made.setExpirationTime(exp) : made).sign(new TextEncoder().encode(key));
      };
      expect((await me(await signed(JWT_SECRET))).status, 'made elsewhere, with the secret').to.equal(200);
      const nobody = { user_id: 'user_unknown', tenant_id, environment_id: null };
      const elsewhere = { user_id, tenant_id: api.scope.tenant_id, environment_id: null };
      const [head, body] = token.split('.');
      const wrong = [
        await signed('another secret of the same length as it'),
        await signed(JWT_SECRET, 'HS512'),
        await signed(JWT_SECRET, 'HS256', 0),
        `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`,
        `${head}.${body}.`,
        await makeToken(api.services, nobody, new Date(NOW)),
        await makeToken(api.services, elsewhere, new Date(NOW)),
      ];
      for (const [i, each] of wrong.entries()) expect((await me(each)).status, `${i}`).to.equal(401);
      api.setNow('2026-04-14T11:59:59Z');
      expect((await me(token)).status).to.equal(200);
      api.setNow('2026-04-14T12:00:00Z');
      expect((await me(token)).status).to.equal(401);
    });

    it('a key goes before a token', async () => {
      const { body } = await api.request('GET', '/users/me', { headers: { authorization: `Bearer ${ada.token}` } });
      expect(body.tenant!.id).to.equal(api.scope.tenant_id).and.not.equal(ada.tenant_id);
    });
  });

  it('a new user signs in with the password that is shown once, changes it, and tokens from before end', async () => {
    const made = await as(ada.token)('POST', '/users', {
      type: 'user',
      email: 'new@example.com',
      roles: ['all_reader'],
    });
    expect(made.body.password).to.match(/^[\w-]{22}$/);
    const login = (password: string) => post('/auth/login', { email: 'new@example.com', password });
    api.setNow('2026-03-15T12:00:00.001Z');
    const first = (await login(made.body.password!)).body.token;
    expect((await as(first)('POST', '/environments', { name: 'x', type: 'development' })).status).to.equal(403);
    // In the second of the first token.
    api.setNow('2026-03-15T12:00:00.002Z');
    const change = (body: unknown) => as(first)('PUT', '/users/me', body);
    expect((await change({ password: 'my own words' })).body.details!.field).to.equal('current_password');
    const nothingNew = await change({ current_password: made.body.password });
    expect([nothingNew.status, nothingNew.body.message]).to.deep.equal([
      400,
      'password: is required with current_password',
    ]);
    const wrong = await change({ password: 'my own words', current_password: 'no' });
    expect([wrong.status, wrong.body.details!.field]).to.deep.equal([403, 'current_password']);
    expect((await change({ password: 'my own words', current_password: made.body.password })).status).to.equal(200);
    expect((await as(first)('GET', '/users/me')).status).to.equal(401);
    expect((await login(made.body.password!)).status).to.equal(403);
    const again = await login('my own words');
    expect((await as(again.body.token)('GET', '/users/me')).body.email).to.equal('new@example.com');
    // A token with whole seconds, of an earlier version, made after the sign-up in the same second.
    const { user_id, tenant_id } = again.body;
    const claims = { user_id: user_id!, tenant_id: tenant_id!, environment_id: null };
    const whole = await makeToken(api.services, claims, new Date('2026-03-15T12:00:00Z'));
    expect((await as(whole)('GET', '/users/me')).status).to.equal(200);
  });

  it('a secret that was shown to a token is shown again to that token alone', async () => {
    const { token } = ada;
    const { id } = (await environmentsOf(token))[0]!;
    const make = (authorization: string) =>
      api.request('POST', '/secrets/api/keys', {
        key: null,
        body: { name: 'k', type: 'private_key' },
        headers: { authorization, 'x-environment-id': id, 'idempotency-key': 'once' },
      });
    const first = await make(`Bearer ${token}`);
    expect((await make(`bearer ${token}`)).body).to.deep.equal(first.body);
    api.setNow('2026-03-15T12:00:01Z');
    const other = (await post('/auth/login', ADA)).body.token;
    expect((await make(`Bearer ${other}`)).status).to.equal(409);
  });
});

const environment = ({ scope }: TestApi) => ({ environment_id: scope.environment_id });

describe('signing up where it is closed', () => {
  it('403, and nothing is made', async () => {
    const api = await startTestApi({ config: { SIGN_UP: 'closed' } });
    try {
      const body = { email: 'a@example.com', password: 'long enough' };
      expect((await api.request('POST', '/auth/signup', { key: null, body })).status).to.equal(403);
      expect(await api.services.postgres('tenants').count()).to.deep.equal([{ count: '1' }]);
    } finally {
      await api.stop();
    }
  });
});
