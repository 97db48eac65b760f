/**
 * Webhooks of Razorpay. The fake signs and the service verifies; Razorpay's library is the reference of the signature.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import Razorpay from 'razorpay';
import { FarthingError } from '../../../core/foundation/error.ts';
import { razorpay } from '../../../integrations/razorpay/provider.ts';
import { RazorpayFake, signRazorpayBody } from '../../support/providers/razorpay-fake.ts';

const SECRET = 'hook_secret';
const BODY = '{"entity":"event","amount":"ä€"}';
const REFUSED = { code: 'permission_denied', http_status_code: 401, message: 'the signature is not valid' };

/** The answer to the sender: null if the signature is accepted. */
function verify(
  signature: string | undefined,
  { body = BODY, secrets = [SECRET] }: { body?: string; secrets?: string[] } = {},
) {
  const headers = { 'x-razorpay-signature': signature };
  try {
    razorpay.account!.verifyWebhook!(secrets, { headers, body: Buffer.from(body), now: new Date() });
    return null;
  } catch (error) {
    expect(error).to.be.instanceOf(FarthingError);
    const { code, http_status_code, message } = error as FarthingError;
    return { code, http_status_code, message };
  }
}

const signed = signRazorpayBody(BODY, SECRET);

describe('integrations/razorpay/webhook', () => {
  it('a signature of the body with the secret is accepted', () => {
    expect(verify(signed)).to.equal(null);
  });

  it('the secret before the last change is accepted while the connection has it', () => {
    const secrets = ['new', SECRET];
    expect(verify(signed, { secrets })).to.equal(null);
    expect(verify(signRazorpayBody(BODY, 'new'), { secrets })).to.equal(null);
    expect(verify(signed, { secrets: ['new', 'new'] })).to.deep.equal(REFUSED);
    expect(verify(signRazorpayBody(BODY, 'newest'), { secrets })).to.deep.equal(REFUSED);
  });

  it('without a secret nothing is accepted', () => {
    expect(verify(signed, { secrets: [] })).to.deep.equal(REFUSED);
    expect(verify(signRazorpayBody(BODY, ''), { secrets: [] })).to.deep.equal(REFUSED);
  });

  const malformed: [name: string, signature: string | undefined][] = [
    ['none', undefined],
    ['empty', ''],
    ['of another secret', signRazorpayBody(BODY, 'other')],
    ['of another body', signRazorpayBody(`${BODY} `, SECRET)],
    ['short', signed.slice(2)],
    ['long', `${signed}00`],
    ['in capitals', signed.toUpperCase()],
    ['zeros', '0'.repeat(64)],
    ['in the form of Stripe', `t=1,v1=${signed}`],
    ['bytes', '\u0000\uffff'],
  ];
  for (const [name, signature] of malformed)
    it(`a signature is refused: ${name}`, () => expect(verify(signature)).to.deep.equal(REFUSED));

  it('whatever the header is, the answer is the refusal', () => {
    const almost = fc.stringMatching(/^[0-9a-f]{62,66}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), almost), (header) => {
        expect(verify(header)).to.deep.equal(REFUSED);
      }),
    );
  });

  it('the library of Razorpay agrees', () => {
    const secrets = fc.string({ minLength: 1, maxLength: 40 }).filter((text) => text.trim() === text);
    fc.assert(
      fc.property(fc.json(), secrets, fc.boolean(), (body, webhook_secret, isRight) => {
        const signature = signRazorpayBody(body, isRight ? webhook_secret : `${webhook_secret}x`);
        expect(Razorpay.validateWebhookSignature(body, signature, webhook_secret)).to.equal(isRight);
        expect(verify(signature, { body, secrets: [webhook_secret] })).to.deep.equal(isRight ? null : REFUSED);
      }),
    );
  });

  describe('events', () => {
    const parse = (body: unknown, id: string | undefined = 'evt00000000001') =>
      razorpay.account!.parseWebhook!({
        headers: { 'x-razorpay-event-id': id },
        body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
      });

    it('name what has changed', () => {
      const { book, events } = new RazorpayFake();
      const customer_id = book.createCustomer({ name: 'Acme' }).id;
      const line_items = [{ name: 'a', amount: 500, currency: 'INR', quantity: 1 }];
      const { id: invoice } = book.createInvoice({ customer_id, currency: 'INR', line_items });
      const { id: payment } = book.payInvoice(invoice);
      const { id: refund } = book.createRefund(payment, { amount: 100 });
      const { id: dispute } = book.disputePayment(payment);
      const { id: link } = book.createLink({ amount: 500 });
      const { id: of_link } = book.payLink(link);
      const read = events.map(({ body, event_id }) => parse(body, event_id)[0]!);
      expect(
        read.map(({ event_type, subjects }) => [
          event_type,
          ...subjects.map(({ kind, provider_entity_id }) => `${kind} ${provider_entity_id}`),
        ]),
      ).to.deep.equal([
        ['payment.captured', `payment ${payment}`],
        ['invoice.paid', `invoice ${invoice}`, `payment ${payment}`],
        ['refund.processed', `payment ${payment}`, `refund ${refund}`],
        ['payment.dispute.created', `payment ${payment}`, `dispute ${dispute}`],
        ['payment.captured', `payment ${of_link}`],
        ['payment_link.paid', `payment ${of_link}`, `payment ${link}`],
      ]);
      expect(new Set(read.map(({ provider_event_id }) => provider_event_id))).to.have.length(events.length);
      expect(new Set(read.map(({ provider_account_id }) => provider_account_id))).to.deep.equal(new Set(['acc_fake']));
      expect(Date.parse(read[0]!.occurred_at!)).to.be.closeTo(Date.now(), 60_000);
    });

    it('that are not used have no subject', () => {
      const payload = { payment: { entity: { id: 'pay_1' } } };
      for (const event of ['settlement.processed', 'payment.downtime.started', 'token.confirmed', 'x'])
        expect(parse({ entity: 'event', event, payload })[0]).to.deep.include({ event_type: event, subjects: [] });
    });

    it('with what is no id have no subject', () => {
      for (const entity of [{ id: '../customers' }, { id: 'acc_1' }, { id: 7 }, {}, null, 'pay_1'])
        expect(
          parse({ entity: 'event', event: 'payment.captured', payload: { payment: { entity } } })[0]!.subjects,
        ).to.deep.equal([]);
    });

    it('have the digest of the body for an id, whatever the unsigned header has', () => {
      const body = JSON.stringify({ entity: 'event', event: 'x', payload: {} });
      const ids = [undefined, '', 'a b', 'evt00000000001', 'evt00000000002', 'x'.repeat(300)].map(
        (id) =>
          razorpay.account!.parseWebhook!({ headers: { 'x-razorpay-event-id': id }, body: Buffer.from(body) })[0]!
            .provider_event_id,
      );
      expect(new Set(ids)).to.have.length(1);
      expect(ids[0]).to.match(/^sha256:[0-9a-f]{64}$/);
      expect(parse(`${body} `, '')[0]!.provider_event_id).not.to.equal(ids[0]);
    });

    const refused: unknown[] = ['', 'x', '[]', 'null', '{}', { entity: 'payment', event: 'x', payload: {} }];
    refused.push(
      { entity: 'event', event: '', payload: {} },
      { entity: 'event', event: 'x' },
      { entity: 'event', event: 'x', payload: [] },
    );
    for (const body of refused)
      it(`are refused in another form: ${JSON.stringify(body)}`, () => {
        expect(() => parse(body))
          .to.throw(FarthingError)
          .with.property('code', 'validation_error');
      });
  });
});
