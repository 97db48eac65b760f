/** docs/rules/payments.md through a connection: an account at Stripe's fake, the whole interface, and the scheduler. */
import { expect } from 'chai';
import { pushPending } from '../../../actions/delivery/integrations/push-pending.ts';
import { dispatchBatch } from '../../../actions/delivery/webhooks/dispatch-events.ts';
import { prepareCalls } from '../../../actions/foundation/connections/call-account.ts';
import { beginAttempt } from '../../../actions/lifecycle/payments/begin-attempt.ts';
import { processDuePayments } from '../../../actions/lifecycle/payments/due-payments.ts';
import { refreshPayment } from '../../../actions/lifecycle/payments/process-payment.ts';
import { importSavedPaymentMethods } from '../../../actions/payments/card-setups.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { listDuePayments } from '../../../storage/queue/due-payments.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { ageKeys } from '../../support/providers/aged-keys.ts';
import { StripeFake } from '../../support/providers/stripe-fake.ts';
import {
  actOnIntent,
  completeSession,
  completeSetup,
  detachMethod,
  endRefund,
  type IntentRecord,
  listRefunds,
} from '../../support/providers/stripe-fake-payments.ts';
import { until } from '../../support/until.ts';

const KEY = 'a key of the settings that has 32 characters';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The fields of the answers that these tests read; each answer has some of them. */
type Shown = {
  id: string;
  message: string;
  payment_status: string;
  attempt_count: number;
  amount: string;
  refunded_amount: string;
  amount_paid: string;
  payment_url: string;
  error_message: string;
  gateway_payment_id: string;
  setup_intent_id: string;
  client_secret: string | null;
  checkout_url: string | null;
  refunds: { refund_status: string }[];
  items: Shown[];
};

