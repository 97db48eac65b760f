/** Webhooks of Nomod. The fake signs and the service verifies; the library of Svix is the reference of the signature. */
import { expect } from 'chai';
import fc from 'fast-check';
import { Webhook } from 'svix';
import { FarthingError } from '../../../core/foundation/error.ts';
import { nomod } from '../../../integrations/nomod/provider.ts';
import { signNomodWebhook } from '../../support/providers/nomod-fake.ts';

const toSecret = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`;
const SECRET = toSecret('secret of the webhook');
const ID = '5674c95a-4fd0-4e43-9e6e-53f5f6b97323';
const LINK = '9785ba96-a1be-5b13-a281-b27a4a6dad39';
const EVENT = { type: 'charge.completed', eventId: 'event_1', objectId: 'ch_1', data: { id: ID, status: 'paid' } };
const BODY = JSON.stringify(EVENT);
const REFUSED = { code: 'permission_denied', http_status_code: 401, message: 'the signature is not valid' };

type Headers = Record<string, string>;
type Delivery = { body?: string; secrets?: readonly string[]; now?: Date };

/** The answer to the sender: null if the webhook is accepted. */
function verify(headers: Headers, { body = BODY, secrets = [SECRET], now = new Date() }: Delivery = {}) {
  try {
    nomod.account!.verifyWebhook!(secrets, { headers, body: Buffer.from(body), now });
    return null;
  } catch (error) {
    expect(error).to.be.instanceOf(FarthingError);
    const { code, http_status_code, message } = error as FarthingError;
    return { code, http_status_code, message };
  }
}
const parse = (body: unknown, headers: Headers = {}) =>
  nomod.account!.parseWebhook!({ headers, body: Buffer.from(JSON.stringify(body)) });

const signed = signNomodWebhook(BODY, SECRET);
const signature = signed['svix-signature']!;

describe('integrations/nomod/webhook', () => {
  it('a signature with the secret is accepted, also beside that of the secret before a rotation', () => {
    expect(verify(signed)).to.equal(null);
    const id_and_time = { 'svix-id': signed['svix-id']!, 'svix-timestamp': signed['svix-timestamp']! };
    const other = `v1,${'A'.repeat(43)}=`;
    for (const both of [`${other} ${signature}`, `${signature} ${other}`, `v1a,x ${signature}`])
      expect(verify({ ...id_and_time, 'svix-signature': both })).to.equal(null);
  });

  it('the secret itself in X-API-KEY is accepted, as older webhooks have it', () => {
    expect(verify({ 'x-api-key': SECRET })).to.equal(null);
    expect(verify({ 'x-api-key': 'plain' }, { secrets: ['plain'] })).to.equal(null);
  });

  const forged: [name: string, headers: Headers, delivery?: Delivery][] = [
    ['no headers', {}],
    ['another secret', signNomodWebhook(BODY, toSecret('other'))],
    ['another body', signed, { body: `${BODY} ` }],
    ['another id', { ...signed, 'svix-id': 'msg_other' }],
    ['another time', { ...signed, 'svix-timestamp': String(Number(signed['svix-timestamp']) + 1) }],
    ['no signature', { ...signed, 'svix-signature': '' }],
    ['a signature of another version', { ...signed, 'svix-signature': signature.replace('v1,', 'v2,') }],
    ['a signature without a version', { ...signed, 'svix-signature': signature.slice(3) }],
    ['no id', { ...signed, 'svix-id': '' }],
    ['a time that is none', { ...signed, 'svix-timestamp': 'now' }],
    ['a webhook of six minutes ago', signed, { now: new Date(Date.now() + 360_000) }],
    ['a webhook of in six minutes', signed, { now: new Date(Date.now() - 360_000) }],
    ['no secret', signed, { secrets: [] }],
    [
      'a secret without bytes, as whose key none is needed',
      signNomodWebhook(BODY, 'whsec_A'),
      { secrets: ['whsec_A'] },
    ],
    ['a wrong X-API-KEY', { 'x-api-key': `${SECRET}x` }],
    ['an empty X-API-KEY', { 'x-api-key': '' }, { secrets: [''] }],
    ['X-API-KEY beside a wrong signature', { ...signed, 'svix-signature': '', 'x-api-key': SECRET }],
    ['the digest of a secret without whsec_ as a key', signNomodWebhook(BODY, 'plain'), { secrets: ['plain'] }],
  ];
  for (const [name, headers, delivery] of forged)
    it(`is refused: ${name}`, () => expect(verify(headers, delivery)).to.deep.equal(REFUSED));

  it('the library of Svix agrees', () => {
    const secrets = fc.uint8Array({ minLength: 24, maxLength: 64 });
    const property = fc.property(fc.json(), secrets, fc.boolean(), (body, bytes, isRight) => {
      const secret = `whsec_${Buffer.from(bytes).toString('base64')}`;
      const headers = signNomodWebhook(body, isRight ? secret : toSecret('another one of some length'));
      expect(verify(headers, { body, secrets: [secret] }) === null).to.equal(isRight);
      const check = () => new Webhook(secret).verify(body, headers);
      if (isRight) expect(check).not.to.throw();
      else expect(check).to.throw();
    });
    fc.assert(property);
    const now = new Date();
    const header = new Webhook(SECRET).sign('msg_1', now, BODY);
    const time = String(Math.floor(now.getTime() / 1_000));
    expect(verify({ 'svix-id': 'msg_1', 'svix-timestamp': time, 'svix-signature': header })).to.equal(null);
  });

  it('names the charge, and the invoice and link if they are there', () => {
    expect(parse(EVENT, { 'svix-id': 'msg_1' })).to.deep.equal([
      {
        ...{ provider_event_id: 'msg_1', event_type: 'charge.completed', provider_account_id: null, occurred_at: null },
        subjects: [{ kind: 'payment', provider_entity_id: ID }],
      },
    ]);
    const linked = [
      { kind: 'payment', provider_entity_id: ID },
      { kind: 'payment', provider_entity_id: LINK },
      { kind: 'invoice', provider_entity_id: LINK },
    ];
    for (const names of [
      { linkId: LINK, invoiceId: LINK },
      { link: { id: LINK }, invoice: { id: LINK } },
    ])
      expect(parse({ ...EVENT, data: { id: ID, ...names } })[0]!.subjects).to.deep.equal(linked);
    const [older] = parse({ id: ID, invoice_id: LINK, payment_link_id: LINK });
    expect(older!.subjects).to.deep.equal(linked);
    expect(parse({ id: ID })[0]!.subjects).to.deep.equal(linked.slice(0, 1));
    expect(parse({ id: ID })[0]!.provider_event_id).not.to.equal(parse({ id: ID })[0]!.provider_event_id);
  });

  it('names no record by an id that is none, and none of other events', () => {
    expect(parse({ ...EVENT, data: { id: '../invoices' } })[0]!.subjects).to.deep.equal([]);
    expect(parse({ ...EVENT, data: null })[0]!.subjects).to.deep.equal([]);
    expect(parse({ ...EVENT, type: 'payout.paid' })[0]!.subjects).to.deep.equal([]);
  });

  it('refuses what is no event', () => {
    for (const body of [{}, [], 5, { type: 5 }])
      expect(() => parse(body)).to.throw(FarthingError, 'is no event of Nomod');
  });
});
