/** docs/integrations/xero.md, "Webhooks": Xero makes a webhook active only if each answer is right and has no body. */
import { expect } from 'chai';
import { ConnectedAccount } from '../../support/providers/connected-account.ts';
import { XeroDouble } from '../../support/providers/xero-double.ts';
import { signXeroBody } from '../../support/providers/xero-fake.ts';

describe('a webhook of Xero', () => {
  const there = new XeroDouble();
  let account: ConnectedAccount;
  before(async () => {
    account = await ConnectedAccount.open(there);
  });
  after(() => account.stop());

  const post = async (body: string, key: string) => {
    const { tenant_id, environment_id } = account.api.scope;
    const headers = { 'x-xero-signature': signXeroBody(body, key) };
    const path = `/webhooks/xero/${tenant_id}/${environment_id}` as const;
    const answer = await account.api.request('POST', path, { body, key: null, headers });
    return [answer.status, answer.text, answer.headers.get('set-cookie')];
  };

  it('before it is active has no events, and gets answers without a body', async () => {
    const body = '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}';
    expect(await post(body, 'webhook key')).to.deep.equal([200, '', null]);
    expect(await post(body, 'another key')).to.deep.equal([401, '', null]);
  });

  it('that is signed and cannot be read gets an error that says so', async () => {
    const [status, text] = await post('{}', 'webhook key');
    expect([status, String(text).includes('has no list of events')]).to.deep.equal([400, true]);
  });

  it('of another organisation is stored, and has no effect', async () => {
    const tenantId = 'c2cc9b6e-9458-4c7d-93cc-f02b81b0594f';
    const { events, ...others } = there.buildWebhook('INVOICE.UPDATE') as { events: object[] };
    const body = JSON.stringify({ ...others, events: [{ ...events[0], tenantId }] });
    for (let times = 0; times < 2; times++) expect(await post(body, 'webhook key')).to.deep.equal([200, '', null]);
    const stored = await account.api.services.postgres('provider_events').select('event_state', 'reason');
    expect(stored.map(({ event_state, reason }) => [event_state, reason])).to.deep.equal([
      ['ignored', `it is about the account ${tenantId}, which is not that of the connection`],
    ]);
  });
});
