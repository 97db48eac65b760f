/**
 * One list of requests, sent to our fake of Stripe and to stripe-mock. A request that the fake accepts and stripe-mock
 * refuses is a fault of the fake. Without stripe-mock only the fake is tested; `.ci/run` installs it with Go.
 */
import { expect } from 'chai';
import { Stripe } from 'stripe';
import type { ProviderAccount } from '../../../integrations/account.ts';
import { stripe as provider } from '../../../integrations/stripe/provider.ts';
import { StripeFake } from '../../support/providers/stripe-fake.ts';
import { findStripeMock, startStripeMock } from '../../support/providers/stripe-mock.ts';

/** Sends a request with parameters that the library's types forbid, so that refusals can be tested. */
type Raw = (method: 'GET' | 'POST' | 'DELETE', path: string, parameters?: Record<string, unknown>) => Promise<unknown>;
type Side = { readonly client: Stripe; readonly raw: Raw; readonly account: ProviderAccount };

const openSide = async (url: URL): Promise<Side> => {
  const key = 'sk_test_fake';
  const client = new Stripe(key, {
    host: url.hostname,
    port: url.port,
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
  });
  const raw: Raw = async (method, path, parameters) =>
    await client.rawRequest(method, `/v1/${path}`, parameters as Record<string, string> | undefined);
  return { client, raw, account: await provider.account!.open({ secret_key: key }, { address: url }) };
};

/**
 * Returns the kind of record in the answer, or the status of the refusal. stripe-mock puts an id for the word `invoice`
 * in some answers.
 */
const outcomeOf = async (request: Promise<unknown>): Promise<string | number> => {
  try {
    return (await (request as Promise<{ object: string }>)).object.replace(/^in_\w+$/, 'invoice');
  } catch (error) {
    if (error instanceof Stripe.errors.StripeError && error.statusCode !== undefined) return error.statusCode;
    throw error;
  }
};

/** Creates a customer with a draft of one line. */
const prepare = async ({ client }: Side) => {
  const customer = await client.customers.create({ name: 'Acme' });
  const draft = await client.invoices.create({ customer: customer.id, currency: 'usd' });
  const filled = await client.invoices.addLines(draft.id, { lines: [{ amount: 1_000, description: 'first' }] });
  return { customer: customer.id, draft: draft.id, line: filled.lines.data[0]!.id };
};

type Conversation = {
  readonly name: string;
  hold(side: Side): Promise<(string | number)[]>;
  readonly outcomes: (string | number)[];
};

