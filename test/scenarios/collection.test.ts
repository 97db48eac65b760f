/**
 * Half a year with a failing card by the clock of an environment: collected by itself, tried again, given up, and what becomes of the
 * subscription then, as its setting says (docs/rules/payments.md).
 */
import { expect } from 'chai';
import type { ListedInvoice, SystemEvent } from '../support/answers.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

const START = '2031-01-01T00:00:00Z';

describe('invoices that are collected', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: START, test_clock: true });
    const { scope, services } = world.api;
    await services.postgres('environments').where({ id: scope.environment_id }).update({ type: 'development' });
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    await settings({});
  });
  after(() => world.stop());

  const put = async <Path extends string>(path: Path, body: object) => {
    const answer = await world.api.request('PUT', path, { body });
    expect(answer.status, answer.text).to.equal(200);
  };
  const settings = (value: object) =>
    put('/settings/payment_config', { value: { default_gateway: 'sandbox', ...value } });
  async function card(customer: string, method: string): Promise<void> {
    await world.customer(customer);
    const { status, text } = await world.api.request(
      'POST',
      `/payments/customers/${world.id(`customer ${customer}`)}/methods`,
      { body: { gateway_payment_method_id: `pm_sandbox_${method}` } },
    );
    expect(status, text).to.equal(201);
  }
  const paymentsOf = async (invoice: ListedInvoice) =>
    (await world.get(`/payments?destination_id=${invoice.id}&expand=attempts`)).items;
  const told = async (customer: string) =>
    (await world.invoices(customer)).map((one) => [one.period_start!.slice(0, 10), one.payment_status]);
  const events = async (name: string) =>
    (await world.api.services
      .postgres('system_events')
      .where({ event_name: name })
      .orderBy('sequence')) as SystemEvent[];

  describe('an opening', () => {
    const cases: [string, Record<string, string>, string, string | null][] = [
      ['default_active, declined', { payment_behavior: 'default_active' }, 'declined', 'active'],
      ['allow_incomplete, declined', { payment_behavior: 'allow_incomplete' }, 'declined', 'incomplete'],
      ['allow_incomplete, paid', { payment_behavior: 'allow_incomplete' }, 'card', 'active'],
      ['error_if_incomplete, declined', { payment_behavior: 'error_if_incomplete' }, 'declined', null],
      ['error_if_incomplete, to be confirmed', { payment_behavior: 'error_if_incomplete' }, 'requires_action', null],
      ['error_if_incomplete, on its way', { payment_behavior: 'error_if_incomplete' }, 'pays_late', 'incomplete'],
      ['allow_incomplete, to be confirmed', { payment_behavior: 'allow_incomplete' }, 'requires_action', 'incomplete'],
      ['error_if_incomplete, paid', { payment_behavior: 'error_if_incomplete' }, 'card', 'active'],
      [
        'send_invoice, paid by nobody',
        { collection_method: 'send_invoice', payment_behavior: 'default_incomplete' },
        'card',
        'incomplete',
      ],
    ];
    for (const [what, terms, method, status] of cases)
      it(`${what}: ${status ?? 'refused'}`, async () => {
        await card(what, method);
        if (status !== null) {
          const subscription = await world.subscribe(what, 'Pro', terms);
          expect(subscription.subscription_status).to.equal(status);
          expect(subscription.latest_invoice!.payment_status === 'SUCCEEDED').to.equal(
            method === 'card' && status === 'active',
          );
          if (subscription.latest_invoice!.payment_status !== 'PROCESSING') await world.cancel(what);
          return;
        }
        const body = {
          external_customer_id: what,
          plan_id: world.id('plan Pro'),
          currency: 'usd',
          billing_period: 'MONTHLY',
          ...terms,
        };
        const refused = await world.api.request('POST', '/subscriptions', { body });
        expect([refused.status, refused.body.details!.reason]).to.deep.equal([
          400,
          method === 'declined'
            ? 'card_declined: the bank has declined the charge'
            : 'authentication_required: the customer has to confirm the charge',
        ]);
        const customer_id = world.id(`customer ${what}`);
        const { items: left } = await world.post('/subscriptions/search', {
          customer_id,
          subscription_status: ['cancelled'],
        });
        expect(left.length).to.equal(1);
        const { items } = await world.post('/invoices/search', { customer_id });
        expect(items.map((one) => one.invoice_status)).to.deep.equal(['VOIDED']);
        // Nobody can confirm it any more.
        const { id } = (await paymentsOf(items[0]!))[0]!;
        await world.api.request('POST', `/payments/${id}/sandbox`, { body: { outcome: 'succeeded' } });
        const { payment_status, payment_url, refunded_amount } = await world.get(`/payments/${id}`);
        expect([payment_status, payment_url, refunded_amount]).to.deep.equal(['FAILED', null, '0']);
      });
  });

  it('from a bank account is an ACH payment, and one from a card is a CARD payment', async () => {
    for (const [customer, method, payment_method_type] of [
      ['of a bank', 'bank', 'ACH'],
      ['of a card', 'card', 'CARD'],
    ] as const) {
      await world.customer(customer);
      const path = `/payments/customers/${world.id(`customer ${customer}`)}/methods` as const;
      await world.post(path, { gateway_payment_method_id: `pm_sandbox_${method}`, payment_method_type });
      await world.subscribe(customer, 'Pro');
      const [invoice] = await world.invoices(customer);
      const payments = await paymentsOf(invoice!);
      expect(payments.map((one) => [one.payment_method_type, one.payment_status])).to.deep.equal([
        [payment_method_type, 'SUCCEEDED'],
      ]);
      await world.cancel(customer);
    }
  });

  it('half a year: a card that fails is tried again, and another pays what is left', async () => {
    await card('acme', 'card');
    expect((await world.subscribe('acme', 'Pro')).latest_invoice!.payment_status).to.equal('SUCCEEDED');
    await world.on('2031-02-02');
    expect((await told('acme')).at(-1)).to.deep.equal(['2031-01-01', 'SUCCEEDED']);
    await card('acme', 'declined');
    await world.on('2031-03-10');
    const march = (await world.invoices('acme')).at(-1);
    const [trying] = await paymentsOf(march!);
    expect([trying!.payment_status, trying!.attempt_count, trying!.next_attempt_at]).to.deep.equal([
      'PENDING',
      3,
      '2031-03-16T02:00:00Z',
    ]);
    expect(trying!.attempts!.map((one) => one.created_at)).to.deep.equal([
      '2031-03-01T02:00:00Z',
      '2031-03-04T02:00:00Z',
      '2031-03-09T02:00:00Z',
    ]);
    // Another card in time, and one that pays late in April.
    await card('acme', 'pays_late');
    await world.on('2031-03-17');
    expect((await world.invoices('acme')).at(-1)!.payment_status).to.equal('PROCESSING');
    await world.on('2031-03-20');
    expect(await told('acme')).to.deep.equal([
      ['2031-01-01', 'SUCCEEDED'],
      ['2031-01-01', 'SUCCEEDED'],
      ['2031-02-01', 'SUCCEEDED'],
    ]);
    // It does not matter that an answer was lost: it is asked again, and charged once.
    await card('acme', 'no_answer');
    await world.on('2031-04-02');
    const april = (await world.invoices('acme')).at(-1);
    expect(april!.payment_status).to.equal('SUCCEEDED');
    const [paid] = await paymentsOf(april!);
    const charges = await world.api.services.postgres('sandbox_charges').whereLike('idempotency_key', `${paid!.id}%`);
    expect([paid!.attempt_count, charges.length]).to.deep.equal([1, 1]);
    await settings({ retry_after_days: [] });
    await card('acme', 'expired');
    await world.on('2031-07-01');
    const unpaid = (await told('acme')).filter(([, status]) => status === 'FAILED');
    expect([unpaid.length, (await world.subscription('acme')).subscription_status]).to.deep.equal([2, 'active']);
    const ids = new Set((await world.invoices('acme')).map(({ id }) => id));
    const overdue = (await events('invoice.payment.overdue')).filter(({ entity_id }) => ids.has(entity_id));
    expect(overdue.length, 'each that was not paid in time, once').to.equal(
      new Set(overdue.map((one) => one.entity_id)).size,
    );
    expect(overdue.length).to.equal(3);
    await world.cancel('acme');
  });

  it('after the last try a subscription waits for its money, and goes on with it', async () => {
    await settings({ retry_after_days: [1], after_last_try: 'mark_incomplete' });
    await world.on('2032-01-02');
    await card('bravo', 'card');
    await world.subscribe('bravo', 'Pro', { start_date: '2032-01-02T00:00:00Z' });
    await card('bravo', 'declined');
    await world.on('2032-02-02');
    expect((await world.subscription('bravo')).subscription_status).to.equal('active');
    await world.on('2032-02-04');
    expect((await world.subscription('bravo')).subscription_status).to.equal('incomplete');
    const { id } = (await world.invoices('bravo')).at(-1)!;
    await card('bravo', 'card');
    await world.post(`/invoices/${id}/payment/attempt`, {});
    expect((await world.subscription('bravo')).subscription_status).to.equal('active');
  });

  it('after the last try it ends, where the setting says so', async () => {
    await settings({ retry_after_days: [], after_last_try: 'cancel' });
    await card('bravo', 'declined');
    await world.on('2032-03-03');
    const { subscription_status, cancelled_at } = await world.subscription('bravo');
    expect([subscription_status, cancelled_at]).to.deep.equal(['cancelled', '2032-03-02T02:00:00Z']);
  });

  it('whoever is sent invoices and pays none is ended after the grace period, if that is on', async () => {
    await settings({ after_last_try: 'keep_active' });
    await put('/settings/subscription_config', { value: { auto_cancellation_enabled: true, grace_period_days: 5 } });
    await put('/settings/invoice_config', { value: { due_date_days: 10 } });
    await world.subscribe('charlie', 'Pro', { collection_method: 'send_invoice', start_date: '2032-03-03T00:00:00Z' });
    const [opening] = await world.invoices('charlie');
    expect(opening!.due_date).to.equal('2032-04-13T00:00:00Z');
    await world.on('2032-04-17');
    expect((await world.subscription('charlie')).subscription_status).to.equal('active');
    await world.on('2032-04-19');
    const { subscription_status, cancelled_at } = await world.subscription('charlie');
    expect([subscription_status, cancelled_at]).to.deep.equal(['cancelled', '2032-04-18T00:00:00Z']);
  });

  it('grace begins when an invoice is final, where its due date has passed by then', async () => {
    await world.on('2032-05-20');
    await world.subscribe('delta', 'Pro', { collection_method: 'send_invoice', start_date: '2032-04-15T00:00:00Z' });
    const [opening] = await world.invoices('delta');
    expect([opening!.due_date, opening!.finalized_at]).to.deep.equal(['2032-05-25T00:00:00Z', '2032-05-20T00:00:00Z']);
    await world.subscribe('echo', 'Pro', { collection_method: 'send_invoice', start_date: '2032-03-15T00:00:00Z' });
    const [late] = await world.invoices('echo');
    expect([late!.due_date, late!.finalized_at]).to.deep.equal(['2032-04-25T00:00:00Z', '2032-05-20T00:00:00Z']);
    const ended = async () =>
      Promise.all(['delta', 'echo'].map(async (name) => (await world.subscription(name)).cancelled_at));
    await world.on('2032-05-24');
    expect(await ended()).to.deep.equal([null, null]);
    await world.on('2032-05-31');
    expect(await ended()).to.deep.equal(['2032-05-30T00:00:00Z', '2032-05-25T00:00:00Z']);
  });
});
