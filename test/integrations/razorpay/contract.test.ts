/**
 * Requests of Razorpay's own library to the fake, which must behave as the public documentation says: kinds of records,
 * refusals, lists, and failures. No other fake of Razorpay exists to compare with.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Razorpay from 'razorpay';
import { createRazorpayClient, type RazorpayClient } from '../../../integrations/razorpay/client.ts';
import { RazorpayFake } from '../../support/providers/razorpay-fake.ts';

const CREDENTIALS = { key_id: 'rzp_test_fake', secret_key: 'secret_fake' };

describe('integrations/razorpay/contract', () => {
  let fake: RazorpayFake;
  let client: Razorpay;
  let customer_id: string;

  beforeEach(async () => {
    fake = await new RazorpayFake().start();
    client = new Razorpay({ key_id: CREDENTIALS.key_id, key_secret: CREDENTIALS.secret_key });
    (client as RazorpayClient).api.rq.defaults['baseURL'] = fake.url.origin;
    customer_id = (await client.customers.create({ name: 'Acme', email: 'a@acme.example' })).id;
  });
  afterEach(() => fake.stop());

  const draft = () => ({
    ...{ type: 'invoice' as const, draft: '1', customer_id, currency: 'INR', receipt: 'R-1' },
    line_items: [{ name: 'Seats', amount: 500, currency: 'INR', quantity: 2 }],
  });
  const refusalOf = async (request: Promise<unknown>) => {
    try {
      await request;
    } catch (error) {
      const { statusCode, error: facts } = error as { statusCode: number; error: { description: string } };
      return `${statusCode} ${facts.description}`;
    }
    throw new Error('it was accepted');
  };

  it('an invoice goes from the draft to its payments', async () => {
    const created = await client.invoices.create(draft());
    expect(created).to.include({ entity: 'invoice', status: 'draft', amount: 1_000, order_id: null });
    const issued = await client.invoices.issue(created.id);
    expect(issued.status).to.equal('issued');
    fake.book.payInvoice(created.id, { amount: 400 });
    expect(await client.invoices.fetch(created.id)).to.include({ status: 'partially_paid', amount_paid: 400 });
    const { items } = await client.orders.fetchPayments(issued.order_id!);
    expect(items.map(({ status, amount, invoice_id }) => ({ status, amount, invoice_id }))).to.deep.equal([
      { status: 'captured', amount: 400, invoice_id: created.id },
    ]);
  });

  it('a list of invoices has a receipt as a filter, and pages', async () => {
    for (let n = 0; n < 12; n++) await client.invoices.create({ ...draft(), receipt: n < 11 ? 'R-1' : 'R-2' });
    expect((await client.invoices.all({ receipt: 'R-1' })).items).to.have.length(10);
    expect((await client.invoices.all({ receipt: 'R-1', count: 100, skip: 10 })).items).to.have.length(1);
    expect(await refusalOf(client.invoices.all({ count: 101 }))).to.contain('400 The count');
  });

  it('an existing customer is refused, or answered on request', async () => {
    const again = { name: 'Acme Ltd', email: 'a@acme.example' };
    expect(await refusalOf(client.customers.create(again))).to.equal('400 Customer already exists for the merchant');
    expect((await client.customers.create({ ...again, fail_existing: 0 })).id).to.equal(customer_id);
  });

  const refused: [name: string, send: () => Promise<unknown>, why: string][] = [
    ['an unknown id', () => client.invoices.fetch('inv_missing'), '400 The id provided does not exist'],
    [
      'an unknown parameter',
      () => client.customers.create({ name: 'Acme', colour: 'red' } as object),
      '400 colour is/are not required and should not be sent',
    ],
    [
      'a name with other characters',
      () => client.customers.create({ name: 'A & B' }),
      '400 The name format is invalid.',
    ],
    [
      'a negative line',
      () => client.invoices.create({ ...draft(), line_items: [{ name: 'a', amount: -1, currency: 'INR' }] }),
      '400 The amount must be at least 0.',
    ],
    [
      'a fraction',
      () => client.orders.create({ amount: 100.5, currency: 'INR' }),
      '400 The amount must be an integer.',
    ],
    [
      'too small an amount',
      () => client.orders.create({ amount: 99, currency: 'INR' }),
      '400 Order amount less than minimum amount allowed',
    ],
    [
      'too many notes',
      () =>
        client.customers.create({ notes: Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`n${n}`, 'x'])) }),
      '400 Number of fields in notes should be less than or equal to 15',
    ],
    [
      'a long receipt',
      () => client.orders.create({ amount: 100, currency: 'INR', receipt: 'x'.repeat(41) }),
      '400 The receipt may not be greater than 40 characters.',
    ],
  ];
  for (const [name, send, why] of refused)
    it(`refused: ${name}`, async () => expect(await refusalOf(send())).to.equal(why));

  it('an invoice that is issued is not deleted, and one that is paid not cancelled', async () => {
    const { id } = await client.invoices.create({ ...draft(), draft: '0' });
    expect(await refusalOf(client.invoices.delete(id))).to.contain('Invoice in issued status');
    fake.book.payInvoice(id);
    expect(await refusalOf(client.invoices.cancel(id))).to.contain('Invoice in paid status');
  });

  it('an order is paid once', async () => {
    const { id: order_id } = await client.orders.create({ amount: 100, currency: 'INR' });
    const token = fake.book.addToken(customer_id, 'pays').id;
    const body = { order_id, customer_id, token, amount: 100, currency: 'INR', recurring: true, notes: {} };
    const send = () => client.payments.createRecurringPayment({ ...body, email: 'a@b.example', contact: '+91' });
    expect((await send()).razorpay_payment_id).to.match(/^pay_/);
    expect(await refusalOf(send())).to.contain('Payment already done');
  });

  it('a reference of a payment link is unique', async () => {
    const link = { amount: 100, currency: 'INR', reference_id: 'REF' } as Parameters<
      typeof client.paymentLink.create
    >[0];
    const { id } = await client.paymentLink.create(link);
    expect(await refusalOf(client.paymentLink.create(link))).to.contain('already exists');
    const { payment_links } = await client.paymentLink.all({ reference_id: 'REF' } as object);
    expect(payment_links.map((one) => one.id)).to.deep.equal([id]);
  });

  it('the library hides a lost connection, which is why its HTTP client is changed', async () => {
    await fake.stop();
    expect(await client.customers.all().catch((error: unknown) => error)).to.be.instanceOf(TypeError);
    await fake.start();
  });

  it('no redirect is followed with the credentials', async () => {
    const target = await new RazorpayFake().start();
    const server = createServer((_, response) => {
      response.writeHead(302, { location: `${target.url.origin}/v1/customers` }).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const redirected = await createRazorpayClient(CREDENTIALS, { address });
    const thrown = await redirected.customers.all().catch((error: { error: unknown }) => error.error);
    expect(thrown).to.include({ error_class: 'wait' });
    expect(target.requests).to.deep.equal([]);
    server.closeAllConnections();
    server.close();
    await target.stop();
  });
});