const ACCEPTED: readonly Conversation[] = [
  {
    name: 'the account',
    hold: async ({ client }) => [await outcomeOf(client.accounts.retrieveCurrent())],
    outcomes: ['account'],
  },
  {
    name: 'a customer, its list, its search',
    hold: async ({ client }) => [
      await outcomeOf(
        client.customers.create(
          {
            name: 'Acme',
            email: 'a@acme.example',
            address: { line1: 'Way 1', country: 'CH' },
            metadata: { farthing_customer_id: 'c' },
          },
          { idempotencyKey: 'contract:customer' },
        ),
      ),
      await outcomeOf(client.customers.list({ limit: 100, created: { gte: 1 } })),
      await outcomeOf(client.customers.search({ query: "metadata['farthing_customer_id']:'c'" })),
    ],
    outcomes: ['customer', 'list', 'search_result'],
  },
  {
    name: 'an invoice from the draft to the payments',
    hold: async (side) => {
      const { customer } = await prepare(side);
      const draft = await side.client.invoices.create({
        ...{
          customer,
          currency: 'usd',
          collection_method: 'send_invoice',
          due_date: 4_000_000_000,
          auto_advance: false,
        },
        ...{
          automatic_tax: { enabled: false },
          discounts: '',
          pending_invoice_items_behavior: 'exclude',
          metadata: { farthing_invoice_id: 'i' },
        },
      });
      const period = { start: 1_700_000_000, end: 1_700_000_001 };
      const lines = [
        { amount: 1_200, description: 'seats', period, metadata: { farthing_line_item_id: 'l' } },
        { amount: -200, description: 'credit' },
      ];
      return [
        draft.object,
        await outcomeOf(side.client.invoices.addLines(draft.id, { lines })),
        await outcomeOf(side.client.invoices.retrieve(draft.id)),
        await outcomeOf(side.client.invoices.finalizeInvoice(draft.id, { auto_advance: false })),
        await outcomeOf(side.client.invoices.retrieve(draft.id, { expand: ['payments.data.payment.payment_intent'] })),
        await outcomeOf(
          side.client.invoicePayments.list({ invoice: draft.id, limit: 100, expand: ['data.payment.payment_intent'] }),
        ),
        await outcomeOf(side.client.invoices.list({ customer, limit: 100, created: { gte: 1 } })),
        await outcomeOf(side.client.invoices.search({ query: "metadata['farthing_invoice_id']:'i'" })),
        await outcomeOf(side.client.invoices.voidInvoice(draft.id, {})),
      ];
    },
    outcomes: ['invoice', 'invoice', 'invoice', 'invoice', 'invoice', 'list', 'list', 'search_result', 'invoice'],
  },
  {
    name: 'an invoice that is due in days',
    hold: async (side) => {
      const { customer } = await prepare(side);
      const terms = { collection_method: 'send_invoice', days_until_due: 0 } as const;
      return [await outcomeOf(side.client.invoices.create({ customer, currency: 'usd', ...terms }))];
    },
    outcomes: ['invoice'],
  },
  {
    name: 'a draft that is deleted with its lines',
    hold: async (side) => {
      const { draft, line } = await prepare(side);
      return [
        await outcomeOf(side.client.invoices.listLineItems(draft, { limit: 100 })),
        await outcomeOf(side.client.invoices.removeLines(draft, { lines: [{ id: line, behavior: 'delete' }] })),
        await outcomeOf(side.client.invoices.del(draft)),
      ];
    },
    outcomes: ['list', 'invoice', 'invoice'],
  },
  {
    name: 'an invoice that is paid, and one that never is',
    hold: async (side) => {
      const paid = await prepare(side);
      await side.client.invoices.finalizeInvoice(paid.draft);
      const lost = await prepare(side);
      await side.client.invoices.finalizeInvoice(lost.draft);
      return [
        await outcomeOf(side.client.invoices.pay(paid.draft, { payment_method: 'pm_card_visa' })),
        await outcomeOf(side.client.invoices.markUncollectible(lost.draft)),
      ];
    },
    outcomes: ['invoice', 'invoice'],
  },
  {
    name: 'a payment from outside, of a part of an invoice',
    hold: async (side) => {
      const { customer, draft } = await prepare(side);
      await side.client.invoices.finalizeInvoice(draft);
      const record = await side.client.paymentRecords.reportPayment({
        amount_requested: { currency: 'usd', value: 400 },
        customer_details: { customer },
        initiated_at: 1_700_000_000,
        outcome: 'guaranteed',
        guaranteed: { guaranteed_at: 1_700_000_000 },
        payment_method_details: { type: 'custom', custom: { display_name: 'Outside Stripe' } },
        processor_details: { type: 'custom', custom: { payment_reference: 'pay_1' } },
        metadata: { farthing_payment_id: 'p' },
      });
      return [
        record.object,
        await outcomeOf(side.client.paymentRecords.list({ limit: 100, created_after: 1 })),
        await outcomeOf(side.client.invoices.attachPayment(draft, { payment_record: record.id })),
        await outcomeOf(
          side.client.invoicePayments.list({ invoice: draft, limit: 100, expand: ['data.payment.payment_record'] }),
        ),
        await outcomeOf(
          side.client.invoices.retrieve(draft, {
            expand: ['payments.data.payment.payment_intent', 'payments.data.payment.payment_record'],
          }),
        ),
      ];
    },
    outcomes: ['payment_record', 'list', 'invoice', 'list', 'invoice'],
  },
  {
    name: 'credit notes of an open and of a paid invoice',
    hold: async (side) => {
      const { draft } = await prepare(side);
      await side.client.invoices.finalizeInvoice(draft);
      const lines = [{ type: 'custom_line_item', description: 'Help', quantity: 1, unit_amount: 300 }];
      const common = { invoice: draft, lines, email_type: 'none', metadata: { farthing_credit_note_id: 'c' } } as const;
      const note = await side.client.creditNotes.create({ ...common, reason: 'order_change' });
      const outcomes = [
        note.object,
        await outcomeOf(side.client.creditNotes.list({ invoice: draft, limit: 100 })),
        await outcomeOf(side.client.creditNotes.retrieve(note.id)),
        await outcomeOf(side.client.creditNotes.voidCreditNote(note.id, {})),
      ];
      await side.client.invoices.pay(draft, { payment_method: 'pm_card_visa' });
      return [...outcomes, await outcomeOf(side.client.creditNotes.create({ ...common, out_of_band_amount: 300 }))];
    },
    outcomes: ['credit_note', 'list', 'credit_note', 'credit_note', 'credit_note'],
  },
  {
    name: 'loose items',
    hold: async (side) => {
      const { customer } = await prepare(side);
      const item = await side.client.invoiceItems.create({
        customer,
        amount: 500,
        currency: 'usd',
        description: 'loose',
      });
      return [
        item.object,
        await outcomeOf(side.client.invoiceItems.list({ customer })),
        await outcomeOf(side.client.invoiceItems.del(item.id)),
      ];
    },
    outcomes: ['invoiceitem', 'list', 'invoiceitem'],
  },
];

