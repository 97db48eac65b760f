/**
 * What the child of a group uses is owed by who is to pay for it (docs/rules/subscriptions.md, "Families"; docs/rules/wallets.md, "The balance in
 * real time"): whoever of the two ends, and when, and however late the scheduler comes to it.
 */
import { expect } from 'chai';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { createUsageWallet, loadCachedOwed, loadOwed } from '../support/owed.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Case = {
  readonly what: string;
  /** Of both. */
  readonly terms?: Record<string, unknown>;
  readonly child?: Record<string, unknown>;
  /** Of the parent. */
  readonly cancelled?: object;
  /** By the child. */
  readonly used: readonly { n: number; at: string }[];
  readonly asked: string;
  readonly owed: { readonly parent: string; readonly child: string };
};

const MARCH = '2026-03-01T00:00:00Z';
const IN_THE_THIRD_WEEK = '2026-03-17T00:00:00Z';
const DURING_APRIL = '2026-04-02T01:00:00Z';
const IN_MARCH = { n: 10, at: '2026-03-05T00:00:00Z' };
const IN_APRIL = { n: 100, at: '2026-04-01T06:00:00Z' };
const END_OF_MARCH = { cancellation_type: 'end_of_period' };
const WEEKLY = { billing_period: 'WEEKLY' };

function cancelledAt(day: string) {
  return { cancellation_type: 'scheduled_date', cancel_at: `${day}T00:00:00Z` };
}

const CASES: readonly Case[] = [
  {
    what: 'a parent that ends within the period, before it has',
    cancelled: cancelledAt('2026-03-15'),
    used: [IN_MARCH],
    asked: '2026-03-10T00:00:00Z',
    owed: { parent: '0', child: '10' },
  },
  {
    what: 'a parent that ends within the period, behind it',
    cancelled: cancelledAt('2026-03-15'),
    used: [IN_MARCH, { n: 5, at: '2026-03-16T00:00:00Z' }],
    asked: IN_THE_THIRD_WEEK,
    owed: { parent: '0', child: '15' },
  },
  {
    what: 'a parent that ends with the period, before it has',
    cancelled: END_OF_MARCH,
    used: [IN_MARCH],
    asked: '2026-03-31T00:00:00Z',
    owed: { parent: '10', child: '0' },
  },
  {
    what: 'a parent that ends with the period, behind it',
    cancelled: END_OF_MARCH,
    used: [IN_MARCH, IN_APRIL],
    asked: DURING_APRIL,
    owed: { parent: '10', child: '100' },
  },
  {
    what: 'a parent that ends with the period, as the child does',
    cancelled: END_OF_MARCH,
    child: { end_date: '2026-04-01T00:00:00Z' },
    used: [IN_MARCH, IN_APRIL],
    asked: DURING_APRIL,
    owed: { parent: '10', child: '0' },
  },
  {
    what: 'a trial that is over, and waits for the scheduler',
    terms: { trial_period_days: 14 },
    used: [IN_MARCH, { n: 100, at: '2026-03-15T06:00:00Z' }],
    asked: IN_THE_THIRD_WEEK,
    owed: { parent: '100', child: '0' },
  },
  {
    what: 'a start that lay ahead',
    terms: { start_date: '2026-03-10T00:00:00Z' },
    used: [{ n: 100, at: '2026-03-10T06:00:00Z' }],
    asked: IN_THE_THIRD_WEEK,
    owed: { parent: '100', child: '0' },
  },
  {
    what: 'a child that ends inside the period behind the one that waits',
    child: { end_date: '2026-04-02T00:00:00Z' },
    used: [IN_MARCH, IN_APRIL],
    asked: '2026-04-01T12:00:00Z',
    owed: { parent: '110', child: '0' },
  },
  {
    what: 'a parent that goes on: the period behind the one that waits',
    used: [IN_MARCH, IN_APRIL],
    asked: DURING_APRIL,
    owed: { parent: '110', child: '0' },
  },
  {
    what: 'a parent that has ended two periods behind the one that waits',
    terms: WEEKLY,
    cancelled: cancelledAt('2026-03-15'),
    used: [
      { n: 1, at: '2026-03-02T00:00:00Z' },
      { n: 10, at: '2026-03-09T00:00:00Z' },
      { n: 100, at: '2026-03-16T00:00:00Z' },
    ],
    asked: IN_THE_THIRD_WEEK,
    owed: { parent: '11', child: '100' },
  },
  {
    what: 'a parent that ends inside the period behind the one that waits',
    terms: WEEKLY,
    cancelled: cancelledAt('2026-03-11'),
    used: [
      { n: 1, at: '2026-03-02T00:00:00Z' },
      { n: 10, at: '2026-03-09T00:00:00Z' },
      { n: 100, at: '2026-03-13T00:00:00Z' },
    ],
    asked: '2026-03-13T12:00:00Z',
    owed: { parent: '1', child: '110' },
  },
  {
    what: 'a parent that ends inside the next period, before it has',
    terms: WEEKLY,
    cancelled: cancelledAt('2026-03-11'),
    used: [
      { n: 1, at: '2026-03-02T00:00:00Z' },
      { n: 10, at: '2026-03-09T00:00:00Z' },
    ],
    asked: '2026-03-10T00:00:00Z',
    owed: { parent: '1', child: '10' },
  },
];

