/**
 * Credits that plans, add-ons and subscriptions give, on the clock of an environment, and with two schedulers at once
 * (docs/rules/credits.md).
 */
import { expect } from 'chai';
import { billDuePeriods } from '../../actions/billing/bill-period.ts';
import { applyAllDueGrants } from '../../actions/grants/apply-due-grants.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

// Answers of every shape.
type Answer = any;

const MONTHLY = { cadence: 'RECURRING', period: 'MONTHLY', period_count: 1 };

/** `2026-02-01 100 until 2026-03-01`, oldest first, of all wallets of the customer. */
async function credits(world: World, customer: string): Promise<string[]> {
  const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
  const all = await Promise.all(
    wallets.map(async ({ id }: Answer) => (await world.get(`/wallets/${id}/transactions?limit=1000`)).items),
  );
  return all
    .flat()
    .filter(({ type }: Answer) => type === 'credit')
    .sort((a: Answer, b: Answer) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1))
    .map(({ created_at, credit_amount, expiry_date }: Answer) => {
      const until = expiry_date ? ` until ${short(expiry_date)}` : '';
      return `${short(created_at)} ${Number(credit_amount)}${until}`;
    });
}

function short(timestamp: string): string {
  const iso = new Date(timestamp).toISOString();
  return iso.endsWith('T00:00:00.000Z') ? iso.slice(0, 10) : iso.slice(0, 16);
}

async function upcoming(world: World, customer: string): Promise<string[]> {
  const id = world.id(`subscription ${customer}`);
  const { items } = await world.get(`/subscriptions/${id}/grants/upcoming`);
  return items.map(
    ({ scheduled_for, credits: amount, application_status }: Answer) =>
      `${short(scheduled_for)} ${Number(amount)} ${application_status}`,
  );
}

function grant(world: World, plan: string, fields: Record<string, unknown>): Promise<Answer> {
  const plan_id = world.id(`plan ${plan}`);
  return world.post('/creditgrants', { name: 'Credits', scope: 'PLAN', plan_id, credits: '100', ...fields });
}

async function grantOwn(world: World, customer: string, fields: Record<string, unknown>): Promise<Answer> {
  const subscription_id = world.id(`subscription ${customer}`);
  return world.post('/creditgrants', { name: 'Own', scope: 'SUBSCRIPTION', subscription_id, credits: '10', ...fields });
}

describe('scenario: credit grants by the clock of an environment', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z', test_clock: true });
    for (const name of ['Pro', 'Basic', 'Bare'])
      await world.plan(name, [fixed('10', { invoice_cadence: 'ADVANCE', display_name: name })]);
    await grant(world, 'Pro', { ...MONTHLY, expiration_type: 'BILLING_CYCLE', priority: 3 });
    await grant(world, 'Pro', { credits: '50', cadence: 'ONETIME', name: 'Welcome' });
    await grant(world, 'Basic', { ...MONTHLY, credits: '20', conversion_rate: '0.5' });
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
    expect(items.map(({ scheduled_for }: Answer) => short(scheduled_for))).to.deep.equal(['2026-04-01']);
    const [wallet] = await world.get(`/customers/${world.id('customer acme')}/wallets`);
    expect(wallet).to.include({ wallet_type: 'PRE_PAID', currency: 'usd' });
    expect(wallet.config).to.deep.equal({ allowed_price_types: ['USAGE'] });
  });

  it('one with a rate of its own makes a wallet with that rate', async () => {
    await world.on('2026-03-20', () => world.subscribe('half', 'Basic'));
    const [wallet] = await world.get(`/customers/${world.id('customer half')}/wallets`);
    expect([Number(wallet.credit_balance), Number(wallet.balance), Number(wallet.conversion_rate)]).to.deep.equal([
      20, 10, 0.5,
    ]);
  });

  it('a first period that calendar billing shortens gives its share', async () => {
    await world.on('2026-03-22', () => world.subscribe('short', 'Pro', { billing_cycle: 'calendar' }));
    // 10 of the 31 days of March.
    expect((await upcoming(world, 'short'))[0]).to.equal('2026-04-01 100 pending');
    const [share] = (await credits(world, 'short')).filter((line) => line.includes('until'));
    expect(share).to.equal(`2026-03-22 ${(100 * 10) / 31} until 2026-04-01`.replace(/(\.\d{12})\d*/, '$1'));
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
      amount: invoice.amount_remaining,
      currency: 'usd',
      destination_type: 'INVOICE',
      destination_id: invoice.id,
      payment_method_type: 'OFFLINE',
    });
    await world.on('2026-09-02T12:00:00Z');
    expect((await world.subscription('unpaid')).subscription_status).to.equal('active');
    expect(await credits(world, 'unpaid')).to.have.members([
      '2026-09-02T12:00 100 until 2026-10-02',
      '2026-09-02T12:00 50',
    ]);
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

  it('an archived grant gives nothing more', async () => {
    await world.on('2026-12-01', () => world.subscribe('own', 'Bare'));
    const once = await grantOwn(world, 'own', { ...MONTHLY, start_date: '2026-12-01T00:00:00Z' });
    expect(await upcoming(world, 'own')).to.deep.equal(['2027-01-01 10 pending']);
    const ending = { end_date: '2026-12-24T00:00:00Z' };
    await world.api.request('PUT', `/creditgrants/${once.id}`, { body: ending });
    expect(await upcoming(world, 'own')).to.deep.equal([]);
    await world.api.request('PUT', `/creditgrants/${once.id}`, { body: { end_date: null } });
    expect(await upcoming(world, 'own')).to.deep.equal(['2027-01-01 10 pending']);
    await world.api.request('DELETE', `/creditgrants/${once.id}`);
    expect(await upcoming(world, 'own')).to.deep.equal([]);
    await world.on('2027-02-01');
    expect(await credits(world, 'own')).to.deep.equal(['2026-12-01 10']);
  });

  it('who leaves a plan and comes back at the instant at which a period of its grant begins goes on getting its credits', async () => {
    const change = (plan: string) =>
      world.post(`/subscriptions/${world.id('subscription turning')}/change/execute`, {
        target_plan_id: world.id(`plan ${plan}`),
        proration_behavior: 'none',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        billing_cadence: 'RECURRING',
        billing_cycle: 'anniversary',
      });
    const { frozen_time } = await world.testClock();
    const now = new Date(frozen_time);
    const first = (months: number) =>
      new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1)).toISOString();
    await world.on(first(1), () => world.subscribe('turning', 'Pro'));
    await change('Bare');
    await change('Pro');
    await world.on(first(2));
    await change('Bare');
    await change('Pro');
    await world.on(first(4));
    const begun = (await credits(world, 'turning'))
      .filter((line) => line.includes(' 100'))
      .map((line) => line.slice(0, 14));
    expect(begun).to.deep.equal([1, 2, 3, 4].map((months) => `${first(months).slice(0, 10)} 100`));
  });
});

