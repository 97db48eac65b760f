/** docs/integrations/README.md, "Webhooks of providers": which webhooks are stored, and which are refused, all with one answer. */
import { createHmac } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { register } from 'prom-client';
import { Stripe } from 'stripe';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { StripeFake } from '../../support/providers/stripe-fake.ts';

const KEY = 'a key of the settings that has 32 characters';
const SECRET = 'whsec_of_the_endpoint';

describe('webhooks of providers', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let count = 0;
  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
    connection_id = await connect({ webhook_secret: SECRET });
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const connect = async (secrets: object, key = api.key) => {
    // The environments of other tenants are of type production.
    const stripe = { secret_key: key === api.key ? 'sk_test_fake' : 'sk_live_fake', ...secrets };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
    const made = await api.request('POST', '/connections', { body, key });
    expect(made.status, made.text).to.equal(201);
    return made.body.id as string;
  };
  const newEvent = (fields: object = {}) => ({
    ...{ id: `evt_${++count}`, object: 'event', type: 'invoice.paid', created: 1_796_000_000 },
    ...{ data: { object: { id: 'in_1', object: 'invoice' } }, ...fields },
  });
  const signed = (payload: string, secret = SECRET, timestamp?: number) =>
    Stripe.webhooks.generateTestHeaderString({ payload, secret, ...(timestamp === undefined ? {} : { timestamp }) });
  type Posted = { text?: string; signature?: string | undefined; scope?: TestApi['scope']; base?: string };
  const post = ({ text = JSON.stringify(newEvent()), signature = signed(text), ...at }: Posted = {}) => {
    const { tenant_id, environment_id } = at.scope ?? api.scope;
    const path = `${at.base ?? '/webhooks/stripe'}/${tenant_id}/${environment_id}`;
    const headers: Record<string, string> = signature === '' ? {} : { 'stripe-signature': signature };
    return api.request<{ message: string; code: string }>('POST', path, { body: text, key: null, headers });
  };
  const countStored = async () => Number((await api.services.postgres('provider_events').count())[0]!['count']);
  const REFUSED = { status: 401, code: 'permission_denied', message: 'the signature is not valid' };

  it('200: is stored once, with and without /v1, and enqueues one job', async () => {
    const before = await countStored();
    const text = JSON.stringify(newEvent());
    const answers = [
      await post({ text }),
      await post({ text, base: `${api.url}/webhooks/stripe` }),
      await post({ text }),
    ];
    expect(answers.map(({ status, body }) => [status, body.message])).to.deep.equal([
      [200, '1 event stored'],
      [200, '0 events stored'],
      [200, '0 events stored'],
    ]);
    expect((await countStored()) - before).to.equal(1);
    const jobs = await api.services.postgres('graphile_worker.jobs').where('key', `read-provider:${connection_id}`);
    expect(jobs).to.have.length(1);
  });

  it('200: the list shows it, without its body', async () => {
    const { id } = newEvent();
    await post({
      text: JSON.stringify(
        newEvent({ id, type: 'charge.dispute.created', data: { object: { id: 'dp_1', charge: 'ch_1' } } }),
      ),
    });
    const path = `/webhooks/inbound?event_types=charge.dispute.created&connection_ids=${connection_id}&event_state=received`;
    const [event] = (await api.request<{ items: Record<string, unknown>[] }>('GET', path)).body.items;
    expect(event).to.deep.include({
      provider_event_id: id,
      event_type: 'charge.dispute.created',
      occurred_at: '2026-11-30T00:53:20Z',
      subjects: [
        { kind: 'payment', provider_entity_id: 'ch_1' },
        { kind: 'dispute', provider_entity_id: 'dp_1' },
      ],
      event_state: 'received',
      attempt_count: 0,
    });
  });

  it('200: an event without an effect is stored as ignored, and cannot be retried', async () => {
    const event = newEvent({ type: 'customer.created', data: { object: { id: 'cus_1' } } });
    expect((await post({ text: JSON.stringify(event) })).status).to.equal(200);
    const stored = await api.services.postgres('provider_events').where({ provider_event_id: event.id }).first();
    expect(stored).to.include({ event_state: 'ignored', next_attempt_at: null });
    expect((await api.request('POST', `/webhooks/inbound/${stored.id}/retry`)).status).to.equal(400);
  });

  it('401: every forged signature has one answer, and nothing is stored', async () => {
    const before = await countStored();
    const text = JSON.stringify(newEvent());
    const forged: Record<string, string> = {
      none: '',
      'another secret': signed(text, 'whsec_other'),
      'a blank secret': signed(text, ' '),
      'another body': signed(`${text} `),
      'an old time': signed(text, SECRET, Math.floor(Date.now() / 1_000) - 400),
      'a later time': signed(text, SECRET, Math.floor(Date.now() / 1_000) + 400),
      'another scheme': signed(text).replace('v1=', 'v0='),
      malformed: 't=now,v1=zz',
    };
    for (const [name, signature] of Object.entries(forged)) {
      const { status, body } = await post({ text, signature });
      expect({ status, code: body.code, message: body.message }, name).to.deep.equal(REFUSED);
    }
    expect(await countStored()).to.equal(before);
  });

  it('401: unknown tenants, environments and connections are answered like a wrong signature', async () => {
    const { scope, key } = await api.otherTenant();
    const wrong = await post({ signature: 't=1,v1=00' });
    const shown = ({ status, text }: { status: number; text: string }) => [
      status,
      text.replace(/"request_id":"[^"]*"/, ''),
    ];
    const { tenant_id, environment_id } = api.scope;
    const targets = [
      { tenant_id: 'tenant_unknown', environment_id },
      { tenant_id, environment_id: 'env_unknown' },
      { tenant_id: scope.tenant_id, environment_id },
      scope,
    ];
    for (const target of targets) expect(shown(await post({ scope: target }))).to.deep.equal(shown(wrong));
    await connect({ webhook_secret: 'whsec_of_another' }, key);
    expect(shown(await post({ scope }))).to.deep.equal(shown(wrong));
  });

  it('401: a connection without a webhook secret, or whose secret does not open, accepts nothing', async () => {
    const { postgres } = api.services;
    const { scope, key } = await api.otherTenant();
    const id = await connect({}, key);
    for (const secret of [SECRET, 'undefined', 'null']) {
      const text = JSON.stringify(newEvent());
      expect((await post({ scope, text, signature: signed(text, secret) })).status).to.equal(401);
    }
    const { secret } = await postgres('connections').where({ id: connection_id }).first();
    for (const copied of [
      secret,
      '',
      JSON.stringify({ stripe: { secret_key: 'sk_test_fake', webhook_secret: SECRET } }),
    ]) {
      await postgres('connections').where({ id }).update({ secret: copied });
      expect((await post({ scope })).status, copied.slice(0, 4)).to.equal(401);
    }
    expect(api.logged()).to.include('the credentials cannot be decrypted');
    expect(api.logged()).not.to.include(SECRET);
  });

  it('401: an archived connection accepts nothing', async () => {
    const { scope, key } = await api.otherTenant();
    const id = await connect({ webhook_secret: SECRET }, key);
    expect((await post({ scope })).status).to.equal(200);
    expect((await api.request('DELETE', `/connections/${id}`, { key })).status).to.equal(204);
    expect((await post({ scope })).status).to.equal(401);
  });

  it('400: a signed body that is no event, 413: one that is too long', async () => {
    for (const text of ['{}', '[]', '{"id":"evt_x"}', 'null'])
      expect((await post({ text })).status, text).to.equal(400);
    const long = JSON.stringify(newEvent({ padding: 'x'.repeat(1024 * 1024) }));
    expect((await post({ text: long })).status).to.equal(413);
  });

  it('401: without a signature the body is not read; 400: a compressed one is not inflated', async () => {
    const { tenant_id, environment_id } = api.scope;
    const path = `/webhooks/stripe/${tenant_id}/${environment_id}` as const;
    const long = 'x'.repeat(1024 * 1024 + 1);
    const bare = await api.request<{ code: string }>('POST', path, { body: long, key: null });
    expect([bare.status, bare.body.code]).to.deep.equal([401, 'permission_denied']);
    const text = JSON.stringify(newEvent());
    const headers = { 'stripe-signature': signed(text), 'content-encoding': 'gzip' };
    expect((await api.request('POST', path, { body: gzipSync(text), key: null, headers })).status).to.equal(400);
  });

  it('400: more than 1,000 events are refused', async () => {
    const realm_id = '9130';
    await api.services.postgres('connections').insert(await copyAsQuickBooks(realm_id));
    const before = await countStored();
    const send = (length: number) => {
      const events = Array.from({ length }, (_, index) => ({
        ...{ id: `many_${index}`, type: 'qbo.invoice.updated.v1', intuitentityid: '1', intuitaccountid: realm_id },
      }));
      const body = JSON.stringify(events);
      const headers = { 'intuit-signature': createHmac('sha256', 'verifier').update(body).digest('base64') };
      const path = `/webhooks/quickbooks/${api.scope.tenant_id}/${api.scope.environment_id}`;
      return api.request<{ code: string }>('POST', path, { body, key: null, headers });
    };
    const refused = await send(1_001);
    expect([refused.status, refused.body.code], refused.text).to.deep.equal([400, 'validation_error']);
    expect(await countStored()).to.equal(before);
    expect((await send(1_000)).status).to.equal(200);
    expect(await countStored()).to.equal(before + 1_000);
  });

  const copyAsQuickBooks = async (realm_id: string) => {
    const row = await api.services.postgres('connections').where({ id: connection_id }).first();
    const copy = { ...row, id: 'connection_of_quickbooks', provider_type: 'quickbooks', provider_account_id: realm_id };
    const quickbooks = {
      ...{ client_id: 'a', client_secret: 'b', realm_id, environment: 'sandbox' },
      webhook_verifier_token: 'verifier',
    };
    return { ...copy, secret: createSealer([KEY]).seal(JSON.stringify({ quickbooks }), copy) };
  };

  it('are counted by what became of them', async () => {
    const count = async () => {
      const { values } = await register.getSingleMetric('farthing_provider_webhooks_total')!.get();
      const own = values.filter(({ labels }) => labels['provider'] === 'stripe');
      return Object.fromEntries(own.map(({ labels, value }) => [labels['outcome'], value]));
    };
    const before = await count();
    await post();
    await post({ signature: 't=1,v1=00' });
    await post({ scope: { tenant_id: 'tenant_unknown', environment_id: 'env_unknown' } });
    await post({ text: '{}' });
    const { stored, bad_signature, bad_body, failed } = before as Record<string, number>;
    expect(await count()).to.deep.equal({
      ...{ stored: stored! + 1, bad_signature: bad_signature! + 2, bad_body: bad_body! + 1, failed },
    });
  });

  it('5xx: what cannot be stored is not accepted, and a later delivery is stored', async () => {
    const { postgres } = api.services;
    const text = JSON.stringify(newEvent());
    await postgres.raw('alter table provider_events rename to provider_events_away');
    const refused = await post({ text });
    await postgres.raw('alter table provider_events_away rename to provider_events');
    expect(refused.status).to.be.at.least(500);
    expect((await post({ text })).body.message).to.equal('1 event stored');
  });

  it('404: the events of another tenant are not shown', async () => {
    const { key } = await api.otherTenant();
    const [event] = (await api.request<{ items: { id: string }[] }>('GET', '/webhooks/inbound')).body.items;
    const others = await api.request<{ items: unknown[] }>('GET', '/webhooks/inbound', { key });
    expect(others.body.items).to.deep.equal([]);
    expect((await api.request('POST', `/webhooks/inbound/${event!.id}/retry`, { key })).status).to.equal(404);
  });
});
