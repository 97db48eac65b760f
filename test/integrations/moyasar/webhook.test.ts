/** Webhooks of Moyasar: the token in the body decides, and only ids are read. No library of Moyasar verifies them. */
import { expect } from 'chai';
import fc from 'fast-check';
import { FarthingError } from '../../../core/foundation/error.ts';
import { moyasar } from '../../../integrations/moyasar/provider.ts';

const SECRET = 'hook_secret';
const ID = '760878ec-d1d3-5f72-9056-191683f55872';
const INVOICE = '9785ba96-a1be-5b13-a281-b27a4a6dad39';
const REFUSED = { code: 'permission_denied', http_status_code: 401, message: 'the signature is not valid' };
const EVENT = {
  ...{ id: 'event_1', type: 'payment_paid', created_at: '2026-11-30T10:00:00.000Z', account_name: 'A', live: true },
  ...{ secret_token: SECRET, data: { id: ID, invoice_id: INVOICE, amount: 1 } },
};

/** The answer to the sender: null if the token is accepted. */
function verify(body: string, secrets: readonly string[] = [SECRET]) {
  try {
    moyasar.account!.verifyWebhook!(secrets, { headers: {}, body: Buffer.from(body), now: new Date() });
    return null;
  } catch (error) {
    expect(error).to.be.instanceOf(FarthingError);
    const { code, http_status_code, message } = error as FarthingError;
    return { code, http_status_code, message };
  }
}
const parse = (event: object) =>
  moyasar.account!.parseWebhook!({ headers: {}, body: Buffer.from(JSON.stringify(event)) });

describe('integrations/moyasar/webhook', () => {
  it('the token of the connection is accepted', () => {
    expect(verify(JSON.stringify(EVENT))).to.equal(null);
  });

  const forged: [name: string, body: string, secrets?: readonly string[]][] = [
    ['another token', JSON.stringify({ ...EVENT, secret_token: 'other' })],
    ['a longer token', JSON.stringify({ ...EVENT, secret_token: `${SECRET}x` })],
    ['no token', JSON.stringify({ ...EVENT, secret_token: undefined })],
    ['an empty token', JSON.stringify({ ...EVENT, secret_token: '' }), ['']],
    ['a token that is no text', JSON.stringify({ ...EVENT, secret_token: [SECRET] })],
    ['a token in the payment', JSON.stringify({ data: { secret_token: SECRET } })],
    ['a list', JSON.stringify([EVENT])],
    ['no JSON', `secret_token=${SECRET}`],
    ['the token of another connection', JSON.stringify(EVENT), ['other']],
    ['any token without a secret', JSON.stringify(EVENT), []],
  ];
  for (const [name, body, secrets] of forged)
    it(`is refused: ${name}`, () => expect(verify(body, secrets)).to.deep.equal(REFUSED));

  it('whatever the body is, the answer is the refusal', () => {
    const property = fc.property(fc.oneof(fc.string(), fc.json()), (body) => {
      expect(verify(body)).to.deep.equal(REFUSED);
    });
    fc.assert(property);
  });

  it('names the payment, and its invoice, which is known here as a page too', () => {
    expect(parse(EVENT)).to.deep.equal([
      {
        ...{ provider_event_id: 'event_1', event_type: 'payment_paid', provider_account_id: null },
        occurred_at: '2026-11-30T10:00:00.000Z',
        subjects: [
          { kind: 'payment', provider_entity_id: ID },
          { kind: 'payment', provider_entity_id: INVOICE },
          { kind: 'invoice', provider_entity_id: INVOICE },
        ],
      },
    ]);
  });

  it('names no record by an id that is none, and none of other events', () => {
    const subjects = (more: object) => parse({ ...EVENT, ...more })[0]!.subjects;
    expect(subjects({ data: { id: '../invoices', invoice_id: 5 } })).to.deep.equal([]);
    expect(subjects({ data: null })).to.deep.equal([]);
    expect(subjects({ type: 'payout_paid' })).to.deep.equal([]);
    expect(subjects({ type: 'payment_failed', data: { id: ID, invoice_id: null } })).to.have.length(1);
    expect(subjects({ data: { id: ID } })).to.have.length(1);
  });

  it('refuses what is no event', () => {
    for (const body of [{ ...EVENT, id: undefined }, { ...EVENT, type: 5 }, []])
      expect(() => parse(body)).to.throw(FarthingError, 'is no event of Moyasar');
  });
});