/** Charges a new customer. */
const charge = async ({ client }: Side) => {
  const customer = await client.customers.create({ name: 'Acme' });
  const intent = await client.paymentIntents.create({
    ...{ amount: 1_000, currency: 'usd', customer: customer.id, payment_method: 'pm_card_visa', confirm: true },
    ...{
      off_session: true,
      return_url: 'https://shop.example',
      description: 'Invoice 1',
      metadata: { farthing_key: 'k' },
    },
  });
  return { customer: customer.id, intent: intent.id };
};

const PAID: readonly Conversation[] = [
  {
    name: 'a charge, its list, its search, its refund',
    hold: async (side) => {
      const { customer, intent } = await charge(side);
      const { client } = side;
      const refund = await client.refunds.create({
        payment_intent: intent,
        amount: 500,
        metadata: { farthing_refund_id: 'r' },
      });
      return [
        await outcomeOf(client.paymentIntents.retrieve(intent, { expand: ['payment_method'] })),
        await outcomeOf(client.paymentIntents.list({ customer, limit: 100, created: { gte: 1 } })),
        await outcomeOf(client.paymentIntents.search({ query: "metadata['farthing_key']:'k'" })),
        refund.object,
        await outcomeOf(client.refunds.retrieve(refund.id)),
        await outcomeOf(client.refunds.list({ payment_intent: intent, limit: 100 })),
      ];
    },
    outcomes: ['payment_intent', 'list', 'search_result', 'refund', 'refund', 'list'],
  },
  {
    name: 'a charge that is confirmed by the customer, or cancelled',
    hold: async ({ client }) => {
      const { id: customer } = await client.customers.create({ name: 'Acme' });
      const terms = { amount: 1_000, currency: 'usd', customer, payment_method: 'pm_card_authenticationRequired' };
      const [first, second] = [await client.paymentIntents.create(terms), await client.paymentIntents.create(terms)];
      const { payment_method } = terms;
      return [
        await outcomeOf(
          client.paymentIntents.confirm(first.id, { payment_method, return_url: 'https://shop.example' }),
        ),
        await outcomeOf(client.paymentIntents.cancel(second.id)),
      ];
    },
    outcomes: ['payment_intent', 'payment_intent'],
  },
  {
    name: 'a charge that pays an invoice',
    hold: async (side) => {
      const { customer, intent } = await charge(side);
      const draft = await side.client.invoices.create({ customer, currency: 'usd' });
      await side.client.invoices.addLines(draft.id, { lines: [{ amount: 1_000 }] });
      await side.client.invoices.finalizeInvoice(draft.id);
      return [await outcomeOf(side.client.invoices.attachPayment(draft.id, { payment_intent: intent }))];
    },
    outcomes: ['invoice'],
  },
  {
    name: 'a payment page',
    hold: async ({ client }) => {
      const { id: customer } = await client.customers.create({ name: 'Acme' });
      const product_data = { name: 'Invoice 1' };
      const session = await client.checkout.sessions.create({
        ...{ mode: 'payment', customer, success_url: 'https://shop.example', cancel_url: 'https://shop.example/back' },
        line_items: [{ quantity: 1, price_data: { currency: 'usd', unit_amount: 1_000, product_data } }],
        payment_intent_data: { description: 'Invoice 1', metadata: { a: 'b' }, setup_future_usage: 'off_session' },
        ...{ adaptive_pricing: { enabled: false }, metadata: { farthing_key: 'k' } },
      });
      return [
        session.object,
        await outcomeOf(client.checkout.sessions.retrieve(session.id, { expand: ['payment_intent.payment_method'] })),
        await outcomeOf(client.checkout.sessions.list({ customer, limit: 100, created: { gte: 1 } })),
        await outcomeOf(client.checkout.sessions.expire(session.id)),
      ];
    },
    outcomes: ['checkout.session', 'checkout.session', 'list', 'checkout.session'],
  },
  {
    name: 'a setup of a card',
    hold: async ({ client }) => {
      const { id: customer } = await client.customers.create({ name: 'Acme' });
      const setup = await client.setupIntents.create({
        ...{ customer, usage: 'off_session', allowed_payment_method_types: ['card'], metadata: { a: 'b' } },
      });
      return [setup.object, await outcomeOf(client.setupIntents.retrieve(setup.id))];
    },
    outcomes: ['setup_intent', 'setup_intent'],
  },
  {
    name: 'the payment methods of a customer',
    hold: async ({ client }) => {
      const { id } = await client.customers.create({ name: 'Acme' });
      return [
        await outcomeOf(client.customers.retrieve(id)),
        await outcomeOf(client.customers.listPaymentMethods(id, { limit: 100 })),
      ];
    },
    outcomes: ['customer', 'list'],
  },
];

