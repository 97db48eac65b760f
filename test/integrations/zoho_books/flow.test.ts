/** A connection to Zoho Books by OAuth: the data center of the grant is stored, and the access is renewed. */
import { expect } from 'chai';
import { ConnectedAccount } from '../../support/providers/connected-account.ts';
import { skipPace } from '../../support/providers/skip-pace.ts';
import { ZohoBooksDouble } from '../../support/providers/zoho-books-double.ts';

describe('integrations/zoho_books: a flow', () => {
  const there = new ZohoBooksDouble();
  const { fake } = there;
  let account: ConnectedAccount;
  let stopSkipping = () => {};

  before(async () => {
    stopSkipping = skipPace(fake);
    account = await ConnectedAccount.start(there);
  });
  after(async () => {
    stopSkipping();
    await account.stop();
  });

  const begin = () => {
    const { client_id, client_secret, webhook_secret } = fake.secrets;
    const credentials = { client_id, client_secret, webhook_secret, redirect_uri: 'https://seller.example/return' };
    return account.request('POST', '/oauth/init', { provider: 'zoho_books', name: 'Books', metadata: {}, credentials });
  };
  const complete = async (more: object = {}) => {
    const { oauth_url, session_id } = await begin();
    const body = { provider: 'zoho_books', session_id, ...fake.consent(oauth_url!), ...more };
    return account.api.request<Record<string, string>>('POST', '/oauth/complete', { body });
  };

  it('ends with a connection that sends and receives, and whose access is renewed with the same refresh token', async () => {
    fake.api_domain = 'https://www.zohoapis.eu';
    const { status, text, body } = await complete({ location: 'eu', accounts_server: 'https://accounts.zoho.eu' });
    expect(status, text).to.equal(200);
    account.connection_id = body['connection_id']!;
    expect(await account.findConnection()).to.include({
      ...{ provider_account_id: '10234695', connection_state: 'active', provider_type: 'zoho_books' },
    });
    const first = fake.refresh_token;
    fake.expireAccessToken();
    const { invoice_id, copy_id } = await account.newPushed();
    expect([fake.refreshed, fake.refresh_token]).to.deep.equal([[first], first]);
    there.payCopy(copy_id);
    await account.deliverAll();
    await account.read();
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
  });

  it('with a foreign server, or that of another data center, is refused and sends nothing', async () => {
    for (const more of [{ accounts_server: 'https://evil.example' }, { location: 'in' }]) {
      const sent = fake.requests.length;
      const { status, text } = await complete(more);
      expect([status, fake.requests.length]).to.deep.equal([400, sent]);
      expect(text).to.contain(Object.keys(more)[0]);
    }
  });

  it('refuses parameters and types of webhooks that are not declared', async () => {
    const { tenant_id, environment_id } = account.api.scope;
    const post = async (query: string, type: string) => {
      const headers = { 'x-zoho-webhook-signature': '0'.repeat(64), 'content-type': type };
      const path = `/webhooks/zoho_books/${tenant_id}/${environment_id}${query}` as const;
      return (await account.api.request('POST', path, { body: 'a=1', key: null, headers })).status;
    };
    expect(await post('?event=invoice.edited', 'application/x-www-form-urlencoded; charset=utf-8')).to.equal(401);
    expect(await post('?other=1', 'application/x-www-form-urlencoded')).to.equal(400);
    expect(await post('', 'text/plain')).to.equal(400);
  });
});
