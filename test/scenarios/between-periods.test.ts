/**
 * A period that is over is billed when the scheduler comes to it, and by then the next one is used: the balance in real time says before what it
 * says behind that (docs/rules/wallets.md, "The balance in real time").
 */
import { expect } from 'chai';
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
  /** What is owed then, of both. */
  readonly owed: string;
};

const MARCH = '2026-03-01T00:00:00Z';
const DURING_APRIL = '2026-04-02T00:00:00Z';

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
    subscribed: { coupons: ['HALF-ONCE'] },
    used: [10, 100],
    owed: '105',
  },
  {
    what: 'a commitment for a quarter, which March has used up',
    plan: 'Calls',
    subscribed: { commitment_amount: '50', overage_factor: '2', commitment_duration: 'QUARTERLY' },
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
    what: 'a plan change at the end of the period',
    plan: 'Calls',
    begun: (world, customer) =>
      world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/change/execute`, {
        target_plan_id: world.id('plan Dear'),
        proration_behavior: 'create_prorations',
        billing_period: 'MONTHLY',
        billing_cadence: 'RECURRING',
        billing_cycle: 'anniversary',
        change_at: 'end_of_period',
      }),
    used: [10, 100],
    owed: '310',
  },
];

describe('scenario: usage between the end of a period and its invoice', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: MARCH, usage_memory: new UsageMemory({ isFed: false }) });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '1'), fixed('7')]);
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
  type Owing = { kept: string; anew: string };
  async function owed({ wallet }: { wallet: string }): Promise<Owing> {
    const { services, scope } = world.api;
    const found = await WalletModel.fetch(scope, wallet, { database: services.postgres });
    const real = (stores: Answer) => realTimeOf(stores, found, services.clock());
    const [kept, anew] = await Promise.all([real(services), real({ ...services, usage_memory: undefined })]);
    const all = ({ current_period_usage, unpaid_invoices_amount }: Answer) =>
      String(Number(current_period_usage) + Number(unpaid_invoices_amount));
    return { kept: all(kept), anew: all(anew) };
  }

  it('is in the balance, also where it is kept', async () => {
    for (const one of customers) {
      const { customer, plan, subscribed, begun, used } = one;
      await world.subscribe(customer, plan, { ...subscribed });
      await begun?.(world, customer);
      const terms = { config: { allowed_price_types: ['USAGE'] }, initial_credits_to_load: '1000', currency: 'usd' };
      one.wallet = (await world.post('/wallets', { customer_id: world.id(`customer ${customer}`), ...terms })).id;
      if (used[0] > 0) await world.use(customer, 'calls', used[0]);
    }
    await world.settle();
    for (const one of customers) await owed(one);
    world.at(DURING_APRIL);
    for (const { customer, used } of customers) {
      await world.use(customer, 'calls', used[1] - 1);
      await world.settle();
    }
    for (const one of customers) await owed(one);
    for (const { customer } of customers) await world.use(customer, 'calls', 1);
    await world.settle();
    const said = await Promise.all(customers.map(async (one) => [one.what, await owed(one)]));
    expect(said).to.deep.equal(customers.map(({ what, owed: all }) => [what, { kept: all, anew: all }]));
  });

  it('is the same when the scheduler has come', async () => {
    await world.bill();
    const said = await Promise.all(customers.map(async (one) => [one.what, (await owed(one)).kept]));
    expect(said).to.deep.equal(customers.map(({ what, owed: all }) => [what, all]));
  });
});
