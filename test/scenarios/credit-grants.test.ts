/** Credits that plans, add-ons and subscriptions give, by the clock of an environment (docs/rules/credits.md). */
import { expect } from 'chai';
import { credits, MONTHLY, short, startGrantsWorld, upcoming } from '../support/grants.ts';
import type { World } from '../support/world.ts';

describe('scenario: credit grants by the clock of an environment', () => {
  let world: World;
  before(async () => {
    world = await startGrantsWorld();
  });
  after(() => world.stop());

  it('a plan gives at once, and again in every period of the subscription', async () => {
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
    expect(await credits(world, 'acme')).to.have.members(['2026-01-01 100 until 2026-02-01', '2026-01-01 50']);
    expect(await upcoming(world, 'acme')).to.deep.equal(['2026-02-01 100 pending']);
    await world.on('2026-03-15');
    expect((await credits(world, 'acme')).slice(2)).to.deep.equal([
      '2026-02-01 100 until 2026-03-01',
      '2026-03-01 100 until 2026-04-01',
    ]);
    const { items } = await world.get(`/customers/${world.id('customer acme')}/grants/upcoming`);
    expect(items.map(({ scheduled_for }) => short(scheduled_for))).to.deep.equal(['2026-04-01']);
    const [wallet] = await world.get(`/customers/${world.id('customer acme')}/wallets`);
    expect(wallet).to.include({ wallet_type: 'PRE_PAID', currency: 'usd' });
    expect(wallet!.config).to.deep.equal({ allowed_price_types: ['USAGE'] });
  });

  it('one with a rate of its own makes a wallet with that rate', async () => {
    await world.on('2026-03-20', () => world.subscribe('half', 'Basic'));
    const [wallet] = await world.get(`/customers/${world.id('customer half')}/wallets`);
    expect([Number(wallet!.credit_balance), Number(wallet!.balance), Number(wallet!.conversion_rate)]).to.deep.equal([
      20, 10, 0.5,
    ]);
    await world.cancel('half');
  });

  it('a first period that calendar billing shortens gives its share', async () => {
    await world.on('2026-03-22', () => world.subscribe('short', 'Pro', { billing_cycle: 'calendar' }));
    // 10 of the 31 days of March.
    expect((await upcoming(world, 'short'))[0]).to.equal('2026-04-01 100 pending');
    const [share] = (await credits(world, 'short')).filter((line) => line.includes('until'));
    expect(share).to.equal(`2026-03-22 ${(100 * 10) / 31} until 2026-04-01`.replace(/(\.\d{12})\d*/, '$1'));
    await world.cancel('short');
  });

  it('what is given once is not given again to who comes back', async () => {
    const id = world.id('subscription acme');
    const change = (plan: string) =>
      world.post(`/subscriptions/${id}/change/execute`, {
        target_plan_id: world.id(`plan ${plan}`),
        proration_behavior: 'none',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        billing_cadence: 'RECURRING',
        billing_cycle: 'anniversary',
      });
    await world.on('2026-04-16', () => change('Bare'));
    expect(await upcoming(world, 'acme')).to.deep.equal([]);
    await world.on('2026-04-21', () => change('Pro'));
    expect(await upcoming(world, 'acme')).to.deep.equal(['2026-05-01 100 pending']);
    const since = (await credits(world, 'acme')).filter((line) => line >= '2026-04-16');
    expect(since).to.have.length(1);
    expect(since[0]).to.match(/^2026-04-21 33\.3+ until 2026-05-01$/);
  });

  it('nothing is given after the end, and the end takes what was to come', async () => {
    await world.on('2026-05-10', () => world.cancel('acme'));
    expect(await upcoming(world, 'acme')).to.deep.equal([]);
    const before = await credits(world, 'acme');
    await world.on('2026-07-01');
    expect(await credits(world, 'acme')).to.deep.equal(before);
  });

  it('a subscription whose end is scheduled is to get nothing behind it', async () => {
    await world.on('2026-07-02', () => world.subscribe('leaving', 'Pro'));
    expect(await upcoming(world, 'leaving')).to.deep.equal(['2026-08-02 100 pending']);
    await world.cancel('leaving', { cancellation_type: 'end_of_period' });
    expect(await upcoming(world, 'leaving')).to.deep.equal([]);
    const before = await credits(world, 'leaving');
    await world.on('2026-09-01');
    expect(await credits(world, 'leaving')).to.deep.equal(before);
  });

  it('in a trial it is given, and what is not paid waits', async () => {
    await world.on('2026-09-01', () => world.subscribe('trying', 'Pro', { trial_period_days: 30 }));
    expect((await credits(world, 'trying')).filter((line) => line.includes('until'))).to.have.length(1);
    const unpaid = { payment_behavior: 'default_incomplete', collection_method: 'send_invoice' };
    await world.on('2026-09-02', () => world.subscribe('unpaid', 'Pro', unpaid));
    expect((await world.subscription('unpaid')).subscription_status).to.equal('incomplete');
    expect(await credits(world, 'unpaid')).to.deep.equal([]);
    expect(await upcoming(world, 'unpaid')).to.deep.equal([
      '2026-09-02T00:30 100 pending',
      '2026-09-02T00:30 50 pending',
    ]);
    await world.on('2026-09-02T12:00:00Z');
    // After 30, 60, 120 and 240 minutes, and then eight hours.
    expect(await upcoming(world, 'unpaid')).to.deep.equal([
      '2026-09-02T15:30 100 pending',
      '2026-09-02T15:30 50 pending',
    ]);
    const [invoice] = await world.invoices('unpaid');
    await world.post('/payments', {
      amount: invoice!.amount_remaining,
      currency: 'usd',
      destination_type: 'INVOICE',
      destination_id: invoice!.id,
      payment_method_type: 'OFFLINE',
    });
    await world.on('2026-09-02T12:00:00Z');
    expect((await world.subscription('unpaid')).subscription_status).to.equal('active');
    expect(await credits(world, 'unpaid')).to.have.members([
      '2026-09-02T12:00 100 until 2026-10-02',
      '2026-09-02T12:00 50',
    ]);
    for (const customer of ['trying', 'unpaid']) await world.cancel(customer);
  });

  it('an add-on gives for each time that it is there, the share of what is left of the first period', async () => {
    const addon = await world.post('/addons', { name: 'Boost', lookup_key: 'boost', type: 'onetime' });
    await world.post('/creditgrants', { name: 'B', scope: 'ADDON', addon_id: addon.id, credits: '30', ...MONTHLY });
    await world.on('2026-10-01', () => world.subscribe('boosted', 'Bare'));
    const subscription_id = world.id('subscription boosted');
    await world.on('2026-10-16T12:00:00Z');
    const attached = await world.post('/subscriptions/addon', { subscription_id, addon_id: addon.id, quantity: 2 });
    // Half of October, twice.
    expect(await credits(world, 'boosted')).to.deep.equal(['2026-10-16T12:00 30']);
    expect(await upcoming(world, 'boosted')).to.deep.equal(['2026-11-01 60 pending']);
    const body = { addon_association_id: attached.id, effective_date: '2026-10-31T00:00:00Z' };
    await world.api.request('DELETE', '/subscriptions/addon', { body });
    await world.on('2026-12-01');
    expect(await upcoming(world, 'boosted')).to.deep.equal([]);
    expect((await credits(world, 'boosted')).filter((line) => line >= '2026-11-02')).to.deep.equal([]);
  });
});
