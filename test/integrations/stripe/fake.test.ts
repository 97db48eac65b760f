/**
 * The fake of Stripe behaves as Stripe's documentation says where tests rely on it: keys, pages, search, limits,
 * events.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { Stripe } from 'stripe';
import { StripeFake } from '../../support/providers/stripe-fake.ts';

describe('support/providers/stripe-fake', () => {
  let fake: StripeFake;
  let client: Stripe;
  beforeEach(async () => {
    fake = await new StripeFake().start();
    const { hostname: host, port } = fake.url;
    client = new Stripe('sk_test_fake', { host, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false });
  });
  afterEach(() => fake.stop());

  const errorOf = async (request: Promise<unknown>) => {
    try {
      await request;
    } catch (error) {
      const { statusCode, rawType, code, headers } = error as InstanceType<typeof Stripe.errors.StripeError>;
      return { status: statusCode, type: rawType, code, retry_after: headers?.['retry-after'] };
    }
    throw new Error('it was accepted');
  };

  it('answers a repeated key with the first answer, and other parameters with an error', async () => {
    const key = { idempotencyKey: 'k' };
    const first = await client.customers.create({ name: 'a' }, key);
    const again = await client.customers.create({ name: 'a' }, key);
    expect(again.id).to.equal(first.id);
    expect(again.lastResponse.headers['idempotent-replayed']).to.equal('true');
    expect(await errorOf(client.customers.create({ name: 'b' }, key))).to.include({
      status: 400,
      type: 'idempotency_error',
    });
    expect(fake.book.list('customer')).to.have.length(1);
  });

  it('stores a fault with its key, but no refused parameters', async () => {
    fake.disturb(/customers/, 'fault');
    const key = { idempotencyKey: 'k' };
    for (let n = 0; n < 2; n++)
      expect(await errorOf(client.customers.create({ name: 'a' }, key))).to.include({ status: 500 });
    const lines = [{ amount: 1, colour: 'red' }];
    const add = (more: object) => client.invoices.addLines('in_1', more as { lines: [] }, { idempotencyKey: 'l' });
    expect(await errorOf(add({ lines }))).to.include({ status: 400, code: 'parameter_unknown' });
    expect(await errorOf(add({ lines: [{ amount: 1 }] }))).to.include({ status: 404, code: 'resource_missing' });
  });

  it('pages through a list in both directions', async () => {
    for (let n = 0; n < 25; n++) fake.book.createCustomer({ name: String(n) });
    const names: (string | null | undefined)[] = [];
    for await (const { name } of client.customers.list({ limit: 10 })) names.push(name);
    expect(names).to.deep.equal(Array.from({ length: 25 }, (_, n) => String(24 - n)));
    const second = await client.customers.list({
      limit: 10,
      starting_after: (await client.customers.list()).data.at(-1)!.id,
    });
    const first = await client.customers.list({ limit: 10, ending_before: second.data[0]!.id });
    expect(first.data.map(({ name }) => name)).to.deep.equal(names.slice(0, 10));
    expect(await errorOf(client.customers.list({ limit: 101 }))).to.include({ status: 400 });
  });

  it('finds a record by the search only after the index has it', async () => {
    const metadata = { farthing_customer_id: "it's" };
    await client.customers.create({ metadata });
    const search = async () =>
      (await client.customers.search({ query: "metadata['farthing_customer_id']:'it\\'s'" })).data;
    expect(await search()).to.have.length(0);
    fake.indexSearch();
    expect(await search()).to.have.length(1);
  });

  it('limits requests', async () => {
    fake.limitRate({ requests: 2, per_ms: 60_000 });
    await client.customers.list();
    await client.customers.list();
    expect(await errorOf(client.customers.list())).to.include({ status: 429, code: 'rate_limit', retry_after: '2' });
    fake.limitRate(null);
    await client.customers.list();
  });

  it('charges loose items with an invoice that includes them', async () => {
    const { id: customer } = await client.customers.create({});
    await client.invoiceItems.create({ customer, amount: 700, currency: 'usd' });
    const included = await client.invoices.create({
      customer,
      currency: 'usd',
      pending_invoice_items_behavior: 'include',
    });
    expect(included.total).to.equal(700);
    await client.invoices.del(included.id);
    expect((await client.invoices.create({ customer, currency: 'usd' })).total).to.equal(0);
  });

  it('sends signed events of what happened', async () => {
    const { id: customer } = await client.customers.create({});
    const { id } = await client.invoices.create({ customer, currency: 'usd' });
    await client.invoices.addLines(id, { lines: [{ amount: 700 }] });
    await client.invoices.finalizeInvoice(id);
    expect(await errorOf(client.invoices.pay(id, { payment_method: 'pm_card_chargeDeclined' }))).to.include({
      status: 402,
      code: 'card_declined',
    });
    await client.invoices.pay(id, { payment_method: 'pm_card_visa' });
    const verified: string[] = [];
    const verify = async (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const header = String(request.headers['stripe-signature']);
      verified.push(Stripe.webhooks.constructEvent(Buffer.concat(chunks), header, 'whsec_2').type);
      response.writeHead(200).end();
    };
    const server = createServer((request, response) => void verify(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const event of fake.events)
      expect(await fake.sendEvent(event, { url, secrets: ['whsec_1', 'whsec_2'] })).to.equal(200);
    server.closeAllConnections();
    server.close();
    const begun = ['customer.created', 'invoice.created', 'invoice.finalized', 'invoice.payment_failed'];
    expect(verified).to.deep.equal([...begun, 'payment_intent.succeeded', 'invoice_payment.paid', 'invoice.paid']);
  });
});