type Refused = {
  readonly name: string;
  send(side: Side): Promise<unknown>;
  readonly status: number;
  /** Stripe refuses the request, but stripe-mock does not: it does not check all names of nested parameters. */
  readonly only_fake?: true;
};

/** Requests that violate Stripe's OpenAPI document. */
const REFUSED: readonly Refused[] = [
  {
    name: 'a reported payment without an amount',
    send: ({ raw }) => raw('POST', 'payment_records/report_payment', { initiated_at: 1 }),
    status: 400,
  },
  {
    name: 'a credit note with a reason that Stripe does not have',
    send: async (side) =>
      await side.raw('POST', 'credit_notes', { invoice: (await prepare(side)).draft, amount: 1, reason: 'other' }),
    status: 400,
  },
  {
    name: 'an unknown parameter of a customer',
    send: ({ raw }) => raw('POST', 'customers', { nickname: 'x' }),
    status: 400,
  },
  {
    name: 'an unknown parameter in a record',
    send: ({ raw }) => raw('POST', 'customers', { address: { line3: 'x' } }),
    status: 400,
    only_fake: true,
  },
  {
    name: 'an unknown parameter of an invoice',
    send: async (side) => await side.raw('POST', 'invoices', { customer: (await prepare(side)).customer, paid: true }),
    status: 400,
  },
  {
    name: 'a value outside an enumeration',
    send: async (side) => {
      const { customer } = await prepare(side);
      return await side.raw('POST', 'invoices', { customer, pending_invoice_items_behavior: 'some' });
    },
    status: 400,
  },
  {
    name: 'an amount with a fraction',
    send: async (side) =>
      await side.raw('POST', `invoices/${(await prepare(side)).draft}/add_lines`, { lines: [{ amount: '1.5' }] }),
    status: 400,
  },
  {
    name: 'lines without a line',
    send: async (side) => await side.raw('POST', `invoices/${(await prepare(side)).draft}/add_lines`, {}),
    status: 400,
  },
  {
    name: 'an unknown parameter of a line',
    send: async (side) =>
      await side.raw('POST', `invoices/${(await prepare(side)).draft}/add_lines`, { lines: [{ price: 'x' }] }),
    status: 400,
    only_fake: true,
  },
  {
    name: 'a removed line without a behavior',
    send: async (side) => {
      const { draft, line } = await prepare(side);
      return await side.raw('POST', `invoices/${draft}/remove_lines`, { lines: [{ id: line }] });
    },
    status: 400,
  },
  {
    name: 'a period without an end',
    send: async (side) =>
      await side.raw('POST', `invoices/${(await prepare(side)).draft}/add_lines`, {
        lines: [{ amount: 1, period: { start: 1 } }],
      }),
    status: 400,
  },
  {
    name: 'an unknown parameter of a charge',
    send: ({ raw }) => raw('POST', 'payment_intents', { amount: 1_000, currency: 'usd', colour: 'red' }),
    status: 400,
  },
  {
    name: 'a charge without an amount',
    send: ({ raw }) => raw('POST', 'payment_intents', { currency: 'usd' }),
    status: 400,
  },
  {
    name: 'an unknown mode of a page',
    send: ({ raw }) => raw('POST', 'checkout/sessions', { mode: 'gift', success_url: 'https://shop.example' }),
    status: 400,
  },
  {
    name: 'an unknown parameter of a refund',
    send: ({ raw }) => raw('POST', 'refunds', { payment_intent: 'pi_1', colour: 'red' }),
    status: 400,
  },
  { name: 'an unknown filter of a list', send: ({ raw }) => raw('GET', 'invoices?colour=red'), status: 400 },
  { name: 'a search without a query', send: ({ raw }) => raw('GET', 'customers/search'), status: 400 },
  { name: 'an unknown path', send: ({ raw }) => raw('GET', 'nothing'), status: 404 },
];

