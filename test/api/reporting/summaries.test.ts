/** POST /customers/summaries and /plans/summaries: sums in the rows of lists. */
import { expect } from 'chai';
import { streamRevenue } from '../../../actions/reporting/revenue/stream-revenue.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { fixed, startWorld, usage, type World } from '../../support/world.ts';

describe('summaries of customers', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.api.request('PUT', '/settings/invoice_config', { body: { value: { due_date_days: 0 } } });
    await world.plan('Pro', [fixed('10')]);
    await world.plan('Basic', [fixed('1')]);
    await world.subscribe('acme', 'Pro');
    await world.subscribe('acme', 'Basic');
    await world.customer('globex');
  });
  after(() => world.stop());

  const summarize = async (names: string[]) => {
    const customer_ids = names.map((name) => world.id(`customer ${name}`));
    return (await world.post('/customers/summaries', { customer_ids })).items;
  };
  const invoiced = (name: string, amount: string, fields: object = {}) => {
    const sums = { subtotal: amount, total: amount, amount_due: amount, currency: 'usd' };
    const customer_id = world.id(`customer ${name}`);
    return world.post('/invoices', { customer_id, ...sums, invoice_status: 'FINALIZED', ...fields });
  };

  it('plans, unpaid and overdue amounts per currency, and balances as the wallets have them', async () => {
    await invoiced('acme', '100.1');
    await invoiced('acme', '0.2');
    await invoiced('acme', '7', { currency: 'eur', due_date: '2026-03-01T00:00:00Z' });
    await invoiced('acme', '1000', { invoice_status: 'DRAFT' });
    const paid = await invoiced('globex', '50');
    await world.api.request('PUT', `/invoices/${paid.id}/payment`, { body: { payment_status: 'SUCCEEDED' } });
    const wallet = { customer_id: world.id('customer globex'), currency: 'usd', conversion_rate: '0.5' };
    const { id } = await world.post('/wallets', { ...wallet, initial_credits_to_load: '21' });
    world.at('2026-01-20T00:00:00Z');

    const [globex, acme, ...others] = await summarize(['globex', 'acme', 'globex']);
    expect(others).to.deep.equal([]);
    expect(acme).to.deep.equal({
      customer_id: world.id('customer acme'),
      plan_names: ['Basic', 'Pro'],
      owed: [
        { currency: 'eur', amount: '7' },
        { currency: 'usd', amount: '100.3' },
      ],
      overdue: [{ currency: 'usd', amount: '100.3' }],
      balance: [],
    });
    expect(globex).to.deep.equal({
      customer_id: world.id('customer globex'),
      ...{ plan_names: [], owed: [], overdue: [] },
      balance: [{ currency: 'usd', amount: (await world.get(`/wallets/${id}`)).balance }],
    });
    expect(globex!.balance[0]!.amount).to.equal('10.5');
    const { items } = await world.get('/dashboard/receivables');
    for (const { customer_id, currency, total_unpaid, total_overdue } of items) {
      expect(customer_id).to.equal(acme!.customer_id);
      const amountIn = (sums: readonly { currency: string; amount: string }[]) =>
        sums.find((sum) => sum.currency === currency)?.amount ?? '0';
      expect([amountIn(acme!.owed), amountIn(acme!.overdue)]).to.deep.equal([total_unpaid, total_overdue]);
    }
  });

  it('no statement per customer', async () => {
    const made = await Promise.all(
      Array.from({ length: 40 }, (_, n) => world.post('/customers', { external_id: `many-${n}`, name: 'Many' })),
    );
    const count = async (customer_ids: string[]) => {
      let statements = 0;
      const counting = () => statements++;
      world.api.services.postgres.on('query', counting);
      await world.post('/customers/summaries', { customer_ids });
      world.api.services.postgres.off('query', counting);
      return statements;
    };
    const ids = made.map(({ id }) => id);
    expect(await count(ids)).to.equal(await count(ids.slice(0, 2)));
  });

  it('400 names the field, 404 for an unknown or foreign customer, 401 and 403', async () => {
    const ask = (body: unknown, options = {}) =>
      world.api.request('POST', '/customers/summaries', { body, ...options });
    for (const customer_ids of [undefined, [], Array.from({ length: 101 }, () => 'cust_1'), 'cust_1']) {
      const { status, body } = await ask({ customer_ids });
      expect([status, body.details?.field]).to.deep.equal([400, 'customer_ids']);
    }
    const customer_ids = [world.id('customer acme')];
    expect((await ask({ customer_ids: [...customer_ids, 'cust_none'] })).body).to.include({ code: 'not_found' });
    expect((await ask({ customer_ids }, { key: (await world.api.otherTenant()).key })).status).to.equal(404);
    expect((await ask({ customer_ids }, { key: null })).status).to.equal(401);
    const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    expect((await ask({ customer_ids }, { key })).status).to.equal(403);
  });
});

