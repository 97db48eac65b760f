/** Webhooks of Paddle. The fake signs and the service verifies; Paddle's library is the reference of the signature. */
import { Paddle } from '@paddle/paddle-node-sdk';
import { expect } from 'chai';
import fc from 'fast-check';
import { FarthingError } from '../../../core/foundation/error.ts';
import { paddle } from '../../../integrations/paddle/provider.ts';
import { PaddleFake, signPaddleBody } from '../../support/providers/paddle-fake.ts';

const SECRET = 'pdl_ntfset_secret';
const BODY = '{"event_id":"evt_1","name":"ä€"}';
const NOW = new Date('2026-11-30T12:00:00Z');
const TIME = NOW.getTime() / 1_000;
const REFUSED = { code: 'permission_denied', http_status_code: 401, message: 'the signature is not valid' };

/** The answer to the sender: null if the signature is accepted. */
function verify(
  signature: string | undefined,
  { body = BODY, secrets = [SECRET], now = NOW }: { body?: string; secrets?: string[]; now?: Date } = {},
) {
  const headers = { 'paddle-signature': signature };
  try {
    paddle.account!.verifyWebhook!(secrets, { headers, body: Buffer.from(body), now });
    return null;
  } catch (error) {
    expect(error).to.be.instanceOf(FarthingError);
    const { code, http_status_code, message } = error as FarthingError;
    return { code, http_status_code, message };
  }
}

const signed = signPaddleBody(BODY, [SECRET], TIME);
const at = (seconds: number) => ({ now: new Date(NOW.getTime() + seconds * 1_000) });

describe('integrations/paddle/webhook', () => {
  it('a signature of time and body with the secret is accepted for five minutes', () => {
    for (const seconds of [0, 6, 300, -300]) expect(verify(signed, at(seconds)), `${seconds}`).to.equal(null);
    for (const seconds of [301, -301]) expect(verify(signed, at(seconds)), `${seconds}`).to.deep.equal(REFUSED);
  });

  it('each signature is tried while the secret is rotated', () => {
    expect(verify(signPaddleBody(BODY, ['new', SECRET], TIME))).to.equal(null);
    expect(verify(signPaddleBody(BODY, [SECRET, 'new'], TIME))).to.equal(null);
    expect(verify(signPaddleBody(BODY, ['new', 'newer'], TIME))).to.deep.equal(REFUSED);
  });

  it('without a secret nothing is accepted', () => {
    expect(verify(signPaddleBody(BODY, [''], TIME), { secrets: [] })).to.deep.equal(REFUSED);
  });

  const hex = signed.split('h1=')[1]!;
  const malformed: [name: string, signature: string | undefined][] = [
    ['none', undefined],
    ['empty', ''],
    ['of another secret', signPaddleBody(BODY, ['other'], TIME)],
    ['of another body', signPaddleBody(`${BODY} `, [SECRET], TIME)],
    ['of another time', `ts=${TIME + 1};h1=${hex}`],
    ['without a time', `h1=${hex}`],
    ['with two times', `ts=${TIME};ts=${TIME};h1=${hex}`],
    ['short', signed.slice(0, -2)],
    ['in capitals', `ts=${TIME};h1=${hex.toUpperCase()}`],
    ['with commas', `ts=${TIME},h1=${hex}`],
    ['in the form of Stripe', `t=${TIME},v1=${hex}`],
  ];
  for (const [name, signature] of malformed)
    it(`a signature is refused: ${name}`, () => expect(verify(signature)).to.deep.equal(REFUSED));

  it('whatever the header is, the answer is the refusal', () => {
    const almost = fc.stringMatching(/^ts=\d{9,11};h1=[0-9a-f]{62,66}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), almost), (header) => {
        expect(verify(header)).to.deep.equal(REFUSED);
      }),
    );
  });

  it('the library of Paddle agrees on one signature of these seconds', async () => {
    const { webhooks } = new Paddle('key');
    const secrets = fc.stringMatching(/^\w{1,40}$/);
    await fc.assert(
      fc.asyncProperty(fc.json(), secrets, fc.boolean(), async (body, secret, isRight) => {
        const now = new Date();
        const time = Math.floor(now.getTime() / 1_000);
        const signature = signPaddleBody(body, [isRight ? secret : `${secret}x`], time);
        expect(await webhooks.isSignatureValid(body, secret, signature)).to.equal(isRight);
        expect(verify(signature, { body, secrets: [secret], now })).to.deep.equal(isRight ? null : REFUSED);
      }),
    );
  });

  describe('events', () => {
    const parse = (body: unknown) =>
      paddle.account!.parseWebhook!({
        headers: {},
        body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
      });

    it('name what has changed', () => {
      const { book, adjustments, events } = new PaddleFake();
      const customer_id = book.createCustomer({ email: 'a@acme.example', name: 'Acme' }).id;
      const address_id = book.createAddress(customer_id, { country_code: 'DE' }).id;
      const product = { name: 'Seats', tax_category: 'standard' as const };
      const unit_price = { amount: '1000', currency_code: 'USD' };
      const quantity = { minimum: 1, maximum: 1 };
      const price = { description: 'Seats', tax_mode: 'external' as const, unit_price, product, quantity };
      const items = [{ quantity: 1, price }];
      const common = { currency_code: 'USD', collection_mode: 'automatic' as const };
      const { id } = book.createTransaction({ ...common, items, customer_id, address_id });
      book.payTransaction(id);
      const dispute = adjustments.chargeBack(id);
      const parsed = events.flatMap(({ body }) => parse(body));
      expect(
        parsed.map(({ event_type, subjects }) => [
          event_type,
          ...subjects.map(({ kind, provider_entity_id }) => `${kind} ${provider_entity_id}`),
        ]),
      ).to.deep.equal([
        ['customer.created'],
        ['transaction.created'],
        ['transaction.paid', `invoice ${id}`, `payment ${id}`],
        ['transaction.completed', `invoice ${id}`, `payment ${id}`],
        ['adjustment.created', `invoice ${id}`, `payment ${id}`, `dispute ${dispute.id}`],
      ]);
      expect(new Set(parsed.map(({ provider_event_id }) => provider_event_id))).to.have.length(events.length);
      expect(Date.parse(parsed[0]!.occurred_at!)).to.be.closeTo(Date.now(), 60_000);
    });

    it('with what is no id have no subject', () => {
      for (const id of ['../customers', 'ctm_1', 7, null, undefined])
        expect(parse({ event_id: 'evt_1', event_type: 'transaction.paid', data: { id } })[0]!.subjects).to.deep.equal(
          [],
        );
    });

    const refused: unknown[] = ['', 'x', '[]', 'null', '{}', { event_id: '', event_type: 'x', data: {} }];
    refused.push({ event_id: 'evt_1', event_type: 'x' }, { event_id: 'evt_1', data: {} });
    for (const body of refused)
      it(`are refused in another form: ${JSON.stringify(body)}`, () => {
        expect(() => parse(body))
          .to.throw(FarthingError)
          .with.property('code', 'validation_error');
      });
  });
});
