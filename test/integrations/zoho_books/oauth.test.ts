/** OAuth of Zoho: the grant names a data center, which must be one of Zoho's, and the user may have several organizations. */
import { expect } from 'chai';
import { zoho_books } from '../../../integrations/zoho_books/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { ZohoBooksFake } from '../../support/providers/zoho-books-fake.ts';

const { buildAuthorizationUrl, exchangeCode, refresh } = zoho_books.account!.oauth!;

describe('integrations/zoho_books/oauth', () => {
  let fake: ZohoBooksFake;
  const redirect_uri = 'https://seller.example/return';
  const credentials = (more = {}) => ({ ...fake.app, redirect_uri, webhook_secret: 'webhookSecret1', ...more });
  const settings = () => ({ address: fake.url });
  const grant = (more = {}) => {
    const { code, location, accounts_server } = fake.consent(
      buildAuthorizationUrl(credentials(), 'state', settings()).href,
    );
    return { code, location, accounts_server, ...more };
  };

  beforeEach(async () => {
    fake = await new ZohoBooksFake().start();
  });
  afterEach(() => fake.stop());

  it('begins at the page of the data center, for a refresh token and few rights', () => {
    const url = buildAuthorizationUrl(credentials({ accounts_server: 'https://accounts.zoho.eu' }), 'the state', {
      address: null,
    });
    expect(url.origin + url.pathname).to.equal('https://accounts.zoho.eu/oauth/v2/auth');
    const { scope, ...parameters } = Object.fromEntries(url.searchParams);
    expect(parameters).to.deep.equal({
      ...{ response_type: 'code', client_id: fake.app.client_id, redirect_uri, state: 'the state' },
      ...{ access_type: 'offline', prompt: 'consent' },
    });
    expect(scope!.split(',')).to.include.members(['ZohoBooks.settings.READ', 'ZohoBooks.invoices.DELETE']);
    expect(scope).to.not.match(/fullaccess|ALL|UPDATE/i);
  });

  it('exchanges the code in the body alone, and finds the only organization', async () => {
    const { secrets, tokens } = await exchangeCode(credentials(), grant(), settings());
    expect(secrets).to.deep.equal({
      ...credentials(),
      organization_id: '10234695',
      ...{ location: 'us', accounts_server: 'https://accounts.zoho.com', api_domain: 'https://www.zohoapis.com' },
    });
    expect(tokens).to.deep.equal({
      access_token: fake.access_token,
      refresh_token: fake.refresh_token,
      expires_in_seconds: 3_600,
    });
  });

  it('takes the organization of the return before that of the beginning, and names several', async () => {
    fake.other_organizations = [{ organization_id: '77', name: 'Other' }];
    const { message } = await catchFailure(() => exchangeCode(credentials(), grant(), settings()));
    expect(message).to.contain('2 organizations').and.contain('10234695 (Zillum), 77 (Other)');
    const chosen = await exchangeCode(
      credentials({ organization_id: '77' }),
      grant({ organization_id: '10234695' }),
      settings(),
    );
    expect(chosen.secrets['organization_id']).to.equal('10234695');
  });

  for (const [what, more, field] of [
    ['a foreign server', { accounts_server: 'https://accounts.zoho.com.evil.example' }, 'accounts_server'],
    ['a server of this network', { accounts_server: 'http://169.254.169.254' }, 'accounts_server'],
    ['an unknown location', { accounts_server: undefined, location: 'moon' }, 'location'],
    ['a location of another data center', { location: 'eu' }, 'location'],
    ['an organization that is no number', { organization_id: '1/../../settings' }, 'organization_id'],
  ] as const)
    it(`sends nothing to ${what}`, async () => {
      const returned = grant(more);
      let failure: unknown;
      await exchangeCode(credentials(), returned, settings()).catch((error) => (failure = error));
      expect(failure).to.have.property('code', 'validation_error');
      expect(String(failure)).to.contain(field);
      expect(fake.requests).to.deep.equal([]);
    });

  it('refuses an answer that names another host for the API', async () => {
    fake.api_domain = 'https://www.zohoapis.com.evil.example';
    const { error_class, is_unauthorized } = await catchFailure(() => exchangeCode(credentials(), grant(), settings()));
    expect([error_class, is_unauthorized]).to.deep.equal(['person', true]);
  });

  it('tells a refusal with status 200', async () => {
    const { is_unauthorized, provider_code, message } = await catchFailure(() =>
      exchangeCode(credentials(), grant({ code: 'forged' }), settings()),
    );
    expect([is_unauthorized, provider_code]).to.deep.equal([true, 'invalid_code']);
    expect(message).to.contain('POST /oauth/init');
  });

  describe('refresh', () => {
    it('keeps the refresh token, which Zoho does not change', async () => {
      const before = fake.refresh_token;
      const tokens = await refresh(fake.secrets, before, settings());
      expect(tokens).to.deep.equal({
        access_token: fake.access_token,
        refresh_token: before,
        expires_in_seconds: 3_600,
      });
    });

    it('asks for a new grant if the token has ended, and waits ten minutes for the limit of tokens', async () => {
      const ended = await catchFailure(() => refresh(fake.secrets, 'ended', settings()));
      expect([ended.error_class, ended.is_unauthorized]).to.deep.equal(['person', true]);
      fake.is_throttled = true;
      const limited = await catchFailure(() => refresh(fake.secrets, fake.refresh_token, settings()));
      expect([limited.error_class, limited.retry_after_seconds]).to.deep.equal(['wait', 600]);
    });

    for (const what of ['lost_answer', 'unavailable', 'html'] as const)
      it(`waits after ${what}`, async () => {
        fake.disturb(/oauth/, what);
        const { error_class } = await catchFailure(() => refresh(fake.secrets, fake.refresh_token, settings()));
        expect(error_class).to.equal('wait');
      });
  });
});
