/** Payments that meet: pages beside other payments, what comes in late, requests that died, providers that may not be used. */
import { expect } from 'chai';
import { beginAttempt } from '../../actions/lifecycle/payments/begin-attempt.ts';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { buildPaymentRequest } from '../../actions/payments/payment-request.ts';
import { createProvider } from '../../actions/payments/providers.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { sandboxNotice } from '../support/sandbox.ts';

const SECRET = 'a secret of the installation';

describe('payments that meet', () => {
  let api: TestApi;
  let customer_id: string;
  before(async () => {
    api = await startTestApi({ config: { PAYMENT_SANDBOX_SECRET: SECRET } });
    customer_id = (await ok('POST', '/customers', { external_id: 'acme' })).id;
    await ok('PUT', '/settings/payment_config', { value: { default_gateway: 'sandbox' } });
  });
  after(() => api.stop());

  const ask = <Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) =>
    api.request(method, path, body === undefined ? {} : { body });
  async function ok<Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) {
    const answer = await ask(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.within(200, 299);
    return answer.body;
  }
  const invoice = async (amount = '100') => {
    const amounts = { subtotal: amount, total: amount, amount_due: amount };
    return ok('POST', '/invoices', { customer_id, currency: 'usd', invoice_status: 'FINALIZED', ...amounts });
  };
  const pay = (destination_id: string, fields: object = {}) => ok('POST', '/payments', stated(destination_id, fields));
  const stated = (destination_id: string, fields: object = {}) => ({
    destination_type: 'INVOICE',
    destination_id,
    payment_method_type: 'OFFLINE',
    amount: '100',
    currency: 'USD',
    ...fields,
  });
  const link = { payment_method_type: 'PAYMENT_LINK' };
  const confirmed = { payment_method_type: 'CARD', payment_method_id: 'pm_sandbox_requires_action' };
  const told = (gateway_payment_id: string) => {
    const { tenant_id, environment_id } = api.scope;
    const notice = { type: 'payment.succeeded', data: { gateway_payment_id } };
    const path = `/webhooks/sandbox/${tenant_id}/${environment_id}` as const;
    return api.request('POST', path, sandboxNotice(notice, SECRET, api.scope));
  };
  const clockCame = () => processDuePayments(api.services, { now: new Date(api.services.clock().getTime() + 120_000) });
  /** How the charge stands in the book of the sandbox: asked, what became of it, given back. */
  const atSandbox = async (id: string) => {
    const [charge] = await api.services.postgres('sandbox_charges').whereLike('idempotency_key', `${id}/%`);
    return [String(charge.amount), charge.charge_status, String(charge.refunded)];
  };
  const adjust = async (id: string, amount: string) => {
    const [line] = (await ok('GET', `/invoices/${id}`)).line_items;
    const line_items = [{ invoice_line_item_id: line!.id, amount }];
    return ok('POST', '/creditnotes', { invoice_id: id, reason: 'BILLING_ERROR', line_items });
  };
  const paidOf = async (id: string) => {
    const { payment_status, amount_paid, amount_remaining, refunded_amount } = await ok('GET', `/invoices/${id}`);
    return [payment_status, amount_paid, amount_remaining, refunded_amount];
  };

  describe('a page', () => {
    it('that was paid before it could be closed is given back, also where the notice is lost', async () => {
      const { id } = await invoice();
      const page = await pay(id, link);
      await createProvider(api.services, 'sandbox').simulate!(api.scope, page.gateway_payment_id!, 'succeeded');
      await pay(id);
      await clockCame();
      const { payment_status, refunded_amount, next_attempt_at } = await ok('GET', `/payments/${page.id}`);
      expect([payment_status, refunded_amount, next_attempt_at]).to.deep.equal(['VOIDED', '100', null]);
      expect(await atSandbox(page.id)).to.deep.equal(['100', 'succeeded', '100']);
    });

    it('that is opened while its payment is voided is closed, and known by its name', async () => {
      const { id } = await invoice();
      const page = await pay(id, { ...link, process_payment: false });
      const now = api.services.clock();
      const { payment } = await beginAttempt(api.services, api.scope, { id: page.id, by: { now }, isRequested: true });
      const request = buildPaymentRequest(payment, { key: payment.gateway_tracking_id!, now });
      await createProvider(api.services, 'sandbox').openLink(api.scope, request);
      await pay(id);
      await clockCame();
      expect(await atSandbox(page.id)).to.deep.equal(['100', 'cancelled', '0']);
      const { gateway_payment_id } = await ok('GET', `/payments/${page.id}`);
      expect((await told(gateway_payment_id!)).status).to.equal(200);
      expect(await atSandbox(page.id)).to.deep.equal(['100', 'cancelled', '0']);
    });

    it('is not opened any more is looked for an hour, and then left', async () => {
      const { id } = await invoice();
      const page = await pay(id, { ...link, process_payment: false });
      const now = api.services.clock();
      await beginAttempt(api.services, api.scope, { id: page.id, by: { now }, isRequested: true });
      await pay(id);
      await clockCame();
      expect((await ok('GET', `/payments/${page.id}`)).next_attempt_at).to.not.equal(null);
      await processDuePayments(api.services, { now: new Date(now.getTime() + 2 * 3_600_000) });
      expect((await ok('GET', `/payments/${page.id}`)).next_attempt_at).to.equal(null);
    });

    it('is changed, and said to be paid, by nobody but its provider', async () => {
      const { id } = await invoice();
      const page = await pay(id, link);
      for (const [changes, field] of [
        [{ amount: '40' }, 'amount'],
        [{ payment_status: 'SUCCEEDED' }, 'payment_status'],
        [{ payment_status: 'FAILED' }, 'payment_status'],
      ] as const) {
        const { status, body } = await ask('PUT', `/payments/${page.id}`, changes);
        expect([status, body.details!.field]).to.deep.equal([400, field]);
      }
      await told(page.gateway_payment_id!);
      expect(await paidOf(id)).to.deep.equal(['SUCCEEDED', '100', '0', '0']);
    });

    it('that is void is archived once it is closed', async () => {
      const { id } = await invoice();
      const page = await pay(id, link);
      await ok('PUT', `/payments/${page.id}`, { payment_status: 'VOIDED' });
      expect((await ask('DELETE', `/payments/${page.id}`)).status).to.equal(400);
      await clockCame();
      expect(await atSandbox(page.id)).to.deep.equal(['100', 'cancelled', '0']);
      expect((await ask('DELETE', `/payments/${page.id}`)).status).to.be.within(200, 299);
    });

    it('that asks for more than remains is void', async () => {
      const paid = await invoice();
      const adjusted = await invoice();
      const pages = [await pay(paid.id, link), await pay(adjusted.id, link)];
      await pay(paid.id, { amount: '60' });
      await adjust(adjusted.id, '30');
      await clockCame();
      for (const page of pages) expect(await atSandbox(page.id)).to.deep.equal(['100', 'cancelled', '0']);
    });
  });

  describe('what a provider took, and the invoice does not need', () => {
    it('goes back: the rest, where a note has lowered it while the charge was on its way', async () => {
      const { id } = await invoice();
      const charge = await pay(id, confirmed);
      await adjust(id, '30');
      await told(charge.gateway_payment_id!);
      expect(await paidOf(id)).to.deep.equal(['SUCCEEDED', '70', '0', '0']);
      const { payment_status, refunded_amount, next_attempt_at } = await ok('GET', `/payments/${charge.id}`);
      expect([payment_status, refunded_amount, next_attempt_at]).to.deep.equal(['PARTIALLY_REFUNDED', '30', null]);
      expect(await atSandbox(charge.id)).to.deep.equal(['100', 'succeeded', '30']);
    });

    it('goes back: all of it, where nothing remains; until it has ended the invoice is not voided', async () => {
      const { id } = await invoice();
      const charge = await pay(id, confirmed);
      await adjust(id, '100');
      expect(await paidOf(id)).to.deep.equal(['PROCESSING', '0', '0', '0']);
      expect((await ask('POST', `/invoices/${id}/void`)).status).to.equal(400);
      await told(charge.gateway_payment_id!);
      expect(await paidOf(id)).to.deep.equal(['SUCCEEDED', '0', '0', '0']);
      expect((await ok('GET', `/payments/${charge.id}`)).payment_status).to.equal('REFUNDED');
      expect(await atSandbox(charge.id)).to.deep.equal(['100', 'succeeded', '100']);
    });

    it('goes back where a page is paid while a card is charged', async () => {
      const { id } = await invoice();
      const page = await pay(id, link);
      const charge = await pay(id, confirmed);
      await told(page.gateway_payment_id!);
      await told(charge.gateway_payment_id!);
      expect(await paidOf(id)).to.deep.equal(['SUCCEEDED', '100', '0', '0']);
      expect(await atSandbox(charge.id)).to.deep.equal(['100', 'succeeded', '100']);
    });
  });

  describe('refunds', () => {
    it('of a part leave an invoice PROCESSING while another charge is on its way', async () => {
      const { id } = await invoice();
      const part = await pay(id, { amount: '20' });
      await pay(id, { ...confirmed, amount: '80' });
      await ok('POST', `/payments/${part.id}/refund`, { amount: '10' });
      expect((await paidOf(id))[0]).to.equal('PROCESSING');
    });

    it('of what was not all are owed again, and of what was too much are forgotten', async () => {
      const { id } = await invoice();
      const part = await pay(id, { amount: '40' });
      await ok('POST', `/payments/${part.id}/refund`, {});
      expect(await paidOf(id)).to.deep.equal(['PENDING', '0', '100', '0']);
      const over = await pay(id, { amount: '130' });
      await ok('POST', `/payments/${over.id}/refund`, { amount: '30' });
      expect(await paidOf(id)).to.deep.equal(['SUCCEEDED', '100', '0', '0']);
      await ok('POST', `/payments/${over.id}/refund`, { amount: '20' });
      expect(await paidOf(id)).to.deep.equal(['PARTIALLY_REFUNDED', '100', '0', '20']);
    });

    it('with a key that was another amount are refused', async () => {
      const { id } = await invoice();
      const payment = await pay(id);
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '10', idempotency_key: 'one' });
      await ok('POST', `/payments/${payment.id}/refund`, { amount: '10', idempotency_key: 'one' });
      const again = await ask('POST', `/payments/${payment.id}/refund`, { amount: '90', idempotency_key: 'one' });
      expect([again.status, again.body.details!.field]).to.deep.equal([409, 'amount']);
      expect((await ok('GET', `/payments/${payment.id}`)).refunded_amount).to.equal('10');
    });

    it('of what no provider took are made when they are written down: whoever dies behind that leaves nothing to do', async () => {
      const { postgres } = api.services;
      const wallet = { wallet_type: 'POST_PAID', initial_credits_to_load: '100' };
      await ok('POST', '/wallets', { customer_id, currency: 'usd', ...wallet });
      await postgres.raw(`
        create function dies_here() returns trigger language plpgsql as $$ begin raise exception 'it has died'; end $$;
        create trigger dies_here before update on payment_refunds for each row execute function dies_here()`);
      try {
        for (const payment_method_type of ['OFFLINE', 'CREDITS']) {
          const payment = await pay((await invoice()).id, { payment_method_type });
          await ask('POST', `/payments/${payment.id}/refund`, { amount: '10' });
          await clockCame();
          const { refunds, refunded_amount, next_attempt_at } = await ok('GET', `/payments/${payment.id}`);
          const statuses = refunds!.map((one) => one.refund_status);
          expect([statuses, refunded_amount, next_attempt_at]).to.deep.equal([['succeeded'], '10', null]);
        }
      } finally {
        await postgres.raw('drop function dies_here cascade');
      }
    });

    it('side by side are each made', async () => {
      const { id } = await invoice();
      const payment = await pay(id, { ...confirmed, payment_method_id: 'pm_sandbox_card' });
      const keys = Array.from({ length: 8 }, (_, n) => `${n}`);
      await Promise.all(
        keys.map((idempotency_key) => ok('POST', `/payments/${payment.id}/refund`, { amount: '10', idempotency_key })),
      );
      expect(await atSandbox(payment.id)).to.deep.equal(['100', 'succeeded', '80']);
    });
  });

  it('a payment whose request died before it was booked is booked by who asks again, and by the clock', async () => {
    for (const again of [true, false]) {
      const { id } = await invoice();
      const key = { idempotency_key: `offline ${again}` };
      // What a request leaves that dies behind its first transaction.
      const { id: left } = await pay(id, { ...key, process_payment: false });
      const next_attempt_at = api.services.clock();
      await api.services
        .postgres('payments')
        .where({ id: left })
        .update({ payment_status: 'PENDING', next_attempt_at });
      if (again) await pay(id, key);
      else await clockCame();
      expect((await paidOf(id))[0]).to.equal('SUCCEEDED');
    }
  });

  it('where money is meant nothing is collected by the sandbox, nor by a provider that is not there', async () => {
    const usable = await ask('PUT', '/settings/payment_config', { value: { default_gateway: 'stripe' } });
    expect(usable.status).to.equal(400);
    const { id: plan_id } = await ok('POST', '/plans', { name: 'Pro' });
    const price = { entity_type: 'PLAN', entity_id: plan_id, type: 'FIXED', billing_model: 'FLAT_FEE', amount: '10' };
    const monthly = {
      billing_period: 'MONTHLY',
      billing_cadence: 'RECURRING',
      billing_period_count: 1,
      currency: 'usd',
    };
    await ok('POST', '/prices', { ...price, ...monthly, price_unit_type: 'FIAT', invoice_cadence: 'ADVANCE' });
    const environment = api.services.postgres('environments').where({ id: api.scope.environment_id });
    await ok('PUT', '/tenants/update', { name: 'Acme Inc.' });
    await environment.clone().update({ type: 'production' });
    try {
      expect((await ask('PUT', '/settings/payment_config', { value: { default_gateway: 'sandbox' } })).status).to.equal(
        400,
      );
      const { billing_period_count: _, ...terms } = monthly;
      const asked = { customer_id, plan_id, ...terms, gateway_payment_method_id: 'pm_sandbox_card' };
      const { latest_invoice } = await ok('POST', '/subscriptions', asked);
      expect([latest_invoice!.payment_status, latest_invoice!.amount_paid]).to.deep.equal(['PENDING', '0']);
      const attempt = await ask('POST', `/invoices/${latest_invoice!.id}/payment/attempt`);
      expect([attempt.status, attempt.text]).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && text.includes('moves no money'),
      );
      await ok('POST', `/invoices/${latest_invoice!.id}/void`);
    } finally {
      await environment.clone().update({ type: 'development' });
    }
  });
});
