/** docs/integrations/README.md, "OAuth": flows, and tokens that one process at a time refreshes (docs/decisions/0028-oauth-tokens.md). */
import { expect } from 'chai';
import { sealSecrets } from '../../../../actions/delivery/webhooks/seal-secrets.ts';
import { loadAccess } from '../../../../actions/foundation/connections/oauth-tokens.ts';
import { quickbooks } from '../../../../integrations/quickbooks/provider.ts';
import { purgeOAuthSessionsJob } from '../../../../scheduler/jobs/purge-oauth-sessions.ts';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { QuickBooksFake } from '../../../support/providers/quickbooks-fake.ts';

const KEY = 'a key of the settings that has 32 characters';
const NOW = '2026-03-15T12:00:00Z';
const APP = {
  client_id: 'client',
  client_secret: 'client-secret',
  environment: 'sandbox',
  redirect_uri: 'https://seller.example/return',
  income_account_id: '79',
};

describe('connections by OAuth', () => {
  let fake: QuickBooksFake;
  let api: TestApi;
  before(async () => {
    fake = await new QuickBooksFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `quickbooks=${fake.url.href}` };
    api = await startTestApi({ now: NOW, config });
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });
  beforeEach(() => {
    api.setNow(NOW);
    fake.has_grace = false;
    fake.refreshed.length = 0;
  });
  afterEach(() => api.services.postgres('connections').update({ status: 'archived', secret: '', oauth_tokens: '' }));

  const begin = (more: object = {}, key?: string) =>
    api.request<{ oauth_url: string; session_id: string }>('POST', '/oauth/init', {
      body: { provider: 'quickbooks', name: 'Books', credentials: { ...APP, ...more }, metadata: { a: 'b' } },
      ...(key ? { key } : {}),
    });
  const finish = (body: object, key?: string) =>
    api.request<{ success: boolean; connection_id: string; code: string }>('POST', '/oauth/complete', {
      body: { provider: 'quickbooks', ...body },
      ...(key ? { key } : {}),
    });
  /** Returns the id of the connection. */
  const connect = async (): Promise<string> => {
    const { body } = await begin();
    const { status, text, body: made } = await finish({ session_id: body.session_id, ...fake.consent(body.oauth_url) });
    expect(status, text).to.equal(200);
    return made.connection_id;
  };
  const test = (id: string) => api.request('POST', `/connections/${id}/test`);
  const show = async (id: string) => (await api.request('GET', `/connections/${id}`)).body;
  const row = (id: string) => api.services.postgres('connections').where({ id }).first();
  const change = (id: string, changes: object) => api.services.postgres('connections').where({ id }).update(changes);
  const passMinutes = (minutes: number) => api.setNow(new Date(Date.parse(NOW) + minutes * 60_000));

  describe('a flow', () => {
    it('ends with a connection to the company, and no token or secret is anywhere in clear', async () => {
      const { status, text, body } = await begin();
      expect(status, text).to.equal(200);
      const url = new URL(body.oauth_url);
      expect(Object.fromEntries(url.searchParams)).to.include({
        client_id: 'client',
        response_type: 'code',
        scope: 'com.intuit.quickbooks.accounting',
        redirect_uri: APP.redirect_uri,
      });
      const answer = await finish({ session_id: body.session_id, ...fake.consent(body.oauth_url) });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body.success).to.equal(true);
      const shown = await show(answer.body.connection_id);
      expect(shown).to.include({ name: 'Books', provider_type: 'quickbooks', connection_state: 'active' });
      expect([shown.provider_account_id, shown.metadata]).to.deep.equal([fake.books.realm_id, { a: 'b' }]);
      const { postgres } = api.services;
      const stored = JSON.stringify([
        await row(shown.id),
        await postgres('audit_entries').select(),
        await postgres('oauth_sessions').select(),
        shown,
        answer.text,
      ]);
      for (const secret of [fake.access_token, fake.refresh_token, 'client-secret'])
        expect(stored + api.logged()).to.not.contain(secret);
    });

    it('is used once, with its state, by its environment, within ten minutes', async () => {
      const other = await api.otherTenant();
      await api.services
        .postgres('environments')
        .where({ id: other.scope.environment_id })
        .update({ type: 'development' });
      const started = async () => {
        const { body } = await begin();
        return { session_id: body.session_id, ...fake.consent(body.oauth_url) };
      };
      const foreign = await started();
      expect((await finish(foreign, other.key)).status).to.equal(404);
      const guessed = await started();
      expect((await finish({ ...guessed, state: `${guessed.state.slice(0, -1)}_` })).status).to.equal(403);
      expect((await finish(guessed)).status, 'after a wrong state').to.equal(404);
      const late = await started();
      passMinutes(10);
      expect((await finish(late)).status).to.equal(404);
      passMinutes(0);
      const twice = await started();
      const answers = await Promise.all([finish(twice), finish(twice)]);
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 404]);
    });

    it('that nobody completes is deleted after it has expired, in every environment', async () => {
      const { postgres } = api.services;
      const other = await api.otherTenant();
      await postgres('environments').where({ id: other.scope.environment_id }).update({ type: 'development' });
      await postgres('oauth_sessions').delete();
      for (const key of [api.key, other.key]) expect((await begin({}, key)).status).to.equal(200);
      passMinutes(5);
      const open = await begin();
      const { run } = purgeOAuthSessionsJob(api.services, 3600);
      expect((await run(new Date(Date.parse(NOW) + 599_999))).done).to.deep.equal({ purged: 0 });
      expect((await run(new Date(Date.parse(NOW) + 600_000))).done).to.deep.equal({ purged: 2 });
      const left = await postgres('oauth_sessions').pluck('id');
      expect(left).to.deep.equal([open.body.session_id]);
    });

    it('with a refused code makes nothing', async () => {
      const { body } = await begin();
      const { state, realm_id } = fake.consent(body.oauth_url);
      const answer = await finish({ session_id: body.session_id, state, realm_id, code: 'forged' });
      expect([answer.status, answer.body.code]).to.deep.equal([400, 'invalid_operation']);
      expect(answer.text).to.contain('invalid_grant');
      expect((await api.request('GET', '/connections?status=published')).body.connections).to.deep.equal([]);
    });

    it('exchanges no code if the environment got another type or a test clock meanwhile', async () => {
      const other = await api.otherTenant();
      const environment = api.services.postgres('environments').where({ id: other.scope.environment_id });
      await environment.clone().update({ type: 'development' });
      const started = async () => {
        const { body, text } = await begin({}, other.key);
        expect(body.session_id, text).to.be.a('string');
        return { session_id: body.session_id, ...fake.consent(body.oauth_url) };
      };
      const [first, second] = [await started(), await started()];
      const sent = fake.requests.length;
      await environment.clone().update({ type: 'production' });
      const moved = await finish(first, other.key);
      expect(moved.status, moved.text).to.equal(400);
      expect(moved.text).to.contain('production');
      await environment.clone().update({ type: 'development' });
      const clock = { frozen_time: NOW };
      expect((await api.request('POST', '/test-clocks', { body: clock, key: other.key })).status).to.equal(201);
      const frozen = await finish(second, other.key);
      expect(frozen.status).to.equal(400);
      expect(frozen.text).to.contain('test clock');
      expect(fake.requests.length).to.equal(sent);
    });

    it('400: unknown credentials, no company, a provider without OAuth, live credentials in a test environment', async () => {
      expect((await begin({ refresh_token: 'one' })).text).to.contain('credentials.refresh_token');
      expect((await begin({ redirect_uri: 'javascript:alert(1)' })).text).to.contain('credentials.redirect_uri');
      expect((await begin({ environment: 'production' })).text).to.contain('type production');
      const { body } = await begin();
      const { code, state } = fake.consent(body.oauth_url);
      expect((await finish({ session_id: body.session_id, code, state })).text).to.contain('realm_id');
      const stripe = await api.request('POST', '/oauth/init', {
        body: { provider: 'stripe', name: 'Stripe', credentials: {}, metadata: {} },
      });
      expect(stripe.status).to.equal(400);
    });

    it('gives an existing connection new access, and keeps its mappings', async () => {
      const id = await connect();
      const customer = (await api.request('POST', '/customers', { body: { external_id: 'acme', name: 'Acme' } })).body;
      const link = {
        entity_type: 'customer',
        entity_id: customer.id,
        provider_type: 'quickbooks',
        provider_entity_id: '7',
      };
      expect((await api.request('POST', '/integrations/link', { body: link })).status).to.equal(200);
      fake.revoke();
      expect((await test(id)).status).to.equal(400);
      const stopped = await show(id);
      expect(stopped.connection_state).to.equal('needs_attention');
      expect(stopped.attention_reason).to.contain('POST /oauth/init');
      expect(await connect()).to.equal(id);
      expect(await show(id)).to.include({ connection_state: 'active', attention_reason: null });
      const query = `entity_type=customer&entity_id=${customer.id}`;
      expect((await api.request('GET', `/integrations/mappings?${query}`)).body.items).to.have.length(1);
    });
  });

  describe('credentials without a flow', () => {
    const create = (more: object) =>
      api.request('POST', '/connections', {
        body: {
          name: 'Books',
          provider_type: 'quickbooks',
          encrypted_secret_data: { quickbooks: { ...fake.secrets, ...more } },
        },
      });

    it('need a token', async () => {
      expect((await create({})).text).to.contain('refresh_token');
    });

    it('with a refresh token get an access token, which is stored', async () => {
      const { status, text, body } = await create({ refresh_token: fake.refresh_token });
      expect(status, text).to.equal(201);
      expect((await test(body.id)).status).to.equal(200);
      expect(fake.refreshed).to.have.length(1);
    });

    it('are changed without the tokens, which stay', async () => {
      const id = await connect();
      passMinutes(56);
      const put = (secrets: object) =>
        api.request('PUT', `/connections/${id}`, { body: { encrypted_secret_data: { quickbooks: secrets } } });
      const changed = await put({ ...fake.secrets, income_account_id: '80' });
      expect(changed.status, changed.text).to.equal(200);
      expect((await test(id)).status).to.equal(200);
      expect(fake.refreshed).to.have.length(1);
      expect((await put({ ...fake.secrets, realm_id: '1' })).status).to.equal(400);
      expect((await show(id)).connection_state).to.equal('active');
    });

    it('are deleted with their tokens', async () => {
      const id = await connect();
      expect((await api.request('DELETE', `/connections/${id}`)).status).to.equal(204);
      expect(await row(id)).to.include({ secret: '', oauth_tokens: '' });
    });
  });

  describe('tokens', () => {
    it('are refreshed before they expire, and used until then', async () => {
      const id = await connect();
      passMinutes(54);
      expect((await test(id)).status).to.equal(200);
      expect(fake.refreshed).to.have.length(0);
      passMinutes(56);
      for (let times = 0; times < 2; times++) expect((await test(id)).status).to.equal(200);
      expect(fake.refreshed).to.have.length(1);
    });

    it('are refreshed once if the provider refuses them earlier', async () => {
      const id = await connect();
      fake.expireAccessToken();
      const { status, text } = await test(id);
      expect(status, text).to.equal(200);
      expect(fake.refreshed).to.have.length(1);
    });

    it('are refreshed by one of many processes', async () => {
      const id = await connect();
      fake.expireAccessToken();
      const { arrived, release } = fake.hold(/bearer/);
      const tests = Promise.all(Array.from({ length: 6 }, () => test(id)));
      await arrived;
      release();
      expect((await tests).map(({ status }) => status)).to.deep.equal(Array(6).fill(200));
      expect(new Set(fake.refreshed).size).to.equal(fake.refreshed.length);
      expect(fake.refreshed).to.have.length(1);
    });

    it('are stored before they are used', async () => {
      const id = await connect();
      fake.expireAccessToken();
      const before = (await row(id)).oauth_tokens;
      const { arrived, release } = fake.hold(/GET companyinfo/);
      const refused = test(id);
      await arrived;
      const used = fake.hold(/GET companyinfo/);
      release();
      await used.arrived;
      const { oauth_tokens, refreshing_by } = await row(id);
      used.release();
      await refused;
      expect(refreshing_by).to.equal(null);
      expect(oauth_tokens).to.not.equal(before);
      const opened = JSON.parse(createSealer([KEY]).open(oauth_tokens, await row(id)));
      expect(opened.refresh_token).to.equal(fake.refresh_token);
    });

    it('survive a lost answer if the provider still accepts the old refresh token', async () => {
      const id = await connect();
      passMinutes(56);
      fake.has_grace = true;
      fake.disturb(/bearer/, 'lost_answer');
      expect((await test(id)).status).to.equal(503);
      expect((await test(id)).status).to.equal(200);
      expect(fake.refreshed).to.have.length(2);
    });

    it('ask a person if it does not', async () => {
      const id = await connect();
      passMinutes(56);
      fake.disturb(/bearer/, 'lost_answer');
      expect((await test(id)).status).to.equal(503);
      const refused = await test(id);
      expect([refused.status, refused.text]).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && text.includes('invalid_grant'),
      );
      expect((await show(id)).connection_state).to.equal('needs_attention');
    });

    it('of a process that died with the lease are refreshed when the lease has ended', async () => {
      const id = await connect();
      passMinutes(56);
      const { postgres } = api.services;
      const until = postgres.raw("clock_timestamp() + interval '700 milliseconds'");
      await change(id, { refreshing_by: 'a dead process', refreshing_until: until });
      const begun = performance.now();
      expect((await test(id)).status).to.equal(200);
      expect(performance.now() - begun).to.be.greaterThan(500);
      expect(fake.refreshed).to.have.length(1);
    });

    it('are not overwritten by a process that has lost the lease', async () => {
      const id = await connect();
      passMinutes(56);
      const { arrived, release } = fake.hold(/bearer/);
      const slow = test(id);
      await arrived;
      const granted = { access_token: fake.access_token, refresh_token: fake.refresh_token };
      const put = await api.request('PUT', `/connections/${id}`, {
        body: { encrypted_secret_data: { quickbooks: { ...fake.secrets, ...granted } } },
      });
      expect(put.status, put.text).to.equal(200);
      release();
      await slow;
      const stored = await row(id);
      const opened = JSON.parse(createSealer([KEY]).open(stored.oauth_tokens, stored));
      expect(opened.refresh_token).to.equal(granted.refresh_token).and.not.equal(fake.refresh_token);
    });

    it('of another record do not open', async () => {
      const id = await connect();
      const connection = { ...(await row(id)), id: 'conn_other' };
      const terms = {
        oauth: quickbooks.account!.oauth!,
        secrets: fake.secrets,
        address: fake.url,
        sealing: createSealer([KEY]),
        now: new Date(NOW),
        refused: null,
      };
      await api.services
        .postgres('connections')
        .insert({ ...(await row(id)), id: 'conn_other', has_account: false, metadata: null, sync_config: null });
      let failure: unknown;
      await loadAccess(api.services, connection, terms).catch((error) => (failure = error));
      expect(String(failure)).to.contain('does not open');
    });

    it('are sealed again with a new key', async () => {
      const id = await connect();
      const newer = 'another key of the settings with 32 characters';
      await sealSecrets(api.services, createSealer([newer, KEY]));
      const connection = await row(id);
      expect(createSealer([newer]).open(connection.oauth_tokens, connection)).to.contain(fake.refresh_token);
      await sealSecrets(api.services, createSealer([KEY, newer]));
    });
  });
});