function defineConversations(refused: readonly Refused[], start: () => Promise<{ side: Side; stop(): unknown }>) {
  let side: Side;
  let stop: () => unknown = () => undefined;
  before(async function () {
    this.timeout(20_000);
    ({ side, stop } = await start());
  });
  after(() => stop());

  for (const { name, hold, outcomes } of [...ACCEPTED, ...PAID])
    it(name, async () => expect(await hold(side)).to.deep.equal(outcomes));
  for (const { name, send, status } of refused)
    it(`refused: ${name}`, async () => expect(await outcomeOf(send(side))).to.equal(status));

  it('all that the account sends', async () => {
    const address = { line1: 'Way 1', line2: '', city: 'Bern', state: '', postal_code: '3000', country: 'CH' };
    const common = {
      key_created_at: new Date(Date.now() - 86_400_000),
      key_age_seconds: 86_400,
      is_key_renewed: false,
      name: 'Acme',
      email: 'a@acme.example',
      address,
    };
    const customer = await side.account.pushCustomer!({
      ...common,
      key: 'contract:c',
      customer_id: 'c',
      external_id: 'acme',
    });
    // For stripe-mock every invoice has a total of 10.00 usd.
    const lines = ['12.00', '-2.00'].map((amount) => {
      const period = { period_start: '2026-10-01T00:00:00Z', period_end: '2026-11-01T00:00:00Z' };
      return { description: 'line', amount, line_item_id: `l${amount}`, ...period };
    });
    const invoice = await side.account.pushInvoice!({
      ...{
        key: 'contract:i',
        key_age_seconds: 0,
        key_created_at: new Date(),
        is_key_renewed: false,
        invoice_id: 'i',
        invoice_number: 'INV-1',
        currency: 'usd',
        lines,
      },
      ...{ provider_customer_id: customer.provider_entity_id, total: '10.00', due_date: null },
    });
    await side.account.voidInvoice!(invoice.provider_entity_id, 'contract:v');
    expect((await side.account.identify()).provider_account_id).to.match(/^acct_/);
  });
}

describe('integrations/stripe/contract', () => {
  describe('with our fake', () => {
    defineConversations(REFUSED, async () => {
      const fake = await new StripeFake().start();
      return { side: await openSide(fake.url), stop: () => fake.stop() };
    });
  });

  const path = findStripeMock();
  if (path !== null)
    describe('with stripe-mock', () => {
      const refused = REFUSED.filter(({ only_fake }) => !only_fake);
      defineConversations(refused, async () => {
        const mock = await startStripeMock(path);
        return { side: await openSide(mock.url), stop: () => mock.stop() };
      });
    });
});