/** Lines of usage and of fees of the child, on whichever invoice. */
async function linesOfChild(world: World, child: string): Promise<string[]> {
  const { items } = await world.get('/invoices?limit=1000');
  return items
    .flatMap(({ line_items }) => line_items!)
    .filter(({ subscription_id }) => subscription_id === world.id(`subscription ${child}`))
    .map(({ price_type, amount, period_start }) => `${price_type} ${Number(amount)} ${period_start!.slice(0, 10)}`)
    .sort();
}

async function monthsGoOn(world: World): Promise<void> {
  for (const date of ['2026-05-10', '2026-06-10', '2026-07-10']) await world.on(date);
}

describe('scenario: groups between periods', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: MARCH, usage_cache: new UsageCache({ isFed: false }) });
    await world.meter('calls');
    await world.plan('Monthly', [usage('calls', '1')]);
    await world.plan('Weekly', [usage('calls', '1', WEEKLY)]);
    await world.plan('Fees', [usage('calls', '1'), fixed('7')]);
  });
  after(() => world.stop());

  // The latest dates come first: what goes on is billed by every later date of another test.
  describe('a child that ends inside a period of its parent', () => {
    /** In April, with a hundred units used by each child on the fifth. */
    async function begin(names: readonly string[]) {
      world.at(MARCH);
      for (const name of names) {
        await world.subscribe(`parent ${name}`, 'Monthly');
        await world.subscribe(`child ${name}`, 'Monthly', { end_date: '2026-04-20T00:00:00Z' });
        await world.group(`parent ${name}`, `child ${name}`);
      }
      await world.on('2026-04-01T01:00:00Z');
      world.at('2026-04-15T00:00:00Z');
      await world.send(
        names.map((name) => world.event(`child ${name}`, 'calls', { n: 100, at: '2026-04-05T00:00:00Z' })),
      );
      await world.waitForPipeline();
    }

    it('what it uses is in the balance and the preview of its parent before it has ended, and behind', async () => {
      await begin(['seen']);
      const wallet = await createUsageWallet(world, 'parent seen');
      const subscription_id = world.id('subscription parent seen');
      const shown = async () => {
        const { subtotal } = await world.post('/invoices/preview', { subscription_id });
        return { ...(await loadOwed(world, wallet)), preview: subtotal };
      };
      const before = await shown();
      await world.on('2026-04-21T00:00:00Z');
      const all = { cached: '100', recomputed: '100', preview: '100' };
      expect({ before, behind: await shown() }).to.deep.equal({ before: all, behind: all });
    });

    type Change = (path: string) => Promise<unknown>;
    const cancelParent: Change = (path) => world.post(`${path}/cancel`, { cancellation_type: 'immediate' });
    const addLine: Change = (path) => {
      const terms = {
        type: 'FIXED',
        amount: '1',
        currency: 'usd',
        billing_model: 'FLAT_FEE',
        invoice_cadence: 'ARREAR',
      };
      const price = { ...terms, billing_period: 'MONTHLY', billing_period_count: 1, billing_cadence: 'RECURRING' };
      return world.post(`${path}/lineitems`, { price, quantity: '1', proration_behavior: 'none' });
    };
    /** The last two happen to the parent in its next period. */
    const ENDS: Readonly<Record<string, Change | undefined>> = {
      'both ends at once': undefined,
      'a cancelled parent': cancelParent,
      'a parent with another line': addLine,
    };
    const pathOf = (name: string) => `/subscriptions/${world.id(`subscription parent ${name}`)}`;

    it('what it used is invoiced once, whatever the scheduler comes to besides its end', async () => {
      const early = 'a parent that was cancelled a minute later';
      await begin([early]);
      world.at('2026-04-20T00:01:00Z');
      await cancelParent(pathOf(early));
      await world.bill();
      await begin(Object.keys(ENDS));
      world.at('2026-05-02T00:00:00Z');
      for (const [name, change] of Object.entries(ENDS)) await change?.(pathOf(name));
      await world.bill();
      await monthsGoOn(world);
      for (const name of [early, ...Object.keys(ENDS)]) {
        const charged = (await linesOfChild(world, `child ${name}`)).filter((line) => !line.startsWith('USAGE 0 '));
        expect(charged, name).to.deep.equal(['USAGE 100 2026-04-01']);
      }
    });

    it('what it used and its fees are invoiced where two periods wait, of a group that starts at once or in the past', async () => {
      const names = ['at once', 'in the past'];
      const start_date = MARCH;
      for (const [name, now] of [
        ['at once', MARCH],
        ['in the past', '2026-05-02T00:00:00Z'],
      ] as const) {
        world.at(now);
        await world.subscribe(`child ${name}`, 'Fees', { start_date, end_date: '2026-04-20T00:00:00Z' });
        const inheritance = { subscriptions_ids_for_grouped_invoicing: [world.id(`subscription child ${name}`)] };
        await world.subscribe(`parent ${name}`, 'Fees', { start_date, inheritance });
      }
      await world.send(
        names.flatMap((name) => [
          world.event(`child ${name}`, 'calls', { n: 10, at: '2026-03-05T00:00:00Z' }),
          world.event(`child ${name}`, 'calls', { n: 100, at: '2026-04-05T00:00:00Z' }),
        ]),
      );
      await world.bill();
      await monthsGoOn(world);
      for (const name of names)
        expect(await linesOfChild(world, `child ${name}`), name).to.deep.equal([
          'FIXED 4.43 2026-04-01',
          'FIXED 7 2026-03-01',
          'USAGE 10 2026-03-01',
          'USAGE 100 2026-04-01',
        ]);
    });
  });

  describe('usage of the child, before the scheduler has come and behind', () => {
    const instants = [...new Set(CASES.map(({ asked }) => asked))];
    for (const asked of instants) {
      const cases = CASES.filter((one) => one.asked === asked);
      it(`is owed by who is to pay for it, at ${asked}: ${cases.map(({ what }) => what).join('; ')}`, async () => {
        world.at(MARCH);
        const groups: { what: string; used: Case['used']; child: string; wallets: string[] }[] = [];
        for (const one of cases) groups.push({ what: one.what, used: one.used, ...(await begin(one)) });
        const loadAll = async () => {
          const all = groups.map(async ({ what, wallets }) => {
            const [parent, child] = await Promise.all(wallets.map((wallet) => loadOwed(world, wallet)));
            return [what, { parent, child }];
          });
          return Object.fromEntries(await Promise.all(all));
        };
        // Cached before the end, and valid only until then.
        for (const wallet of groups.flatMap(({ wallets }) => wallets)) await loadCachedOwed(world, wallet);
        world.at(asked);
        await world.send(
          groups.flatMap(({ child, used }) => used.map(({ n, at }) => world.event(child, 'calls', { n, at }))),
        );
        await world.waitForPipeline();
        const before = await loadAll();
        await world.bill();
        const both = (amount: string) => ({ cached: amount, recomputed: amount });
        const all = Object.fromEntries(
          cases.map(({ what, owed }) => [what, { parent: both(owed.parent), child: both(owed.child) }]),
        );
        expect({ before, behind: await loadAll() }).to.deep.equal({ before: all, behind: all });
      });
    }

    async function begin({ what, terms = {}, child: childTerms, cancelled }: Case) {
      const [parent, child] = [`parent: ${what}`, `child: ${what}`];
      const plan = terms === WEEKLY ? 'Weekly' : 'Monthly';
      await world.subscribe(parent, plan, terms);
      await world.subscribe(child, plan, { ...terms, ...childTerms });
      const wallets = [await createUsageWallet(world, parent), await createUsageWallet(world, child)];
      await world.group(parent, child);
      if (cancelled) await world.cancel(parent, { proration_behavior: 'none', ...cancelled });
      return { child, wallets };
    }
  });
});
