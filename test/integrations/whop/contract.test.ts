/**
 * Requests of Whop's own library to the fake, which must behave as the public documentation says: kinds of records, refusals, lists. No other
 * fake of Whop exists to compare with.
 */
import { APIError, Whop } from '@whop/sdk';
import { expect } from 'chai';
import { WhopFake } from '../../support/providers/whop-fake.ts';

const INVOICE = {
  ...{ company_id: 'biz_fake', collection_method: 'send_invoice', due_date: '2026-12-24T00:00:00.000Z' },
  ...{ email_address: 'books@acme.example', customer_name: 'Acme', product: { title: 'Seats' } },
  plan: { plan_type: 'one_time', initial_price: 30, currency: 'usd', internal_notes: 'ours' },
  line_items: [{ label: 'Seats', unit_price: 10, quantity: 3 }],
} as const;

describe('integrations/whop/contract', () => {
  let fake: WhopFake;
  let client: Whop;

  beforeEach(async () => {
    fake = await new WhopFake().start();
    client = new Whop({ apiKey: 'key_fake', baseURL: `${fake.url.origin}/api/v1`, maxRetries: 0, logLevel: 'off' });
  });
  afterEach(() => fake.stop());

  const create = (more: object = {}) =>
    client.invoices.create({ ...INVOICE, line_items: [...INVOICE.line_items], ...more } as Parameters<
      Whop['invoices']['create']
    >[0]);
  const readRefusal = async (request: Promise<unknown>) => {
    try {
      await request;
    } catch (error) {
      expect(error).to.be.instanceOf(APIError);
      return (error as APIError).status;
    }
    throw new Error('it was accepted');
  };

  it('an invoice is made, listed by pages, paid, and its payment found by its plan', async () => {
    const invoice = await create();
    expect(invoice).to.include({ status: 'open', email_address: 'books@acme.example' });
    expect(invoice.line_items.map(({ total }) => total)).to.deep.equal([30]);
    for (let times = 0; times < 5; times++) await create();
    const ids: string[] = [];
    for await (const { id } of client.invoices.list({ company_id: 'biz_fake' })) ids.push(id);
    expect(ids).to.have.length(6).and.to.include(invoice.id);
    const paid = fake.book.payInvoice(invoice.id);
    expect((await client.invoices.retrieve(invoice.id)).status).to.equal('paid');
    const { data } = await client.payments.list({ company_id: 'biz_fake', plan_ids: [invoice.current_plan.id] });
    expect(data.map(({ id, plan }) => [id, plan!.internal_notes])).to.deep.equal([[paid.id, 'ours']]);
  });

  it('an invoice is voided once', async () => {
    const { id } = await create();
    expect(await client.invoices.void(id)).to.equal(true);
    expect(await readRefusal(client.invoices.void(id))).to.equal(400);
  });

  const refused: [name: string, more: object, status: number][] = [
    ['a sum that is not the price', { line_items: [{ label: 'Seats', unit_price: 10 }] }, 400],
    ['no email', { email_address: undefined }, 400],
    ['no due date', { due_date: undefined }, 400],
    ['no product', { product: undefined }, 400],
    ['an unknown field', { metadata: {} }, 400],
    ['another company', { company_id: 'biz_other' }, 403],
  ];
  for (const [name, more, status] of refused)
    it(`refuses ${name}`, async () => expect(await readRefusal(create(more))).to.equal(status));

  it('a charge is paid, partly refunded, and shows the refund', async () => {
    const [member_id = '', payment_method_id = ''] = fake.book.addMethod('pays').split(':');
    const product = { external_identifier: 'farthing', title: 'Invoices' };
    const plan = { plan_type: 'one_time', initial_price: 10.43, currency: 'usd', product } as const;
    const ids = { company_id: 'biz_fake', member_id, payment_method_id };
    const payment = await client.payments.create({ ...ids, plan, metadata: { ours: '1' } });
    expect(payment).to.deep.include({ substatus: 'succeeded', total: 10.43, metadata: { ours: '1' } });
    const refunded = await client.payments.refund(payment.id, { partial_amount: 4 });
    expect(refunded.refunds.map(({ amount, status }) => [amount, status])).to.deep.equal([[4, 'succeeded']]);
    expect(await readRefusal(client.payments.refund(payment.id, { partial_amount: 7 }))).to.equal(400);
    const other = { ...ids, member_id: 'mber_other', plan };
    expect(await readRefusal(client.payments.create(other))).to.equal(404);
  });

  it('a page is opened once for a key, found, paid and deleted', async () => {
    const plan = { plan_type: 'one_time', initial_price: 5, currency: 'usd', stock: 1, unlimited_stock: false };
    const body = {
      account_id: 'biz_fake',
      mode: 'payment',
      plan,
      metadata: { ours: '1' },
      'Idempotency-Key': 'k',
    } as const;
    const page = await client.checkoutConfigurations.create(body);
    expect((await client.checkoutConfigurations.create(body)).id).to.equal(page.id);
    expect(await readRefusal(client.checkoutConfigurations.create({ ...body, metadata: {} }))).to.equal(400);
    const { data } = await client.checkoutConfigurations.list({ account_id: 'biz_fake', created_after: 1 });
    expect(data.map(({ id }) => id)).to.deep.equal([page.id]);
    const paid = fake.book.payCheckout(page.id);
    const found = await client.payments.list({ company_id: 'biz_fake', checkout_configuration_ids: [page.id] });
    expect(found.data.map(({ id, metadata }) => [id, metadata])).to.deep.equal([[paid.id, { ours: '1' }]]);
    await client.checkoutConfigurations.delete(page.id);
    expect(await readRefusal(client.checkoutConfigurations.retrieve(page.id))).to.equal(404);
  });

  it('a setup has its member and its payment method', async () => {
    const page = await client.checkoutConfigurations.create({ account_id: 'biz_fake', mode: 'setup' });
    const { id } = fake.book.completeSetup(page.id);
    const setup = await client.setupIntents.retrieve(id);
    expect(setup.checkout_configuration!.id).to.equal(page.id);
    expect([setup.status, setup.payment_method!.payment_method_type]).to.deep.equal(['succeeded', 'card']);
    const { data } = await client.setupIntents.list({ company_id: 'biz_fake' });
    expect(data.map((one) => one.id)).to.deep.equal([id]);
  });

  it('the company is read, and a wrong key refused', async () => {
    expect((await client.companies.retrieve('biz_fake')).title).to.equal('Fake Company');
    fake.is_revoked = true;
    expect(await readRefusal(client.companies.retrieve('biz_fake'))).to.equal(401);
  });
});
