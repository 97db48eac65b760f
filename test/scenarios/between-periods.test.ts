/**
 * A period that is over is billed when the scheduler comes to it, and by then the next one is used: the balance in real time says before what it
 * says behind that (docs/rules/wallets.md, "The balance in real time").
 */
import { expect } from 'chai';
import { register } from 'prom-client';
import { realTimeOf } from '../../actions/wallets/real-time-balance.ts';
import { WalletModel } from '../../storage/models/wallet.ts';
import { UsageMemory } from '../../storage/usage/usage-memory.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

// Answers of every shape.
type Answer = any;

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
      const child_subscription_ids = [world.id(`subscription child of ${customer}`)];
      const grouped_invoicing_params = { action: 'add', child_subscription_ids };
      const path = `/subscriptions/${world.id(`subscription ${customer}`)}/modify/execute`;
      await world.post(path, { type: 'grouped_invoicing', grouped_invoicing_params });
    },
    used: [60, 10],
    owed: '90',
  },
];

/** A thousand credits that pay for usage. */
async function walletOf(world: World, customer: string): Promise<string> {
  const terms = { config: { allowed_price_types: ['USAGE'] }, initial_credits_to_load: '1000', currency: 'usd' };
  return (await world.post('/wallets', { customer_id: world.id(`customer ${customer}`), ...terms })).id;
}

type Owing = { kept: string; anew: string };
async function owed(world: World, wallet: string): Promise<Owing> {
  const { services, scope } = world.api;
  const found = await WalletModel.fetch(scope, wallet, { database: services.postgres });
  const real = (stores: Answer) => realTimeOf(stores, found, services.clock());
  const [kept, anew] = await Promise.all([real(services), real({ ...services, usage_memory: undefined })]);
  const all = ({ current_period_usage, unpaid_invoices_amount }: Answer) =>
    String(Number(current_period_usage) + Number(unpaid_invoices_amount));
  return { kept: all(kept), anew: all(anew) };
}

describe('scenario: usage between the end of a period and its invoice', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: MARCH, usage_memory: new UsageMemory({ isFed: false }) });
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
  const arrived = async () => {
    const { values } = await register.getSingleMetric('farthing_running_answers_total')!.get();
    return values.find(({ labels }) => labels.from === 'arrived')?.value ?? 0;
  };

  it('is in the balance, also where it is kept', async () => {
    for (const one of customers) {
      const { customer, plan, subscribed, begun, used } = one;
      await world.subscribe(customer, plan, { ...subscribed });
      await begun?.(world, customer);
      one.wallet = await walletOf(world, customer);
      if (used[0] > 0) await world.use(customer, 'calls', used[0]);
    }
    await world.settle();
    for (const { wallet } of customers) await owed(world, wallet);
    world.at(DURING_APRIL);
    for (const { customer, used, then_used } of customers) {
      if (used[1] > 0) await world.use(customer, 'calls', used[1] - 1);
      if (then_used) await world.use(customer, 'calls', then_used.n, { at: then_used.at });
    }
    await world.settle();
    for (const { wallet } of customers) await owed(world, wallet);
    const before = await arrived();
    for (const { customer, used } of customers) if (used[1] > 0) await world.use(customer, 'calls', 1);
    await world.settle();
    const said = await Promise.all(customers.map(async (one) => [one.what, await owed(world, one.wallet)]));
    expect(said).to.deep.equal(customers.map(({ what, owed: all }) => [what, { kept: all, anew: all }]));
    // Of a group, and with a plan change that is due, it is gathered anew.
    expect((await arrived()) - before, 'answers that were made of what arrived').to.be.above(10);
  });

  it('is the same when the scheduler has come', async () => {
    await world.bill();
    const said = await Promise.all(customers.map(async (one) => [one.what, (await owed(world, one.wallet)).kept]));
    expect(said).to.deep.equal(customers.map(({ what, owed: all }) => [what, all]));
  });
});

type Ending = {
  readonly what: string;
  /** Of the parent. */
  readonly cancelled: object;
  readonly child?: Record<string, unknown>;
  /** Of the child, and when it is asked. */
  readonly used: readonly { n: number; at: string }[];
  readonly asked: string;
  readonly owed: { readonly parent: string; readonly child: string };
};

