/**
 * Webhooks of HubSpot: the signature of version 3 and the events. HubSpot's own library is the reference: it signs and
 * the service verifies, and the fake signs and the library verifies.
 */
import { Signature } from '@hubspot/api-client';
import { expect } from 'chai';
import fc from 'fast-check';
import { hubspot } from '../../../integrations/hubspot/provider.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { SETTINGS_KEY } from '../../support/providers/connected-account.ts';
import { signHubSpotRequest } from '../../support/providers/hubspot-fake.ts';

const SECRET = 'client-secret';
const NOW = new Date('2026-11-29T12:00:00Z');
const URL_THERE = 'https://billing.example/webhooks/hubspot/tenant_1/env_1';
const BODY = '[{"eventId":1,"name":"ä€"}]';

type Delivery = {
  readonly signature?: string | undefined;
  readonly timestamp?: string | undefined;
  readonly method?: string;
  readonly url?: string;
  readonly body?: string;
  readonly secrets?: readonly string[];
};

const at = (ms = 0) => String(NOW.getTime() + ms);
const sign = ({ timestamp = at(), method = 'POST', url = URL_THERE, body = BODY }: Delivery = {}, secret = SECRET) =>
  signHubSpotRequest({ method, url, body, timestamp }, secret);

const { verifyWebhook, parseWebhook } = hubspot.account!;

function verify({ secrets = [SECRET], timestamp = at(), method = 'POST', url = URL_THERE, ...rest }: Delivery): void {
  const { body = BODY } = rest;
  const signature = 'signature' in rest ? rest.signature : sign();
  const headers = { 'x-hubspot-signature-v3': signature, 'x-hubspot-request-timestamp': timestamp };
  verifyWebhook!(secrets, { method, url, headers, body: Buffer.from(body), now: NOW });
}

const expectRefused = (delivery: Delivery, why: string) =>
  expect(() => verify(delivery), why)
    .to.throw('the signature is not valid')
    .with.property('http_status_code', 401);

