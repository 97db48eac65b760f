/** What is not paid: openings that are refused, subscriptions that wait for their money, debits on their way. */
import { expect } from 'chai';
import { listRefunds } from '../../actions/lifecycle/payments/book-refund.ts';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { cancelOverdue } from '../../actions/lifecycle/payments/end-overdue.ts';
import { endRefund, refundOverpayment } from '../../actions/lifecycle/payments/refund-payment.ts';
import { lockPayment } from '../../actions/payments/lock-payment.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import type { Invoice } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const DAY_MS = 86_400_000;

describe('what is not paid', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [fixed('50', { invoice_cadence: 'ADVANCE' })]);
    await world.plan('Use', [usage('calls', '1')]);
  });
  beforeEach(async () => {
    world.at('2026-01-01T00:00:00Z');
    for (const key of ['payment_config', 'subscription_config']) await ask('DELETE', `/settings/${key}`);
    await setting('payment_config', { default_gateway: 'sandbox' });
  });
  after(() => world.stop());

  const ask = <Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) =>
    world.api.request(method, path, body === undefined ? {} : { body });
  const setting = async (key: string, value: object) => {
    expect((await ask('PUT', `/settings/${key}`, { value })).status).to.equal(200);
  };
  const statusOf = async (customer: string) => (await world.subscription(customer)).subscription_status;
  const later = (ms: number) => new Date(world.now.getTime() + ms);
  const byHand = (customer: string, fields: object = {}) =>
    world.post('/invoices', {
      customer_id: world.id(`customer ${customer}`),
      currency: 'usd',
      invoice_status: 'FINALIZED',
      subtotal: '100',
      total: '100',
      amount_due: '100',
      ...fields,
    });
  const paid = (invoice: Invoice, fields: object = {}) => ({
    destination_type: 'INVOICE',
    destination_id: invoice.id,
    payment_method_type: 'OFFLINE',
    amount: invoice.amount_remaining,
    currency: 'usd',
    ...fields,
  });
  const declines = (customer: string) =>
    world.post(`/payments/customers/${world.id(`customer ${customer}`)}/methods`, {
      gateway_payment_method_id: 'pm_sandbox_declined',
    });

  it('an opening that is refused redeems nothing, and is not tried again on another day', async () => {
    await world.customer('burn');
    const once = { type: 'percentage', percentage_off: '10', cadence: 'once', max_redemptions: 1 };
    await world.post('/coupons', { name: 'Burn', coupon_code: 'BURN', ...once });
    const asked = {
      external_customer_id: 'burn',
      plan_id: world.id('plan Pro'),
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      coupons: ['BURN'],
      payment_behavior: 'error_if_incomplete',
    };
    const refused = await ask('POST', '/subscriptions', { ...asked, gateway_payment_method_id: 'pm_sandbox_declined' });
    expect(refused.status).to.equal(400);
    const { items: invoices } = await world.get(`/invoices?customer_id=${world.id('customer burn')}`);
    const [invoice] = invoices;
    expect(invoice!.invoice_status).to.equal('VOIDED');
    const { items } = await world.get(`/payments?destination_id=${invoice!.id}`);
    expect(items.map((one) => [one.payment_status, one.next_attempt_at])).to.deep.equal([['FAILED', null]]);
    const taken = await ask('POST', '/subscriptions', { ...asked, gateway_payment_method_id: 'pm_sandbox_card' });
    expect([taken.status, taken.body.latest_invoice?.total]).to.deep.equal([201, '45']);
  });

  it('one that waits for an invoice that was written by hand is active when that is paid', async () => {
    await setting('payment_config', { retry_after_days: [], after_last_try: 'mark_incomplete' });
    await world.subscribe('hand', 'Use');
    await declines('hand');
    const invoice = await byHand('hand', { subscription_id: world.id('subscription hand') });
    await ask('POST', `/invoices/${invoice.id}/payment/attempt`);
    await processDuePayments(world.api.services, { now: later(60_000) });
    expect(await statusOf('hand')).to.equal('incomplete');
    await world.post('/payments', paid(invoice));
    expect(await statusOf('hand')).to.equal('active');
  });

  it('one that an unpaid renewal made incomplete is active when no invoice that it waits for is unpaid any more', async () => {
    await setting('payment_config', { retry_after_days: [], after_last_try: 'mark_incomplete' });
    await world.subscribe('open', 'Pro');
    await declines('open');
    await world.on('2026-02-02');
    await world.finalize();
    for (const minutes of [1, 2, 3]) await processDuePayments(world.api.services, { now: later(minutes * 60_000) });
    expect(await statusOf('open')).to.equal('incomplete');
    const unpaid = await world.invoices('open');
    expect(unpaid.map((one) => one.billing_reason)).to.have.members(['SUBSCRIPTION_CREATE', 'SUBSCRIPTION_CYCLE']);
    const seen: string[] = [];
    for (const invoice of unpaid) {
      await world.post('/payments', paid(invoice));
      seen.push(await statusOf('open'));
    }
    expect(seen).to.deep.equal(['incomplete', 'active']);
  });

  it('one that waits for an invoice that is voided waits no more, unless it is billed again', async () => {
    await setting('payment_config', { retry_after_days: [], after_last_try: 'keep_active' });
    const unpaid = { collection_method: 'send_invoice', payment_behavior: 'default_incomplete' };
    for (const customer of ['voided', 'again']) await world.subscribe(customer, 'Pro', unpaid);
    const [voided, again] = [(await world.invoices('voided'))[0], (await world.invoices('again'))[0]];
    expect(await statusOf('voided')).to.equal('incomplete');
    expect((await ask('POST', `/invoices/${voided!.id}/void`)).status).to.equal(200);
    expect(await statusOf('voided')).to.equal('active');
    const { status, text } = await ask('POST', `/invoices/${again!.id}/recalculate?finalize=true`);
    expect(status, text).to.equal(200);
    expect(await statusOf('again')).to.equal('incomplete');
    const rebilled = (await world.invoices('again')).find((one) => one.invoice_status === 'FINALIZED');
    await world.post('/payments', paid(rebilled!));
    expect(await statusOf('again')).to.equal('active');
  });

  it('a refund of late money that fails ends no subscription, whether the payment is automatic or by a request', async () => {
    const { postgres } = world.api.services;
    const { scope } = world.api;
    const ids: string[] = [];
    await setting('payment_config', { retry_after_days: [], after_last_try: 'keep_active' });
    for (const customer of ['collected', 'requested']) {
      await world.subscribe(customer, 'Pro', { gateway_payment_method_id: 'pm_sandbox_declined' });
      const [invoice] = await world.invoices(customer);
      ids.push((await world.get(`/payments?destination_id=${invoice!.id}`)).items[0]!.id);
    }
    await setting('payment_config', { retry_after_days: [], after_last_try: 'cancel' });
    for (const id of ids) {
      await postgres.transaction(async (transaction) => {
        const { payment } = await lockPayment(transaction, scope, id);
        const overpaid = new Decimal(payment.amount);
        await refundOverpayment(transaction, { payment, overpaid, by: { now: world.now } });
      });
      await postgres.transaction(async (transaction) => {
        const locked = await lockPayment(transaction, scope, id);
        const [refund] = await listRefunds(locked.payment, transaction);
        const outcome = { outcome: 'failed', error: 'the account was closed' } as const;
        await endRefund(world.api.services, transaction, {
          ...locked,
          ...{ refund: refund!, outcome, by: { now: world.now } },
        });
      });
    }
    // An earlier version left payments by a request due.
    await postgres('payments').where({ id: ids[1]! }).update({ is_automatic: false, next_attempt_at: world.now });
    await processDuePayments(world.api.services, { now: later(DAY_MS) });
    for (const id of ids) {
      const { payment_status, next_attempt_at } = await world.get(`/payments/${id}`);
      expect([payment_status, next_attempt_at]).to.deep.equal(['FAILED', null]);
    }
    expect([await statusOf('collected'), await statusOf('requested')]).to.deep.equal(['active', 'active']);
  });

  it('one whose debit is on its way is not ended for not being paid', async () => {
    await setting('payment_config', { retry_after_days: [] });
    await setting('subscription_config', { auto_cancellation_enabled: true, grace_period_days: 1 });
    await world.subscribe('debit', 'Pro', { gateway_payment_method_id: 'pm_sandbox_pays_late' });
    await world.subscribe('never', 'Pro');
    world.at('2026-02-05T00:00:00Z');
    await cancelOverdue(world.api.services, { now: world.now });
    expect([await statusOf('debit'), await statusOf('never')]).to.deep.equal(['active', 'cancelled']);
    await processDuePayments(world.api.services, { now: later(DAY_MS) });
    expect((await world.invoices('debit'))[0]!.payment_status).to.equal('SUCCEEDED');
  });

  it('one that is cancelled while the customer confirms the charge stays cancelled, and the money is recorded', async () => {
    const method = { gateway_payment_method_id: 'pm_sandbox_requires_action' };
    await world.subscribe('confirms', 'Pro', { ...method, payment_behavior: 'allow_incomplete' });
    expect(await statusOf('confirms')).to.equal('incomplete');
    const [invoice] = await world.invoices('confirms');
    const paymentOf = async () => (await world.get(`/payments?destination_id=${invoice!.id}`)).items[0]!;
    const { id, payment_status } = await paymentOf();
    expect(payment_status).to.equal('PROCESSING');
    await world.cancel('confirms', { cancellation_type: 'immediate' });
    await world.post(`/payments/${id}/sandbox`, { outcome: 'succeeded' });
    await processDuePayments(world.api.services, { now: later(2 * 3_600_000) });
    expect(await statusOf('confirms')).to.equal('cancelled');
    expect(await paymentOf()).to.include({ payment_status: 'SUCCEEDED', refunded_amount: '0' });
    expect((await world.invoices('confirms'))[0]).to.include({ payment_status: 'SUCCEEDED', amount_paid: '50' });
  });

  it('payments that were refused are charged by nobody later', async () => {
    await world.customer('many');
    const invoice = await byHand('many');
    const card = { payment_method_type: 'CARD', payment_method_id: 'pm_sandbox_requires_action' };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        ask('POST', '/payments', paid(invoice, { ...card, idempotency_key: `${n}` })),
      ),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(made.length).to.equal(1);
    await world.post(`/payments/${made[0]!.body.id}/sandbox`, { outcome: 'failed' });
    await processDuePayments(world.api.services, { now: later(2 * 3_600_000) });
    const { items } = await world.get(`/payments?destination_id=${invoice.id}`);
    expect(new Set(items.map((one) => one.payment_status))).to.deep.equal(new Set(['FAILED']));
    expect(items.filter((one) => one.next_attempt_at !== null)).to.deep.equal([]);
  });

  it('a card that is kept, and invoices that are written for its customer, do not wait for each other', async () => {
    await world.post('/coupons', {
      name: 'T',
      coupon_code: 'T',
      type: 'percentage',
      percentage_off: '10',
      cadence: 'forever',
    });
    const { id: subscription_id } = await world.subscribe('lock', 'Pro', { coupons: ['T'] });
    const [association] = await world.api.services.postgres('coupon_associations').where({ subscription_id });
    const coupon = { coupon_id: association.coupon_id, coupon_association_id: association.id };
    const invoices = await Promise.all(Array.from({ length: 8 }, () => byHand('lock', { subscription_id })));
    const card = {
      payment_method_type: 'CARD',
      payment_method_id: 'pm_sandbox_card',
      save_card_and_make_default: true,
    };
    const answers = await Promise.all(
      invoices.flatMap((invoice) => [
        ask('POST', '/payments', paid(invoice, card)),
        ask('POST', '/invoices', {
          customer_id: world.id('customer lock'),
          currency: 'usd',
          subtotal: '10',
          total: '10',
          amount_due: '10',
          invoice_coupons: [coupon],
        }),
      ]),
    );
    expect(answers.filter(({ status }) => status >= 300).map(({ text }) => text)).to.deep.equal([]);
  });
});
