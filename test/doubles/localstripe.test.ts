/**
 * Stripe's parts against localstripe, which others wrote: webhooks that it signs, and cards that fail. It is an API of some years ago: it has no
 * account, checkout or search, and refuses parameters of today's charges and invoices. Those are tested with our own fake and with stripe-mock.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { Stripe } from 'stripe';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type LocalStripe, startLocalStripe } from '../support/providers/localstripe.ts';
import { StripeFake } from '../support/providers/stripe-fake.ts';
import { until } from '../support/until.ts';

const SECRET = 'whsec_of_the_endpoint';
const KEY = 'sk_test_fake';

const openClient = ({ hostname: host, port }: URL) =>
  new Stripe(KEY, { host, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false });

describe('localstripe', () => {
  let there: LocalStripe;
  let fake: StripeFake;
  before(async () => {
    there = await startLocalStripe();
    fake = await new StripeFake().start();
  });
  after(async () => {
    there.stop();
    await fake.stop();
  });

  describe('webhooks', () => {
    let api: TestApi;
    before(async () => {
      const config = {
        SECRETS_KEYS: 'a key of the settings that has 32 characters',
        PROVIDER_ADDRESSES: `stripe=${fake.url.href}`,
      };
      api = await startTestApi({ now: new Date(), config });
      const stripe = { secret_key: KEY, webhook_secret: SECRET };
      const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
      expect((await api.request('POST', '/connections', { body })).status).to.equal(201);
    });
    after(() => api.stop());

    const listStored = async (name: string) => {
      const path = `/webhooks/inbound?event_types=${name}`;
      return (await api.request<{ items: { provider_event_id: string }[] }>('GET', path)).body.items;
    };

    it('are accepted by its signature, and refused with another secret', async () => {
      const { tenant_id, environment_id } = api.scope;
      // localstripe does not tell what was answered.
      const answers: number[] = [];
      const forward = async (request: IncomingMessage, response: ServerResponse) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const { 'stripe-signature': signature, 'content-type': type } = request.headers;
        const headers = { 'stripe-signature': String(signature), 'content-type': String(type) };
        const path = `${api.url}/v1/webhooks/stripe/${tenant_id}/${environment_id}`;
        const { status } = await fetch(path, { method: 'POST', headers, body: Buffer.concat(chunks) });
        answers.push(status);
        response.writeHead(status).end();
      };
      const way = createServer((request, response) => void forward(request, response));
      way.listen(0, '127.0.0.1');
      await once(way, 'listening');
      const address = `http://127.0.0.1:${(way.address() as AddressInfo).port}/`;
      const client = openClient(there.url);
      await there.sendWebhooks(address, 'whsec_of_somebody_else');
      await client.customers.create({ name: 'Refused' });
      await until('the first is answered', async () => answers.length === 1);
      await there.sendWebhooks(address, SECRET);
      await client.customers.create({ name: 'Acme' });
      await until('the second is answered', async () => answers.length === 2);
      expect(answers).to.deep.equal([401, 200]);
      expect(await listStored('customer.created')).to.have.length(1);
      way.close();
    });
  });

  describe('cards: our fake answers as localstripe does', () => {
    /** Status of the payment intent, or type and status of the refusal. */
    const charge = async (url: URL, card: string) => {
      const client = openClient(url);
      const { id: customer } = await client.customers.create({ name: 'Acme' });
      const terms = { customer, payment_method: card, off_session: true, confirm: true };
      try {
        return (await client.paymentIntents.create({ amount: 1_250, currency: 'usd', ...terms })).status;
      } catch (error) {
        if (!(error instanceof Stripe.errors.StripeError)) throw error;
        return `${error.type} ${error.statusCode}`;
      }
    };

    for (const [card, outcome] of [
      ['pm_card_visa', 'succeeded'],
      ['pm_card_chargeCustomerFail', 'StripeCardError 402'],
    ] as const)
      it(`${card}: ${outcome}`, async () => {
        expect(await charge(there.url, card), 'localstripe').to.equal(outcome);
        expect(await charge(fake.url, card), 'the fake').to.equal(outcome);
      });
  });
});
