/** docs/rules/payments.md, "Tried again" and "Never twice": charges of Stripe that end after the service has gone further. */
import { expect } from 'chai';
import { readProvider } from '../../../actions/delivery/inbound/read-provider.ts';
import { beginAttempt } from '../../../actions/lifecycle/payments/begin-attempt.ts';
import { processDuePayments } from '../../../actions/lifecycle/payments/due-payments.ts';
import { refreshPayment } from '../../../actions/lifecycle/payments/process-payment.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { StripeFake, signStripeBody } from '../../support/providers/stripe-fake.ts';
import { actOnIntent, type IntentRecord } from '../../support/providers/stripe-fake-payments.ts';
import { until } from '../../support/until.ts';

const KEY = 'a key of the settings that has 32 characters';
const SECRET = 'whsec_of_the_endpoint';
const DAY_MS = 24 * 3_600_000;

/** Fields of the answers that these tests read; each answer has some of them. */
type Shown = {
  id: string;
  message: string;
  details: { field: string; payment_id: string };
  payment_status: string;
  amount_paid: string;
  error_message: string;
  attempt_count: number;
  gateway_payment_id: string;
  next_attempt_at: string | null;
  attempts: { payment_status: string; error_message: string | null }[];
  items: Shown[];
};

describe('charges with a late outcome', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  let now: Date;

  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
    const stripe = { secret_key: 'sk_test_fake', webhook_secret: SECRET };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
    connection_id = (await ok('POST', '/connections', body)).id;
  });
  beforeEach(() => {
    now = new Date();
    api.setNow(now);
    fake.clearDisturbances();
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const ok = async (method: string, path: string, body?: unknown) => {
    const answer = await api.request<Shown>(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.be.lessThan(300);
    return answer.body;
  };
  const newCustomer = async () =>
    (await ok('POST', '/customers', { external_id: `late ${++customers}`, name: 'Acme', email: 'books@example.com' }))
      .id;
  const newInvoice = async (customer_id: string) => {
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    return (await ok('POST', '/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' })).id;
  };
  const saveCard = (customer_id: string, gateway_payment_method_id: string) =>
    ok('POST', `/payments/customers/${customer_id}/methods`, { payment_gateway: 'stripe', gateway_payment_method_id });
  const pay = (invoice_id: string, terms: object) =>
    ok('POST', '/payments', {
      ...{ destination_type: 'INVOICE', destination_id: invoice_id, amount: '100', currency: 'usd' },
      ...{ payment_gateway: 'stripe', ...terms },
    });
  const CARD = { payment_method_type: 'CARD', payment_method_id: 'pm_card_visa' };
  const LINK = { payment_method_type: 'PAYMENT_LINK', success_url: 'https://shop.example/paid' };
  const show = (id: string) => ok('GET', `/payments/${id}`);
  const load = (id: string) => PaymentModel.fetch(api.scope, id, { database: api.services.postgres });
  const intents = (payment_id: string) =>
    fake.book
      .list<IntentRecord>('payment_intent')
      .filter(({ metadata }) => metadata['farthing_payment_id'] === payment_id)
      .sort((a, b) => (a.metadata['farthing_key']! < b.metadata['farthing_key']! ? -1 : 1));
  const runDue = async (after_ms: number) => {
    now = new Date(now.getTime() + after_ms);
    api.setNow(now);
    expect((await processDuePayments(api.services, { now })).failed).to.deep.equal([]);
  };
  const newDeclined = async () => {
    const customer_id = await newCustomer();
    await saveCard(customer_id, 'pm_card_chargeCustomerFail');
    const invoice_id = await newInvoice(customer_id);
    await ok('POST', `/invoices/${invoice_id}/payment/attempt`, {});
    const { id } = (await ok('GET', `/payments?destination_id=${invoice_id}`)).items[0]!;
    expect(await show(id)).to.include({ payment_status: 'PENDING', attempt_count: 1 });
    return { id, invoice_id, customer_id };
  };
  /** Begins the second attempt, whose process crashes before it calls Stripe. */
  const beginSecond = async (id: string) => {
    now = new Date(now.getTime() + 3 * DAY_MS);
    api.setNow(now);
    await beginAttempt(api.services, api.scope, { id, by: { now }, isRequested: false });
    expect(await show(id)).to.include({ payment_status: 'PROCESSING', attempt_count: 2 });
  };
  /** Pays the charge at Stripe and delivers the event. */
  const succeedLate = async (intent_id: string) => {
    const seen = fake.events.length;
    actOnIntent(fake.book, intent_id, 'succeeded');
    for (const event of fake.events.slice(seen)) {
      const text = JSON.stringify(event);
      const headers = { 'stripe-signature': signStripeBody(text, [SECRET], Math.floor(now.getTime() / 1_000)) };
      const path = `/webhooks/stripe/${api.scope.tenant_id}/${api.scope.environment_id}`;
      expect((await api.request('POST', path, { body: text, key: null, headers })).status).to.equal(200);
    }
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    await readProvider(api.services, api.scope, {
      ...{ connection_id, settings, clock: () => now, mayGoOn: async () => true },
    });
  };
  const countUpdates = async (entity_id: string) =>
    (await api.services.postgres('system_events').where({ entity_id, event_name: 'payment.updated' })).length;
  const describeLate = (intent_id: string) =>
    `100 usd was received late for attempt 1, as ${intent_id}, and is not counted: refund it at the provider`;

  describe('of an attempt that another one has replaced', () => {
    it('are reported once, and the current attempt is still completed', async () => {
      const { id, invoice_id, customer_id } = await newDeclined();
      const first = await load(id);
      const [intent] = intents(id);
      await saveCard(customer_id, 'pm_card_visa');
      await beginSecond(id);
      actOnIntent(fake.book, intent!.id, 'succeeded');
      const before = await countUpdates(id);
      for (const _ of [1, 2]) await refreshPayment(api.services, first, { now });
      const noted = await show(id);
      expect(noted).to.include({ payment_status: 'PROCESSING', error_message: describeLate(intent!.id) });
      expect(noted.next_attempt_at).to.be.a('string');
      expect((await countUpdates(id)) - before).to.equal(1);
      await runDue(61_000);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
      expect(await ok('GET', `/invoices/${invoice_id}`)).to.include({
        payment_status: 'SUCCEEDED',
        amount_paid: '100',
      });
      const [attempt] = (await show(id)).attempts;
      expect(attempt).to.include({ payment_status: 'SUCCEEDED', error_message: describeLate(intent!.id) });
    });

    it('are found by an event of the provider', async () => {
      const { id, customer_id } = await newDeclined();
      await saveCard(customer_id, 'pm_card_visa');
      await runDue(3 * DAY_MS);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
      const [intent] = intents(id);
      await succeedLate(intent!.id);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', error_message: describeLate(intent!.id) });
    });

    it('pay the invoice if the payment waits for its next attempt', async () => {
      const { id, invoice_id } = await newDeclined();
      await runDue(3 * DAY_MS);
      expect(await show(id)).to.include({ payment_status: 'PENDING', attempt_count: 2 });
      const [intent] = intents(id);
      await succeedLate(intent!.id);
      const paid = await show(id);
      expect(paid).to.include({ payment_status: 'SUCCEEDED', gateway_payment_id: intent!.id, error_message: null });
      expect(paid.attempts.map(({ payment_status }) => payment_status)).to.deep.equal(['SUCCEEDED', 'FAILED']);
      expect(await ok('GET', `/invoices/${invoice_id}`)).to.include({
        payment_status: 'SUCCEEDED',
        amount_paid: '100',
      });
      await runDue(10 * DAY_MS);
      expect(intents(id)).to.have.length(2);
    });
  });

  describe('of the last attempt', () => {
    it('are not known if Stripe refuses the query: the next attempt waits', async () => {
      const { id, customer_id } = await newDeclined();
      await saveCard(customer_id, 'pm_card_visa');
      fake.disturb(/GET payment_intents/, 'refused');
      await runDue(3 * DAY_MS);
      expect(await show(id)).to.include({ payment_status: 'PENDING', attempt_count: 1 });
      await runDue(3_600_000);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
    });

    it('do not exist if Stripe no longer has the charge: the next attempt is made', async () => {
      const { id, customer_id } = await newDeclined();
      await saveCard(customer_id, 'pm_card_visa');
      await api.services.postgres('payments').where({ id }).update({ gateway_payment_id: 'pi_gone' });
      await runDue(3 * DAY_MS);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
    });
  });

  describe('that Stripe cannot tell', () => {
    const decide = (id: string, payment_status: 'SUCCEEDED' | 'FAILED') =>
      api.request<Shown>('PUT', `/payments/${id}`, { body: { payment_status, reason: 'says the bank statement' } });
    /** A charge whose answer is lost. */
    const newUnknown = async () => {
      fake.disturb(/POST payment_intents$/, 'lost_answer');
      const { id } = await pay(await newInvoice(await newCustomer()), CARD);
      return id;
    };
    const expectUndecided = async (id: string) => {
      // The lost answer pauses the connection.
      await runDue(2 * 3_600_000);
      expect(await show(id)).to.include({ payment_status: 'PROCESSING' });
    };

    it('are decided by a person if Stripe no longer has them, but not before it was queried', async () => {
      const id = await newUnknown();
      await api.services.postgres('payments').where({ id }).update({ gateway_payment_id: 'pi_gone' });
      const early = await decide(id, 'FAILED');
      expect([early.status, early.body.details.field]).to.deep.equal([400, 'reason']);
      await expectUndecided(id);
      expect((await decide(id, 'FAILED')).status).to.equal(200);
      expect(await show(id)).to.include({ payment_status: 'FAILED', error_message: 'says the bank statement' });
    });

    it('are decided by a person if another currency was received', async () => {
      const id = await newUnknown();
      intents(id)[0]!.currency = 'eur';
      await expectUndecided(id);
      expect((await decide(id, 'SUCCEEDED')).status).to.equal(200);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED' });
    });

    it('are not decided by a person while Stripe does not answer', async () => {
      const id = await newUnknown();
      fake.disturb(/GET payment_intents/, 'unavailable');
      await expectUndecided(id);
      expect((await decide(id, 'FAILED')).status).to.equal(400);
      await runDue(4 * 3_600_000);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED' });
    });
  });

  describe('of a customer', () => {
    const unlink = (entity_id: string) =>
      api.request<Shown>('DELETE', '/integrations/link', {
        body: { provider_type: 'stripe', entity_type: 'customer', entity_id },
      });
    const expectRefused = async (customer_id: string, payment_id: string, message: string) => {
      const mapping = await api.services.postgres('integration_mappings').where({ entity_id: customer_id }).first();
      const byId = await api.request<Shown>('DELETE', `/entity-integration-mappings/${mapping.id}` as const);
      for (const [field, { status, body }] of Object.entries({ entity_id: await unlink(customer_id), id: byId }))
        expect([status, body.message, body.details]).to.deep.equal([
          400,
          `${field}: ${message}`,
          { field, payment_id },
        ]);
    };

    it('keep it linked until a charge has an outcome', async () => {
      const customer_id = await newCustomer();
      fake.disturb(/POST payment_intents$/, 'lost_answer');
      const { id } = await pay(await newInvoice(customer_id), CARD);
      const message = `the payment ${id} has no outcome yet: wait for it, or void its page`;
      await expectRefused(customer_id, id, message);
      await runDue(61_000);
      expect(await show(id)).to.include({ payment_status: 'SUCCEEDED' });
      expect(intents(id)).to.have.length(1);
      expect((await unlink(customer_id)).status).to.equal(200);
    });

    it('keep it linked until a page is closed', async () => {
      const customer_id = await newCustomer();
      fake.disturb(/POST checkout\/sessions$/, 'lost_answer');
      const { id } = await pay(await newInvoice(customer_id), LINK);
      const open = `the payment ${id} has no outcome yet: wait for it, or void its page`;
      await expectRefused(customer_id, id, open);
      fake.disturb(/checkout\/sessions/, 'unavailable');
      await ok('PUT', `/payments/${id}`, { payment_status: 'VOIDED' });
      fake.clearDisturbances();
      await expectRefused(customer_id, id, `the page of the payment ${id} is not closed yet: wait for it`);
      await runDue(2 * 3_600_000);
      expect((await unlink(customer_id)).status).to.equal(200);
    });

    it('keep it linked if a charge begins at the same time', async () => {
      const customer_id = await newCustomer();
      await pay(await newInvoice(customer_id), CARD);
      const { postgres } = api.services;
      const { id } = await pay(await newInvoice(customer_id), { ...CARD, process_payment: false });
      const charging = await postgres.transaction();
      await charging('connections').where({ id: connection_id }).forKeyShare();
      const unlinking = unlink(customer_id);
      await until('the unlinking waits for the lock', async () => {
        const waiting = await postgres('pg_stat_activity').where({ wait_event_type: 'Lock' }).count();
        return Number(waiting[0]!['count']) > 0;
      });
      await beginAttempt(api.services, api.scope, { id, by: { now }, isRequested: true });
      await charging.commit();
      expect((await unlinking).body.details).to.deep.equal({ field: 'entity_id', payment_id: id });
      await runDue(61_000);
    });
  });
});
