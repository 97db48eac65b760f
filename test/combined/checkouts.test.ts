/** Checkouts (docs/rules/checkout.md): paid, expired, closed, repeated, and all of these at the same time. */
import { expect } from 'chai';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { createProvider } from '../../actions/payments/providers.ts';
import type { CheckoutSession } from '../support/answers.ts';
import { sandboxNotice } from '../support/sandbox.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

const SECRET = 'a secret of the installation';
const ADVANCE = { invoice_cadence: 'ADVANCE' };
const START = '2026-01-01T00:00:00Z';

describe('checkouts', () => {
  let world: World;
  let names = 0;
  before(async () => {
    world = await startWorld({ config: { PAYMENT_SANDBOX_SECRET: SECRET } });
    await world.plan('Pro', [fixed('30', ADVANCE)]);
    await world.plan('Free', [fixed('5')]);
  });
  after(() => world.stop());
  beforeEach(() => world.at(START));

  const newName = () => `customer ${++names}`;
  const checkout = (fields: object = {}) => ({ payment_provider: 'sandbox', ...fields });
  const subscribe = (fields: object = {}, params: object = {}) =>
    world.subscribe(newName(), 'Pro', { checkout: checkout(params), ...fields });
  const ask = (method: string, path: string, body?: unknown) =>
    world.api.request(method, path, body === undefined ? {} : { body });
  const show = ({ id }: { id: string }) => world.get(`/checkout/sessions/${id}`);
  const act = ({ checkout_payment_id }: CheckoutSession, outcome = 'succeeded') =>
    world.post(`/payments/${checkout_payment_id!}/sandbox`, { outcome });
  const statusOf = async (id: string) => (await world.get(`/subscriptions/${id}`)).subscription_status;
  const invoiceOf = async ({ checkout_invoice_id }: CheckoutSession) => {
    const { invoice_status, payment_status, amount_paid } = await world.get(`/invoices/${checkout_invoice_id!}`);
    return [invoice_status, payment_status, amount_paid];
  };
  const paymentOf = async ({ checkout_payment_id }: CheckoutSession) => {
    const { payment_status, refunded_amount, next_attempt_at } = await world.get(`/payments/${checkout_payment_id!}`);
    return [payment_status, refunded_amount, next_attempt_at];
  };
  /** Charge, in the book of the sandbox: status and refunded amount. */
  const chargeOf = async ({ checkout_payment_id }: CheckoutSession) => {
    const [charge] = await world.api.services
      .postgres('sandbox_charges')
      .whereLike('idempotency_key', `${checkout_payment_id}/%`);
    return [charge.charge_status, String(charge.refunded)];
  };
  const eventsOf = async ({ id }: { id: string }) => {
    const rows = await world.api.services.postgres('system_events').where({ entity_id: id }).orderBy('id');
    return rows.map(({ event_name }: { event_name: string }) => event_name);
  };
  const sweep = async (at: string) => {
    world.at(at);
    const report = await processDuePayments(world.api.services, { now: world.now });
    expect(report.failed).to.deep.equal([]);
  };
  const notify = (gateway_payment_id: string) => {
    const { tenant_id, environment_id } = world.api.scope;
    const notice = { type: 'payment.succeeded', data: { gateway_payment_id } };
    return world.api.request(
      'POST',
      `/webhooks/sandbox/${tenant_id}/${environment_id}`,
      sandboxNotice(notice, SECRET, world.api.scope),
    );
  };
  const payAtProvider = (session: CheckoutSession) =>
    createProvider(world.api.services, 'sandbox').simulate!(
      world.api.scope,
      session.provider_result!.provider_session_id!,
      'succeeded',
    );

  async function expectUndone(session: CheckoutSession, subscription_id: string) {
    expect(await statusOf(subscription_id)).to.equal('cancelled');
    expect((await invoiceOf(session))[0]).to.equal('VOIDED');
  }

  describe('of a subscription', () => {
    it('is incomplete until its page is paid, and then active', async () => {
      const made = await subscribe();
      const session = made.checkout_session!;
      expect(made).to.include({
        subscription_status: 'incomplete',
        collection_method: 'charge_automatically',
        payment_behavior: 'allow_incomplete',
      });
      expect(session).to.include({ checkout_status: 'pending', action: 'create_subscription', result: null });
      expect(session.payment_action).to.deep.equal({
        type: 'checkout_url',
        url: `https://sandbox.example/pay/${encodeURIComponent(`${session.checkout_payment_id}/link`)}`,
      });
      expect(session.expires_at).to.equal('2026-01-02T00:00:00Z');
      expect(session.configuration!.create_subscription_params!.subscription_id).to.equal(made.id);
      await act(session);
      expect(await statusOf(made.id)).to.equal('active');
      expect(await invoiceOf(session)).to.deep.equal(['FINALIZED', 'SUCCEEDED', '30']);
      const paid = await show(session);
      expect(paid).to.include({ checkout_status: 'completed', completed_at: START, payment_action: null });
      expect(paid.result).to.deep.equal({
        create_subscription_result: {
          subscription_id: made.id,
          invoice_id: session.checkout_invoice_id,
          payment_id: session.checkout_payment_id,
        },
      });
      expect(await eventsOf(session)).to.deep.equal(['checkout.session.initiated', 'checkout.session.completed']);
    });

    it('has a record in the audit log for each change', async () => {
      const { checkout_session: session } = await subscribe();
      const { items } = await world.get(`/audit-logs?entity_type=checkout_session&entity_id=${session!.id}`);
      expect(items.map(({ action }) => action)).to.include.members(['created', 'updated']);
    });

    it('does not charge the stored card of the customer', async () => {
      const name = newName();
      await world.customer(name);
      const { id } = await world.get(`/customers/external/${name}`);
      await world.post(`/payments/customers/${id}/methods`, {
        payment_gateway: 'sandbox',
        gateway_payment_method_id: 'pm_sandbox_card',
      });
      const made = await world.subscribe(name, 'Pro', { checkout: checkout() });
      expect(made.subscription_status).to.equal('incomplete');
      const { items } = await world.get(`/payments?destination_id=${made.checkout_session!.checkout_invoice_id}`);
      expect(items.map(({ payment_method_type }) => payment_method_type)).to.deep.equal(['PAYMENT_LINK']);
    });

    it('is completed by money that comes otherwise, and its page is closed', async () => {
      const made = await subscribe({ collection_method: 'send_invoice' });
      const session = made.checkout_session!;
      expect(made.payment_behavior).to.equal('default_incomplete');
      await world.post('/payments', {
        destination_type: 'INVOICE',
        destination_id: session.checkout_invoice_id,
        payment_method_type: 'OFFLINE',
        amount: '30',
        currency: 'usd',
      });
      expect((await show(session)).checkout_status).to.equal('completed');
      expect(await statusOf(made.id)).to.equal('active');
      await sweep('2026-01-01T00:02:00Z');
      expect(await chargeOf(session)).to.deep.equal(['cancelled', '0']);
    });

    it('expires after a day with all that it has created', async () => {
      const made = await subscribe();
      const session = made.checkout_session!;
      await sweep('2026-01-01T23:59:59Z');
      expect((await show(session)).checkout_status).to.equal('pending');
      await sweep('2026-01-02T00:00:00Z');
      const over = await show(session);
      expect(over).to.include({ checkout_status: 'expired', payment_action: null, cancelled_at: null });
      expect(over.failure_reason).to.equal('nobody has paid while the page was open');
      await expectUndone(session, made.id);
      expect(await paymentOf(session)).to.deep.equal(['FAILED', '0', null]);
      expect(await eventsOf(session)).to.deep.equal(['checkout.session.initiated', 'checkout.session.expired']);
    });

    it('fails with all that it has created if the page is declined', async () => {
      const coupon = await world.post('/coupons', {
        name: 'Ten',
        type: 'fixed',
        amount_off: '10',
        cadence: 'forever',
        currency: 'usd',
      });
      const made = await subscribe({ coupons: [coupon.id] });
      const session = made.checkout_session!;
      expect((await world.get(`/payments/${session.checkout_payment_id!}`)).amount).to.equal('20');
      expect((await world.get(`/coupons/${coupon.id}`)).total_redemptions).to.equal(1);
      await act(session, 'failed');
      expect(await show(session)).to.include({
        checkout_status: 'failed',
        failure_reason: 'card_declined: the bank has declined the charge',
      });
      await expectUndone(session, made.id);
      expect((await world.get(`/coupons/${coupon.id}`)).total_redemptions).to.equal(0);
      expect(await paymentOf(session)).to.deep.equal(['FAILED', '0', null]);
    });

    it('fails if its payment is voided by a person', async () => {
      const made = await subscribe();
      const session = made.checkout_session!;
      const body = { payment_status: 'VOIDED' };
      expect((await ask('PUT', `/payments/${session.checkout_payment_id}`, body)).status).to.equal(200);
      await sweep('2026-01-01T00:02:00Z');
      expect((await show(session)).checkout_status).to.equal('failed');
      await expectUndone(session, made.id);
      expect(await chargeOf(session)).to.deep.equal(['cancelled', '0']);
    });

    it('is closed by a request, and money that comes afterwards is refunded', async () => {
      const made = await subscribe();
      const session = made.checkout_session!;
      await payAtProvider(session);
      expect((await ask('DELETE', `/checkout/sessions/${session.id}`)).status).to.equal(204);
      const over = await show(session);
      expect(over).to.include({ checkout_status: 'expired', status: 'archived', cancelled_at: START });
      await expectUndone(session, made.id);
      expect(await chargeOf(session)).to.deep.equal(['succeeded', '30']);
      expect((await paymentOf(session)).slice(0, 2)).to.deep.equal(['VOIDED', '30']);
      expect((await ask('DELETE', `/checkout/sessions/${session.id}`)).status).to.equal(404);
    });

    it('cannot be archived after its payment', async () => {
      const { checkout_session: session } = await subscribe();
      await act(session!);
      const refused = await ask('DELETE', `/checkout/sessions/${session!.id}`);
      expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_operation']);
      expect((await show(session!)).status).to.equal('published');
    });

    it('protects its invoice and its subscription from requests that bypass it', async () => {
      const made = await subscribe();
      const session = made.checkout_session!;
      for (const [path, body] of [
        [`/invoices/${session.checkout_invoice_id}/void`, {}],
        [`/subscriptions/${made.id}/cancel`, { cancellation_type: 'immediate' }],
      ] as const) {
        const refused = await ask('POST', path, body);
        expect([refused.status, refused.body.details?.checkout_session_id], path).to.deep.equal([400, session.id]);
      }
      expect(await statusOf(made.id)).to.equal('incomplete');
    });

    it('fails if a credit note leaves less to pay than the page requests', async () => {
      const made = await subscribe();
      const session = made.checkout_session!;
      const [line] = (await world.get(`/invoices/${session.checkout_invoice_id!}`)).line_items;
      await world.post('/creditnotes', {
        invoice_id: session.checkout_invoice_id,
        reason: 'BILLING_ERROR',
        line_items: [{ invoice_line_item_id: line!.id, amount: '10' }],
      });
      await sweep('2026-01-01T00:02:00Z');
      expect((await show(session)).checkout_status).to.equal('failed');
      expect(await statusOf(made.id)).to.equal('cancelled');
    });
  });

  describe('with nothing to pay', () => {
    it('is completed at once', async () => {
      const free = await world.subscribe(newName(), 'Free', { checkout: checkout() });
      const trial = await subscribe({ trial_period_days: 7 });
      for (const [made, status] of [
        [free, 'active'],
        [trial, 'trialing'],
      ] as const) {
        expect(made.subscription_status).to.equal(status);
        expect(made.checkout_session).to.include({ checkout_status: 'completed', payment_action: null });
        expect(made.checkout_session!.checkout_payment_id).to.equal(null);
        expect(await eventsOf(made.checkout_session!)).to.deep.equal(['checkout.session.completed']);
      }
    });
  });

  describe('that is refused', () => {
    const refusals: [string, object, string][] = [
      ['a provider that is not there', { checkout: checkout({ payment_provider: 'nobody' }) }, 'payment_provider'],
      ['a draft', { subscription_status: 'draft', checkout: checkout() }, 'checkout'],
      ['a later start', { start_date: '2026-02-01T00:00:00Z', checkout: checkout() }, 'start_date'],
      ['an active beginning', { payment_behavior: 'default_active', checkout: checkout() }, 'payment_behavior'],
      [
        'a mandate',
        { checkout: checkout({ payment_provider_config: { max_mandate_limit: '5' } }) },
        'checkout.payment_provider_config.max_mandate_limit',
      ],
      [
        'a family',
        { checkout: checkout(), inheritance: { external_customer_ids_to_inherit_subscription: ['child'] } },
        'checkout',
      ],
      [
        'a script as an address',
        { checkout: checkout({ success_url: 'javascript:alert(1)' }) },
        'checkout.success_url',
      ],
    ];
    for (const [name, fields, field] of refusals)
      it(name, async () => {
        const customer = newName();
        await world.customer(customer);
        const plan_id = world.id('plan Pro');
        const body = { external_customer_id: customer, plan_id, currency: 'usd', billing_period: 'MONTHLY', ...fields };
        const refused = await ask('POST', '/subscriptions', body);
        expect([refused.status, refused.body.details?.field], refused.text).to.deep.equal([400, field]);
        const { items } = await world.get(`/subscriptions?external_customer_id=${customer}`);
        expect(items).to.deep.equal([]);
      });
  });

  describe('of purchased credits', () => {
    async function wallet() {
      const name = newName();
      await world.customer(name);
      return { ...(await world.post('/wallets', { external_customer_id: name, currency: 'usd' })), name };
    }
    const topUp = ({ id }: { id: string }, fields: object = {}) => ({
      path: `/wallets/${id}/top-up` as const,
      body: {
        credits_to_add: '50',
        transaction_reason: 'PURCHASED_CREDIT_INVOICED',
        checkout: checkout(),
        ...fields,
      },
    });
    const credits = async ({ id }: { id: string }) => (await world.get(`/wallets/${id}`)).credit_balance;
    const purchase = async (one: { id: string }, fields: object = {}) => {
      const { path, body } = topUp(one, fields);
      return world.post(path, body);
    };

    it('brings them when the page is paid', async () => {
      const one = await wallet();
      const { checkout_session, wallet_transaction, invoice_id } = await purchase(one);
      const session = checkout_session!;
      expect(session).to.include({
        action: 'wallet_topup',
        checkout_status: 'pending',
        checkout_invoice_id: invoice_id,
      });
      expect(session.configuration!.wallet_topup_params).to.deep.equal({
        wallet_id: one.id,
        wallet_transaction_id: wallet_transaction!.id,
      });
      expect(await credits(one)).to.equal('0');
      await act(session);
      expect(await credits(one)).to.equal('50');
      expect(await show(session)).to.include({ checkout_status: 'completed' });
    });

    it('is paid even where purchases count as paid', async () => {
      await ask('PUT', '/settings/invoice_config', { value: { auto_complete_purchased_credit_transaction: true } });
      const one = await wallet();
      const { checkout_session } = await purchase(one);
      await ask('PUT', '/settings/invoice_config', { value: { auto_complete_purchased_credit_transaction: false } });
      expect([await credits(one), checkout_session!.checkout_status]).to.deep.equal(['0', 'pending']);
    });

    it('is one at a time for a wallet', async () => {
      const one = await wallet();
      const { checkout_session } = await purchase(one);
      const { path, body } = topUp(one);
      const second = await ask('POST', path, body);
      expect([second.status, second.body.details?.checkout_session_id]).to.deep.equal([409, checkout_session!.id]);
      expect((await ask('DELETE', `/checkout/sessions/${checkout_session!.id}`)).status).to.equal(204);
      expect(await invoiceOf(checkout_session!)).to.deep.equal(['VOIDED', 'PENDING', '0']);
      const { items } = await world.get(`/wallets/${one.id}/transactions`);
      expect(items.map(({ transaction_status }) => transaction_status)).to.deep.equal(['failed']);
      await act((await purchase(one)).checkout_session!);
      expect(await credits(one)).to.equal('50');
    });

    it('is only for credits that are bought with an invoice', async () => {
      const { path, body } = topUp(await wallet(), { transaction_reason: 'FREE_CREDIT_GRANT' });
      const refused = await ask('POST', path, body);
      expect([refused.status, refused.body.details?.field]).to.deep.equal([400, 'checkout']);
    });

    it('is made once per key', async () => {
      const one = await wallet();
      const { path, body } = topUp(one, { checkout: checkout({ idempotency_key: newName() }) });
      const answers = await Promise.all([1, 2, 3].map(() => world.api.request('POST', path, { body })));
      for (const answer of answers) expect(answer.status, answer.text).to.equal(200);
      expect(new Set(answers.map((answer) => answer.body.checkout_session!.id)).size).to.equal(1);
      await act(answers[0]!.body.checkout_session!);
      expect(await credits(one)).to.equal('50');
    });

    it('pays a purchase that exists, which stays open if nobody pays', async () => {
      const one = await wallet();
      const { invoice_id, wallet_transaction } = await purchase(one, { checkout: null });
      const request = {
        ...checkout(),
        customer_external_id: one.name,
        action: 'wallet_topup',
        configuration: { wallet_topup_params: { wallet_id: one.id } },
      };
      const first = await world.post('/checkout/sessions', request);
      expect(first.configuration!.wallet_topup_params!.wallet_transaction_id).to.equal(wallet_transaction!.id);
      expect((await ask('DELETE', `/checkout/sessions/${first.id}`)).status).to.equal(204);
      expect(await chargeOf(first)).to.deep.equal(['cancelled', '0']);
      expect(await invoiceOf(first)).to.deep.equal(['FINALIZED', 'PENDING', '0']);
      const second = await world.post('/checkout/sessions', request);
      expect(second.checkout_invoice_id).to.equal(invoice_id);
      await act(second);
      expect(await credits(one)).to.equal('50');
    });
  });

  describe('as a session of its own', () => {
    const session = (fields: object = {}) => ({
      ...checkout({ success_url: 'https://shop.example/thanks', failure_url: 'https://shop.example/sorry' }),
      action: 'create_subscription',
      ...fields,
    });
    const params = () => ({
      create_subscription_params: { plan_id: world.id('plan Pro'), currency: 'USD', billing_period: 'monthly' },
    });

    it('creates the subscription', async () => {
      const name = newName();
      await world.customer(name);
      const made = await world.post(
        '/checkout/sessions',
        session({ customer_external_id: name, configuration: params() }),
      );
      expect(made.configuration!.create_subscription_params).to.include({ currency: 'usd', billing_period: 'MONTHLY' });
      expect(await world.get(`/payments/${made.checkout_payment_id!}`)).to.include({
        success_url: 'https://shop.example/thanks',
        cancel_url: 'https://shop.example/sorry',
        checkout_session_id: made.id,
      });
      await act(made);
      const { result } = await show(made);
      expect(await statusOf(result!.create_subscription_result!.subscription_id)).to.equal('active');
    });

    it('is made once per key, also by requests at the same time; another content is refused', async () => {
      const name = newName();
      await world.customer(name);
      const configuration = params();
      const body = session({ customer_external_id: name, configuration, idempotency_key: newName() });
      const answers = await Promise.all([1, 2, 3, 4].map(() => ask('POST', '/checkout/sessions', body)));
      for (const answer of answers) expect(answer.status, answer.text).to.equal(201);
      expect(new Set(answers.map((answer) => answer.body.id)).size).to.equal(1);
      const { items } = await world.get(`/subscriptions?external_customer_id=${name}`);
      expect(items.length).to.equal(1);
      const other = { ...configuration.create_subscription_params, billing_period: 'ANNUAL' };
      const refused = await ask('POST', '/checkout/sessions', {
        ...body,
        configuration: { create_subscription_params: other },
      });
      expect([refused.status, refused.body.details?.field]).to.deep.equal([
        409,
        'configuration.create_subscription_params',
      ]);
    });

    it('is refused for actions that are not there, and without their parameters', async () => {
      const name = newName();
      await world.customer(name);
      const customer_external_id = name;
      for (const [fields, field] of [
        [{ action: 'add_addon' }, 'action'],
        [{ action: 'modify_subscription' }, 'action'],
        [{}, 'configuration.create_subscription_params'],
        [{ action: 'wallet_topup', configuration: params() }, 'configuration.wallet_topup_params'],
        [{ configuration: { ...params(), add_addon_params: {} } }, 'configuration.add_addon_params'],
      ] as const) {
        const refused = await ask('POST', '/checkout/sessions', session({ customer_external_id, ...fields }));
        expect([refused.status, refused.body.details?.field], refused.text).to.deep.equal([400, field]);
      }
    });

    it('is hidden from other tenants', async () => {
      const { checkout_session } = await subscribe();
      const { key } = await world.api.otherTenant();
      for (const method of ['GET', 'DELETE']) {
        const answer = await world.api.request(method, `/checkout/sessions/${checkout_session!.id}`, { key });
        expect(answer.status).to.equal(404);
      }
      expect((await show(checkout_session!)).checkout_status).to.equal('pending');
    });
  });

  describe('at the same time', () => {
    it('either paid or closed: money and subscription agree', async () => {
      const outcomes = new Set<string>();
      for (let round = 0; round < 6; round++) {
        const made = await subscribe();
        const session = made.checkout_session!;
        await payAtProvider(session);
        const notices = () => notify(session.provider_result!.provider_session_id!);
        const closing = ask('DELETE', `/checkout/sessions/${session.id}`);
        const answers = round % 2 ? [notices(), closing, notices()] : [closing, notices(), notices()];
        for (const answer of await Promise.all(answers)) expect(answer.status, answer.text).to.be.within(200, 400);
        await sweep('2026-01-01T00:02:00Z');
        world.at(START);
        const { checkout_status } = await show(session);
        outcomes.add(checkout_status);
        const isPaid = checkout_status === 'completed';
        expect(await statusOf(made.id)).to.equal(isPaid ? 'active' : 'cancelled');
        expect((await invoiceOf(session))[0]).to.equal(isPaid ? 'FINALIZED' : 'VOIDED');
        expect(await chargeOf(session)).to.deep.equal(['succeeded', isPaid ? '0' : '30']);
        const ends = (await eventsOf(session)).filter((name: string) => name !== 'checkout.session.initiated');
        expect(ends.length).to.equal(1);
      }
      expect([...outcomes].every((one) => one === 'completed' || one === 'expired')).to.equal(true);
    });

    it('one wallet gets one of several checkouts', async () => {
      const name = newName();
      await world.customer(name);
      const { id } = await world.post('/wallets', { external_customer_id: name, currency: 'usd' });
      const body = { credits_to_add: '5', transaction_reason: 'PURCHASED_CREDIT_INVOICED', checkout: checkout() };
      const answers = await Promise.all([1, 2, 3].map(() => ask('POST', `/wallets/${id}/top-up`, body)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 409, 409]);
    });

    it('a page that was never opened is opened by the scheduler', async () => {
      const { checkout_session } = await subscribe();
      const { id, checkout_payment_id } = checkout_session!;
      const database = world.api.services.postgres;
      await database('payments')
        .where({ id: checkout_payment_id })
        .update({ gateway_tracking_id: null, payment_url: null });
      await database('checkout_sessions').where({ id }).update({ checkout_status: 'initiated' });
      await database('payments').where({ id: checkout_payment_id }).update({ next_attempt_at: '2026-01-01T00:01:00Z' });
      await sweep('2026-01-01T00:01:00Z');
      expect(await show({ id })).to.include({ checkout_status: 'pending' });
    });
  });
});
