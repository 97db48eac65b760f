/**
 * Requests of Paddle's own library to the fake, which must behave as the public documentation says: kinds of records,
 * refusals, lists, and failures. No other fake of Paddle exists to compare with.
 */
import {
  ApiError,
  type CreateTransactionRequestBody,
  type Environment,
  LogLevel,
  Paddle,
} from '@paddle/paddle-node-sdk';
import { expect } from 'chai';
import { PaddleFake } from '../../support/providers/paddle-fake.ts';

describe('integrations/paddle/contract', () => {
  let fake: PaddleFake;
  let client: Paddle;
  let customerId: string;
  let addressId: string;

  beforeEach(async () => {
    fake = await new PaddleFake().start();
    const environment = fake.url.origin as unknown as Environment;
    client = new Paddle(fake.api_key, { environment, logLevel: LogLevel.none });
    customerId = (await client.customers.create({ email: 'a@acme.example', name: 'Acme' })).id;
    const address = {
      countryCode: 'DE',
      firstLine: 'Way 1',
      city: 'Berlin',
      region: 'BE',
      postalCode: '10115',
    } as const;
    addressId = (await client.addresses.create(customerId, address)).id;
  });
  afterEach(() => fake.stop());

  const body = (more: Partial<CreateTransactionRequestBody> = {}): CreateTransactionRequestBody => ({
    items: [
      {
        quantity: 1,
        price: {
          description: 'Seats',
          taxMode: 'external',
          unitPrice: { amount: '10000', currencyCode: 'USD' },
          product: { name: 'Seats', taxCategory: 'standard' },
        },
      },
    ],
    ...{ customerId, addressId, currencyCode: 'USD', collectionMode: 'manual' },
    billingDetails: { enableCheckout: true, paymentTerms: { interval: 'day', frequency: 14 } },
    ...more,
  });
  const refusalOf = async (request: Promise<unknown>) => {
    try {
      await request;
    } catch (error) {
      expect(error).to.be.instanceOf(ApiError);
      const { code, errors } = error as ApiError;
      return [code, ...(errors ?? []).map(({ field }) => field)].join(' ');
    }
    throw new Error('it was accepted');
  };

  it('an invoice goes from ready to completed, is credited and refunded', async () => {
    const created = await client.transactions.create(body());
    expect(created).to.include({ status: 'ready', collectionMode: 'manual', invoiceNumber: null });
    expect(created.details!.totals).to.include({ subtotal: '10000', tax: '1900', balance: '11900' });
    const billed = await client.transactions.update(created.id, { status: 'billed' });
    expect(billed.invoiceNumber).to.match(/^325-/);
    const [line] = billed.details!.lineItems;
    const adjust = (action: 'credit' | 'refund', amount: string) =>
      client.adjustments.create({
        ...{ action, transactionId: billed.id, reason: 'error', taxMode: 'external' as const },
        items: [{ itemId: line!.id, type: 'partial', amount }],
      });
    expect((await adjust('credit', '4000')).totals).to.include({ subtotal: '4000', tax: '760', total: '4760' });
    fake.book.payTransaction(billed.id);
    const paid = await client.transactions.get(billed.id);
    expect([paid.status, paid.payments[0]!.status, paid.payments[0]!.amount]).to.deep.equal([
      ...['completed', 'captured', '7140'],
    ]);
    await adjust('refund', '1000');
    const listed = await client.adjustments.list({ transactionId: [billed.id] }).next();
    expect(listed.map(({ action, status }) => `${action} ${status}`)).to.deep.equal([
      'refund approved',
      'credit approved',
    ]);
  });

  it('a list has pages, newest first', async () => {
    for (let n = 0; n < 4; n++) await client.transactions.create(body());
    const ids: string[] = [];
    for await (const { id } of client.transactions.list({ customerId: [customerId], perPage: 2 })) ids.push(id);
    expect(ids).to.have.length(2 + 2);
    expect(ids).to.deep.equal(ids.toSorted().toReversed());
    const later = { 'createdAt[GTE]': new Date(Date.now() + 60_000).toISOString() };
    expect(await client.transactions.list(later).next()).to.deep.equal([]);
  });

  it('without an address a transaction is a draft, which is not canceled', async () => {
    const { addressId: _address, billingDetails: _details, ...rest } = body({ collectionMode: 'automatic' });
    const { id, status } = await client.transactions.create(rest);
    expect(status).to.equal('draft');
    expect(await refusalOf(client.transactions.update(id, { status: 'canceled' }))).to.equal(
      'transaction_invalid_status_change',
    );
  });

  const refused: [name: string, send: () => Promise<unknown>, why: string][] = [
    ['a known email', () => client.customers.create({ email: 'a@acme.example' }), 'customer_already_exists'],
    ['an unknown id', () => client.transactions.get(`txn_${'z'.repeat(26)}`), 'not_found'],
    [
      'an unknown field',
      () => client.customers.create({ email: 'b@acme.example', colour: 'red' } as never),
      'bad_request ',
    ],
    [
      'another currency of an invoice',
      () => client.transactions.create(body({ currencyCode: 'JPY' })),
      'transaction_currency_code_not_valid_for_manual',
    ],
    [
      'no terms of an invoice',
      () => client.transactions.create(body({ billingDetails: null })),
      'transaction_billing_details_object_required',
    ],
    [
      'terms of a page',
      () => client.transactions.create(body({ collectionMode: 'automatic' })),
      'transaction_billing_details_must_be_null',
    ],
    ['no items', () => client.transactions.create(body({ items: [] })), 'bad_request items'],
  ];
  for (const [name, send, why] of refused)
    it(`refused: ${name}`, async () => expect(await refusalOf(send())).to.equal(why));

  it('refused: a credit of a paid invoice, and a refund of an unpaid one', async () => {
    const { id } = await client.transactions.create(body());
    const refund = { action: 'refund', type: 'full', transactionId: id, reason: 'error' } as const;
    expect(await refusalOf(client.adjustments.create(refund))).to.equal(
      'adjustment_transaction_invalid_status_for_refund',
    );
    await client.transactions.update(id, { status: 'billed' });
    fake.book.payTransaction(id);
    const { details } = await client.transactions.get(id);
    const items = [{ itemId: details!.lineItems[0]!.id, type: 'full' as const, amount: null }];
    const credit = { action: 'credit', transactionId: id, reason: 'error', items } as const;
    expect(await refusalOf(client.adjustments.create({ ...credit, items }))).to.equal(
      'adjustment_transaction_invalid_status_for_credit',
    );
  });

  it('the limit of requests is told with the wait', async () => {
    fake.disturb(/^GET customers/, 'rate_limit');
    const error = await client.customers.get(customerId).catch((thrown: unknown) => thrown);
    expect(error).to.include({ code: 'too_many_requests', retryAfter: 2 });
  });
});
