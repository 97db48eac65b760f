/**
 * A period that is over is billed when the scheduler comes to it, and by then the next one is used: the balance in real time says before what it
 * says behind that (docs/rules/wallets.md, "The balance in real time").
 */
import { expect } from 'chai';
import { register } from 'prom-client';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { createUsageWallet, loadCachedOwed, loadOwed } from '../support/owed.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

type Case = {
  readonly what: string;
  readonly plan: string;
  readonly subscribed?: object;
  /** Behind its beginning. */
  readonly begun?: (world: World, customer: string) => Promise<unknown>;
  /** Of March and of April, before anybody has come to what April begins with. */
  readonly used: readonly [march: number, april: number];
  /** And what came late. */
  readonly then_used?: { n: number; at: string };
  /** What is owed then, of both. */
  readonly owed: string;
};

const MARCH = '2026-03-01T00:00:00Z';
const DURING_APRIL = '2026-04-02T01:00:00Z';

const HALF = { coupons: ['HALF-ONCE'] };
const QUARTER = { commitment_amount: '50', overage_factor: '2', commitment_duration: 'QUARTERLY' };

function toDear(world: World, customer: string): Promise<unknown> {
  return world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/change/execute`, {
    target_plan_id: world.id('plan Dear'),
    proration_behavior: 'create_prorations',
    billing_period: 'MONTHLY',
    billing_cadence: 'RECURRING',
    billing_cycle: 'anniversary',
    change_at: 'end_of_period',
  });
}

const CASES: readonly Case[] = [
  { what: 'usage', plan: 'Calls', used: [10, 100], owed: '110' },
  { what: 'usage in tiers, which begin anew', plan: 'Tiers', used: [15, 15], owed: '40' },
  {
    what: 'periods of a day, 31 of them',
    plan: 'Daily',
    subscribed: { billing_period: 'DAILY' },
    used: [7, 5],
    owed: '12',
  },
  {
    what: 'a coupon for one period',
    plan: 'Calls',
    subscribed: HALF,
    used: [10, 100],
    owed: '105',
  },
  {
    what: 'a commitment for a quarter, which March has used up',
    plan: 'Calls',
    subscribed: QUARTER,
    used: [60, 10],
    owed: '90',
  },
  {
    what: 'a start that lay ahead',
    plan: 'Calls',
    subscribed: { start_date: '2026-04-01T00:00:00Z' },
    used: [0, 100],
    owed: '100',
  },
  { what: 'a trial that is over', plan: 'Calls', subscribed: { trial_period_days: 31 }, used: [10, 100], owed: '100' },
  {
    what: 'one that ends with the period',
    plan: 'Calls',
    begun: (world, customer) => world.cancel(customer, { cancellation_type: 'end_of_period' }),
    used: [10, 100],
    owed: '10',
  },
  {
    what: 'a coupon for one period in which nothing was used',
    plan: 'Plain',
    subscribed: HALF,
    used: [0, 100],
    owed: '50',
  },
  {
    what: 'a coupon that the opening uses which a trial waits for',
    plan: 'Base',
    subscribed: { trial_period_days: 31, ...HALF },
    used: [10, 100],
    owed: '100',
  },
  {
    what: 'a coupon that the opening uses of a start that lay ahead',
    plan: 'Base',
    subscribed: { start_date: '2026-04-01T00:00:00Z', ...HALF },
    used: [0, 100],
    owed: '100',
  },
  {
    what: 'weeks that have ended with the month',
    plan: 'Weeks until April',
    used: [10, 0],
    then_used: { n: 40, at: '2026-03-30T00:00:00Z' },
    owed: '50',
  },
  {
    what: 'one that ends within the next period',
    plan: 'Calls',
    subscribed: { end_date: '2026-04-10T00:00:00Z' },
    used: [10, 100],
    owed: '110',
  },
  { what: 'a plan change at the end of the period', plan: 'Calls', begun: toDear, used: [10, 100], owed: '310' },
  {
    what: 'a plan change, and a commitment for a quarter',
    plan: 'Calls',
    subscribed: QUARTER,
    begun: toDear,
    used: [60, 10],
    owed: '130',
  },
  {
    what: 'a group, and a commitment of its parent for a quarter',
    plan: 'Calls',
    subscribed: QUARTER,
    begun: async (world, customer) => {
      await world.subscribe(`child of ${customer}`, 'Calls');
      await world.group(customer, `child of ${customer}`);
    },
    used: [60, 10],
    owed: '90',
  },
];

describe('scenario: usage between the end of a period and its invoice', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: MARCH, usage_cache: new UsageCache({ isFed: false }) });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '1'), fixed('7')]);
    await world.plan('Plain', [usage('calls', '1')]);
    await world.plan('Base', [usage('calls', '1'), fixed('7', { invoice_cadence: 'ADVANCE' })]);
    const ended = { billing_period: 'WEEKLY', end_date: '2026-04-01T00:00:00Z' };
    await world.plan('Weeks until April', [usage('calls', '1', ended), fixed('7')]);
    await world.plan('Dear', [usage('calls', '3')]);
    const slabs: [number | null, string][] = [
      [10, '1'],
      [null, '2'],
    ];
    await world.plan('Tiers', [tiers('calls', slabs)]);
    await world.plan('Daily', [usage('calls', '1', { billing_period: 'DAILY' })]);
    const half = { type: 'percentage', percentage_off: '50', cadence: 'once' };
    await world.post('/coupons', { name: 'Half', coupon_code: 'HALF-ONCE', ...half });
  });
  after(() => world.stop());

  const customers = CASES.map((one, index) => ({ ...one, customer: `customer ${index}`, wallet: '' }));
  /** Sends an event for each customer with units, now. */
  const useAll = (units: (one: Case) => number) =>
    world.send(
      customers.flatMap((one) => (units(one) > 0 ? [world.event(one.customer, 'calls', { n: units(one) })] : [])),
    );
  const arrived = async () => {
    const { values } = await register.getSingleMetric('farthing_running_answers_total')!.get();
    return values.find(({ labels }) => labels.from === 'arrived')?.value ?? 0;
  };

  it('is in the balance, also where it is kept', async () => {
    for (const one of customers) {
      const { customer, plan, subscribed, begun } = one;
      await world.subscribe(customer, plan, { ...subscribed });
      await begun?.(world, customer);
      one.wallet = await createUsageWallet(world, customer);
    }
    await useAll(({ used }) => used[0]);
    await world.waitForPipeline();
    for (const { wallet } of customers) await loadCachedOwed(world, wallet);
    world.at(DURING_APRIL);
    await useAll(({ used }) => used[1] - 1);
    for (const { customer, then_used } of customers)
      if (then_used) await world.use(customer, 'calls', then_used.n, { at: then_used.at });
    await world.waitForPipeline();
    for (const { wallet } of customers) await loadCachedOwed(world, wallet);
    const before = await arrived();
    await useAll(({ used }) => Math.min(used[1], 1));
    await world.waitForPipeline();
    const said = await Promise.all(customers.map(async (one) => [one.what, await loadOwed(world, one.wallet)]));
    expect(said).to.deep.equal(customers.map(({ what, owed: all }) => [what, { cached: all, recomputed: all }]));
    // Of a group, and with a plan change that is due, it is gathered anew.
    expect((await arrived()) - before, 'answers that were made of what arrived').to.be.above(10);
  });

  it('is the same when the scheduler has come', async () => {
    await world.bill();
    const said = await Promise.all(customers.map(async (one) => [one.what, await loadCachedOwed(world, one.wallet)]));
    expect(said).to.deep.equal(customers.map(({ what, owed: all }) => [what, all]));
  });
});

describe('scenario: corrections between the end of a period and its invoice', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: MARCH, usage_cache: new UsageCache({ isFed: false }) });
  });
  after(() => world.stop());

  it('what an invoice cannot give back comes off the next', async () => {
    await world.meter('calls');
    await world.plan('Plain', [usage('calls', '1')]);
    await world.subscribe('corrected', 'Plain');
    const wallet = await createUsageWallet(world, 'corrected');
    const event = world.event('corrected', 'calls', { n: 100, event_id: 'to be corrected' });
    await world.send([event]);
    await world.on('2026-04-02T01:00:00Z');
    await world.finalize();
    await world.use('corrected', 'calls', 10);
    await world.waitForPipeline();
    world.at('2026-05-02T02:00:00Z');
    await world.use('corrected', 'calls', 100);
    await world.replace('to be corrected', { ...event, properties: { n: 0 } });
    await world.waitForPipeline();
    const before = await loadOwed(world, wallet);
    await world.bill();
    expect([before, await loadOwed(world, wallet)]).to.deep.equal([
      { cached: '10', recomputed: '10' },
      { cached: '10', recomputed: '10' },
    ]);
  });
});