describe('integrations/hubspot/webhook', () => {
  it('a signature of the method, the address, the body and the time is accepted', () => {
    expect(() => verify({})).not.to.throw();
  });

  it('any of several secrets may match', () => {
    expect(() => verify({ secrets: ['another', SECRET] })).not.to.throw();
    expect(() => verify({ secrets: [SECRET, 'another'] })).not.to.throw();
  });

  it('everything else is refused with the same words', () => {
    const forged: Readonly<Record<string, Delivery>> = {
      'no signature': { signature: undefined },
      'an empty one': { signature: '' },
      'another secret': { signature: sign({}, 'another') },
      'no secret': { secrets: [] },
      'another body': { body: `${BODY} ` },
      'another method': { method: 'PUT' },
      'another tenant': { url: URL_THERE.replace('tenant_1', 'tenant_2') },
      'another protocol': { url: URL_THERE.replace('https', 'http') },
      'a query': { url: `${URL_THERE}?a=1` },
      'another time': { timestamp: at(1) },
      'no time': { timestamp: '' },
      'a longer signature': { signature: `${sign()}AA` },
      'a hexadecimal one': { signature: Buffer.from(sign(), 'base64').toString('hex') },
    };
    for (const [why, delivery] of Object.entries(forged)) expectRefused(delivery, why);
  });

  it('a time of up to five minutes before and after is accepted, and no other', () => {
    for (const ms of [-300_000, -1, 0, 1, 300_000]) {
      const timestamp = at(ms);
      expect(() => verify({ timestamp, signature: sign({ timestamp }) })).not.to.throw();
    }
    for (const timestamp of [at(-300_001), at(300_001), '0', `${at()}000`, 'NaN', '', `+${at()}`, '1e12'])
      expectRefused({ timestamp, signature: sign({ timestamp }) }, timestamp);
  });

  it('the characters that HubSpot signs unencoded may be encoded in the address', () => {
    const signature = sign({ url: `${URL_THERE}?a=b:c/d&e=(f),%20%26` });
    expect(() => verify({ signature, url: `${URL_THERE}?a=b%3Ac%2Fd&e=%28f%29%2c%20%26` })).not.to.throw();
  });

  it("agrees with HubSpot's library on any request", () => {
    fc.assert(
      fc.property(fc.string(), fc.webUrl(), fc.string({ minLength: 1 }), (body, url, clientSecret) => {
        const timestamp = Number(at());
        const request = { url, requestBody: body, clientSecret, timestamp };
        const signature = Signature.getSignature('POST', 'v3', { ...request, signature: '' });
        expect(signHubSpotRequest({ method: 'POST', url, body, timestamp: at() }, clientSecret)).to.equal(signature);
        expect(() => verify({ signature, url, body, secrets: [clientSecret] })).not.to.throw();
      }),
    );
  });

  describe('events', () => {
    const parse = (events: unknown) => parseWebhook!({ headers: {}, body: Buffer.from(JSON.stringify(events)) });
    const event = (fields: object) => ({
      ...{ eventId: 100, subscriptionId: 7, portalId: 4711, appId: 12345, occurredAt: NOW.getTime() },
      ...{ subscriptionType: 'object.propertyChange', attemptNumber: 0, changeSource: 'CRM_UI' },
      ...fields,
    });
    const invoice = { objectTypeId: '0-53', objectId: 44446244097 };

    it('of a batch are read each', () => {
      const events = parse([
        event({ ...invoice, propertyName: 'hs_invoice_status', propertyValue: 'paid' }),
        event({ eventId: 101, subscriptionType: 'object.creation', objectTypeId: '0-101', objectId: 5 }),
        event({ eventId: 102, subscriptionType: 'contact.creation', objectId: 1 }),
        event({ eventId: 103, objectTypeId: '0-1', objectId: 1 }),
      ]);
      expect(events.map(({ subjects }) => subjects)).to.deep.equal([
        [{ kind: 'invoice', provider_entity_id: '44446244097' }],
        [{ kind: 'payment', provider_entity_id: '5' }],
        [],
        [],
      ]);
      expect(events[0]).to.include({
        event_type: 'object.propertyChange',
        provider_account_id: '4711',
        occurred_at: NOW.toISOString(),
      });
    });

    it('of an association name both records', () => {
      const ends = { fromObjectTypeId: '0-101', fromObjectId: 5, toObjectTypeId: '0-53', toObjectId: 6 };
      const [found] = parse([event({ subscriptionType: 'object.associationChange', ...ends })]);
      expect(found!.subjects).to.deep.equal([
        { kind: 'payment', provider_entity_id: '5' },
        { kind: 'invoice', provider_entity_id: '6' },
      ]);
    });

    it('keep the digits of long ids', () => {
      const body = `[{"eventId":1,"portalId":1,"subscriptionType":"object.creation","objectTypeId":"0-53","objectId":90071992547409931}]`;
      const [found] = parseWebhook!({ headers: {}, body: Buffer.from(body) });
      expect(found!.subjects).to.deep.equal([{ kind: 'invoice', provider_entity_id: '90071992547409931' }]);
    });

    it('of a repeated delivery have one id; other events with this id of HubSpot have another', () => {
      const id = (fields: object) => parse([event({ ...invoice, ...fields })])[0]!.provider_event_id;
      expect(id({ attemptNumber: 3 })).to.equal(id({}));
      const others = [{ objectId: 5 }, { eventId: 7 }, { occurredAt: 5 }, { subscriptionType: 'object.deletion' }];
      expect(new Set([{}, ...others].map(id)).size).to.equal(5);
    });

    for (const body of ['', '{', '{}', 'null', '[{}]', '[{"eventId":1}]', '[1]', '\u00ff'])
      it(`${JSON.stringify(body)} is refused`, () => {
        expect(() => parseWebhook!({ headers: {}, body: Buffer.from(body, 'latin1') }))
          .to.throw()
          .with.property('code', 'validation_error');
      });
  });

  describe('address', () => {
    const BASE = 'https://billing.example/base';
    let api: TestApi;
    before(async () => {
      const config = { SECRETS_KEYS: SETTINGS_KEY, PUBLIC_URL: `${BASE}/` };
      api = await startTestApi({ now: NOW, config });
    });
    after(() => api.stop());

    it('is PUBLIC_URL with the path of the request', async () => {
      const path = `/webhooks/hubspot/${api.scope.tenant_id}/${api.scope.environment_id}`;
      const connection = { id: 'conn_1', ...api.scope, provider_type: 'hubspot' };
      const secrets = JSON.stringify({ hubspot: { access_token: 'pat', client_secret: SECRET } });
      const sealed = createSealer([SETTINGS_KEY]).seal(secrets, connection);
      await api.services
        .postgres('connections')
        .insert({ ...connection, name: 'A', has_account: true, secret: sealed });
      const send = (url: string) => {
        const headers = { 'x-hubspot-request-timestamp': at(), 'x-hubspot-signature-v3': sign({ url, body: '[]' }) };
        return api.request('POST', path, { body: '[]', key: null, headers });
      };
      expect((await send(`${BASE}/v1${path}`)).status).to.equal(200);
      expect((await send(`${api.url}/v1${path}`)).status).to.equal(401);
      expect((await send(`${BASE}${path}`)).status).to.equal(401);
    });
  });
});
