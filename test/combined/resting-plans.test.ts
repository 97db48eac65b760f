/**
 * Drafts that become final without a second plan because nothing of what they were planned from has changed while they rested, and what
 * makes them be planned again (docs/decisions/0007-cached-answers.md).
 */
import { expect } from 'chai';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { finalizeDueInvoices } from '../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { purgeRecordChanges } from '../../storage/cache/change-feed.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const HOUR_MS = 3_600_000;
const BOTH = ['acme', 'bravo'];

describe('scenario: resting plans', () => {
  let world: World;
  let memory: UsageCache;
  let other: ReturnType<typeof connectPostgres>;
  let coupon_id: string;
  let feature_id: string;
  let plan_id: string;
  let nth = 0;
  let planned: string[] = [];
  const note = ({ sql, bindings }: { sql: string; bindings: unknown[] }) => {
    // Each plan reads the lines of its subscription.
    if (!/from "subscription_line_items" .* order by "id" asc$/.test(sql)) return;
    planned.push(...(bindings.flat() as string[]));
  };

  before(async () => {
    memory = new UsageCache();
    world = await startWorld({ now: '2031-01-01T00:00:00Z', usage_cache: memory });
    other = connectPostgres(readUrl(world.api.services.postgres));
    await world.meter('calls');
    await world.meter('other');
    const coupon = { name: 'A tenth', cadence: 'forever', type: 'percentage', percentage_off: '10' };
    coupon_id = (await world.post('/coupons', coupon)).id;
    world.api.services.postgres.on('query', note);
  });
  after(async () => {
    await other.destroy();
    await world.stop();
  });

  const START = Date.UTC(2031, 1, 1);
  const services = () => world.api.services;
  const scope = () => world.api.scope;
  const at = (day: number) => new Date(Date.UTC(2031, 0, day)).toISOString();
  /** Of this test. */
  const named = (customer: string) => `${customer} ${nth}`;
  const id = (customer: string) => world.id(`subscription ${named(customer)}`);
  const table = (name: string, of: string) =>
    services()
      .postgres(name)
      .where({ ...scope(), id: of });

  /** The month ends for both, with five calls each at 1, two of them free: 13 with the next month's 10. */
  async function drafted(): Promise<void> {
    nth++;
    world.at('2031-01-01T00:00:00Z');
    const plan = named('Pro');
    await world.plan(plan, [usage('calls', '1'), fixed('10', { invoice_cadence: 'ADVANCE' })]);
    plan_id = world.id(`plan ${plan}`);
    const feature = { name: plan, lookup_key: plan, type: 'metered', meter_id: world.id('meter calls') };
    feature_id = (await world.post('/features', feature)).id;
    await world.post('/entitlements', { plan_id, feature_id, feature_type: 'metered', usage_limit: 2 });
    for (const customer of BOTH) {
      await world.subscribe(named(customer), plan);
      await world.send([world.event(named(customer), 'calls', { n: 5, at: at(10), event_id: named(customer) })]);
    }
    await billed();
  }

  async function billed(): Promise<void> {
    world.at(new Date(START).toISOString());
    await world.waitForPipeline();
    const report = await billDuePeriods(services(), world.now, { only: scope() });
    expect([report.billed, report.failed, report.waiting]).to.deep.equal([2, [], []]);
  }

  /** They have rested; answers whose draft was planned for it, and what both come to. */
  async function final(): Promise<[string[], string[]]> {
    planned = [];
    world.at(new Date(START + 2 * HOUR_MS).toISOString());
    const report = await finalizeDueInvoices(services(), { now: world.now, delay_seconds: 7200, only: scope() });
    expect([report.finalized, report.failed, report.waiting]).to.deep.equal([2, [], []]);
    const again = BOTH.filter((customer) => planned.includes(id(customer)));
    return [again, await Promise.all(BOTH.map(async (customer) => (await last(customer))!.total))];
  }

  async function last(customer: string) {
    return (await world.invoices(named(customer))).at(-1);
  }

  const priced = (amount: string, database: Database = services().postgres) =>
    database('prices').where({ entity_id: plan_id, type: 'USAGE' }).update({ amount });

  const nothing: [string, () => Promise<unknown>][] = [
    ['nothing happens', async () => {}],
    ['somebody else uses', () => world.use('charlie', 'calls', 3, { at: at(12) })],
    ['the next month is used', () => world.use(named('acme'), 'calls', 3)],
    ['something is used that nothing is charged for', () => world.use(named('acme'), 'other', 3, { at: at(12) })],
    ['a wallet is made', () => world.post('/wallets', { external_customer_id: named('acme'), currency: 'eur' })],
    [
      'a customer is called otherwise',
      () => table('customers', world.id(`customer ${named('acme')}`)).update({ name: 'A' }),
    ],
    [
      'a price of another plan changes',
      () => services().postgres('prices').whereNot({ entity_id: plan_id }).update({ description: '' }),
    ],
  ];

  // Before all others, whose corrections would be of its months or later ones, and whose subscriptions it would bill for a year.
  it('are planned again when events of somebody else are corrected, where usage was invoiced before', async () => {
    nth++;
    const [customer, plan, event_id] = [named('acme'), named('Calls'), `other-${nth}`];
    world.at('2030-01-01T00:00:00Z');
    await world.plan(plan, [usage('calls', '1')]);
    // Who is billed alone is planned twice anyhow.
    await world.subscribe(named('bravo'), plan);
    const { id } = await world.subscribe(customer, plan);
    const month = async (of: number, between: () => Promise<unknown>) => {
      await world.use(customer, 'calls', 5, { at: new Date(Date.UTC(2030, of - 1, 10)).toISOString() });
      world.at(new Date(Date.UTC(2030, of)).toISOString());
      await world.waitForPipeline();
      await billDuePeriods(services(), world.now, { only: scope() });
      await between();
      world.at(new Date(Date.UTC(2030, of) + 2 * HOUR_MS).toISOString());
      planned = [];
      await finalizeDueInvoices(services(), { now: world.now, delay_seconds: 7200, only: scope() });
      return planned.includes(id);
    };
    const nothing = async () => {};
    expect([await month(1, nothing), await month(2, nothing)]).to.deep.equal([false, false]);
    const isCorrected = async () => {
      await world.send([world.event('charlie', 'calls', { n: 1, event_id })]);
      await world.waitForPipeline();
      await world.replace(event_id, world.event('charlie', 'calls', { n: 2 }));
    };
    expect(await month(3, isCorrected)).to.equal(true);
    // Those who come after it would bill the year between, too.
    for (const one of BOTH) await world.cancel(named(one));
    await world.finalize();
  });

  for (const [what, happens] of nothing)
    it(`are not planned again when ${what}`, async () => {
      await drafted();
      await happens();
      await world.waitForPipeline();
      expect(await final()).to.deep.equal([[], ['13', '13']]);
      const { last_computed_at, finalized_at } = (await last('acme'))!;
      expect(last_computed_at).to.equal(finalized_at);
    });

  const isVoid = async () => {
    const path = `/events/${encodeURIComponent(named('acme'))}` as const;
    const answer = await world.api.request('POST', `${path}/void`, { body: { reason: 'wrong' } });
    expect(answer.status, answer.text).to.equal(202);
    await until('the event is void', async () =>
      (await world.get(`${path}/corrections`)).items.every(({ state }) => state === 'applied'),
    );
  };
  const edited = async () => {
    const draft = await last('acme');
    const lines = draft!.line_items.map(({ subscription_line_item_id, period_start, period_end }) => ({
      subscription_line_item_id,
      period_start,
      period_end,
      amount: '3',
      quantity: '1',
    }));
    const path = `/invoices/${draft!.id}/compute?sync=true` as const;
    const answer = await world.api.request('POST', path, { body: { line_items: lines } });
    expect(answer.status, answer.text).to.equal(200);
  };
  const called = (external_id: string) =>
    table('customers', world.id(`customer ${named('acme')}`)).update({ external_id });

  const changes: [string, () => Promise<unknown>, string[], string[]][] = [
    ['an event comes late', () => world.use(named('acme'), 'calls', 7, { at: at(20) }), ['acme'], ['20', '13']],
    ['a price changes', () => priced('2'), BOTH, ['16', '16']],
    [
      'more is free',
      () => services().postgres('entitlements').where({ entity_id: plan_id }).update({ usage_limit: '4' }),
      BOTH,
      ['11', '11'],
    ],
    [
      'what is free is of another meter',
      () => table('features', feature_id).update({ meter_id: world.id('meter other') }),
      BOTH,
      ['15', '15'],
    ],
    ['a customer has another name in events', () => called('nobody'), ['acme'], ['10', '13']],
    [
      'there is a coupon',
      () =>
        services()
          .postgres('coupon_associations')
          .insert({
            ...scope(),
            id: `of ${nth}`,
            coupon_id,
            subscription_id: id('acme'),
            start_date: at(1),
          }),
      ['acme'],
      ['11.7', '13'],
    ],
    ['everything that was used is forgotten', async () => memory.running.clear(), BOTH, ['13', '13']],
    [
      'nobody knows which records have changed',
      async () => {
        await priced('2');
        await purgeRecordChanges(services().postgres);
        await purgeRecordChanges(services().postgres);
      },
      BOTH,
      ['16', '16'],
    ],
  ];

  for (const [what, happens, whose, totals] of changes)
    it(`are planned again when ${what}`, async () => {
      await drafted();
      await happens();
      await world.waitForPipeline();
      expect(await final()).to.deep.equal([whose, totals]);
    });

  it('that were edited say what was agreed on', async () => {
    await drafted();
    await edited();
    expect((await final())[1]).to.deep.equal(['6', '13']);
  });

  it('are planned again with a change that began before they were planned, and was there after', async () => {
    const changing = await other.transaction();
    try {
      await changing('customers').where(scope()).forUpdate().select('id');
      const begin = async () => {
        await drafted();
        await priced('2', changing);
        await changing.commit();
      };
      await changing.raw('select pg_current_xact_id()');
      await begin();
      expect(await final()).to.deep.equal([BOTH, ['16', '16']]);
    } finally {
      if (!changing.isCompleted()) await changing.rollback();
    }
  });

  it('are planned again when a coupon works again that was used up on the invoice of a parent of before', async () => {
    nth++;
    world.at('2031-01-01T00:00:00Z');
    const [parent, child, plan] = [named('parent'), named('child'), named('Seat')];
    await world.plan(plan, [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    const { id: child_id, line_items } = await world.subscribe(child, plan);
    const { id: parent_id } = await world.subscribe(parent, plan, {
      inheritance: { subscriptions_ids_for_grouped_invoicing: [child_id] },
    });
    const once = { name: 'A tenth', cadence: 'once', type: 'percentage', percentage_off: '10' };
    await services()
      .postgres('coupon_associations')
      .insert({
        ...scope(),
        id: `once ${nth}`,
        coupon_id: (await world.post('/coupons', once)).id,
        subscription_id: child_id,
        subscription_line_item_id: line_items[0]!.id,
        start_date: at(2),
      });
    const month = async (nth: number, between: () => Promise<unknown> = async () => {}) => {
      const begins = Date.UTC(2031, nth);
      world.at(new Date(begins).toISOString());
      await world.waitForPipeline();
      await billDuePeriods(services(), world.now, { only: scope() });
      await between();
      world.at(new Date(begins + 2 * HOUR_MS).toISOString());
      await finalizeDueInvoices(services(), { now: world.now, delay_seconds: 7200, only: scope() });
    };
    await month(1);
    const together = (await world.invoices(parent)).at(-1);
    expect(together!.total).to.equal('19');
    const grouped_invoicing_params = { action: 'remove', child_subscription_ids: [child_id] };
    const leaving = { type: 'grouped_invoicing', grouped_invoicing_params };
    await world.post(`/subscriptions/${parent_id}/modify/execute`, leaving);
    for (const nth of [2, 3]) await month(nth);
    expect((await world.invoices(child)).at(-1)!.total).to.equal('10');
    await month(4, () => world.post(`/invoices/${together!.id}/void`, {}));
    expect((await world.invoices(child)).at(-1)!.total).to.equal('9');
  });

  it('are planned again when an event is void; others, of which no usage was invoiced before, are not', async () => {
    await drafted();
    await isVoid();
    expect(await final()).to.deep.equal([['acme'], ['10', '13']]);
    await drafted();
    expect(await final()).to.deep.equal([[], ['13', '13']]);
  });
}).timeout(240_000);
