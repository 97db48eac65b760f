/**
 * Signatures of Stripe's webhooks. Stripe's library is the reference: it signs and the service verifies, and the fake
 * signs and the library verifies.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Stripe } from 'stripe';
import { FarthingError } from '../../../core/foundation/error.ts';
import { stripe } from '../../../integrations/stripe/provider.ts';
import { signStripeBody } from '../../support/providers/stripe-fake.ts';

const SECRET = 'whsec_test_secret';
const NOW = new Date('2026-11-29T12:00:00Z');
const TIME = NOW.getTime() / 1_000;
const BODY = '{"id":"evt_1","amount":"ä€"}';

type Delivery = { header?: string | undefined; body?: string; secrets?: string[]; now?: Date };

/** The answer to the sender: null if the signature is accepted. */
function verify({ header, body = BODY, secrets = [SECRET], now = NOW }: Delivery) {
  try {
    stripe.account!.verifyWebhook!(secrets, { headers: { 'stripe-signature': header }, body: Buffer.from(body), now });
    return null;
  } catch (error) {
    expect(error).to.be.instanceOf(FarthingError);
    const { code, http_status_code, message } = error as FarthingError;
    return { code, http_status_code, message };
  }
}

const REFUSED = { code: 'permission_denied', http_status_code: 401, message: 'the signature is not valid' };
const signed = (time = TIME, secret = SECRET, body = BODY) => signStripeBody(body, [secret], time);
const hex = (header: string) => header.split('v1=')[1]!;

describe('integrations/stripe/webhook', () => {
  it('a signature of the body with the secret is accepted', () => {
    expect(verify({ header: signed() })).to.equal(null);
  });

  it('any of several signatures may match, as while a secret is replaced', () => {
    expect(verify({ header: signStripeBody(BODY, ['whsec_new', SECRET], TIME) })).to.equal(null);
    expect(verify({ header: signStripeBody(BODY, [SECRET, 'whsec_new'], TIME) })).to.equal(null);
    expect(verify({ header: signStripeBody(BODY, ['whsec_new', 'whsec_newer'], TIME) })).to.deep.equal(REFUSED);
  });

  it('other schemes beside it are ignored', () => {
    expect(verify({ header: `${signed()},v0=${'0'.repeat(64)}` })).to.equal(null);
    expect(verify({ header: `t=${TIME},v0=${hex(signed())}` })).to.deep.equal(REFUSED);
  });

  it('a signature of up to 300 seconds before and after is accepted, an older or later one is refused', () => {
    for (const seconds of [-300, -1, 0, 1, 300]) expect(verify({ header: signed(TIME + seconds) })).to.equal(null);
    for (const seconds of [-301, 301, -1e9, 1e9])
      expect(verify({ header: signed(TIME + seconds) })).to.deep.equal(REFUSED);
  });

  it('another body, secret or time is refused', () => {
    expect(verify({ header: signed(), body: `${BODY} ` })).to.deep.equal(REFUSED);
    expect(verify({ header: signed(TIME, 'whsec_other') })).to.deep.equal(REFUSED);
    expect(verify({ header: signed().replace(`t=${TIME}`, `t=${TIME + 1}`) })).to.deep.equal(REFUSED);
  });

  it('without a secret nothing is accepted', () => {
    expect(verify({ header: signed(), secrets: [] })).to.deep.equal(REFUSED);
    expect(verify({ header: signStripeBody(BODY, [''], TIME), secrets: [] })).to.deep.equal(REFUSED);
  });

  const malformed: [name: string, header: string | undefined][] = [
    ['no header', undefined],
    ['empty', ''],
    ['no signature', `t=${TIME}`],
    ['no time', `v1=${hex(signed())}`],
    ['two times', `t=${TIME},${signed()}`],
    ['a time with a fraction', signed().replace(`t=${TIME}`, `t=${TIME}.0`)],
    ['a negative time', signed().replace('t=', 't=-')],
    ['a time that is no number', signed().replace(`t=${TIME}`, 't=now')],
    ['a short signature', `t=${TIME},v1=${hex(signed()).slice(2)}`],
    ['a long signature', `${signed()}00`],
    ['a signature in capitals', `t=${TIME},v1=${hex(signed()).toUpperCase()}`],
    ['a signature that is not hexadecimal', `t=${TIME},v1=${'g'.repeat(64)}`],
    ['an empty signature', `t=${TIME},v1=`],
    ['commas alone', ',,,,'],
    ['bytes', '\u0000\uffff=,t'],
  ];
  for (const [name, header] of malformed)
    it(`a header is refused: ${name}`, () => expect(verify({ header })).to.deep.equal(REFUSED));

  it('whatever the header is, the answer is the refusal', () => {
    const almost = fc.stringMatching(/^t=\d{0,13},v1=[0-9a-f]{62,66}(,v1=[0-9a-g]{64})?$/);
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), almost), (header) => {
        expect(verify({ header })).to.deep.equal(REFUSED);
      }),
    );
  });

  const bodies = fc.string({ unit: 'binary' });
  const secrets = fc.stringMatching(/^whsec_[A-Za-z0-9]{1,40}$/);
  const times = fc.integer({ min: 1, max: 99_999_999_999 });

  it('what the library signs is accepted within the tolerance', () => {
    fc.assert(
      fc.property(bodies, secrets, times, fc.integer({ min: -400, max: 400 }), (body, secret, timestamp, seconds) => {
        const header = Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp });
        const now = new Date((timestamp + seconds) * 1_000);
        const expected = Math.abs(seconds) <= 300 ? null : REFUSED;
        expect(verify({ header, body, secrets: [secret], now })).to.deep.equal(expected);
      }),
    );
  });

  it('what the fake signs is accepted by the library', () => {
    fc.assert(
      fc.property(fc.json(), secrets, (body, secret) => {
        const time = Math.floor(Date.now() / 1_000);
        const header = signStripeBody(body, ['whsec_other', secret], time);
        expect(Stripe.webhooks.constructEvent(body, header, secret)).to.deep.equal(JSON.parse(body));
        expect(verify({ header, body, secrets: [secret], now: new Date() })).to.equal(null);
      }),
    );
  });

  for (const [name, object] of [
    ['balance.available', { object: 'balance' }],
    ['invoice.paid', { object: 'invoice', id: null }],
  ] as const)
    it(`an event names no record if its object has no id: ${name}`, () => {
      const event = { id: 'evt_1', type: name, created: TIME, data: { object } };
      const [parsed] = stripe.account!.parseWebhook!({ body: Buffer.from(JSON.stringify(event)) } as never);
      expect(parsed).to.include({ provider_event_id: 'evt_1', event_type: name });
      expect(parsed!.subjects).to.deep.equal([]);
    });
});
