/** Webhooks of Whop. The fake signs and the service verifies; Whop's own library is the reference of the signature. */
import { Whop } from '@whop/sdk';
import { expect } from 'chai';
import fc from 'fast-check';
import { FarthingError } from '../../../core/foundation/error.ts';
import { whop } from '../../../integrations/whop/provider.ts';
import { signWhopBody } from '../../support/providers/whop-fake.ts';

const SECRET = 'ws_0123456789abcdef0123456789abcdef';
const EVENT = {
  ...{ id: 'msg_1', type: 'invoice.paid', api_version: 'v1', timestamp: '2026-11-30T10:00:00Z' },
  ...{ company_id: 'biz_fake', data: { id: 'inv_1' } },
};
const BODY = JSON.stringify(EVENT);
const REFUSED = { code: 'permission_denied', http_status_code: 401, message: 'the signature is not valid' };

type Headers = Record<string, string>;
type Delivery = { body?: string; secrets?: readonly string[]; now?: Date };

/** The answer to the sender: null if the webhook is accepted. */
function verify(headers: Headers, { body = BODY, secrets = [SECRET], now = new Date() }: Delivery = {}) {
  try {
    whop.account!.verifyWebhook!(secrets, { headers, body: Buffer.from(body), now });
    return null;
  } catch (error) {
    expect(error).to.be.instanceOf(FarthingError);
    const { code, http_status_code, message } = error as FarthingError;
    return { code, http_status_code, message };
  }
}
const parse = (body: unknown, headers: Headers = {}) =>
  whop.account!.parseWebhook!({ headers, body: Buffer.from(JSON.stringify(body)) });

const signed = signWhopBody(BODY, SECRET);
const signature = signed['webhook-signature'];

describe('integrations/whop/webhook', () => {
  it('a signature by the characters of the secret is accepted, also beside that of a secret before a rotation', () => {
    const other = `v1,${'A'.repeat(43)}=`;
    for (const both of [signature, `${other} ${signature}`, `${signature} ${other}`, `v1a,x ${signature}`])
      expect(verify({ ...signed, 'webhook-signature': both })).to.equal(null);
  });

  it('a signature by the bytes that the secret encodes is accepted', () => {
    const bytes = Buffer.from('a key of more than 24 bytes');
    for (const prefix of ['whsec_', 'ws_', '']) {
      const secrets = [`${prefix}${bytes.toString('base64')}`];
      expect(verify(signWhopBody(BODY, bytes as unknown as string), { secrets })).to.equal(null);
    }
  });

  const forged: [name: string, headers: Headers, delivery?: Delivery][] = [
    ['no headers', {}],
    ['another secret', signWhopBody(BODY, 'ws_other')],
    ['an empty key', signWhopBody(BODY, '')],
    ['another body', signed, { body: `${BODY} ` }],
    ['another id', { ...signed, 'webhook-id': 'msg_other' }],
    ['another time', { ...signed, 'webhook-timestamp': String(Number(signed['webhook-timestamp']) + 1) }],
    ['no signature', { ...signed, 'webhook-signature': '' }],
    ['a signature of another version', { ...signed, 'webhook-signature': signature.replace('v1,', 'v2,') }],
    ['a signature without a version', { ...signed, 'webhook-signature': signature.slice(3) }],
    ['a time that is none', { ...signed, 'webhook-timestamp': 'now' }],
    ['a webhook of six minutes ago', signed, { now: new Date(Date.now() + 360_000) }],
    ['a webhook of in six minutes', signed, { now: new Date(Date.now() - 360_000) }],
    ['no secret', signed, { secrets: [] }],
  ];
  for (const [name, headers, delivery] of forged)
    it(`is refused: ${name}`, () => expect(verify(headers, delivery)).to.deep.equal(REFUSED));

  it("Whop's library agrees", () => {
    const secrets = fc.stringMatching(/^ws_[0-9a-f]{32,64}$/);
    const property = fc.property(fc.json(), secrets, fc.boolean(), (body, secret, isRight) => {
      const headers = signWhopBody(body, isRight ? secret : 'ws_another');
      expect(verify(headers, { body, secrets: [secret] }) === null).to.equal(isRight);
      const webhookKey = Buffer.from(secret).toString('base64');
      const { webhooks } = new Whop({ apiKey: 'key', webhookKey });
      const check = () => webhooks.unwrap(body, { headers });
      if (isRight) expect(check).not.to.throw();
      else expect(check).to.throw();
    });
    fc.assert(property, { numRuns: 50 });
  });

  it('names the records that changed', () => {
    expect(parse(EVENT, { 'webhook-id': 'msg_header' })).to.deep.equal([
      {
        ...{ provider_event_id: 'msg_header', event_type: 'invoice.paid', provider_account_id: 'biz_fake' },
        occurred_at: '2026-11-30T10:00:00.000Z',
        subjects: [{ kind: 'invoice', provider_entity_id: 'inv_1' }],
      },
    ]);
    const subjects = (type: string, data: object) =>
      parse({ ...EVENT, type, data })[0]!.subjects.map(({ kind, provider_entity_id: id }) => `${kind} ${id}`);
    const paid = { id: 'pay_1', checkout_configuration_id: 'ch_1' };
    expect(subjects('payment.succeeded', paid)).to.deep.equal(['payment pay_1', 'payment ch_1']);
    expect(subjects('refund.created', { id: 'rf_1', payment: { id: 'pay_1' } })).to.deep.equal(['payment pay_1']);
    const dispute = { id: 'dspt_1', payment: { id: 'pay_1' } };
    expect(subjects('dispute.created', dispute)).to.deep.equal(['dispute dspt_1', 'payment pay_1']);
    expect(subjects('setup_intent.succeeded', { id: 'sint_1' })).to.deep.equal(['setup sint_1']);
    expect(subjects('invoice.paid', { id: '../inv' })).to.deep.equal([]);
    expect(subjects('refund.created', { id: 'rf_1', payment: null })).to.deep.equal([]);
  });

  it('refuses what is no event', () => {
    for (const body of [null, [], 'text', {}, { id: 'msg_1' }, { id: 1, type: 'invoice.paid' }])
      expect(() => parse(body)).to.throw('is no event of Whop');
    expect(() => whop.account!.parseWebhook!({ headers: {}, body: Buffer.from('{') })).to.throw('is no event');
  });
});