describe('scenario: credit grants after the service was away', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-31T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Bare', [fixed('10', { display_name: 'Bare' })]);
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' }), usage('calls', '1')]);
    await grant(world, 'Pro', { ...MONTHLY, expiration_type: 'NEVER' });
  });
  after(() => world.stop());

  /** What the job does, twice at once, as two schedulers do. */
  async function run(date: string): Promise<number> {
    world.at(date);
    const both = await Promise.all([1, 2].map(() => applyAllDueGrants(world.api.services, { now: world.now })));
    for (const { failed } of both) if (failed.length > 0) throw failed[0]!.error;
    return both.reduce((sum, { granted }) => sum + granted, 0);
  }

  it('everything that was missed is given once, and what has expired since is skipped', async () => {
    await world.subscribe('acme', 'Bare');
    await grantOwn(world, 'acme', { ...MONTHLY, start_date: '2026-01-31T00:00:00Z', name: 'for ever' });
    const weeks = { expiration_type: 'DURATION', expiration_duration: 2, expiration_duration_unit: 'WEEK' };
    await grantOwn(world, 'acme', { ...MONTHLY, ...weeks, credits: '7', start_date: '2026-01-31T00:00:00Z' });
    expect(await credits(world, 'acme')).to.have.members(['2026-01-31 10', '2026-01-31 7 until 2026-02-14']);
    expect(await run('2026-06-05')).to.equal(8);
    const later = (await credits(world, 'acme')).filter((line) => line >= '2026-02');
    // At the ends of February, March, April and May; of what lasts two weeks that of May alone is left.
    expect(later).to.have.members([...Array(4).fill('2026-06-05 10'), '2026-06-05 7 until 2026-06-14']);
    expect(await run('2026-06-05')).to.equal(0);
    expect(await upcoming(world, 'acme')).to.deep.equal(['2026-06-30 10 pending', '2026-06-30 7 pending']);
  });

  it('a grant that begins in the past is caught up when it is made', async () => {
    await world.subscribe('late', 'Bare', { start_date: '2026-03-01T00:00:00Z' });
    await grantOwn(world, 'late', { ...MONTHLY, start_date: '2026-03-20T00:00:00Z' });
    expect(await credits(world, 'late')).to.deep.equal(Array(3).fill('2026-06-05 10'));
    expect(await upcoming(world, 'late')).to.deep.equal(['2026-06-20 10 pending']);
  });

  it('what a subscription will be in a period is known when it is billed so far: grants that are quicker wait', async () => {
    await world.on('2026-07-01', () => world.subscribe('leaving', 'Pro'));
    await world.cancel('leaving', { cancellation_type: 'end_of_period' });
    await world.subscribe('changing', 'Pro');
    await world.post(`/subscriptions/${world.id('subscription changing')}/change/execute`, {
      target_plan_id: world.id('plan Bare'),
      proration_behavior: 'none',
      change_at: 'end_of_period',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      billing_cycle: 'anniversary',
    });
    await world.subscribe('staying', 'Pro');
    const unpaid = { collection_method: 'send_invoice', payment_behavior: 'default_incomplete' };
    await world.subscribe('opening', 'Pro', { start_date: '2026-08-01T00:00:00Z', ...unpaid });
    world.at('2026-08-01T00:00:05Z');
    const apply = async () => {
      const { failed } = await applyAllDueGrants(world.api.services, { now: world.now });
      expect(failed).to.deep.equal([]);
    };
    await apply();
    expect(await credits(world, 'staying')).to.deep.equal(['2026-07-01 100', '2026-08-01T00:00 100']);
    for (const customer of ['leaving', 'changing'])
      expect(await credits(world, customer), customer).to.deep.equal(['2026-07-01 100']);
    await world.bill();
    await apply();
    for (const customer of ['leaving', 'changing'])
      expect(await credits(world, customer), customer).to.deep.equal(['2026-07-01 100']);
    expect((await world.subscription('opening')).subscription_status).to.equal('incomplete');
    expect(await credits(world, 'opening')).to.deep.equal([]);
  });

  it('a grid that moves gives for what is left of the old one its share', async () => {
    await world.on('2026-09-01', () => world.subscribe('trying', 'Pro', { trial_period_days: 14 }));
    await run('2026-09-10');
    await world.post(`/subscriptions/${world.id('subscription trying')}/modify/execute`, {
      type: 'trial_end',
      trial_end_params: { action: 'scheduled_date', new_trial_end: '2026-09-20T00:00:00Z' },
    });
    for (const date of ['2026-09-15', '2026-09-20', '2026-10-15', '2026-10-20']) await world.on(date, () => run(date));
    // 14 of the 31 days behind 15 August; a month from the 15th, which was to be paid; of the month to 20 October its last five of thirty days; and so on.
    const shares = (await credits(world, 'trying')).map((line) => line.slice(0, 16));
    expect(shares).to.deep.equal(['2026-09-01 45.16', '2026-09-15 100', '2026-10-15 16.66', '2026-10-20 100']);
  });

  it('a plan change that keeps failing holds up what hangs on the plan alone', async () => {
    const { services } = world.api;
    await world.on('2026-11-01', () => world.subscribe('stuck', 'Pro'));
    await grantOwn(world, 'stuck', { ...MONTHLY, start_date: '2026-11-01T00:00:00Z' });
    await world.post(`/subscriptions/${world.id('subscription stuck')}/change/execute`, {
      target_plan_id: world.id('plan Bare'),
      proration_behavior: 'none',
      change_at: 'end_of_period',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      billing_cycle: 'anniversary',
    });
    const schedule = services
      .postgres('subscription_schedules')
      .where({ subscription_id: world.id('subscription stuck') });
    const [{ configuration }] = await schedule.clone().select('configuration');
    await schedule.clone().update({ configuration: null });
    // Tried again a minute after the first try, and ten after the second.
    for (const time of ['00:00:05', '00:01:05']) {
      world.at(`2026-12-01T${time}Z`);
      const { failed } = await billDuePeriods(services, world.now);
      expect(failed.map(({ id }) => id)).to.deep.equal([world.id('subscription stuck')]);
      await applyAllDueGrants(services, { now: world.now });
      expect(await credits(world, 'stuck')).to.have.members(['2026-11-01 100', '2026-11-01 10', '2026-12-01T00:00 10']);
    }
    await schedule.clone().update({ configuration: JSON.stringify(configuration) });
    world.at('2026-12-01T00:11:05Z');
    await world.bill();
    await applyAllDueGrants(services, { now: world.now });
    // It has the other plan, which gives nothing.
    expect(await credits(world, 'stuck')).to.have.lengthOf(3);
  });
});

