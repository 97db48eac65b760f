/** Webhooks of Zoho Books: the signature over the sorted parameters and the body, and the records of both forms of body. */
import { expect } from 'chai';
import { zoho_books } from '../../../integrations/zoho_books/provider.ts';
import { signZohoWebhook } from '../../support/providers/zoho-books-fake.ts';

const { verifyWebhook, parseWebhook, webhook_query } = zoho_books.account!;

const FORM = 'application/x-www-form-urlencoded; charset=UTF-8';
const SECRET = 'webhookSecret1';

type Delivery = { body: string; query?: string; type?: string };

describe('integrations/zoho_books/webhook', () => {
  const toWebhook = ({ body, query, type = 'application/json' }: Delivery, signature?: string) => ({
    headers: { 'content-type': type, 'x-zoho-webhook-signature': signature },
    body: Buffer.from(body),
    now: new Date(),
    url: `https://farthing.example/webhooks/zoho_books/t/e${query === undefined ? '' : `?${query}`}`,
  });
  const verify = (delivery: Delivery, signature: string | undefined, secrets = [SECRET, SECRET]) =>
    verifyWebhook!(secrets, toWebhook(delivery, signature));
  const parse = (delivery: Delivery) => parseWebhook!(toWebhook(delivery));

  describe('the signature', () => {
    it("accepts the example of Zoho's page", () => {
      const body = '{"created_date":"2019-03-06","event_id":"5675"}';
      const delivery = { body, query: 'subscription_id=90343&name=basic' };
      // HMAC-SHA256 of namebasicsubscription_id90343{"created_date":"2019-03-06","event_id":"5675"}, computed with openssl.
      const signature = 'f532d43bbe90fe7e4b11e7050b43bae3bd40da1873b53ae52c36261a4e6800c7';
      expect(() => verify(delivery, signature)).not.to.throw();
      expect(() => verify(delivery, signature.toUpperCase())).not.to.throw();
      expect(signature).to.equal(signZohoWebhook(delivery, SECRET));
    });

    it('covers decoded parameters, with those of a form, in the order of their names', () => {
      const query = 'event=invoice.edited&b=caf%C3%A9+au%20lait';
      const body = 'JSONString=%7B%22invoice%22%3A%7B%7D%7D&a=1%262';
      const signature = signZohoWebhook({ query, body, isForm: true }, SECRET);
      expect(() => verify({ query, body, type: FORM }, signature)).not.to.throw();
      const ofBytes = signZohoWebhook({ query, body }, SECRET);
      expect(() => verify({ query, body, type: FORM }, ofBytes), 'a form that is signed as its bytes').not.to.throw();
      expect(() => verify({ query, body }, signature), 'JSON is signed as its bytes alone').to.throw();
    });

    it('covers the fields of a form up to a thousand: anybody may send more, and they are not sorted', () => {
      for (const [count, isAccepted] of [
        [1_000, true],
        [1_001, false],
      ] as const) {
        const body = Array.from({ length: count }, (_, index) => `f${index}=1`).join('&');
        const check = () => verify({ body, type: FORM }, signZohoWebhook({ body, isForm: true }, SECRET));
        if (isAccepted) expect(check).not.to.throw();
        else expect(check).to.throw('the signature is not valid');
        const read = () => parse({ body, type: FORM });
        if (isAccepted) expect(read).not.to.throw();
        else expect(read).to.throw('1000 fields');
      }
    });

    it('accepts the previous secret during a change', () => {
      const delivery = { body: '{}', query: 'event=invoice.edited' };
      const signature = signZohoWebhook(delivery, 'previousSecret1');
      expect(() => verify(delivery, signature, [SECRET, 'previousSecret1'])).not.to.throw();
      expect(() => verify(delivery, signature)).to.throw();
    });

    it('refuses every other one with the same words', () => {
      const delivery = { body: '{"invoice":{}}', query: 'event=invoice.edited' };
      const right = signZohoWebhook(delivery, SECRET);
      const forged: [Delivery, string | undefined, string[]?][] = [
        [delivery, undefined],
        [delivery, ''],
        [delivery, 'x'],
        [{ ...delivery, body: '{"invoice":{} }' }, right],
        [{ ...delivery, query: 'event=invoice.deleted' }, right],
        [{ body: delivery.body }, right],
        [{ ...delivery, query: `${delivery.query}&more=1` }, right],
        [delivery, signZohoWebhook(delivery, 'anotherSecret1')],
        [delivery, `${right}00`],
        [delivery, Buffer.from(right, 'hex').toString('base64')],
        [delivery, '0'.repeat(64)],
        [delivery, right, []],
      ];
      for (const [given, signature, secrets] of forged)
        expect(() => verify(given, signature, secrets), JSON.stringify([given, signature]))
          .to.throw('the signature is not valid')
          .with.property('http_status_code', 401);
    });
  });

  describe('the events', () => {
    const invoice = { invoice_id: '982000000567114', last_modified_time: '2013-11-18T02:02:51-0800' };

    it('are read from the default payload, and a repeated delivery has the same id', () => {
      const delivery = { body: JSON.stringify({ invoice }), query: 'event=invoice.edited' };
      const [event] = parse(delivery);
      expect(event).to.deep.include({
        event_type: 'invoice.edited',
        provider_account_id: null,
        occurred_at: '2013-11-18T10:02:51.000Z',
        subjects: [{ kind: 'invoice', provider_entity_id: '982000000567114' }],
      });
      expect(parse(delivery)).to.deep.equal([event]);
      const [deleted] = parse({ ...delivery, query: 'event=invoice.deleted' });
      expect(deleted!.provider_event_id).to.not.equal(event!.provider_event_id);
    });

    it('of a payment or credit note name its invoices, also when it is gone', () => {
      const invoices = [{ invoice_id: '1' }, { invoice_id: '2' }, { invoice_id: '1' }];
      const toBody = (name: string, record: object) => ({ body: JSON.stringify({ [name]: record }) });
      const named = [1, 2].map((id) => ({ kind: 'invoice', provider_entity_id: String(id) }));
      for (const name of ['payment', 'customer_payment', 'customerpayment'])
        expect(parse(toBody(name, { payment_id: '7', invoices }))[0]!.subjects).to.deep.equal([
          { kind: 'payment', provider_entity_id: '7' },
          ...named,
        ]);
      expect(parse(toBody('creditnote', { creditnote_id: '9', invoices }))[0]!.subjects).to.deep.equal(named);
    });

    it('are read from a form and from a payload of the own, with ids of all digits', () => {
      const form = new URLSearchParams({ JSONString: JSON.stringify({ invoice }) }).toString();
      const expected = [{ kind: 'invoice', provider_entity_id: '982000000567114' }];
      expect(parse({ body: form, type: FORM })[0]!.subjects).to.deep.equal(expected);
      expect(parse({ body: 'invoice_id=982000000567114', type: FORM })[0]!.subjects).to.deep.equal(expected);
      const [flat] = parse({ body: '{"payment_id":98200000056711498765}' });
      expect(flat!.subjects).to.deep.equal([{ kind: 'payment', provider_entity_id: '98200000056711498765' }]);
    });

    it('of other records have no effect, whatever they name', () => {
      for (const body of ['{}', '{"contact":{"contact_id":"1"}}', '{"salesorder":{"invoices":[{"invoice_id":"1"}]}}'])
        expect(parse({ body })[0]!.subjects).to.deep.equal([]);
      for (const id of ['"../1"', 'null', '{}', '["1"]', '""'])
        expect(parse({ body: `{"invoice":{"invoice_id":${id}}}` })[0]!.subjects, id).to.deep.equal([]);
    });

    for (const body of ['', '{', '[]', 'null', '"text"', '1'])
      it(`refuses ${body || 'an empty body'}`, () => {
        expect(() => parse({ body }))
          .to.throw()
          .with.property('code', 'validation_error');
      });

    it('have names of a record and a change', () => {
      for (const event of ['payment.deleted', undefined])
        expect(webhook_query!.safeParse({ event }).success).to.equal(true);
      for (const event of ['', 'payment', 'a.b.c', 'a.<b>', `${'a'.repeat(65)}.b`])
        expect(webhook_query!.safeParse({ event }).success, event).to.equal(false);
    });
  });
});
