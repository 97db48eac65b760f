/** Credits that are given late: after the service was away, and where what gives them changes (docs/rules/credits.md). */
import { expect } from 'chai';
import { applyAllDueGrants } from '../../actions/credits/grants/apply-due-grants.ts';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { credits, grant, grantOwn, MONTHLY, upcoming } from '../support/grants.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

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
