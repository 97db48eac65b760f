/** docs/integrations/README.md, "Connections": tests of credentials against the provider's fake. */
import { expect } from 'chai';
import { callWithSecrets } from '../../../../actions/foundation/connections/call-account.ts';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { StripeFake } from '../../../support/providers/stripe-fake.ts';

const KEY = 'a key of the settings that has 32 characters';

describe('the credentials of a connection', () => {
  let fake: StripeFake;
  let api: TestApi;
  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: '2026-03-15T12:00:00Z', config });
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });
  afterEach(() => api.services.postgres('connections').update({ status: 'archived', secret: '' }));

  const create = (secret_key = 'sk_test_fake', key?: string) =>
    api.request('POST', '/connections', {
      body: { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe: { secret_key } } },
      ...(key ? { key } : {}),
    });
  const change = (id: string, stripe: object) =>
    api.request('PUT', `/connections/${id}`, { body: { encrypted_secret_data: { stripe } } });
  const test = (id: string) => api.request('POST', `/connections/${id}/test`);
  const show = async (id: string) => (await api.request('GET', `/connections/${id}`)).body;
  /** Makes the provider refuse the key of this connection, as after a revocation. */
  const revoke = async (id: string) => {
    const row = await api.services.postgres('connections').where({ id }).first();
    const secret = createSealer([KEY]).seal(JSON.stringify({ stripe: { secret_key: 'sk_test_revoked' } }), row);
    await api.services.postgres('connections').where({ id }).update({ secret });
  };
  const countConnections = async () => Number((await api.services.postgres('connections').count())[0]!.count);

  it('are tested when a connection is made, and on request', async () => {
    const { status, body, text } = await create();
    expect(status, text).to.equal(201);
    expect(body.provider_account_id).to.equal('acct_fake');
    const tested = await test(body.id);
    expect(tested.status, tested.text).to.equal(200);
    expect(tested.body).to.include({ success: true, provider_account_id: 'acct_fake' });
  });

  it('that the provider refuses make no connection, and are in no answer', async () => {
    const before = await countConnections();
    const { status, body, text } = await create('sk_test_canary_that_nobody_may_see');
    expect([status, body.code]).to.deep.equal([400, 'invalid_operation']);
    expect(text)
      .to.match(/stripe: .*API Key/)
      .and.not.include('canary');
    expect(api.logged()).to.not.include('canary');
    expect(await countConnections()).to.equal(before);
  });

  it('503: of a provider that cannot be reached nothing is made', async () => {
    const before = await countConnections();
    fake.disturb(/account/, 'unavailable');
    const { status, body } = await create();
    expect([status, body.code]).to.deep.equal([503, 'service_unavailable']);
    fake.disturb(/account/, 'rate_limit');
    const limited = await create();
    expect([limited.status, limited.headers.get('retry-after')]).to.deep.equal([503, '2']);
    expect(await countConnections()).to.equal(before);
  });

  it('that are refused later stop the connection once, and new ones start it again', async () => {
    const { id } = (await create()).body;
    await revoke(id);
    for (let times = 0; times < 2; times++) expect((await test(id)).status).to.equal(400);
    const stopped = await show(id);
    expect(stopped.connection_state).to.equal('needs_attention');
    expect(stopped.attention_reason).to.match(/API Key/);
    const events = await api.services.postgres('system_events').where({ event_name: 'connection.needs_attention' });
    expect(events).to.have.length(1);
    expect(events[0].payload.connection).to.include({
      id,
      connection_state: 'needs_attention',
      provider_type: 'stripe',
    });
    expect(JSON.stringify(events)).to.not.include('sealed:');
    expect((await change(id, { secret_key: 'sk_test_wrong' })).status).to.equal(400);
    expect((await show(id)).connection_state).to.equal('needs_attention');
    const renewed = await change(id, { secret_key: 'rk_test_fake' });
    expect(renewed.status, renewed.text).to.equal(200);
    expect(renewed.body).to.include({ connection_state: 'active', attention_reason: null });
  });

  it('are not used for a request that would wait long for the limit of the provider', async () => {
    const sent = fake.requests.length;
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    const credentials = { secrets: { secret_key: 'sk_test_fake' }, settings, pace_name: 'paced' };
    const callOnce = () => callWithSecrets({ provider_type: 'stripe' }, credentials, (account) => account.identify());
    const calls = await Promise.allSettled(Array.from({ length: 250 }, callOnce));
    const reasons = calls.flatMap((call) => (call.status === 'rejected' ? [call.reason] : []));
    expect(reasons.length).to.be.greaterThan(50);
    expect(reasons[0]).to.include({ name: 'ProviderError', error_class: 'wait', retry_after_seconds: 6 });
    expect(reasons[0].message).to.include('limit of the provider');
    expect(fake.requests.length - sent).to.equal(calls.length - reasons.length);
  }).timeout(20_000);

  it('of another account are refused: the mapped records are in the first', async () => {
    const { id } = (await create()).body;
    await api.services.postgres('connections').where({ id }).update({ provider_account_id: 'acct_first' });
    const { status, text } = await change(id, { secret_key: 'rk_test_fake' });
    expect(status).to.equal(400);
    expect(text).to.match(/another account at stripe, acct_fake/);
  });

  it('of another account do not pass the test either', async () => {
    const { id } = (await create()).body;
    await api.services.postgres('connections').where({ id }).update({ provider_account_id: 'acct_first' });
    await api.services.postgres('connections').where({ id }).update({ connection_state: 'needs_attention' });
    const tested = await test(id);
    expect(tested.status, tested.text).to.equal(400);
    expect(tested.text).to.match(/another account at stripe, acct_fake/);
    expect(await show(id)).to.include({ connection_state: 'needs_attention', provider_account_id: 'acct_first' });
  });

  describe('that may not read their account', () => {
    before(() => fake.forbidden.push(/^GET account/));
    after(() => fake.forbidden.splice(0));
    const RESTRICTED = { secret_key: 'rk_test_fake' };

    /** An invoice of ours that has this counterpart. */
    const link = async (provider_entity_id: string) => {
      const body = { external_id: `customer of ${provider_entity_id}`, name: 'Acme' };
      const customer_id = (await api.request('POST', '/customers', { body })).body.id;
      const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd' };
      const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
      const invoice = { customer_id, ...amounts, line_items, invoice_status: 'FINALIZED' };
      const { id: entity_id } = (await api.request('POST', '/invoices', { body: invoice })).body;
      const mapping = { entity_type: 'invoice', entity_id, provider_type: 'stripe', provider_entity_id };
      expect((await api.request('POST', '/integrations/link', { body: mapping })).status).to.equal(200);
    };
    /** A customer of ours that has this counterpart. */
    const linkCustomer = async (provider_entity_id: string) => {
      const body = { external_id: `linked to ${provider_entity_id}`, name: 'Acme' };
      const { id: entity_id } = (await api.request('POST', '/customers', { body })).body;
      const mapping = { entity_type: 'customer', entity_id, provider_type: 'stripe', provider_entity_id };
      expect((await api.request('POST', '/integrations/link', { body: mapping })).status).to.equal(200);
    };
    const createThere = () =>
      fake.book.createInvoice({ customer: fake.book.createCustomer({}).id, currency: 'usd' }).id;

    it('make a connection to an unnamed account', async () => {
      const { status, body } = await create('rk_test_fake');
      expect([status, body.provider_account_id]).to.deep.equal([201, null]);
    });

    it('are refused with a stated account, which nobody can check', async () => {
      const stripe = { ...RESTRICTED, account_id: 'acct_fake' };
      const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
      const { status, text } = await api.request('POST', '/connections', { body });
      expect(status).to.equal(400);
      expect(text).to.contain('account_id cannot be checked');
    });

    it('are refused if the account is known, and nothing shows that it is the same', async () => {
      const { id } = (await create('rk_test_fake')).body;
      await api.services.postgres('connections').where({ id }).update({ provider_account_id: 'acct_fake' });
      const { status, text } = await change(id, RESTRICTED);
      expect(status).to.equal(400);
      expect(text).to.match(/unknown whether it is acct_fake/);
    });

    it('replace others if the account has an invoice that is linked', async () => {
      const { id } = (await create('rk_test_fake')).body;
      await link(createThere());
      expect((await change(id, RESTRICTED)).status).to.equal(200);
      await api.services.postgres('connections').where({ id }).update({ provider_account_id: 'acct_fake' });
      expect((await change(id, RESTRICTED)).status).to.equal(200);
      expect(await show(id)).to.include({ provider_account_id: 'acct_fake' });
    });

    it('replace others if the account has the newest linked customer, and are refused without it', async () => {
      const { id } = (await create('rk_test_fake')).body;
      await api.services.postgres('connections').where({ id }).update({ provider_account_id: 'acct_fake' });
      await linkCustomer(fake.book.createCustomer({}).id);
      expect((await change(id, RESTRICTED)).status).to.equal(200);
      await linkCustomer('cus_of_another_account');
      const { status, text } = await change(id, RESTRICTED);
      expect(status).to.equal(400);
      expect(text).to.match(/has no customer cus_of_another_account/);
    });

    it('are refused if the account has not the linked invoice', async () => {
      const { id } = (await create('rk_test_fake')).body;
      await link(createThere());
      await link('in_of_another_account');
      const { status, text } = await change(id, RESTRICTED);
      expect(status).to.equal(400);
      expect(text).to.match(/has no invoice in_of_another_account/);
    });
  });

  it('of another record do not open, and no call is made with them', async () => {
    const [first, other] = [(await create()).body, await api.otherTenant()];
    // The other tenant's environment is of type production.
    const second = (await create('sk_live_fake', other.key)).body;
    const { postgres } = api.services;
    const { secret } = await postgres('connections').where({ id: first.id }).first();
    await postgres('connections').where({ id: second.id }).update({ secret });
    const calls = fake.requests.length;
    const copied = await api.request('POST', `/connections/${second.id}/test`, { key: other.key });
    expect([copied.status, copied.body.code]).to.deep.equal([500, 'system_error']);
    await postgres('connections')
      .where({ id: first.id })
      .update({ secret: '{"stripe":{"secret_key":"sk_test_fake"}}' });
    expect((await test(first.id)).status, 'credentials in clear').to.equal(500);
    expect(fake.requests).to.have.length(calls);
  });

  it('for tests are refused in production', async () => {
    const { postgres } = api.services;
    const { environment_id: id } = api.scope;
    await postgres('environments').where({ id }).update({ type: 'production' });
    expect((await create()).body.code).to.equal('invalid_operation');
    expect((await create('sk_live_fake')).status).to.equal(201);
    await postgres('environments').where({ id }).update({ type: 'development' });
  });
});
