/** Browser sessions: sign-in, use, end, and what a page of another origin, another user or another tenant gets. */
import { expect } from 'chai';
import { createConsoleLink } from '../../../../actions/operations/access/open-session.ts';
import { renewPassword } from '../../../../actions/operations/access/operate-tenants.ts';
import { listenForAccessChanges } from '../../../../api/http/access-changes.ts';
import { forgetKeys } from '../../../../api/http/auth.ts';
import { purgeSessionsJob } from '../../../../scheduler/jobs/purge-sessions.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { CONSOLE_HEADERS, openBrowser, type TestBrowser } from '../../../support/browser.ts';
import { until } from '../../../support/until.ts';

const PASSWORD = 'correct horse battery';
const NOW = '2026-03-15T12:00:00Z';
const HOURS = 3_600_000;

type Session = {
  session: { id: string; created_at: string; expires_at: string } | null;
  user: { id: string; email: string | null; name: string; roles: string[] };
  tenant: { id: string; name: string };
  environments: { id: string; name: string; type: string; test_clock_id: string | null }[];
  permissions: Record<string, string[]>;
};
type Sessions = { items: { id: string; last_used_at: string; user_agent: string | null; is_current: boolean }[] };

describe('browser sessions', () => {
  let api: TestApi;
  let people = 0;
  beforeEach(async () => {
    api = await startTestApi({ now: NOW, config: { RATE_LIMIT_WRONG_KEYS: '0' } });
  });
  afterEach(() => api.stop());

  const later = (hours: number) => new Date(Date.parse(NOW) + hours * HOURS).toISOString();
  const enter = (browser: TestBrowser, body: object) => browser.request<Session>('POST', '/auth/session', { body });
  /** A browser in which a new tenant has signed up. */
  async function signUp(): Promise<{ browser: TestBrowser; email: string; shown: Session }> {
    const email = `ada${people++}@example.com`;
    const browser = openBrowser(api);
    const answer = await enter(browser, { email, password: PASSWORD, tenant_name: 'Example Inc.', sign_up: true });
    expect(answer.status, answer.text).to.equal(201);
    return { browser, email, shown: answer.body };
  }
  const me = (browser: TestBrowser) => browser.request<Session>('GET', '/auth/session');

  it('201 signs up, and the cookie is hidden from scripts and from other sites', async () => {
    const browser = openBrowser(api);
    const body = { email: 'grace@example.com', password: PASSWORD, tenant_name: 'Example Inc.', sign_up: true };
    const { status, headers, body: shown } = await enter(browser, body);
    expect(status).to.equal(201);
    expect(headers.getSetCookie()).to.have.length(1);
    const [value, ...attributes] = headers.getSetCookie()[0]!.split('; ');
    expect(value).to.match(/^farthing=[\w-]{43}$/);
    expect(attributes.filter((one) => !one.startsWith('Expires='))).to.have.members([
      'Max-Age=604800',
      'Path=/',
      'HttpOnly',
      'SameSite=Strict',
    ]);
    expect(shown.session).to.deep.include({
      created_at: later(0).replace('.000', ''),
      expires_at: later(12).replace('.000', ''),
    });
    expect(shown.user).to.deep.include({ email: 'grace@example.com', name: 'grace', roles: ['super_admin'] });
    expect(shown.tenant.name).to.equal('Example Inc.');
    expect(shown.environments.map(({ name, type, test_clock_id }) => [name, type, test_clock_id])).to.have.deep.members(
      [
        ['Development', 'development', null],
        ['Production', 'production', null],
      ],
    );
    expect(shown.permissions).to.deep.include({ customer: ['read', 'write'], event: ['read', 'write', 'correct'] });
    expect((await me(browser)).body).to.deep.equal(shown);
  });

  it('stores the hash of the token alone', async () => {
    const { browser } = await signUp();
    const [, token] = browser.cookie!.split('=');
    const rows = await api.services.postgres('sessions').select();
    expect(rows).to.have.length(1);
    expect(JSON.stringify(rows)).to.not.contain(token);
    expect(api.logged()).to.not.contain(token);
    // Nor is the token a key, or its hash a token.
    const asKeys: Record<string, string>[] = [{ 'x-api-key': token! }, { authorization: `Bearer ${token}` }];
    for (const headers of asKeys)
      expect((await api.request('GET', '/auth/session', { key: null, headers })).status).to.equal(401);
    const stolen = { cookie: `farthing=${rows[0].token_hash}` };
    expect((await api.request('GET', '/auth/session', { key: null, headers: stolen })).status).to.equal(401);
  });

  it('201 signs in; a wrong password and a wrong email get the same 403, and 429 after five', async () => {
    const { email, shown } = await signUp();
    const browser = openBrowser(api);
    const answer = await enter(browser, { email: email.toUpperCase(), password: PASSWORD });
    expect([answer.status, answer.body.user.id]).to.deep.equal([201, shown.user.id]);
    const wrong = await enter(openBrowser(api), { email, password: 'wrong password' });
    const unknown = await enter(openBrowser(api), { email: 'nobody@example.com', password: 'wrong password' });
    expect([wrong.status, wrong.text]).to.deep.equal([403, unknown.text]);
    expect(wrong.headers.getSetCookie()).to.deep.equal([]);
    for (let tries = 1; tries < 5; tries++) await enter(browser, { email, password: 'wrong password' });
    const refused = await enter(openBrowser(api), { email, password: PASSWORD });
    expect(refused.status).to.equal(429);
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 900);
  });

  const REFUSED: [what: string, body: object, field: string][] = [
    ['nothing', {}, 'email'],
    ['no password', { email: 'a@example.com' }, 'password'],
    ['no email', { password: PASSWORD }, 'email'],
    ['an email that is none', { email: 'nobody', password: PASSWORD }, 'email'],
    ['a short password of a new user', { email: 'a@example.com', password: 'short', sign_up: true }, 'password'],
    ['a company without a sign-up', { email: 'a@example.com', password: PASSWORD, tenant_name: 'A' }, 'tenant_name'],
    ['a link and an email', { email: 'a@example.com', link_token: 'x' }, 'email'],
    ['a link and a sign-up', { sign_up: true, link_token: 'x' }, 'sign_up'],
    ['an unknown key', { email: 'a@example.com', password: PASSWORD, remember: true }, 'remember'],
  ];
  it('400 names the field', async () => {
    for (const [what, body, field] of REFUSED) {
      const answer = await enter(openBrowser(api), body);
      const { details } = answer.body as unknown as { details: { field: string } };
      expect([answer.status, details.field], what).to.deep.equal([400, field]);
    }
    expect(await api.services.postgres('sessions').select()).to.deep.equal([]);
  });

  it('409 for an email that signs in already', async () => {
    const { email } = await signUp();
    expect((await enter(openBrowser(api), { email, password: PASSWORD, sign_up: true })).status).to.equal(409);
  });

  it('says whether sign-up is open, and refuses it if it is not', async () => {
    const options = () => api.request('GET', '/auth/options', { key: null });
    expect((await options()).body).to.deep.equal({ sign_up_open: true });
    await api.stop();
    api = await startTestApi({ config: { SIGN_UP: 'closed' } });
    expect((await options()).body).to.deep.equal({ sign_up_open: false });
    const answer = await enter(openBrowser(api), { email: 'a@example.com', password: PASSWORD, sign_up: true });
    expect(answer.status).to.equal(403);
    expect(await api.services.postgres('tenants').select()).to.have.length(1);
  });

  it('acts with the roles of the user, in the environment that it names, and the audit log names the user', async () => {
    const { browser, shown } = await signUp();
    const [first, second] = shown.environments;
    const headers = { 'x-environment-id': first!.id };
    const made = await browser.request<{ id: string }>('POST', '/customers', {
      body: { external_id: 'acme', name: 'Acme' },
      headers,
    });
    expect(made.status, made.text).to.equal(201);
    const find = (path: string, given = {}) => browser.request('GET', path, { headers: given });
    const path = `/customers/${made.body.id}`;
    expect((await find(path, headers)).status).to.equal(200);
    expect((await find(`${path}?environment_id=${first!.id}`)).status).to.equal(200);
    expect((await find(`${path}?environment_id=${second!.id}`)).status).to.equal(404);
    expect((await find(path)).status).to.equal(403);
    const both = await find(`${path}?environment_id=${second!.id}`, headers);
    expect([both.status, both.body.details!.field]).to.deep.equal([400, 'environment_id']);
    const twice = await find(`${path}?environment_id=${first!.id}&environment_id=${second!.id}`);
    expect([twice.status, twice.body.details!.field]).to.deep.equal([400, 'environment_id']);
    const foreign = await find(`${path}?environment_id=${api.scope.environment_id}`);
    expect(foreign.status).to.equal(403);
    // A key has its environment, so the parameter is unknown there.
    const byKey = await api.request('GET', `/customers?environment_id=${api.scope.environment_id}` as '/customers');
    expect([byKey.status, byKey.body.details!.field]).to.deep.equal([400, 'environment_id']);
    const [entry] = await api.services.postgres('audit_entries').where({ entity_id: made.body.id });
    expect(entry).to.include({ user_id: shown.user.id, secret_id: null });
  });

  it('may do what the roles allow, as they are now', async () => {
    const { browser, shown } = await signUp();
    const { body: reader } = await browser.request<{ id: string; email: string; password: string }>('POST', '/users', {
      body: { type: 'user', email: 'reader@example.com', roles: ['all_reader'] },
    });
    const other = openBrowser(api);
    const { body } = await enter(other, { email: reader.email, password: reader.password });
    expect(body.permissions).to.deep.include({ customer: ['read'], event: ['read'] });
    const headers = { 'x-environment-id': shown.environments[0]!.id };
    const create = () => other.request('POST', '/customers', { body: { external_id: 'x' }, headers });
    expect((await create()).status).to.equal(403);
    await browser.request('PUT', `/users/${reader.id}/roles`, { body: { roles: ['all_writer'] } });
    expect((await create()).status).to.equal(201);
    await browser.request('PUT', `/users/${reader.id}/roles`, { body: { roles: [] } });
    const none = await me(other);
    expect([none.body.environments, none.body.permissions]).to.deep.equal([[], {}]);
  });

  it('400 with a cookie and a key or token, whichever is right', async () => {
    const { browser, email } = await signUp();
    const { body } = await api.request('POST', '/auth/login', { body: { email, password: PASSWORD }, key: null });
    const keys: Record<string, string>[] = [
      { 'x-api-key': api.key },
      { authorization: `Bearer ${api.key}` },
      { authorization: `Bearer ${body.token}` },
      { 'x-api-key': 'sk_wrong' },
    ];
    for (const headers of keys) {
      const answer = await browser.request('GET', '/users/me', { headers });
      expect([answer.status, answer.body.details!.field]).to.deep.equal([400, 'Cookie']);
    }
    // The published client sends an empty header with its key.
    const client = await api.request('GET', '/users/me', { headers: { cookie: '' } });
    expect(client.status).to.equal(200);
    // A proxy in front may ask for a password of its own.
    const basic = await browser.request('GET', '/users/me', { headers: { authorization: 'Basic YTpi' } });
    expect(basic.status).to.equal(200);
    // Cookies of other services on the host are not ours.
    const foreign = { cookie: 'other=1; farthing_theme=dark' };
    expect((await api.request('GET', '/users/me', { headers: foreign })).status).to.equal(200);
  });

  it('signs out: the session is gone, and the cookie is deleted', async () => {
    const { browser, email } = await signUp();
    const cookie = browser.cookie!;
    const answer = await browser.request('DELETE', '/auth/session');
    expect([answer.status, browser.cookie]).to.deep.equal([204, undefined]);
    browser.cookie = cookie;
    expect((await me(browser)).status).to.equal(401);
    expect((await api.request('DELETE', '/auth/session')).status).to.equal(404);
    await enter(browser, { email, password: PASSWORD });
    expect((await me(browser)).status).to.equal(200);
  });

  it('a key and a token have no session', async () => {
    const { body } = await api.request<Session>('GET', '/auth/session' as string);
    expect(body.session).to.equal(null);
    expect(body.tenant.id).to.equal(api.scope.tenant_id);
  });

  it('lists the sessions of the user, and ends one of them', async () => {
    const { browser, email, shown } = await signUp();
    api.setNow(later(1));
    const phone = openBrowser(api);
    await phone.request('POST', '/auth/session', {
      body: { email, password: PASSWORD },
      headers: { 'user-agent': `Phone ${'x'.repeat(1000)}` },
    });
    const list = async (who: TestBrowser) => (await who.request<Sessions>('GET', '/auth/sessions')).body.items;
    const [first, second, ...more] = await list(browser);
    expect(more).to.deep.equal([]);
    // Its own use was recorded when it asked.
    expect([first!.is_current, second!.is_current]).to.have.members([true, false]);
    const other = [first!, second!].find(({ is_current }) => !is_current)!;
    expect(other.user_agent).to.match(/^Phone x{394}$/);
    expect(other.id).to.not.equal(shown.session!.id);
    const stranger = await signUp();
    const refused = await stranger.browser.request('DELETE', `/auth/sessions/${other.id}`);
    expect(refused.status).to.equal(404);
    expect((await api.request('DELETE', `/auth/sessions/${other.id}`)).status).to.equal(404);
    expect((await me(phone)).status).to.equal(200);
    expect((await browser.request('DELETE', `/auth/sessions/${other.id}`)).status).to.equal(204);
    expect((await me(phone)).status).to.equal(401);
    expect((await browser.request('DELETE', `/auth/sessions/${other.id}`)).status).to.equal(404);
    expect((await list(browser)).map(({ id }) => id)).to.deep.equal([shown.session!.id]);
  });

  it("another user of the tenant neither sees nor ends one's sessions", async () => {
    const { browser, shown } = await signUp();
    const { body: made } = await browser.request<{ email: string; password: string }>('POST', '/users', {
      body: { type: 'user', email: 'second@example.com', roles: ['super_admin'] },
    });
    const other = openBrowser(api);
    await enter(other, { email: made.email, password: made.password });
    const { body } = await other.request<Sessions>('GET', '/auth/sessions');
    expect(body.items.map(({ is_current }) => is_current)).to.deep.equal([true]);
    expect((await other.request('DELETE', `/auth/sessions/${shown.session!.id}`)).status).to.equal(404);
    expect((await me(browser)).status).to.equal(200);
  });

  describe('the end', () => {
    it('comes 12 hours after the last use, which is written at most once in five minutes', async () => {
      const { browser } = await signUp();
      const written = async () => {
        const [{ last_used_at }] = await api.services.postgres('sessions').select('last_used_at');
        return new Date(last_used_at).toISOString();
      };
      const useAt = async (hours: number) => {
        api.setNow(later(hours));
        return (await me(browser)).status;
      };
      expect([await useAt(0.05), await written()]).to.deep.equal([200, later(0)]);
      expect([await useAt(0.1), await written()]).to.deep.equal([200, later(0.1)]);
      expect(await useAt(12)).to.equal(200);
      const { body } = await me(browser);
      expect(body.session!.expires_at).to.equal(later(24).replace('.000', ''));
      expect(await useAt(24)).to.equal(401);
      expect((await browser.request<Sessions>('GET', '/auth/sessions')).status).to.equal(401);
    });

    it('comes 7 days after the sign-in, however often it is used', async () => {
      const { browser } = await signUp();
      for (let hours = 10; hours < 168; hours += 10) {
        api.setNow(later(hours));
        expect((await me(browser)).status, `after ${hours} hours`).to.equal(200);
      }
      api.setNow(later(168));
      expect((await me(browser)).status).to.equal(401);
    });

    it('deletes the row within the hour', async () => {
      const { browser } = await signUp();
      const { run } = purgeSessionsJob(api.services, 3600);
      const purge = async (hours: number) => (await run(new Date(later(hours)))).done.purged;
      expect([await purge(11), await purge(12), await purge(13)]).to.deep.equal([0, 1, 0]);
      forgetKeys(api.services);
      expect((await me(browser)).status).to.equal(401);
    });

    it('comes with a new password, except for the session that changed it', async () => {
      const { browser, email } = await signUp();
      const other = openBrowser(api);
      await enter(other, { email, password: PASSWORD });
      const stranger = await signUp();
      const changed = await browser.request('PUT', '/users/me', {
        body: { password: 'another password', current_password: PASSWORD },
      });
      expect(changed.status).to.equal(200);
      expect([(await me(browser)).status, (await me(other)).status]).to.deep.equal([200, 401]);
      expect((await browser.request<Sessions>('GET', '/auth/sessions')).body.items).to.have.length(1);
      expect((await me(stranger.browser)).status).to.equal(200);
      expect((await enter(other, { email, password: 'another password' })).status).to.equal(201);
      const { body } = await api.request('POST', '/auth/login', {
        body: { email, password: 'another password' },
        key: null,
      });
      api.setNow(later(1));
      const byToken = await api.request('PUT', '/users/me', {
        body: { password: 'a third password', current_password: 'another password' },
        headers: { authorization: `Bearer ${body.token}` },
        key: null,
      });
      expect(byToken.status, byToken.text).to.equal(200);
      expect([(await me(browser)).status, (await me(other)).status]).to.deep.equal([401, 401]);
      expect((await enter(browser, { email, password: 'a third password' })).status).to.equal(201);
      await renewPassword(api.services, { email, now: new Date(NOW) });
      forgetKeys(api.services);
      expect((await me(browser)).status).to.equal(401);
    });

    it('comes with a new password also for a browser that changes the password at the same time', async () => {
      const { browser, email } = await signUp();
      const other = openBrowser(api);
      await enter(other, { email, password: PASSWORD });
      const change = (from: typeof browser, password: string) =>
        from.request('PUT', '/users/me', { body: { password, current_password: PASSWORD } });
      // Both verify the current password before either stores its own.
      const answers = await Promise.all([change(browser, 'one password'), change(other, 'other password')]);
      const isFirst = answers[0].status === 200;
      // The session of the other ends, so a late request is not even authenticated.
      expect(answers[isFirst ? 1 : 0].status).to.be.oneOf([401, 403]);
      expect([(await me(browser)).status, (await me(other)).status]).to.deep.equal(isFirst ? [200, 401] : [401, 200]);
    });

    const GONE: [what: string, change: (shown: Session) => Promise<unknown>][] = [
      ['the user', ({ user: { id } }) => api.services.postgres('users').where({ id }).update({ status: 'archived' })],
      [
        'the tenant',
        ({ tenant: { id } }) => api.services.postgres('tenants').where({ id }).update({ status: 'archived' }),
      ],
    ];
    for (const [what, change] of GONE)
      it(`comes with that of ${what}`, async () => {
        const { browser, shown } = await signUp();
        await change(shown);
        forgetKeys(api.services);
        expect((await me(browser)).status).to.equal(401);
      });

    it('does not come with a suspension: it can be read, and left', async () => {
      const { browser, shown } = await signUp();
      await api.services.postgres('tenants').where({ id: shown.tenant.id }).update({ suspended: true });
      forgetKeys(api.services);
      expect((await me(browser)).status).to.equal(200);
      expect((await browser.request('PUT', '/users/me', { body: { name: 'Ada' } })).status).to.equal(403);
      // A stolen session can be ended, too.
      const { id } = shown.session!;
      expect((await browser.request('DELETE', `/auth/sessions/${id}`)).status).to.equal(204);
      expect((await me(browser)).status).to.equal(401);
    });

    it('does not come with a suspension: it can be left', async () => {
      const { browser, shown } = await signUp();
      await api.services.postgres('tenants').where({ id: shown.tenant.id }).update({ suspended: true });
      forgetKeys(api.services);
      expect((await browser.request('DELETE', '/auth/session')).status).to.equal(204);
    });
  });

  it('gives each sign-in a token of its own, and ends the one that was in the browser before', async () => {
    const attacker = await signUp();
    const { email } = await signUp();
    const victim = openBrowser(api);
    for (const placed of [attacker.browser.cookie!, `farthing=${'A'.repeat(43)}`]) {
      victim.cookie = placed;
      const answer = await enter(victim, { email, password: PASSWORD });
      expect(answer.status).to.equal(201);
      expect(victim.cookie)
        .to.match(/^farthing=[\w-]{43}$/)
        .and.not.equal(placed);
      const fixed = { cookie: placed };
      expect((await api.request('GET', '/auth/session', { key: null, headers: fixed })).status).to.equal(401);
    }
  });

  it('is refused at once by each process when another one has ended it', async () => {
    const { browser } = await signUp();
    const changes = listenForAccessChanges(api.services);
    const { postgres } = api.services;
    const hears = "select 1 from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    await until('changes are heard', async () => (await postgres.raw(hears)).rows.length > 0);
    expect((await me(browser)).status).to.equal(200);
    // The clock does not move, so a cached holder never expires.
    await postgres('sessions').delete();
    await until('it is refused', async () => (await me(browser)).status === 401);
    await changes.close();
  });

  it('401 for a cookie that is no session', async () => {
    for (const value of ['x', 'A'.repeat(43), '%00', `sk_${'0'.repeat(26)}`, 'sess_01JZ8K3M5N7P9Q1R3S5T7V9W2X']) {
      const answer = await api.request('GET', '/users/me', { key: null, headers: { cookie: `farthing=${value}` } });
      expect([answer.status, answer.body.code], value).to.deep.equal([401, 'permission_denied']);
    }
  });

  describe('a request that may change something', () => {
    type Given = Record<string, string | null>;
    const own = () => api.url;
    const TABLE: [what: string, given: () => Given, refused: string | null][] = [
      ['from the console', () => ({}), null],
      ['from the console, with its origin', () => ({ origin: own() }), null],
      ['from a browser that sends the origin alone', () => ({ 'sec-fetch-site': null, origin: own() }), null],
      ['without the header of the console', () => ({ 'x-farthing-console': null }), 'X-Farthing-Console'],
      ['with another value of it', () => ({ 'x-farthing-console': 'true' }), 'X-Farthing-Console'],
      [
        'from another site',
        () => ({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }),
        'Sec-Fetch-Site',
      ],
      ['from another origin of the site', () => ({ 'sec-fetch-site': 'same-site' }), 'Sec-Fetch-Site'],
      ['from the address bar', () => ({ 'sec-fetch-site': 'none' }), 'Sec-Fetch-Site'],
      ['with a foreign origin alone', () => ({ 'sec-fetch-site': null, origin: 'https://evil.example' }), 'Origin'],
      ['with a foreign origin in any case', () => ({ origin: 'https://evil.example' }), 'Origin'],
      ['from a sandboxed frame', () => ({ 'sec-fetch-site': null, origin: 'null' }), 'Origin'],
      ['with another port', () => ({ 'sec-fetch-site': null, origin: own().replace(/\d+$/, '1') }), 'Origin'],
      ['with another scheme', () => ({ 'sec-fetch-site': null, origin: own().replace('http:', 'https:') }), 'Origin'],
      [
        'with an origin that begins like ours',
        () => ({ 'sec-fetch-site': null, origin: `${own()}.evil.example` }),
        'Origin',
      ],
      ['with neither', () => ({ 'sec-fetch-site': null }), 'Origin'],
    ];
    it('is taken from a page of this service alone', async () => {
      const { browser, email } = await signUp();
      for (const [what, given, field] of TABLE) {
        const headers = given();
        const answers = [
          await browser.request('PUT', '/users/me', { body: { name: what }, headers }),
          await openBrowser(api).request('POST', '/auth/session', { body: { email, password: PASSWORD }, headers }),
        ];
        for (const { status, body, text } of answers) {
          if (field === null) expect(status, `${what}: ${text}`).to.be.oneOf([200, 201]);
          else expect([status, body.details?.field], what).to.deep.equal([403, field]);
        }
        const { body } = await browser.request<{ name: string }>('GET', '/users/me');
        expect(body.name === what, what).to.equal(field === null);
      }
    });

    it('may be of each unsafe method; a safe one needs no proof', async () => {
      const { browser, shown } = await signUp();
      const headers = Object.fromEntries(Object.keys(CONSOLE_HEADERS).map((name) => [name, null]));
      for (const [method, path] of [
        ['POST', '/customers'],
        ['PUT', '/users/me'],
        ['DELETE', '/auth/session'],
        ['DELETE', `/auth/sessions/${shown.session!.id}`],
      ] as const)
        expect((await browser.request(method, path, { headers })).status, `${method} ${path}`).to.equal(403);
      expect((await browser.request('GET', '/users/me', { headers })).status).to.equal(200);
      expect((await browser.request('HEAD', '/users/me', { headers })).status).to.equal(200);
    });

    it('with a key needs no proof, as before', async () => {
      const headers = { origin: 'https://shop.example', 'sec-fetch-site': 'cross-site' };
      const { status } = await api.request('PUT', '/users/me', { body: { name: 'Key' }, headers });
      expect(status).to.equal(200);
    });
  });

  it('lets no page of another origin read an answer', async () => {
    const { browser } = await signUp();
    const { headers } = await browser.request('GET', '/users/me', { headers: { origin: 'https://evil.example' } });
    // A browser gives an answer with credentials only to the origin that is named, with this header.
    expect(headers.get('access-control-allow-origin')).to.equal('*');
    expect(headers.get('access-control-allow-credentials')).to.equal(null);
    expect(headers.get('cross-origin-resource-policy')).to.equal('same-origin');
    expect(headers.get('cache-control')).to.equal('no-store');
  });

  describe('behind https', () => {
    it('has a cookie of this host alone, and no other one is read', async () => {
      await api.stop();
      api = await startTestApi({ now: NOW, config: { PUBLIC_URL: 'https://billing.example.com' } });
      const { browser } = await signUp();
      expect(browser.cookie).to.match(/^__Host-farthing=/);
      const origin = { origin: 'https://billing.example.com', 'sec-fetch-site': null };
      const changed = await browser.request('PUT', '/users/me', { body: { name: 'Ada' }, headers: origin });
      expect(changed.status).to.equal(200);
      const signedOut = await browser.request('DELETE', '/auth/session');
      expect(signedOut.headers.getSetCookie()[0]).to.match(/^__Host-farthing=;.*Path=\/.*Secure/);
      const again = await signUp();
      again.browser.cookie = again.browser.cookie!.replace('__Host-', '');
      expect((await me(again.browser)).status).to.equal(401);
    });

    it('is seen by a trusted proxy', async () => {
      await api.stop();
      api = await startTestApi({ now: NOW, config: { TRUSTED_PROXIES: '1' } });
      const browser = openBrowser(api);
      const headers = { 'x-forwarded-proto': 'https' };
      const body = { email: 'tls@example.com', password: PASSWORD, sign_up: true };
      const answer = await browser.request('POST', '/auth/session', { body, headers });
      expect(answer.headers.getSetCookie()[0]).to.match(/^__Host-farthing=.*Secure/);
    });
  });

  it('counts as its user for the limit of requests', async () => {
    await api.stop();
    api = await startTestApi({ now: NOW, config: { RATE_LIMIT_REQUESTS: '2' } });
    const { browser } = await signUp();
    const statuses = [(await me(browser)).status, (await me(browser)).status, (await me(browser)).status];
    expect(statuses).to.deep.equal([200, 200, 429]);
  });

  it('seals a secret that was shown with the cookie', async () => {
    const { browser, email, shown } = await signUp();
    const headers = { 'idempotency-key': 'k', 'x-environment-id': shown.environments[0]!.id };
    const options = { body: { name: 'Collector', type: 'private_key' }, headers };
    const create = (who: TestBrowser) => who.request<{ api_key: string }>('POST', '/secrets/api/keys', options);
    const first = await create(browser);
    expect(first.status).to.equal(201);
    expect((await create(browser)).body.api_key).to.equal(first.body.api_key);
    const other = openBrowser(api);
    await enter(other, { email, password: PASSWORD });
    expect((await create(other)).status).to.equal(409);
  });

  describe('the one-time link', () => {
    const link = async (now = NOW) => {
      const { tenant_id } = api.scope;
      const [{ id: user_id }] = await api.services.postgres('users').where({ tenant_id });
      return createConsoleLink(api.services, { tenant_id, user_id }, new Date(now));
    };
    const follow = (browser: TestBrowser, link_token: string | null) => enter(browser, { link_token });

    it('signs the first user in, once', async () => {
      const token = await link();
      const browser = openBrowser(api);
      const { status, body } = await follow(browser, token);
      expect([status, body.tenant.id, body.user.email]).to.deep.equal([201, api.scope.tenant_id, null]);
      const second = await follow(openBrowser(api), token);
      expect([second.status, second.headers.getSetCookie()]).to.deep.equal([403, []]);
      const { rows } = await api.services.postgres.raw('select * from console_links');
      expect(rows).to.deep.equal([]);
    });

    it('is good for one of two who follow it at once', async () => {
      const token = await link();
      const answers = await Promise.all([follow(openBrowser(api), token), follow(openBrowser(api), token)]);
      expect(answers.map(({ status }) => status)).to.have.members([201, 403]);
    });

    it('is good for a day, and until the next one', async () => {
      const token = await link();
      api.setNow(later(24));
      expect((await follow(openBrowser(api), token)).status).to.equal(403);
      const [older, newer] = [await link(later(24)), await link(later(24))];
      expect((await follow(openBrowser(api), older)).status).to.equal(403);
      expect((await follow(openBrowser(api), newer)).status).to.equal(201);
      const [{ token_hash }] = (await api.services.postgres('sessions').select('token_hash')) as [
        { token_hash: string },
      ];
      expect((await follow(openBrowser(api), token_hash)).status).to.equal(403);
    });

    it('claims the tenant: then its user signs in by email, and there is no link any more', async () => {
      const earlier = openBrowser(api);
      await follow(earlier, await link());
      const browser = openBrowser(api);
      await follow(browser, await link());
      const unused = await link();
      const body = { name: 'Ada', email: 'Ada@example.com', password: PASSWORD };
      const claimed = await browser.request<{ email: string; name: string }>('PUT', '/users/me', { body });
      expect([claimed.status, claimed.body.email, claimed.body.name]).to.deep.equal([200, 'Ada@example.com', 'Ada']);
      expect([(await me(browser)).status, (await me(earlier)).status]).to.deep.equal([200, 401]);
      expect((await follow(openBrowser(api), unused)).status).to.equal(403);
      expect(await link()).to.equal(null);
      const signedIn = await enter(openBrowser(api), { email: 'ada@example.com', password: PASSWORD });
      expect([signedIn.status, signedIn.body.tenant.id]).to.deep.equal([201, api.scope.tenant_id]);
      // The profile may be sent back as it was read; another email is refused.
      expect((await browser.request('PUT', '/users/me', { body: { email: 'ADA@example.com' } })).status).to.equal(200);
      const other = await browser.request('PUT', '/users/me', {
        body: { email: 'eve@example.com', password: PASSWORD },
      });
      expect([other.status, other.body.details!.field]).to.deep.equal([400, 'email']);
    });

    it('claims nothing without a password, and no email of another tenant', async () => {
      const { email } = await signUp();
      const browser = openBrowser(api);
      await follow(browser, await link());
      const claim = (body: object) => browser.request('PUT', '/users/me', { body });
      const without = await claim({ email: 'ada@example.com' });
      expect([without.status, without.body.details!.field]).to.deep.equal([400, 'password']);
      expect((await claim({ email, password: PASSWORD })).status).to.equal(409);
      expect((await claim({ password: PASSWORD })).status).to.equal(400);
      expect((await me(browser)).body.user.email).to.equal(null);
      expect(await link()).to.be.a('string');
    });

    it('is not needed by who has the key: it claims the tenant, too', async () => {
      const body = { email: 'ops@example.com', password: PASSWORD };
      expect((await api.request('PUT', '/users/me', { body })).status).to.equal(200);
      const signedIn = await enter(openBrowser(api), body);
      expect(signedIn.body.tenant.id).to.equal(api.scope.tenant_id);
      const machine = await api.keyWithRoles(['super_admin'], { user_type: 'service_account' });
      const refused = await api.request('PUT', '/users/me', {
        body: { ...body, email: 'bot@example.com' },
        key: machine,
      });
      expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'email']);
    });
  });
});
