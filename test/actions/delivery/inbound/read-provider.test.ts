/**
 * docs/integrations/README.md, "Webhooks of providers" and "Reading an invoice": reports of a provider, and the records
 * that result.
 */
import { expect } from 'chai';
import { readProvider } from '../../../../actions/delivery/inbound/read-provider.ts';
import { processDuePayments } from '../../../../actions/lifecycle/payments/due-payments.ts';
import type { ProviderEventRecord } from '../../../../core/platform/integration/provider-event.ts';
import { findInvoiceFaults } from '../../../../storage/audit/invoices.ts';
import { countProviderEvents, listConnectionsToRead } from '../../../../storage/queue/provider-events.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { StripeFake, signStripeBody } from '../../../support/providers/stripe-fake.ts';
import { createNote } from '../../../support/providers/stripe-fake-money-out.ts';
import {
  actOnIntent,
  completeSession,
  endRefund,
  type IntentRecord,
  listRefunds,
} from '../../../support/providers/stripe-fake-payments.ts';
import type { InvoiceRecord, StripeRecord } from '../../../support/providers/stripe-fake-records.ts';

const KEY = 'a key of the settings that has 32 characters';
const SECRET = 'whsec_of_the_endpoint';
const HOUR_MS = 3_600_000;

describe('payments that a provider reports', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  let now: Date;
  /** Number of events of the fake that were delivered already. */
  let seen = 0;

  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
    const stripe = { secret_key: 'sk_test_fake', webhook_secret: SECRET };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
    const made = await api.request('POST', '/connections', { body });
    expect(made.status, made.text).to.equal(201);
    connection_id = made.body.id;
  });
  beforeEach(() => {
    now = new Date();
    seen = fake.events.length;
    fake.clearDisturbances();
  });
  afterEach(async () => {
    expect(await findInvoiceFaults(api.services.postgres, { invoices: null, limit: 5 })).to.deep.equal([]);
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const newInvoice = async (fields: object = {}) => {
    const customer = { external_id: `customer ${++customers}`, name: 'Acme', email: 'books@example.com' };
    const customer_id = (await api.request('POST', '/customers', { body: customer })).body.id;
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const body = { customer_id, ...amounts, invoice_status: 'FINALIZED', ...fields };
    const answer = await api.request('POST', '/invoices', { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body.id as string;
  };
  const push = async (invoice_id: string) => {
    const body = { entity_type: 'invoice', entity_id: invoice_id };
    const answer = await api.request('POST', '/integrations/sync', { body });
    expect(answer.status, answer.text).to.equal(200);
    return (await mapping(invoice_id)).provider_entity_id as string;
  };
  /** Creates an invoice and pushes it. */
  const newPushed = async () => {
    const invoice_id = await newInvoice();
    return { invoice_id, there: await push(invoice_id) };
  };
  const mapping = (entity_id: string) => api.services.postgres('integration_mappings').where({ entity_id }).first();
  const invoice = async (id: string) => (await api.request('GET', `/invoices/${id}`)).body;
  const payments = async (invoice_id: string) =>
    (await api.request('GET', `/payments?destination_id=${invoice_id}`)).body.items.toReversed();
  const read = (mayGoOn = async () => true) => {
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    return readProvider(api.services, api.scope, { connection_id, settings, clock: () => now, mayGoOn });
  };
  const post = (event: object, { to = api.scope } = {}) => {
    const text = JSON.stringify(event);
    const signature = signStripeBody(text, [SECRET], Math.floor(Date.now() / 1_000));
    const path = `/webhooks/stripe/${to.tenant_id}/${to.environment_id}`;
    return api.request('POST', path, { body: text, key: null, headers: { 'stripe-signature': signature } });
  };
  /** Delivers the new events of the fake, in the given order. */
  const deliver = async (order: (events: StripeFake['events']) => StripeFake['events'] = (events) => events) => {
    for (const event of order(fake.events.slice(seen))) expect((await post(event)).status).to.equal(200);
  };
  const requestPull = async (entity_id: string) => {
    const body = { entity_type: 'invoice', entity_id, method: 'pull' };
    expect((await api.request('POST', '/integrations/sync', { body })).status).to.equal(200);
    now = new Date(Date.now() + 1_000);
  };
  const stored = (type: string) =>
    api.services.postgres('provider_events').where({ event_type: type }).orderBy('provider_event_id', 'desc').first();
  const systemEvents = async (event_name: string, entity_id: string) =>
    (await api.services.postgres('system_events').where({ event_name, entity_id })).map(({ payload }) => payload);

  const orders: Record<string, (events: StripeFake['events']) => StripeFake['events']> = {
    'in order': (events) => events,
    reversed: (events) => events.toReversed(),
    twice: (events) => [...events, ...events],
  };
  for (const [name, order] of Object.entries(orders))
    it(`an invoice that is paid there is paid here, once: events ${name}`, async () => {
      const { invoice_id, there } = await newPushed();
      fake.book.payInvoice(there, { card: 'pm_card_visa' });
      await deliver(order);
      expect((await read()).ended).to.equal('done');
      await deliver(order);
      await read();
      expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED', amount_paid: '100' });
      const [payment, ...others] = await payments(invoice_id);
      expect(others).to.deep.equal([]);
      expect(payment).to.include({ amount: '100', payment_status: 'SUCCEEDED', connection_id });
      expect(payment!.gateway_payment_id).to.match(/^pi_/);
    });

  it('a part is recorded as it was paid, and the rest later', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa', amount: 3_000 });
    await deliver();
    await read();
    expect(await invoice(invoice_id)).to.include({
      payment_status: 'PENDING',
      amount_paid: '30',
      amount_remaining: '70',
    });
    seen = fake.events.length;
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver();
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED', amount_paid: '100' });
    expect((await payments(invoice_id)).map(({ amount }) => amount)).to.deep.equal(['30', '70']);
  });

  it('more than the invoice is recorded as it was paid: it is overpaid', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa', received: 12_000 });
    await deliver();
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'OVERPAID', overpaid_amount: '20' });
    expect((await payments(invoice_id)).map(({ amount }) => amount)).to.deep.equal(['120']);
  });

  it('money for an invoice that was paid here meanwhile is recorded, too', async () => {
    const { invoice_id, there } = await newPushed();
    const offline = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
    const paid = await api.request('POST', '/payments', { body: { ...offline, amount: '100', currency: 'usd' } });
    expect(paid.status, paid.text).to.equal(201);
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver();
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'OVERPAID', amount_paid: '200' });
  });

  it('money in another currency is not counted, and a person is asked once', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    fake.book.listPayments(there)[0]!['currency'] = 'eur';
    await deliver();
    await read();
    await api.request('POST', '/integrations/sync', {
      body: { entity_type: 'invoice', entity_id: invoice_id, method: 'pull' },
    });
    now = new Date(Date.now() + 1_000);
    expect((await read()).read).to.equal(1);
    expect(await invoice(invoice_id)).to.include({ payment_status: 'PENDING', amount_paid: '0' });
    const { id, attention_reason } = await mapping(invoice_id);
    expect(attention_reason).to.match(/^payment pi_\d+ of 100 eur at stripe is not in usd/);
    const told = await systemEvents('integration_mapping.needs_attention', id);
    expect(told.map((body) => body.integration_mapping.attention_reason)).to.deep.equal([attention_reason]);
  });

  it('money for an invoice that is void here is not counted, and a person is asked', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    expect((await api.request('POST', `/invoices/${invoice_id}/void`)).status).to.equal(200);
    await deliver();
    await read();
    expect(await payments(invoice_id)).to.deep.equal([]);
    expect((await mapping(invoice_id)).attention_reason).to.match(/pays an invoice that is VOIDED$/);
  });

  it('an invoice that is closed there stays open here, and a person is asked', async () => {
    for (const [close, name] of [
      ['voidInvoice', 'void'],
      ['markUncollectible', 'uncollectible'],
    ] as const) {
      const { invoice_id, there } = await newPushed();
      fake.book[close](there);
      await deliver();
      await read();
      expect(await invoice(invoice_id)).to.include({ invoice_status: 'FINALIZED', amount_remaining: '100' });
      expect((await mapping(invoice_id)).attention_reason).to.equal(
        `the invoice is ${name} at stripe, but 100 is open`,
      );
    }
  });

  it('an invoice that is paid there without money stays open here, and a person is asked', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.find<InvoiceRecord>('invoice', there).status = 'paid';
    await requestPull(invoice_id);
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'PENDING', amount_remaining: '100' });
    expect((await mapping(invoice_id)).attention_reason).to.equal('the invoice is paid at stripe, but 100 is open');
  });

  it('an invoice that a charge has paid there is read again after the charge is booked', async () => {
    const { invoice_id, there } = await newPushed();
    const link = { payment_method_type: 'PAYMENT_LINK', payment_gateway: 'stripe', process_payment: false };
    const open = { destination_type: 'INVOICE', destination_id: invoice_id, amount: '100', currency: 'usd', ...link };
    const { id } = (await api.request('POST', '/payments', { body: open })).body;
    const charging = { payment_status: 'PROCESSING', gateway_payment_id: `pi_${id}` };
    await api.services.postgres('payments').where({ id }).update(charging);
    fake.book.find<InvoiceRecord>('invoice', there).status = 'paid';
    await requestPull(invoice_id);
    await read();
    const { attention_reason, next_pull_at } = await mapping(invoice_id);
    expect([attention_reason, new Date(next_pull_at) > now]).to.deep.equal([null, true]);
    await api.services.postgres('payments').where({ id }).update({ payment_status: 'FAILED' });
  });

  it('a recorded payment that has another amount there, or is gone there, asks a person', async () => {
    for (const [change, text] of [
      [(payment: StripeRecord) => Object.assign(payment, { amount_paid: 2_000 }), 'is 20 at stripe'],
      [(payment: StripeRecord) => Object.assign(payment, { invoice: 'in_other' }), 'is 0 at stripe'],
    ] as const) {
      const { invoice_id, there } = await newPushed();
      fake.book.payInvoice(there, { card: 'pm_card_visa', amount: 3_000 });
      await requestPull(invoice_id);
      await read();
      expect((await mapping(invoice_id)).attention_reason).to.equal(null);
      change(fake.book.listPayments(there).find(({ status }) => status === 'paid')!);
      await requestPull(invoice_id);
      await read();
      expect((await mapping(invoice_id)).attention_reason)
        .to.contain('of 30 usd')
        .and.contain(text);
      expect((await payments(invoice_id)).map(({ amount }) => amount)).to.deep.equal(['30']);
    }
  });

  it('a refund there is recorded once, however often it is reported', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver();
    await read();
    const [payment] = await payments(invoice_id);
    seen = fake.events.length;
    fake.book.refundPayment(payment!.gateway_payment_id!, 2_500);
    await deliver();
    await read();
    fake.book.refundPayment(payment!.gateway_payment_id!, 2_500);
    await deliver((events) => events.toReversed());
    await read();
    const requests = fake.requests.filter((name) => name === 'POST refunds');
    expect(requests).to.deep.equal([]);
    expect((await payments(invoice_id))[0]).to.include({ refunded_amount: '50', payment_status: 'PARTIALLY_REFUNDED' });
    expect(await invoice(invoice_id)).to.include({ payment_status: 'PARTIALLY_REFUNDED', refunded_amount: '50' });
    const refunds = await api.services.postgres('payment_refunds').where({ payment_id: payment!.id });
    expect(refunds.map(({ refund_status }) => refund_status)).to.deep.equal(['succeeded', 'succeeded']);
  });

  for (const [how, parameters, expected] of [
    ['refunds by itself', { refund_amount: 3_000 }, { refunded_amount: '30', told: 'nothing' }],
    ['returns to the balance there', { credit_amount: 3_000 }, { refunded_amount: '0', told: '30 usd .* credited' }],
  ] as const)
    it(`a credit note of a paid invoice that Stripe ${how}`, async () => {
      const { invoice_id, there } = await newPushed();
      fake.book.payInvoice(there, { card: 'pm_card_visa' });
      await deliver();
      await read();
      seen = fake.events.length;
      const lines = [{ type: 'custom_line_item', unit_amount: 3_000, quantity: 1 }];
      createNote(fake.book, { invoice: there, lines, ...parameters });
      await deliver();
      await read();
      expect((await invoice(invoice_id)).refunded_amount).to.equal(expected.refunded_amount);
      expect((await mapping(invoice_id)).attention_reason ?? 'nothing').to.match(new RegExp(expected.told));
    });

  it('a payment that was refunded before it was read is recorded with its refund', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    const [payment_there] = fake.book.listPayments(there);
    fake.book.refundPayment(payment_there!.payment.payment_intent!, 10_000);
    await deliver((events) => events.toReversed());
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'REFUNDED', refunded_amount: '100' });
  });

  it('a page of ours that has paid the invoice there is not recorded again before its outcome is read', async () => {
    const { invoice_id, there } = await newPushed();
    const link = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'PAYMENT_LINK' };
    const body = { ...link, payment_gateway: 'stripe', amount: '100', currency: 'usd' };
    const page = (await api.request('POST', '/payments', { body })).body;
    const intent = completeSession(fake.book, page.gateway_payment_id!, 'pm_card_visa')!;
    fake.book.attachPayment(there, intent.id);
    await deliver((events) => events.filter(({ type }) => type === 'invoice.paid'));
    await read();
    expect((await payments(invoice_id)).map(({ payment_status }) => payment_status)).to.deep.equal(['INITIATED']);
    await processDuePayments(api.services, { now: new Date(now.getTime() + HOUR_MS) });
    const [paid, ...others] = await payments(invoice_id);
    expect(others).to.deep.equal([]);
    expect(paid).to.include({ id: page.id, payment_status: 'SUCCEEDED', gateway_payment_id: intent.id });
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED', amount_paid: '100' });
  });

  it('a dispute is reported and changes no amount', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    const [payment_there] = fake.book.listPayments(there);
    fake.book.disputePayment(payment_there!.payment.payment_intent!);
    await deliver((events) => events.filter(({ type }) => type.startsWith('charge.dispute')));
    await deliver();
    await read();
    const [payment] = await payments(invoice_id);
    expect(payment).to.include({ payment_status: 'SUCCEEDED', amount: '100' });
    const reports = await systemEvents('payment.disputed', payment!.id);
    expect(reports.map(({ dispute }) => dispute.event_type)).to.deep.equal(['charge.dispute.created']);
  });

  it('a webhook that comes before the id is stored waits for it', async () => {
    const invoice_id = await newInvoice();
    fake.disturb(/POST invoices.*finalize$/, 'lost_answer');
    const lost = await api.request('POST', '/integrations/sync', {
      body: { entity_type: 'invoice', entity_id: invoice_id },
    });
    expect(lost.status).to.equal(503);
    const [there] = fake.listInvoices().filter(({ metadata }) => metadata.farthing_invoice_id === invoice_id);
    fake.book.payInvoice(there!.id, { card: 'pm_card_visa' });
    await deliver((events) => events.filter(({ type }) => type === 'invoice.paid'));
    await read();
    expect(await stored('invoice.paid')).to.include({ event_state: 'received', attempt_count: 1 });
    await push(invoice_id);
    now = new Date(now.getTime() + 60_000);
    await read();
    expect(await stored('invoice.paid')).to.include({ event_state: 'processed', reason: null });
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED' });
  });

  it('an event about a record of somebody else is ignored at once, also after a refused push', async () => {
    const refused = { mapping_state: 'intended', key_created_at: now, provider_entity_id: null };
    const [kept] = await api.services.postgres('integration_mappings').where({ connection_id, mapping_state: 'made' });
    for (const [id, refusal] of [
      ['imap_refused_1', { push_error: 'refused' }],
      ['imap_refused_2', { is_key_renewed: true, pending_since: null }],
    ] as const)
      await api.services
        .postgres('integration_mappings')
        .insert({ ...kept, ...refused, ...refusal, id, entity_id: id, next_pull_at: null });
    const customer = fake.book.createCustomer({});
    const foreign = fake.book.createInvoice({ customer: customer.id, currency: 'usd' });
    fake.book.addLines(foreign.id, [{ amount: 500 }]);
    fake.book.finalizeInvoice(foreign.id);
    fake.book.payInvoice(foreign.id, { card: 'pm_card_visa' });
    await deliver();
    await read();
    for (const type of ['invoice.paid', 'payment_intent.succeeded', 'invoice.created'])
      expect((await stored(type)).event_state, type).to.equal('ignored');
    await api.services.postgres('integration_mappings').whereLike('id', 'imap_refused_%').delete();
  });

  it('of two tenants with one key, each reads its own records alone', async () => {
    const { scope, key } = await api.otherTenant();
    await api.services.postgres('environments').where({ id: scope.environment_id }).update({ type: 'development' });
    const stripe = { secret_key: 'sk_test_fake', webhook_secret: SECRET };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
    const other = await api.request('POST', '/connections', { body, key });
    expect(other.status, other.text).to.equal(201);
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    const paid = fake.events.slice(seen).filter(({ type }) => /^(invoice\.paid|payment_intent\.succeeded)$/.test(type));
    expect(paid).to.have.length(2);
    for (const event of paid) expect((await post(event, { to: scope })).status).to.equal(200);
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    const job = { connection_id: other.body.id, settings, clock: () => now, mayGoOn: async () => true };
    expect(await readProvider(api.services, scope, job)).to.deep.equal({ ended: 'done', read: 2 });
    const events = await api.services.postgres('provider_events').where(scope).pluck('event_state');
    expect(events).to.deep.equal(['ignored', 'ignored']);
    expect(await api.services.postgres('payments').where(scope)).to.deep.equal([]);
    expect(await invoice(invoice_id)).to.include({ payment_status: 'PENDING' });
    await deliver();
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED' });
  });

  it('an event of another account is ignored', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    const paid = fake.events.find(({ type }) => type === 'invoice.paid')!;
    expect((await post({ ...paid, account: 'acct_other' })).status).to.equal(200);
    await read();
    expect(await stored('invoice.paid')).to.include({ event_state: 'ignored' });
    expect(await invoice(invoice_id)).to.include({ payment_status: 'PENDING' });
    await api.services.postgres('integration_mappings').where({ entity_id: invoice_id }).update({ next_pull_at: now });
    await read();
  });

  it('lost webhooks are made up for by reading, less and less often, until it is paid there', async () => {
    const { invoice_id, there } = await newPushed();
    const due = async () => (await mapping(invoice_id)).next_pull_at as Date | null;
    const pauses: number[] = [];
    for (let before = new Date(now); pauses.length < 8; before = now) {
      now = new Date((await due())!);
      pauses.push(Math.round((now.getTime() - before.getTime()) / HOUR_MS));
      expect((await listConnectionsToRead(api.services.postgres, now)).map(({ id }) => id)).to.include(connection_id);
      await read();
    }
    expect(pauses).to.deep.equal([1, 1, 2, 4, 8, 16, 24, 24]);
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    now = new Date((await due())!);
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED' });
    expect(await due()).to.equal(null);
  });

  it('a provider that is away for a day delays the effect, and nothing is lost', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver();
    const until = now.getTime() + 24 * HOUR_MS;
    while (now.getTime() < until) {
      fake.disturb(/GET/, 'unavailable');
      expect((await read()).ended).to.equal('paused');
      const requests = fake.requests.length;
      expect((await read()).ended, 'nothing is called during the pause').to.equal('paused');
      expect(fake.requests.length).to.equal(requests);
      expect(await listConnectionsToRead(api.services.postgres, now)).to.deep.equal([]);
      const { paused_until } = await api.services.postgres('connections').where({ id: connection_id }).first();
      now = new Date(paused_until);
    }
    expect((await read()).ended).to.equal('done');
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED' });
  });

  /** Creates a bank debit that has succeeded at the provider, whose event is not delivered yet. */
  const newDebit = async () => {
    const destination = { destination_type: 'INVOICE', destination_id: await newInvoice() };
    const method = {
      payment_method_type: 'ACH',
      payment_gateway: 'stripe',
      payment_method_id: 'pm_usBankAccount_success',
    };
    const body = { ...destination, ...method, amount: '100', currency: 'usd' };
    const { id, gateway_payment_id, payment_status } = (await api.request('POST', '/payments', { body })).body;
    expect(payment_status).to.equal('PROCESSING');
    actOnIntent(fake.book, gateway_payment_id!, 'succeeded');
    await deliver((events) => events.filter(({ type }) => type === 'payment_intent.succeeded'));
    return { id, intent: fake.book.find<IntentRecord>('payment_intent', gateway_payment_id!) };
  };
  const payment = async (id: string) => (await api.request('GET', `/payments/${id}`)).body;

  it('an event about a charge of ours waits while the provider is away', async () => {
    const { id } = await newDebit();
    fake.disturb(/GET payment_intents/, 'unavailable');
    expect((await read()).ended).to.equal('paused');
    expect(await stored('payment_intent.succeeded')).to.include({ event_state: 'received', attempt_count: 0 });
    const { paused_until } = await api.services.postgres('connections').where({ id: connection_id }).first();
    now = new Date(paused_until);
    await read();
    expect(await stored('payment_intent.succeeded')).to.include({ event_state: 'processed' });
    expect(await payment(id)).to.include({ payment_status: 'SUCCEEDED' });
  });

  for (const [received, invoice_state] of [
    ['40', { payment_status: 'PENDING', amount_paid: '40' }],
    ['120', { payment_status: 'SUCCEEDED', amount_paid: '100' }],
  ] as const)
    it(`a charge of 100 of which ${received} was received is recorded so, and the difference is noted`, async () => {
      const { id, intent } = await newDebit();
      intent.amount_received = Number(received) * 100;
      await read();
      expect(await stored('payment_intent.succeeded')).to.include({ event_state: 'processed' });
      const recorded = await payment(id);
      expect(recorded).to.include({
        amount: received,
        error_message: `100 usd was requested, and ${received} usd was received`,
        refunded_amount: received === '120' ? '20' : '0',
      });
      expect((await api.request('GET', `/invoices/${recorded.destination_id}` as const)).body).to.include(
        invoice_state,
      );
    });

  it('a charge of which another currency was received pauses nothing', async () => {
    const { id, intent } = await newDebit();
    intent.currency = 'eur';
    expect((await read()).ended).to.equal('done');
    const event = await stored('payment_intent.succeeded');
    expect(event).to.include({ event_state: 'received', attempt_count: 1 });
    expect(event.reason).to.match(/received 100 eur/);
    intent.currency = 'usd';
    now = new Date(event.next_attempt_at);
    await read();
    expect(await payment(id)).to.include({ payment_status: 'SUCCEEDED' });
  });

  it('a refund there of a charge of ours is recorded once, beside our own refunds', async () => {
    const { id, intent } = await newDebit();
    await read();
    seen = fake.events.length;
    const own = await api.request('POST', `/payments/${id}/refund`, { body: { amount: '10' } });
    expect(own.status, own.text).to.equal(200);
    fake.book.refundPayment(intent.id, 3_000);
    const ours = listRefunds(fake.book, intent.id).find(({ amount }) => amount === 1_000)!;
    endRefund(fake.book, ours.id, 'succeeded');
    await deliver((events) => [...events, ...events]);
    await read();
    await deliver();
    await read();
    expect(await payment(id)).to.include({ payment_status: 'PARTIALLY_REFUNDED', refunded_amount: '40' });
    const refunds = await api.services.postgres('payment_refunds').where({ payment_id: id }).orderBy('amount');
    expect(refunds.map(({ amount }) => Number(amount))).to.deep.equal([10, 30]);
    expect(listRefunds(fake.book, intent.id)).to.have.length(2);
  });

  it('a refund there is recorded in full beside a pending refund of ours, and stays when ours fails', async () => {
    const { id, intent } = await newDebit();
    await read();
    seen = fake.events.length;
    const own = await api.request('POST', `/payments/${id}/refund`, { body: { amount: '40' } });
    expect(own.status, own.text).to.equal(200);
    fake.book.refundPayment(intent.id, 3_000);
    await deliver();
    await read();
    expect(await payment(id)).to.include({ refunded_amount: '70' });
    seen = fake.events.length;
    endRefund(fake.book, listRefunds(fake.book, intent.id).find(({ amount }) => amount === 4_000)!.id, 'failed');
    await deliver();
    await read();
    expect(await payment(id)).to.include({ payment_status: 'PARTIALLY_REFUNDED', refunded_amount: '30' });
  });

  it('a refund there of a payment that was made there is recorded beside a pending one of ours', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver();
    await read();
    const [paid] = await payments(invoice_id);
    fake.book.find<IntentRecord>('payment_intent', paid!.gateway_payment_id!).payment_method =
      'pm_usBankAccount_success';
    seen = fake.events.length;
    await api.request('POST', `/payments/${paid!.id}/refund`, { body: { amount: '40' } });
    fake.book.refundPayment(paid!.gateway_payment_id!, 3_000);
    await deliver();
    await read();
    expect((await payments(invoice_id))[0]).to.include({ refunded_amount: '70' });
    endRefund(fake.book, listRefunds(fake.book, paid!.gateway_payment_id!)[1]!.id, 'failed');
    now = new Date(now.getTime() + 2 * HOUR_MS);
    await processDuePayments(api.services, { now });
    await read();
    expect((await payments(invoice_id))[0]).to.include({ refunded_amount: '30' });
  });

  it('a refund of money that was received outside Stripe is a record only', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { outside: true });
    await deliver();
    await read();
    const [paid] = await payments(invoice_id);
    expect(paid).to.include({ payment_status: 'SUCCEEDED', payment_gateway: null, connection_id });
    const refunded = await api.request('POST', `/payments/${paid!.id}/refund`, { body: {} });
    expect(refunded.body, refunded.text).to.include({ payment_status: 'REFUNDED', refunded_amount: '100' });
    expect(refunded.body.refunds!.map(({ refund_status }) => refund_status)).to.deep.equal(['succeeded']);
  });

  it('two jobs at once record one payment', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver();
    const results = await Promise.all([read(), read(), read()]);
    expect(results.map(({ ended }) => ended)).to.deep.equal(['done', 'done', 'done']);
    expect(await payments(invoice_id)).to.have.length(1);
    expect(await invoice(invoice_id)).to.include({ amount_paid: '100' });
  });

  it('an event whose effect fails is tried again, then failed, and can be retried', async () => {
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    const record = fake.book.find('invoice', there);
    record['status'] = 'strange';
    const { failed: failed_before, waiting: waiting_before } = await countProviderEvents(api.services.postgres);
    await deliver((events) => events.filter(({ type }) => type === 'invoice.paid'));
    expect(await countProviderEvents(api.services.postgres)).to.include({ waiting: waiting_before + 1 });
    for (let attempt = 1; attempt <= 8; attempt++) {
      await read();
      const { next_attempt_at, attempt_count } = await stored('invoice.paid');
      expect(attempt_count).to.equal(attempt);
      if (next_attempt_at) now = new Date(next_attempt_at);
    }
    const query = `/webhooks/inbound?event_state=failed&event_types=invoice.paid&connection_ids=${connection_id}`;
    const listed = await api.request<{ items: ProviderEventRecord[] }>('GET', query);
    const [failed] = listed.body.items;
    expect(failed).to.include({ event_state: 'failed', attempt_count: 8, next_attempt_at: null });
    expect(failed!.reason).to.match(/status strange/);
    expect(await countProviderEvents(api.services.postgres)).to.include({
      failed: failed_before + 1,
      waiting: waiting_before,
    });
    record['status'] = 'paid';
    const retried = await api.request('POST', `/webhooks/inbound/${failed!.id}/retry`);
    expect([retried.status, retried.body.event_state]).to.deep.equal([202, 'received']);
    now = new Date(Date.now() + 1_000);
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED' });
    const again = await api.request('POST', `/webhooks/inbound/${failed!.id}/retry`);
    expect([again.status, again.body.code]).to.deep.equal([400, 'invalid_operation']);
  });

  it('an effect that breaks off leaves nothing, and is made up for although its job is lost', async () => {
    const { postgres } = api.services;
    const { invoice_id, there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver((events) => events.filter(({ type }) => type === 'invoice.paid'));
    await postgres.raw(`create function break_off() returns trigger language plpgsql as $$ begin raise exception 'broken off'; end $$;
      create trigger break_off before update on provider_events for each row execute function break_off()`);
    const broken = await read().catch((error: Error) => error);
    await postgres.raw('drop trigger break_off on provider_events; drop function break_off()');
    expect((broken as Error).message).to.match(/broken off/);
    expect(await payments(invoice_id)).to.deep.equal([]);
    expect(await invoice(invoice_id)).to.include({ payment_status: 'PENDING' });
    await postgres('graphile_worker._private_jobs').del();
    expect((await listConnectionsToRead(postgres, now)).map(({ id }) => id)).to.include(connection_id);
    await read();
    expect(await invoice(invoice_id)).to.include({ payment_status: 'SUCCEEDED' });
  });

  it('the slot is left to others after a while, and the rest follows', async () => {
    const { there } = await newPushed();
    fake.book.payInvoice(there, { card: 'pm_card_visa' });
    await deliver();
    let times = 0;
    expect(await read(async () => times++ === 0)).to.deep.equal({ ended: 'continued', read: 1 });
    const jobs = await api.services.postgres('graphile_worker.jobs').where('key', `read-provider:${connection_id}`);
    expect(jobs).to.have.length(1);
    expect((await read()).ended).to.equal('done');
  });

  for (const [how, push_error] of [
    ['a request', null],
    ['itself', 'the invoice is paid at Stripe'],
  ] as const)
    it(`money is recorded, too, after the provider refused the payment that was sent by ${how}`, async () => {
      const { invoice_id, there } = await newPushed();
      fake.book.payInvoice(there, { card: 'pm_card_visa' });
      const offline = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
      const paid = await api.request('POST', '/payments', { body: { ...offline, amount: '100', currency: 'usd' } });
      const sent = { entity_type: 'payment', entity_id: paid.body.id };
      const refused = await api.request('POST', '/integrations/sync', { body: sent });
      expect(refused.text).to.match(/is paid at Stripe/);
      await api.services.postgres('integration_mappings').where({ entity_id: paid.body.id }).update({ push_error });
      await deliver();
      await read();
      expect(await invoice(invoice_id)).to.include({ payment_status: 'OVERPAID', amount_paid: '200' });
      await api.request('POST', '/integrations/sync', { body: sent });
      await read();
      expect((await payments(invoice_id)).map(({ amount }) => amount)).to.deep.equal(['100', '100']);
    });
  it('a sweep leaves out an environment with a test clock, and begins with the longest waiting', async () => {
    const { postgres } = api.services;
    await newPushed();
    now = new Date(now.getTime() + 2 * HOUR_MS);
    const row = await postgres('connections').where({ id: connection_id }).first();
    const id = 'connection_that_waits_longer';
    await postgres('connections').insert({ ...row, id, provider_type: 'razorpay' });
    const mapped = await postgres('integration_mappings').where({ connection_id }).whereNotNull('next_pull_at').first();
    const older = {
      id: 'mapping_that_waits_longer',
      connection_id: id,
      provider_type: 'razorpay',
      next_pull_at: new Date(0),
    };
    await postgres('integration_mappings').insert({ ...mapped, ...older, sent_invoice: null });
    const list = async () => (await listConnectionsToRead(postgres, now)).map((one) => one.id);
    expect(await list()).to.deep.equal([id, connection_id]);
    const { tenant_id, environment_id } = api.scope;
    const clock = { id: 'clock', tenant_id, environment_id, frozen_time: now, advanced_from: now, advanced_at: now };
    await postgres('test_clocks').insert({ ...clock, progress: '{}' });
    expect(await list()).to.deep.equal([]);
  });
});
