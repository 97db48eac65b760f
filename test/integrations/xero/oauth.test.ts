/** OAuth of Xero: the page, the organisation that the owner selected, and the rotation of refresh tokens. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { xero } from '../../../integrations/xero/provider.ts';
import { ConnectedAccount } from '../../support/providers/connected-account.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { XeroDouble } from '../../support/providers/xero-double.ts';
import { XeroFake } from '../../support/providers/xero-fake.ts';

const { buildAuthorizationUrl, exchangeCode, refresh } = xero.account!.oauth!;

describe('integrations/xero/oauth', () => {
  let fake: XeroFake;
  beforeEach(async () => {
    fake = await new XeroFake().start();
  });
  afterEach(() => fake.stop());

  const list = () => {
    const { tenant_id: _, ...others } = fake.secrets;
    return { ...others, redirect_uri: 'https://seller.example/return' };
  };
  const exchange = (more = {}) => {
    const credentials = { ...list(), ...more };
    const { code } = fake.consent(buildAuthorizationUrl(credentials, 'state', { address: fake.url }).href);
    return exchangeCode(credentials, { code }, { address: fake.url });
  };
  const connect = (authEventId: string) => {
    const tenantId = randomUUID();
    fake.connections.push({ tenantId, authEventId, tenantName: 'Other Ltd' });
    return tenantId;
  };

  it('opens the page of Xero with the scopes that are used', () => {
    const url = buildAuthorizationUrl(list(), 'a state', { address: null });
    expect(url.origin + url.pathname).to.equal('https://login.xero.com/identity/connect/authorize');
    expect(Object.fromEntries(url.searchParams)).to.deep.equal({
      response_type: 'code',
      client_id: 'client',
      redirect_uri: 'https://seller.example/return',
      scope: 'offline_access accounting.invoices accounting.payments accounting.contacts accounting.settings.read',
      state: 'a state',
    });
  });

  it('connects the organisation of this consent among those of the user', async () => {
    connect(randomUUID());
    const { secrets, tokens } = await exchange();
    expect(secrets).to.deep.equal({ ...list(), tenant_id: fake.books.tenant_id });
    expect(tokens).to.include({ expires_in_seconds: 1_800, access_token: fake.access_token });
    const account = await xero.account!.open({ ...secrets, ...tokens }, { address: fake.url });
    expect((await account.identify()).name).to.equal('Demo Company');
  });

  it('asks for tenant_id if the consent was for several organisations', async () => {
    const tenant_id = connect(fake.connections[0]!.authEventId);
    const { error_class, message } = await catchFailure(() => exchange());
    expect(error_class).to.equal('person');
    expect(message).to.contain(`Demo Company (${fake.books.tenant_id}), Other Ltd (${tenant_id})`);
    expect((await exchange({ tenant_id })).secrets['tenant_id']).to.equal(tenant_id);
    const { message: none } = await catchFailure(() => exchange({ tenant_id: randomUUID() }));
    expect(none).to.contain('tenant_id must name one of the connected');
  });

  it('replaces the refresh token, of which the previous one is accepted once more', async () => {
    const { tokens } = await exchange();
    const next = await refresh(list(), tokens.refresh_token, { address: fake.url });
    expect(next.refresh_token).not.to.equal(tokens.refresh_token);
    await refresh(list(), tokens.refresh_token, { address: fake.url });
    const { is_unauthorized, provider_code } = await catchFailure(() =>
      refresh(list(), tokens.refresh_token, { address: fake.url }),
    );
    expect([is_unauthorized, provider_code]).to.deep.equal([true, 'invalid_grant']);
  });
});

describe('POST /oauth/init and /oauth/complete for Xero', () => {
  const there = new XeroDouble();
  let account: ConnectedAccount;
  before(async () => {
    account = await ConnectedAccount.start(there);
  });
  after(() => account.stop());

  it('connect the organisation, and expired tokens are refreshed', async () => {
    const { fake } = there;
    const { tenant_id, ...others } = fake.secrets;
    const credentials = { ...others, redirect_uri: 'https://seller.example/return' };
    const begun = await account.request('POST', '/oauth/init', {
      provider: 'xero',
      name: 'Books',
      metadata: {},
      credentials,
    });
    const { code, state } = fake.consent(begun['oauth_url']!);
    const { session_id } = begun;
    const { connection_id } = await account.request('POST', '/oauth/complete', {
      provider: 'xero',
      session_id,
      code,
      state,
    });
    account.connection_id = connection_id!;
    expect(await account.findConnection()).to.include({ provider_type: 'xero', provider_account_id: tenant_id });
    fake.expireAccessToken();
    const { copy_id } = await account.newPushed();
    expect(fake.refreshed).to.have.length(1);
    there.payCopy(copy_id);
    await account.deliverAll();
    expect((await account.read()).ended).to.equal('done');
  });
});