const IN_MARCH = { n: 10, at: '2026-03-05T00:00:00Z' };
const IN_APRIL = { n: 100, at: '2026-04-01T06:00:00Z' };
const MID_MARCH = { cancellation_type: 'scheduled_date', cancel_at: '2026-03-15T00:00:00Z' };
const END_OF_MARCH = { cancellation_type: 'end_of_period' };

const ENDINGS: readonly Ending[] = [
  {
    what: 'within the period, before',
    cancelled: MID_MARCH,
    used: [IN_MARCH],
    asked: '2026-03-10T00:00:00Z',
    owed: { parent: '0', child: '10' },
  },
  {
    what: 'within the period, behind it',
    cancelled: MID_MARCH,
    used: [IN_MARCH, { n: 5, at: '2026-03-16T00:00:00Z' }],
    asked: '2026-03-20T00:00:00Z',
    owed: { parent: '0', child: '15' },
  },
  {
    what: 'with the period, before',
    cancelled: END_OF_MARCH,
    used: [IN_MARCH],
    asked: '2026-03-31T00:00:00Z',
    owed: { parent: '10', child: '0' },
  },
  {
    what: 'with the period, behind it',
    cancelled: END_OF_MARCH,
    used: [IN_MARCH, IN_APRIL],
    asked: DURING_APRIL,
    owed: { parent: '10', child: '100' },
  },
  {
    what: 'with the period, as the child does',
    cancelled: END_OF_MARCH,
    child: { end_date: '2026-04-01T00:00:00Z' },
    used: [IN_MARCH, IN_APRIL],
    asked: DURING_APRIL,
    owed: { parent: '10', child: '0' },
  },
];

describe('scenario: usage of the child of a group whose parent ends', () => {
  for (const { what, cancelled, child: terms, used, asked, owed: wanted } of ENDINGS)
    it(`${what}: is owed by who is to pay for it, before the scheduler has come and behind`, async () => {
      const world = await startWorld({ now: MARCH, usage_memory: new UsageMemory({ isFed: false }) });
      try {
        await world.meter('calls');
        await world.plan('Plain', [usage('calls', '1')]);
        const wallets: Record<string, string> = {};
        for (const name of ['parent', 'child'] as const) {
          await world.subscribe(name, 'Plain', name === 'child' ? terms : {});
          wallets[name] = await walletOf(world, name);
        }
        const grouped_invoicing_params = { action: 'add', child_subscription_ids: [world.id('subscription child')] };
        const path = `/subscriptions/${world.id('subscription parent')}/modify/execute`;
        await world.post(path, { type: 'grouped_invoicing', grouped_invoicing_params });
        await world.cancel('parent', { proration_behavior: 'none', ...cancelled });
        const both = async () => ({
          parent: await owed(world, wallets.parent!),
          child: await owed(world, wallets.child!),
        });
        // Kept before the end, to hold only until then.
        await both();
        world.at(asked);
        for (const { n, at } of used) await world.use('child', 'calls', n, { at });
        await world.settle();
        const before = await both();
        await world.bill();
        const said = (amount: string) => ({ kept: amount, anew: amount });
        const all = { parent: said(wanted.parent), child: said(wanted.child) };
        expect({ before, behind: await both() }).to.deep.equal({ before: all, behind: all });
      } finally {
        await world.stop();
      }
    });
});

describe('scenario: corrections between the end of a period and its invoice', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: MARCH, usage_memory: new UsageMemory({ isFed: false }) });
  });
  after(() => world.stop());

  it('what an invoice cannot give back comes off the next', async () => {
    await world.meter('calls');
    await world.plan('Plain', [usage('calls', '1')]);
    await world.subscribe('corrected', 'Plain');
    const wallet = await walletOf(world, 'corrected');
    const event = world.event('corrected', 'calls', { n: 100, event_id: 'to be corrected' });
    await world.send([event]);
    await world.on('2026-04-02T01:00:00Z');
    await world.finalize();
    await world.use('corrected', 'calls', 10);
    await world.settle();
    world.at('2026-05-02T02:00:00Z');
    await world.use('corrected', 'calls', 100);
    await world.replace('to be corrected', { ...event, properties: { n: 0 } });
    await world.settle();
    const before = await owed(world, wallet);
    await world.bill();
    expect([before, await owed(world, wallet)]).to.deep.equal([
      { kept: '10', anew: '10' },
      { kept: '10', anew: '10' },
    ]);
  });
});