describe('payments through a connection', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  let now: Date;

  const ok = async (method: string, path: string, body?: unknown) => {
    const answer = await api.request<Shown>(method, path, body === undefined ? {} : { body });
    expect(answer.status, answer.text).to.be.lessThan(300);
    return answer.body;
  };
  const newCustomer = async (method?: string) => {
    const body = { external_id: `payer ${++customers}`, name: 'Acme', email: 'books@example.com' };
    const { id } = await ok('POST', '/customers', body);
    if (method)
      await ok('POST', `/payments/customers/${id}/methods`, {
        payment_gateway: 'stripe',
        gateway_payment_method_id: method,
      });
    return id as string;
  };
  const newInvoice = async (customer_id: string, amount = '100') => {
    const line_items = [{ display_name: 'Help', amount, quantity: '1' }];
    const amounts = { amount_due: amount, total: amount, subtotal: amount, currency: 'usd', line_items };
    return (await ok('POST', '/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' })).id as string;
  };
  const card = (payment_method_id: string, change: object = {}) => ({
    ...{ payment_method_type: 'CARD', payment_gateway: 'stripe', payment_method_id, ...change },
  });
  const link = {
    payment_method_type: 'PAYMENT_LINK',
    payment_gateway: 'stripe',
    success_url: 'https://shop.example/paid',
  };
  const pay = async (invoice_id: string, terms: object) =>
    ok('POST', '/payments', {
      destination_type: 'INVOICE',
      destination_id: invoice_id,
      amount: '100',
      currency: 'usd',
      ...terms,
    });
  const intentsOf = (payment_id: string) =>
    fake.book
      .list<IntentRecord>('payment_intent')
      .filter(({ metadata }) => metadata['farthing_payment_id'] === payment_id);
  const pageOf = (payment_id: string) =>
    fake.book.list('checkout.session').find(({ metadata }) => metadata['farthing_payment_id'] === payment_id)!;
  const runDue = async (at: Date) => {
    now = at;
    api.setNow(at);
    const { failed } = await processDuePayments(api.services, { now: at });
    expect(failed).to.deep.equal([]);
  };
  const stateOf = async (payment_id: string) => {
    const { payment_status, attempt_count, refunded_amount } = await ok('GET', `/payments/${payment_id}`);
    return [payment_status, attempt_count, refunded_amount];
  };
  const paidOf = async (invoice_id: string) => {
    const { payment_status, amount_paid } = await ok('GET', `/invoices/${invoice_id}`);
    return [payment_status, amount_paid];
  };
  const push = async () => {
    while ((await dispatchBatch(api.services, { has_targets: true, now: new Date() })).dispatched > 0);
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    await pushPending(api.services, api.scope, {
      connection_id,
      settings,
      clock: () => now,
      mayGoOn: async () => true,
    });
  };
  const connect = async () => {
    const stripe = { secret_key: 'sk_test_fake' };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
    connection_id = (await ok('POST', '/connections', body)).id;
  };
  const connection = () => ConnectionModel.fetch(api.scope, connection_id, { database: api.services.postgres });

  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
  });
  beforeEach(() => {
    now = new Date();
    api.setNow(now);
  });
  afterEach(() => fake.clearDisturbances());
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  it('are refused while there is no connection', async () => {
    const customer_id = await newCustomer();
    const method = { payment_gateway: 'stripe', gateway_payment_method_id: 'pm_card_visa' };
    const answer = await api.request<Shown>('POST', `/payments/customers/${customer_id}/methods`, {
      body: method,
    });
    expect([answer.status, answer.body.message]).to.deep.equal([
      400,
      'payment_gateway: this environment has no connection to stripe: create it first',
    ]);
    await connect();
    await ok('POST', `/payments/customers/${customer_id}/methods`, method);
  });

  describe('a charge', () => {
    it('pays the invoice, with the customer sent first', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const payment = await pay(invoice_id, card('pm_card_visa'));
      const [intent] = intentsOf(payment.id);
      expect(payment).to.include({ payment_status: 'SUCCEEDED', gateway_payment_id: intent!.id });
      expect([intent!.amount, intent!.metadata['farthing_invoice_id']]).to.deep.equal([10_000, invoice_id]);
      expect(await paidOf(invoice_id)).to.deep.equal(['SUCCEEDED', '100']);
    });

    for (const disturbance of ['lost_request', 'lost_answer', 'lost_fault', 'unavailable'] as const)
      it(`is made once after ${disturbance}`, async () => {
        const invoice_id = await newInvoice(await newCustomer());
        fake.disturb(/POST payment_intents$/, disturbance);
        const payment = await pay(invoice_id, card('pm_card_visa'));
        expect(payment.payment_status).to.equal('PROCESSING');
        await runDue(new Date(now.getTime() + 61_000));
        expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
        expect(intentsOf(payment.id)).to.have.length(1);
      });

    it('is made once after a process died between claim and call', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const payment = await pay(invoice_id, card('pm_card_visa', { process_payment: false }));
      await beginAttempt(api.services, api.scope, { id: payment.id, by: { now }, isRequested: true });
      const later = new Date(now.getTime() + 61_000);
      await Promise.all([1, 2, 3].map(() => processDuePayments(api.services, { now: later })));
      expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
      expect(intentsOf(payment.id)).to.have.length(1);
    });

    it('is made once although the clock of the process is a day ahead and Stripe has forgotten the key', async () => {
      now = new Date(now.getTime() + DAY_MS);
      api.setNow(now);
      const invoice_id = await newInvoice(await newCustomer());
      fake.disturb(/POST payment_intents$/, 'lost_answer');
      const payment = await pay(invoice_id, card('pm_card_visa'));
      fake.forgetKeys();
      await ageKeys(api.services.postgres);
      await runDue(new Date(now.getTime() + 61_000));
      expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
      expect(intentsOf(payment.id)).to.have.length(1);
    });

    it('that fails is retried by the schedule with the current payment method', async () => {
      const customer_id = await newCustomer('pm_card_chargeCustomerFail');
      const invoice_id = await newInvoice(customer_id);
      await ok('POST', `/invoices/${invoice_id}/payment/attempt`, {});
      const payment = (await ok('GET', `/payments?destination_id=${invoice_id}`)).items[0]!;
      expect(await stateOf(payment.id)).to.deep.equal(['PENDING', 1, '0']);
      expect(payment.error_message).to.match(/^card_declined/);
      await ok('POST', `/payments/customers/${customer_id}/methods`, {
        payment_gateway: 'stripe',
        gateway_payment_method_id: 'pm_card_visa',
      });
      await runDue(new Date(now.getTime() + 3 * DAY_MS));
      expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 2, '0']);
      expect(intentsOf(payment.id).map(({ status }) => status)).to.have.members([
        'succeeded',
        'requires_payment_method',
      ]);
    });

    describe('that was declined and succeeds later', () => {
      const payLate = async () => {
        const invoice_id = await newInvoice(await newCustomer('pm_card_chargeCustomerFail'));
        await ok('POST', `/invoices/${invoice_id}/payment/attempt`, {});
        const { id } = (await ok('GET', `/payments?destination_id=${invoice_id}`)).items[0]!;
        expect(await stateOf(id)).to.deep.equal(['PENDING', 1, '0']);
        actOnIntent(fake.book, intentsOf(id)[0]!.id, 'succeeded');
        return { id, invoice_id };
      };
      const expectPaidOnce = async ({ id, invoice_id }: { id: string; invoice_id: string }) => {
        expect(await stateOf(id)).to.deep.equal(['SUCCEEDED', 1, '0']);
        expect(await paidOf(invoice_id)).to.deep.equal(['SUCCEEDED', '100']);
        expect(intentsOf(id)).to.have.length(1);
        const attempts = await api.services.postgres('payment_attempts').where({ payment_id: id });
        expect(attempts.map(({ payment_status }) => payment_status)).to.deep.equal(['SUCCEEDED']);
      };

      it('pays the invoice when it is reported, and is not retried', async () => {
        const late = await payLate();
        const payment = await PaymentModel.fetch(api.scope, late.id, { database: api.services.postgres });
        await refreshPayment(api.services, payment, { now });
        await expectPaidOnce(late);
        await runDue(new Date(now.getTime() + 3 * DAY_MS));
        await expectPaidOnce(late);
      });

      it('is found before the next attempt, which waits while Stripe is away', async () => {
        const late = await payLate();
        fake.disturb(/GET payment_intents/, 'unavailable');
        await runDue(new Date(now.getTime() + 3 * DAY_MS));
        expect(await stateOf(late.id)).to.deep.equal(['PENDING', 1, '0']);
        await runDue(new Date(now.getTime() + HOUR_MS));
        await expectPaidOnce(late);
      });

      it('after a person has recorded another amount notes both, once', async () => {
        const late = await payLate();
        await ok('PUT', `/payments/${late.id}`, { payment_status: 'SUCCEEDED', amount: '40' });
        const { postgres } = api.services;
        const countEvents = async () =>
          (await postgres('system_events').where({ entity_id: late.id, event_name: 'payment.updated' })).length;
        const before = await countEvents();
        for (const _ of [1, 2]) {
          const payment = await PaymentModel.fetch(api.scope, late.id, { database: postgres });
          await refreshPayment(api.services, payment, { now });
        }
        const { amount, error_message } = await ok('GET', `/payments/${late.id}`);
        expect([amount, error_message]).to.deep.equal(['40', '40 usd was requested, and 100 usd was received']);
        expect((await countEvents()) - before).to.equal(1);
        expect(await paidOf(late.invoice_id)).to.deep.equal(['PENDING', '40']);
      });

      it('is found by an attempt by hand', async () => {
        const late = await payLate();
        await ok('POST', `/payments/${late.id}/process`, {});
        await expectPaidOnce(late);
      });
    });

    it('that the customer must confirm has a page', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const payment = await pay(invoice_id, card('pm_card_authenticationRequired'));
      const [intent] = intentsOf(payment.id);
      expect(payment.payment_status).to.equal('PROCESSING');
      expect(payment.payment_url).to.equal(intent!.next_action!.redirect_to_url.url);
      actOnIntent(fake.book, intent!.id, 'succeeded');
      await runDue(new Date(now.getTime() + HOUR_MS));
      expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
    });

    it('pays the invoice that was pushed, which can then not be paid there', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      await ok('POST', '/integrations/sync', { entity_type: 'invoice', entity_id: invoice_id });
      await pay(invoice_id, card('pm_card_visa'));
      const [there] = fake.listInvoices().filter(({ metadata }) => metadata['farthing_invoice_id'] === invoice_id);
      expect(there).to.include({ status: 'paid', amount_paid: 10_000 });
    });

    for (const amount of ['100', '40'])
      it(`of ${amount} pays the invoice that is being pushed`, async () => {
        const invoice_id = await newInvoice(await newCustomer());
        const held = fake.hold(/POST invoices.*finalize$/);
        const pushed = ok('POST', '/integrations/sync', { entity_type: 'invoice', entity_id: invoice_id });
        await held.arrived;
        const payment = await pay(invoice_id, card('pm_card_visa', { amount }));
        expect(payment.payment_status).to.equal('SUCCEEDED');
        held.release();
        await pushed;
        await push();
        await push();
        const [there] = fake.listInvoices().filter(({ metadata }) => metadata['farthing_invoice_id'] === invoice_id);
        expect(there).to.include({
          amount_paid: Number(amount) * 100,
          amount_remaining: 10_000 - Number(amount) * 100,
        });
      });

    it('of a part pays the invoice whose push had no answer', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      fake.disturb(/POST invoices.*finalize$/, 'lost_answer');
      const body = { entity_type: 'invoice', entity_id: invoice_id };
      expect((await api.request('POST', '/integrations/sync', { body })).status).to.equal(503);
      await pay(invoice_id, card('pm_card_visa', { amount: '40' }));
      await ok('POST', '/integrations/sync', body);
      const [there] = fake.listInvoices().filter(({ metadata }) => metadata['farthing_invoice_id'] === invoice_id);
      expect(there).to.include({ status: 'open', amount_paid: 4_000, amount_remaining: 6_000 });
    });

    it('waits while the connection needs attention, and is made when it is active again', async () => {
      const invoice_id = await newInvoice(await newCustomer('pm_card_visa'));
      const { postgres } = api.services;
      const stopped = { connection_state: 'needs_attention', attention_reason: 'the key was revoked' };
      await postgres('connections').where({ id: connection_id }).update(stopped);
      const refused = await api.request<Shown>('POST', `/invoices/${invoice_id}/payment/attempt`, { body: {} });
      expect([refused.status, /needs attention \(the key was revoked\)/.test(refused.body.message)]).to.deep.equal([
        503,
        true,
      ]);
      const waiting = (await ok('GET', `/payments?destination_id=${invoice_id}`)).items[0]!;
      await runDue(new Date(now.getTime() + 61_000));
      expect(await stateOf(waiting.id)).to.deep.equal(['PENDING', 0, '0']);
      await ok('POST', `/connections/${connection_id}/test`, {});
      await runDue(new Date(now.getTime() + HOUR_MS));
      expect(await stateOf(waiting.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
    });

    it('whose credentials are refused stops the connection, and is unknown until they are replaced', async () => {
      const invoice_id = await newInvoice(await newCustomer('pm_card_visa'));
      await ok('PUT', `/connections/${connection_id}`, {
        encrypted_secret_data: { stripe: { secret_key: 'rk_test_fake' } },
      });
      fake.forbidden.push(/POST payment_intents$/);
      const payment = await pay(invoice_id, card('pm_card_visa'));
      expect(payment.payment_status).to.equal('PROCESSING');
      expect((await connection()).connection_state).to.equal('needs_attention');
      fake.forbidden.length = 0;
      await ok('POST', `/connections/${connection_id}/test`, {});
      await runDue(new Date(now.getTime() + HOUR_MS));
      expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
    });
  });

  describe('payments that are due', () => {
    const newDue = async (terms: object) => {
      const { id } = await pay(await newInvoice(await newCustomer()), { ...terms, process_payment: false });
      await api.services.postgres('payments').where({ id }).update({ next_attempt_at: now });
      return id;
    };
    const countRequests = () => fake.requests.filter((name) => name === 'POST payment_intents').length;

    it('of a provider that does not answer wait for one another, and nothing else waits for them', async () => {
      const ids: string[] = [];
      for (let count = 0; count < 6; count++) ids.push(await newDue(card('pm_card_visa')));
      const other = await newDue(sandbox);
      const before = countRequests();
      const held = fake.hold(/POST payment_intents$/);
      const run = processDuePayments(api.services, { now });
      await held.arrived;
      await until('the other payment is made', async () => (await stateOf(other))[0] === 'SUCCEEDED');
      expect(countRequests() - before).to.equal(1);
      held.release();
      expect((await run).failed).to.deep.equal([]);
      for (const id of ids) expect((await stateOf(id))[0]).to.equal('SUCCEEDED');
    });

    const sandbox = { payment_gateway: 'sandbox', payment_method_id: 'pm_sandbox_card', payment_method_type: 'CARD' };
    const dueAt = (id: string, at: Date) =>
      api.services.postgres('payments').where({ id }).update({ next_attempt_at: at });

    it('are listed with the first of each connection before the second of any', async () => {
      const many = [];
      for (let count = 0; count < 3; count++) many.push(await newDue(card('pm_card_visa')));
      const other = await newDue(sandbox);
      await dueAt(other, new Date(now.getTime() + 1_000));
      const later = new Date(now.getTime() + 1_000);
      const listed = await listDuePayments(api.services.postgres, { now: later, left: [], only: api.scope });
      const gateways = listed.map(({ payment_gateway }) => payment_gateway);
      expect(gateways).to.deep.equal(['stripe', 'sandbox', 'stripe', 'stripe']);
      await runDue(later);
      for (const id of [...many, other]) expect((await stateOf(id))[0]).to.equal('SUCCEEDED');
    });

    it('during a run are made by it, and have the time at which they begin', async () => {
      let time = now;
      const slow = await newDue(card('pm_card_visa'));
      const held = fake.hold(/POST payment_intents$/);
      const run = processDuePayments(api.services, { now, clock: () => time });
      await held.arrived;
      time = new Date(now.getTime() + 60_000);
      const next = await newDue({ ...sandbox, payment_method_id: 'pm_sandbox_pays_late' });
      await dueAt(next, time);
      await until('the next payment is made', async () => (await stateOf(next))[0] === 'PROCESSING');
      held.release();
      expect((await run).failed).to.deep.equal([]);
      expect((await stateOf(slow))[0]).to.equal('SUCCEEDED');
      const { next_attempt_at } = await PaymentModel.fetch(api.scope, next, { database: api.services.postgres });
      expect(Date.parse(next_attempt_at!)).to.be.greaterThan(time.getTime());
      await api.services.postgres('payments').where({ id: next }).update({ next_attempt_at: null });
    });

    it('are left to the next run at the end of the time of a run', async () => {
      let time = now;
      const ids = [await newDue(card('pm_card_visa')), await newDue(card('pm_card_visa'))];
      const end = new Date(now.getTime() + 60_000);
      const held = fake.hold(/POST payment_intents$/);
      const run = processDuePayments(api.services, { now, clock: () => time, until: end });
      await held.arrived;
      time = end;
      held.release();
      expect(await run).to.deep.equal({ processed: 1, failed: [] });
      expect((await processDuePayments(api.services, { now: end })).processed).to.equal(1);
      for (const id of ids) expect((await stateOf(id))[0]).to.equal('SUCCEEDED');
    });

    it('of a provider that is away wait for the end of its pause', async () => {
      const ids = [await newDue(card('pm_card_visa')), await newDue(card('pm_card_visa'))];
      const before = countRequests();
      fake.disturb(/POST payment_intents$/, 'unavailable');
      await runDue(now);
      await runDue(now);
      expect(countRequests() - before).to.equal(1);
      expect((await connection()).paused_until).to.not.equal(null);
      await runDue(new Date(now.getTime() + 61_000));
      for (const id of ids) expect((await stateOf(id))[0]).to.equal('SUCCEEDED');
      expect((await connection()).paused_until).to.equal(null);
    });
  });

  describe('a page', () => {
    it('is paid, and saves the payment method as the default', async () => {
      const customer_id = await newCustomer();
      const invoice_id = await newInvoice(customer_id);
      const payment = await pay(invoice_id, { ...link, save_card_and_make_default: true });
      const page = pageOf(payment.id);
      expect([payment.payment_status, payment.payment_url]).to.deep.equal(['INITIATED', page['url']]);
      const intent = completeSession(fake.book, page.id, 'pm_card_visa')!;
      await runDue(new Date(now.getTime() + HOUR_MS));
      expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 0, '0']);
      const { items } = await ok('GET', `/payments/customers/${customer_id}/methods`);
      expect(items).to.have.length(1);
      expect(items[0]).to.include({
        gateway_payment_method_id: intent.payment_method,
        payment_method_type: 'CARD',
        is_default: true,
      });
    });

    it('is closed when its invoice is paid otherwise', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const payment = await pay(invoice_id, link);
      await pay(invoice_id, card('pm_card_visa'));
      await runDue(new Date(now.getTime() + 61_000));
      expect(pageOf(payment.id)['status']).to.equal('expired');
      expect(await stateOf(payment.id)).to.deep.equal(['VOIDED', 0, '0']);
    });

    it('that was paid before it could be closed is refunded', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const payment = await pay(invoice_id, link);
      const intent = completeSession(fake.book, pageOf(payment.id).id, 'pm_card_visa')!;
      await pay(invoice_id, card('pm_card_visa'));
      await runDue(new Date(now.getTime() + 61_000));
      expect(await stateOf(payment.id)).to.deep.equal(['VOIDED', 0, '100']);
      expect(listRefunds(fake.book, intent.id).map(({ amount, status }) => [amount, status])).to.deep.equal([
        [10_000, 'succeeded'],
      ]);
    });
  });

  describe('a refund', () => {
    it('of which the answer is lost is made once', async () => {
      const payment = await pay(await newInvoice(await newCustomer()), card('pm_card_visa'));
      fake.disturb(/POST refunds$/, 'lost_answer');
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '40', idempotency_key: 'r' });
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '40', idempotency_key: 'r' });
      await runDue(new Date(now.getTime() + HOUR_MS));
      expect(await stateOf(payment.id)).to.deep.equal(['PARTIALLY_REFUNDED', 1, '40']);
      expect(listRefunds(fake.book, payment.gateway_payment_id).map(({ amount }) => amount)).to.deep.equal([4_000]);
    });

    it('of which the answer is lost is made once although the clock of the process has stopped for a day', async () => {
      const payment = await pay(await newInvoice(await newCustomer()), card('pm_card_visa'));
      fake.disturb(/POST refunds$/, 'lost_answer');
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '40', idempotency_key: 'r' });
      fake.forgetKeys();
      await ageKeys(api.services.postgres);
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '40', idempotency_key: 'r' });
      expect(await stateOf(payment.id)).to.deep.equal(['PARTIALLY_REFUNDED', 1, '40']);
      expect(listRefunds(fake.book, payment.gateway_payment_id).map(({ amount }) => amount)).to.deep.equal([4_000]);
    });

    it('that is pending is reversed when it fails at last', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const payment = await pay(invoice_id, card('pm_usBankAccount_success'));
      const [intent] = intentsOf(payment.id);
      actOnIntent(fake.book, intent!.id, 'succeeded');
      await runDue(new Date(now.getTime() + HOUR_MS));
      const { refunds } = await ok('POST', `/payments/${payment.id}/refund`, { amount: '40' });
      const [made] = listRefunds(fake.book, intent!.id);
      expect(refunds[0]).to.include({ refund_status: 'pending', gateway_refund_id: made!.id });
      endRefund(fake.book, made!.id, 'failed');
      await runDue(new Date(now.getTime() + HOUR_MS));
      expect(await stateOf(payment.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
      expect(await paidOf(invoice_id)).to.deep.equal(['SUCCEEDED', '100']);
    });
  });

  describe('a refund that was made and fails later', () => {
    const refresh = async (id: string) => {
      const payment = await PaymentModel.fetch(api.scope, id, { database: api.services.postgres });
      return refreshPayment(api.services, payment, { now });
    };
    const failRefunds = (intent_id: string) =>
      listRefunds(fake.book, intent_id).forEach(({ id }) => endRefund(fake.book, id, 'failed'));

    for (const who of ['here', 'at Stripe'] as const)
      it(`is reversed and told, once, if it was requested ${who}; another one can be made`, async () => {
        const invoice_id = await newInvoice(await newCustomer());
        const { id, gateway_payment_id } = await pay(invoice_id, card('pm_card_visa'));
        if (who === 'here') await ok('POST', `/payments/${id}/refund`, { amount: '40', idempotency_key: 'r' });
        else fake.book.refundPayment(gateway_payment_id, 4_000);
        await refresh(id);
        expect(await stateOf(id)).to.deep.equal(['PARTIALLY_REFUNDED', 1, '40']);
        failRefunds(gateway_payment_id);
        await Promise.all([1, 2, 3].map(() => refresh(id)));
        expect(await stateOf(id)).to.deep.equal(['SUCCEEDED', 1, '0']);
        expect(await paidOf(invoice_id)).to.deep.equal(['SUCCEEDED', '100']);
        const told = await ok('GET', `/payments/${id}`);
        expect(told.error_message).to.match(/^a refund of 40 usd has failed after it was made: Stripe: the refund re_/);
        expect(told.refunds.map(({ refund_status }) => refund_status)).to.deep.equal(['failed']);
        await ok('POST', `/payments/${id}/refund`, { amount: '40', idempotency_key: 's' });
        await refresh(id);
        expect(await stateOf(id)).to.deep.equal(['PARTIALLY_REFUNDED', 1, '40']);
      });

    it('is reversed also if the invoice was paid again meanwhile: it is overpaid', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const part = await pay(invoice_id, card('pm_card_visa', { amount: '40' }));
      await ok('POST', `/payments/${part.id}/refund`, {});
      await pay(invoice_id, card('pm_card_visa'));
      failRefunds(part.gateway_payment_id);
      await refresh(part.id);
      expect(await paidOf(invoice_id)).to.deep.equal(['OVERPAID', '140']);
    });

    it('leaves what Stripe has, in any order with a new refund at the same time', async () => {
      for (let round = 0; round < 4; round++) {
        const invoice_id = await newInvoice(await newCustomer());
        const { id, gateway_payment_id } = await pay(invoice_id, card('pm_card_visa'));
        await ok('POST', `/payments/${id}/refund`, { amount: '40', idempotency_key: 'r' });
        failRefunds(gateway_payment_id);
        await Promise.all([
          refresh(id),
          refresh(id),
          ok('POST', `/payments/${id}/refund`, { amount: '30', idempotency_key: 's' }),
          refresh(id),
        ]);
        expect(await stateOf(id)).to.deep.equal(['PARTIALLY_REFUNDED', 1, '30']);
        expect(await paidOf(invoice_id)).to.deep.equal(['PARTIALLY_REFUNDED', '100']);
      }
    });
  });

  it('a refund that fails takes back nothing that a credit note returned', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    const payment = await pay(invoice_id, card('pm_usBankAccount_success', { amount: '80' }));
    const [intent] = intentsOf(payment.id);
    actOnIntent(fake.book, intent!.id, 'succeeded');
    await runDue(new Date(now.getTime() + HOUR_MS));
    await pay(invoice_id, { payment_method_type: 'OFFLINE', amount: '40' });
    const line = await api.services.postgres('invoice_line_items').where({ invoice_id }).first();
    const line_items = [{ invoice_line_item_id: line.id, amount: '10' }];
    await ok('POST', '/creditnotes', { invoice_id, reason: 'BILLING_ERROR', line_items });
    await ok('POST', `/payments/${payment.id}/refund`, { amount: '20' });
    endRefund(fake.book, listRefunds(fake.book, intent!.id)[0]!.id, 'failed');
    await runDue(new Date(now.getTime() + HOUR_MS));
    const { amount_paid, refunded_amount } = await ok('GET', `/invoices/${invoice_id}`);
    expect([amount_paid, refunded_amount]).to.deep.equal(['120', '10']);
  });

  it('a closed payment names the money that could not be refunded, and a request refunds it once', async () => {
    const invoice_id = await newInvoice(await newCustomer());
    const page = await pay(invoice_id, link);
    const intent = completeSession(fake.book, pageOf(page.id).id, 'pm_usBankAccount_success')!;
    actOnIntent(fake.book, intent.id, 'succeeded');
    await pay(invoice_id, card('pm_card_visa'));
    await runDue(new Date(now.getTime() + 61_000));
    endRefund(fake.book, listRefunds(fake.book, intent.id)[0]!.id, 'failed');
    await runDue(new Date(now.getTime() + HOUR_MS));
    expect(await stateOf(page.id)).to.deep.equal(['VOIDED', 0, '0']);
    expect((await ok('GET', `/payments/${page.id}`)).error_message).to.match(/^100 usd was received and could not be/);
    const refund = () => api.request<Shown>('POST', `/payments/${page.id}/refund` as const, { body: {} });
    const answers = await Promise.all([refund(), refund(), refund()]);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    expect(await stateOf(page.id)).to.deep.equal(['VOIDED', 0, '100']);
    const made = listRefunds(fake.book, intent.id).filter(({ status }) => status === 'pending');
    expect(made).to.have.length(1);
    endRefund(fake.book, made[0]!.id, 'succeeded');
    await runDue(new Date(now.getTime() + HOUR_MS));
    const { refunds } = await ok('GET', `/payments/${page.id}`);
    expect(refunds.map(({ refund_status }) => refund_status)).to.have.members(['failed', 'succeeded']);
    const again = await api.request<Shown>('POST', `/payments/${page.id}/refund` as const, {
      body: { idempotency_key: 'x' },
    });
    expect(again.status).to.equal(400);
  });

  describe('a setup', () => {
    const setUp = async (customer_id: string, change: object = {}) =>
      ok('POST', `/payments/customers/${customer_id}/setup/intent`, {
        provider: 'stripe',
        set_default: true,
        ...change,
      });
    const importMethod = async (provider_entity_id: string) => {
      const author = { user_id: '', now };
      const found = await connection();
      const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
      const call = await prepareCalls(api.services, found, { settings, by: author });
      return importSavedPaymentMethods(api.services, api.scope, {
        connection: found,
        call,
        provider_entity_id,
        author,
      });
    };
    const methodsOf = async (customer_id: string) =>
      (await ok('GET', `/payments/customers/${customer_id}/methods`)).items;

    it('saves the card as the default, however often it is reported, until it is detached', async () => {
      const customer_id = await newCustomer();
      const { setup_intent_id, client_secret, checkout_url } = await setUp(customer_id);
      expect([checkout_url, typeof client_secret]).to.deep.equal([null, 'string']);
      expect(await importMethod(setup_intent_id)).to.equal(null);
      const method_id = completeSetup(fake.book, setup_intent_id, 'pm_card_visa');
      await Promise.all([1, 2, 3].map(() => importMethod(setup_intent_id)));
      await importMethod(method_id);
      const [saved, ...others] = await methodsOf(customer_id);
      expect(others).to.deep.equal([]);
      expect(saved).to.include({ payment_gateway: 'stripe', gateway_payment_method_id: method_id, is_default: true });
      const invoice_id = await newInvoice(customer_id);
      await ok('POST', `/invoices/${invoice_id}/payment/attempt`, {});
      expect(await paidOf(invoice_id)).to.deep.equal(['SUCCEEDED', '100']);
      detachMethod(fake.book, method_id);
      await importMethod(method_id);
      expect(await methodsOf(customer_id)).to.deep.equal([]);
      expect(await importMethod(setup_intent_id)).to.equal(null);
    });

    it('by a page has an address; a repeated request has the same', async () => {
      const customer_id = await newCustomer();
      const body = { provider: 'stripe', success_url: 'https://shop.example/cards' };
      const headers = { 'idempotency-key': 'setup of a card' };
      const path = `/payments/customers/${customer_id}/setup/intent`;
      const first = await api.request<Shown>('POST', path, { body, headers });
      expect(first.body.checkout_url).to.equal(`https://checkout.stripe.example/c/${first.body.setup_intent_id}`);
      expect((await api.request<Shown>('POST', path, { body, headers })).body).to.deep.equal(first.body);
    });

    it('is stored under its idempotency key without its client secret in clear', async () => {
      const path = `/payments/customers/${await newCustomer()}/setup/intent`;
      const request = { body: { provider: 'stripe' }, headers: { 'idempotency-key': 'setup with a secret' } };
      const { client_secret } = (await api.request<Shown>('POST', path, request)).body;
      expect((await api.request<Shown>('POST', path, request)).body.client_secret).to.equal(client_secret);
      const stored = await api.services.postgres('idempotency_keys').whereNotNull('answer').select('answer');
      const answers = stored.map(({ answer }) => (answer as Buffer).toString('latin1'));
      expect(answers.length).to.be.greaterThan(0);
      expect(answers.filter((answer) => answer.includes(client_secret!))).to.deep.equal([]);
    });

    it('of a card that was removed here does not save it again', async () => {
      const customer_id = await newCustomer();
      const { setup_intent_id } = await setUp(customer_id, { set_default: false });
      completeSetup(fake.book, setup_intent_id, 'pm_card_visa');
      const saved = await importMethod(setup_intent_id);
      expect(saved?.is_default).to.equal(false);
      await ok('DELETE', `/payments/customers/${customer_id}/methods/${saved!.id}`);
      await importMethod(setup_intent_id);
      expect(await methodsOf(customer_id)).to.deep.equal([]);
    });

    it('of a customer that is not linked is ignored', async () => {
      const stranger = fake.book.createCustomer({ name: 'Stranger' });
      const setup = fake.book.add('seti', 'setup_intent', {
        customer: stranger.id,
        status: 'open',
        payment_method: null,
      });
      completeSetup(fake.book, setup.id, 'pm_card_visa');
      expect(await importMethod(setup.id)).to.equal(null);
    });

    it('is refused at the sandbox, and with what is not supported', async () => {
      const path = `/payments/customers/${await newCustomer()}/setup/intent`;
      for (const body of [
        { provider: 'sandbox' },
        { provider: 'stripe', metadata: { a: 'b' } },
        { provider: 'razorpay' },
      ])
        expect((await api.request<Shown>('POST', path, { body })).status).to.equal(400);
    });
  });

  describe('archiving the connection', () => {
    const archiveRefusal = async () => {
      const { status, body } = await api.request<Shown>('DELETE', `/connections/${connection_id}` as const);
      return [status, body?.message];
    };

    it('and a charge that begins meet in the database: the charge is refused', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      const charges = fake.book.list('payment_intent').length;
      const { postgres } = api.services;
      const archiving = await postgres.transaction();
      await archiving('connections').where({ id: connection_id }).forUpdate();
      const begun = api.request<Shown>('POST', '/payments', {
        body: {
          destination_type: 'INVOICE',
          destination_id: invoice_id,
          amount: '100',
          currency: 'usd',
          ...card('pm_card_visa'),
        },
      });
      await until('the payment waits for the lock', async () => {
        const waiting = await postgres('pg_stat_activity').where({ wait_event_type: 'Lock' }).count();
        return Number(waiting[0]!['count']) > 0;
      });
      await archiving('connections').where({ id: connection_id }).update({ status: 'archived' });
      await archiving.commit();
      expect((await begun).status).to.equal(503);
      await postgres('connections').where({ id: connection_id }).update({ status: 'published' });
      expect(fake.book.list('payment_intent').length).to.equal(charges);
    });

    it('at the moment at which a charge begins leaves no charge without its connection', async () => {
      for (let round = 0; round < 5; round++) {
        const invoice_id = await newInvoice(await newCustomer());
        fake.disturb(/POST payment_intents$/, 'lost_answer');
        const payment = { destination_type: 'INVOICE', destination_id: invoice_id, amount: '100', currency: 'usd' };
        const [paid, archived] = await Promise.all([
          api.request<Shown>('POST', '/payments', { body: { ...payment, ...card('pm_card_visa') } }),
          archiveRefusal(),
        ]);
        fake.clearDisturbances();
        expect([paid.status < 300, Number(archived[0]) < 300]).to.be.deep.oneOf([
          [true, false],
          [false, true],
        ]);
        if (paid.status < 300) await runDue(new Date(now.getTime() + 61_000));
        else await connect();
      }
    });

    it('whose account is gone is possible after a person has decided, with a reason', async () => {
      const setState = (state: object) =>
        api.services.postgres('connections').where({ id: connection_id }).update(state);
      const refuse = async (id: string, body: object) => {
        const answer = await api.request<Shown>('PUT', `/payments/${id}` as const, { body });
        return [answer.status, answer.body.message];
      };
      const invoices = [];
      for (let count = 0; count < 3; count++) invoices.push(await newInvoice(await newCustomer()));
      fake.disturb(/POST payment_intents$/, 'lost_answer');
      const charge = await pay(invoices[0]!, card('pm_card_visa'));
      const page = await pay(invoices[1]!, link);
      const debit = await pay(invoices[2]!, card('pm_usBankAccount_success'));
      actOnIntent(fake.book, debit.gateway_payment_id, 'succeeded');
      await refreshPayment(
        api.services,
        await PaymentModel.fetch(api.scope, debit.id, { database: api.services.postgres }),
        { now },
      );
      await ok('POST', `/payments/${debit.id}/refund`, { amount: '40' });
      const reason = 'the account was closed';
      expect(await refuse(charge.id, { payment_status: 'SUCCEEDED', reason })).to.deep.equal([
        400,
        'stripe can still tell the outcome: wait for it',
      ]);
      await setState({ connection_state: 'needs_attention', attention_reason: 'the key was revoked' });
      expect((await refuse(charge.id, { payment_status: 'SUCCEEDED' }))[0]).to.equal(400);
      expect((await refuse(debit.id, { pending_refunds: 'failed' }))[1]).to.match(/^reason: is required/);
      expect((await refuse(debit.id, { payment_status: 'VOIDED', reason }))[1]).to.match(/^reason: goes with/);
      await ok('PUT', `/payments/${charge.id}`, { payment_status: 'SUCCEEDED', reason });
      await ok('PUT', `/payments/${page.id}`, { payment_status: 'FAILED', reason });
      await ok('PUT', `/payments/${debit.id}`, { pending_refunds: 'failed', reason });
      expect(await paidOf(invoices[0]!)).to.deep.equal(['SUCCEEDED', '100']);
      expect((await stateOf(page.id))[0]).to.equal('FAILED');
      expect((await ok('GET', `/payments/${page.id}`)).error_message).to.equal(
        `${reason}; the page ${page.gateway_payment_id} may still be open at stripe: close it there`,
      );
      expect(await stateOf(debit.id)).to.deep.equal(['SUCCEEDED', 1, '0']);
      const entries = await api.services.postgres('audit_entries').where({ entity_id: charge.id });
      expect(JSON.stringify(entries)).to.contain(reason);
      expect((await archiveRefusal())[0]).to.be.lessThan(300);
      await connect();
    });

    it('is refused while a charge has no outcome', async () => {
      const invoice_id = await newInvoice(await newCustomer());
      fake.disturb(/POST payment_intents$/, 'lost_answer');
      const { id } = await pay(invoice_id, card('pm_card_visa'));
      expect(await archiveRefusal()).to.deep.equal([
        400,
        `the payment ${id} has no outcome yet: wait for it, or void its page`,
      ]);
      await runDue(new Date(now.getTime() + 61_000));
      expect((await stateOf(id))[0]).to.equal('SUCCEEDED');
    });

    it('is refused while a page is open', async () => {
      const { id } = await pay(await newInvoice(await newCustomer()), link);
      expect(await archiveRefusal()).to.deep.equal([
        400,
        `the payment ${id} has no outcome yet: wait for it, or void its page`,
      ]);
      await ok('PUT', `/payments/${id}`, { payment_status: 'VOIDED' });
    });

    it('that was interrupted lets no refund begin and no test undo it, and can be repeated', async () => {
      const payment = await pay(await newInvoice(await newCustomer()), card('pm_card_visa'));
      const { postgres } = api.services;
      await postgres('connections').where({ id: connection_id }).update({ connection_state: 'being_archived' });
      const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
      for (const [method, path, body] of [
        ['POST', `/payments/${payment.id}/refund`, { amount: '40' }],
        ['POST', `/connections/${connection_id}/test`, undefined],
        ['PUT', `/connections/${connection_id}`, { encrypted_secret_data }],
      ] as const) {
        const answer = await api.request<Shown>(method, path, body === undefined ? {} : { body });
        expect([path, answer.status, /archived/.test(answer.body.message)]).to.deep.equal([path, 400, true]);
      }
      expect((await connection()).connection_state).to.equal('being_archived');
      expect((await archiveRefusal())[0]).to.be.lessThan(300);
      await connect();
    });

    it('in rounds checks its payments once', async () => {
      const { id } = await pay(await newInvoice(await newCustomer()), link);
      const { postgres } = api.services;
      await postgres('connections').where({ id: connection_id }).update({ connection_state: 'being_archived' });
      expect((await archiveRefusal())[0]).to.be.lessThan(300);
      await connect();
      await ok('PUT', `/payments/${id}`, { payment_status: 'VOIDED' });
    });

    it('that is stopped names the void pages that may be open, and they are not closed any more', async () => {
      const { id } = await pay(await newInvoice(await newCustomer()), link);
      const { postgres } = api.services;
      await postgres('connections')
        .where({ id: connection_id })
        .update({ connection_state: 'needs_attention', attention_reason: 'the key was revoked' });
      await ok('PUT', `/payments/${id}`, { payment_status: 'VOIDED' });
      expect((await PaymentModel.fetch(api.scope, id, { database: postgres })).next_attempt_at).to.not.equal(null);
      expect((await archiveRefusal())[0]).to.be.lessThan(300);
      const after = await PaymentModel.fetch(api.scope, id, { database: postgres });
      expect(after.next_attempt_at).to.equal(null);
      expect(after.error_message).to.match(
        /^the page cs_\w+ may still be open at stripe, whose connection was archived/,
      );
      await connect();
    });

    it('is refused while a refund is pending, and possible afterwards', async () => {
      const payment = await pay(await newInvoice(await newCustomer()), card('pm_usBankAccount_success'));
      const [intent] = intentsOf(payment.id);
      actOnIntent(fake.book, intent!.id, 'succeeded');
      await runDue(new Date(now.getTime() + HOUR_MS));
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '40' });
      expect(await archiveRefusal()).to.deep.equal([
        400,
        `a refund of the payment ${payment.id} is pending: wait for its outcome`,
      ]);
      endRefund(fake.book, listRefunds(fake.book, intent!.id)[0]!.id, 'succeeded');
      await runDue(new Date(now.getTime() + HOUR_MS));
      expect((await archiveRefusal())[0]).to.be.lessThan(300);
    });
  });

  it('are refused in an environment with a test clock', async () => {
    const other = await startTestApi({
      now,
      config: { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` },
    });
    try {
      const sent = fake.requests.length;
      await other.request('POST', '/test-clocks', { body: { frozen_time: now.toISOString() } });
      const stripe = { secret_key: 'sk_test_fake' };
      const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
      expect((await other.request('POST', '/connections', { body })).status).to.equal(201);
      const { id } = (await other.request('POST', '/customers', { body: { external_id: 'acme' } })).body;
      const method = { payment_gateway: 'stripe', gateway_payment_method_id: 'pm_card_visa' };
      const answer = await other.request<Shown>('POST', `/payments/customers/${id}/methods`, { body: method });
      expect([answer.status, /test clock never calls stripe/.test(answer.body.message)]).to.deep.equal([400, true]);
      expect(fake.requests.length).to.equal(sent);
    } finally {
      await other.stop();
    }
  });
});