describe('summaries of plans', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [
      fixed('10'),
      usage('calls', '1'),
      fixed('5', { billing_period: 'ONETIME', invoice_cadence: 'ADVANCE' }),
    ]);
    await world.plan('Yearly', [fixed('100', { billing_period: 'ANNUAL' })]);
    await world.plan('Empty', [fixed('3')]);
  });
  after(() => world.stop());

  const summarize = async (names: string[]) => {
    const { items } = await world.post('/plans/summaries', { plan_ids: names.map((name) => world.id(`plan ${name}`)) });
    return items.map(({ plan_id: _, ...rest }) => rest);
  };

  it('count subscriptions, and sum what recurs by the month like the dashboard', async () => {
    for (const name of ['a', 'b', 'c']) await world.subscribe(name, 'Pro');
    for (const name of ['d', 'e']) await world.subscribe(name, 'Yearly', { billing_period: 'ANNUAL' });
    await world.subscribe('f', 'Pro', { trial_period_days: 20 });
    await world.subscribe('g', 'Pro', { subscription_status: 'draft' });
    await world.cancel('b');
    await world.cancel('c', { cancellation_type: 'end_of_period' });
    const yearly = { active_subscriptions: 2, recurring_revenue: [{ currency: 'usd', amount: '16.66' }] };
    const empty = { active_subscriptions: 0, recurring_revenue: [] };
    const check = async (active: number, amount: string) => {
      expect(await summarize(['Empty', 'Yearly', 'Pro'])).to.deep.equal([
        empty,
        yearly,
        { active_subscriptions: active, recurring_revenue: [{ currency: 'usd', amount }] },
      ]);
      await streamRevenue(world.api.services);
      const { mrr } = (await world.api.request('POST', '/dashboard/revenues', { body: {} })).body;
      expect(mrr.usd!.mrr).to.equal(new Decimal(amount).plus('16.66').toFixed());
    };
    await check(3, '20');
    world.at('2026-01-25T00:00:00Z');
    await check(3, '30');
    await world.on('2026-02-02');
    await check(2, '20');
  });

  it('400 names the field, 404 for an unknown or foreign plan, 401 and 403', async () => {
    const ask = (body: unknown, options = {}) => world.api.request('POST', '/plans/summaries', { body, ...options });
    const { status, body } = await ask({ plan_ids: [] });
    expect([status, body.details?.field]).to.deep.equal([400, 'plan_ids']);
    const plan_ids = [world.id('plan Pro')];
    expect((await ask({ plan_ids: ['plan_none'] })).status).to.equal(404);
    expect((await ask({ plan_ids }, { key: (await world.api.otherTenant()).key })).status).to.equal(404);
    expect((await ask({ plan_ids }, { key: null })).status).to.equal(401);
    const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    expect((await ask({ plan_ids }, { key })).status).to.equal(403);
  });
});
