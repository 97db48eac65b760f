/** Webhooks of Chargebee: HTTP Basic; the validator of Chargebee's library is the reference. */
import { expect } from 'chai';
import { basicAuthValidator } from 'chargebee';
import fc from 'fast-check';
import { FarthingError } from '../../../core/foundation/error.ts';
import { chargebee } from '../../../integrations/chargebee/provider.ts';
import { encodeBasic } from '../../support/providers/chargebee-double.ts';
import { ChargebeeFake } from '../../support/providers/chargebee-fake.ts';
import { Input } from '../../support/providers/chargebee-fake-parameters.ts';

const USERNAME = 'farthing';
const PASSWORD = 'pass:wörd';
const REFUSED = { code: 'permission_denied', http_status_code: 401, message: 'the signature is not valid' };

/** The answer to the sender: null if the credentials are accepted. */
function verify(authorization: string | undefined, secrets: readonly string[] = [PASSWORD, USERNAME]) {
  try {
    chargebee.account!.verifyWebhook!(secrets, {
      headers: { authorization },
      body: Buffer.from('{}'),
      now: new Date(),
    });
    return null;
  } catch (error) {
    expect(error).to.be.instanceOf(FarthingError);
    const { code, http_status_code, message } = error as FarthingError;
    return { code, http_status_code, message };
  }
}

const right = encodeBasic(USERNAME, PASSWORD);

describe('integrations/chargebee/webhook', () => {
  it('the credentials of the connection are accepted', () => {
    expect(verify(right)).to.equal(null);
    expect(verify(right.replace('Basic ', 'basic  '))).to.equal(null);
  });

  for (const [name, authorization] of [
    ['none', undefined],
    ['empty', ''],
    ['another password', encodeBasic(USERNAME, 'other')],
    ['another user', encodeBasic('other', PASSWORD)],
    ['a longer password', encodeBasic(USERNAME, `${PASSWORD}x`)],
    ['an empty password', encodeBasic(USERNAME, '')],
    ['the password alone', Buffer.from(PASSWORD).toString('base64')],
    ['another scheme', right.replace('Basic', 'Bearer')],
    ['two headers', `${right}, ${right}`],
    ['no base64', `Basic ${USERNAME}:${PASSWORD}`],
    ['bytes', '\u0000\uffff'],
  ] as const)
    it(`refused: ${name}`, () => expect(verify(authorization)).to.deep.equal(REFUSED));

  it('without credentials nothing is accepted, whatever is sent', () => {
    for (const secrets of [[], [''], ['', ''], [PASSWORD, PASSWORD]])
      for (const sent of ['', right, encodeBasic('', ''), encodeBasic(PASSWORD, PASSWORD), 'Basic '])
        expect(verify(sent, secrets), JSON.stringify(secrets)).to.deep.equal(REFUSED);
  });

  it('whatever the header is, the answer is the refusal', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.base64String().map((text) => `Basic ${text}`),
        ),
        (header) => {
          expect(verify(header)).to.deep.equal(REFUSED);
        },
      ),
    );
  });

  it('the library of Chargebee agrees', async () => {
    const username = fc.stringMatching(/^[\w -]{1,20}$/);
    const password = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' });
    await fc.assert(
      fc.asyncProperty(username, password, fc.boolean(), async (user, secret, isRight) => {
        fc.pre(user !== secret);
        const authorization = encodeBasic(user, isRight ? secret : `${secret}x`);
        const validate = basicAuthValidator((givenUser, given) => givenUser === user && given === secret);
        const theirs = await validate({ authorization }).then(
          () => true,
          () => false,
        );
        expect(theirs).to.equal(isRight);
        expect(verify(authorization, [secret, user])).to.deep.equal(isRight ? null : REFUSED);
      }),
    );
  });

  describe('events', () => {
    const parse = (body: unknown) =>
      chargebee.account!.parseWebhook!({
        headers: {},
        body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
      });

    it('name what has changed', () => {
      const { site, events } = new ChargebeeFake();
      const { id: customer_id } = site.createCustomer(new Input(new URLSearchParams({ id: 'cust_1' })));
      const fields = { customer_id, currency_code: 'USD', 'charges[amount][0]': '500', 'charges[description][0]': 'a' };
      const form = new URLSearchParams({ ...fields, 'charges[taxable][0]': 'false' });
      const { id: invoice } = site.createInvoice(new Input(form));
      const { id: note } = site.creditInvoice(invoice, 100);
      site.voidCreditNote(note);
      const { id: payment } = site.payInvoice(invoice);
      site.refundPayment(payment, 100);
      const { id: source } = site.addSource(customer_id, 'pays');
      site.deleteSource(source);
      const read = events.map((event) => parse(event)[0]!);
      expect(
        read.map(({ event_type, subjects }) => [
          event_type,
          ...subjects.map(({ kind, provider_entity_id }) => `${kind} ${provider_entity_id}`),
        ]),
      ).to.deep.equal([
        ['invoice_generated'],
        ['credit_note_created', `invoice ${invoice}`, `payment ${invoice}`],
        ['credit_note_updated', `invoice ${invoice}`, `payment ${invoice}`],
        ['payment_succeeded', `invoice ${invoice}`, `payment ${payment}`, `payment ${invoice}`],
        ['payment_refunded', `invoice ${invoice}`, `payment ${payment}`, `payment ${invoice}`],
        ['payment_source_added', `setup ${source}`],
        ['payment_source_deleted', `setup ${source}`],
      ]);
      expect(new Set(read.map(({ provider_event_id }) => provider_event_id))).to.have.length(events.length);
      expect(Date.parse(read[0]!.occurred_at!)).to.be.closeTo(Date.now(), 60_000);
    });

    it('of other forms of records have no subject', () => {
      const event = { id: 'ev_1', event_type: 'payment_succeeded' };
      for (const content of [{}, { invoice: 7 }, { invoice: { id: 7 } }, { transaction: 'txn_1' }, { transaction: {} }])
        expect(parse({ ...event, content })[0]!.subjects).to.deep.equal([]);
    });

    for (const body of [
      '',
      'x',
      '[]',
      'null',
      '{}',
      { id: 'ev_1', content: {} },
      { id: '', event_type: 'x', content: {} },
    ])
      it(`are refused in another form: ${JSON.stringify(body)}`, () => {
        expect(() => parse(body))
          .to.throw(FarthingError)
          .with.property('code', 'validation_error');
      });
  });
});