describe('scenario: credit grants that are to come', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-07-01T00:00:00Z', test_clock: true });
    for (const [name, amount] of [
      ['Pro', '100'],
      ['Basic', '20'],
    ] as const) {
      await world.plan(name, [fixed('10', { invoice_cadence: 'ADVANCE', display_name: name })]);
      await grant(world, name, { ...MONTHLY, credits: amount });
    }
  });
  after(() => world.stop());

  it('one that is to get another plan is to get nothing of its own behind that', async () => {
    await world.on('2026-07-02', () => world.subscribe('changing', 'Pro'));
    const id = world.id('subscription changing');
    const change = (plan: string) =>
      world.post(`/subscriptions/${id}/change/execute`, {
        target_plan_id: world.id(`plan ${plan}`),
        change_at: 'end_of_period',
        proration_behavior: 'none',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        billing_cadence: 'RECURRING',
        billing_cycle: 'anniversary',
      });
    expect(await upcoming(world, 'changing')).to.deep.equal(['2026-08-02 100 pending']);
    await grantOwn(world, 'changing', { ...MONTHLY, start_date: '2026-08-10T00:00:00Z', credits: '7' });
    await change('Basic');
    expect(await upcoming(world, 'changing')).to.deep.equal(['2026-08-10 7 pending']);
    await world.on('2026-08-03');
    const given = (await credits(world, 'changing')).filter((line) => line >= '2026-08');
    expect(given).to.deep.equal(['2026-08-02 20']);
  });
});
