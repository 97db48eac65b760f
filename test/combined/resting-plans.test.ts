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
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const HOUR_MS = 3_600_000;
const BOTH = ['acme', 'bravo'];

/** Two customers of one plan, which has the same number as they. */
type Pair = { readonly nth: number; readonly plan_id: string; readonly feature_id: string };

describe('scenario: resting plans', () => {
  let world: World;
  let memory: UsageCache;
  let other: ReturnType<typeof connectPostgres>;
  let coupon_id: string;
  let pairs = 0;
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
  const named = (customer: string, { nth }: { nth: number }) => `${customer} ${nth}`;
  const id = (customer: string, pair: { nth: number }) => world.id(`subscription ${named(customer, pair)}`);
  const table = (name: string, of: string) =>
    services()
      .postgres(name)
      .where({ ...scope(), id: of });

  /** The month ends for the pairs, with five calls of each customer at 1, two of them free: 13 with the next month's 10. */
  async function drafted(count = 1): Promise<Pair[]> {
    world.at('2031-01-01T00:00:00Z');
    const all: Pair[] = [];
    for (let made = 0; made < count; made++) all.push(await subscribed());
    const customers = all.flatMap((pair) => BOTH.map((customer) => named(customer, pair)));
    await world.send(customers.map((name) => world.event(name, 'calls', { n: 5, at: at(10), event_id: name })));
    world.at(new Date(START).toISOString());
    await world.waitForPipeline();
    const report = await billDuePeriods(services(), world.now, { only: scope() });
    expect([report.billed, report.failed, report.waiting]).to.deep.equal([2 * count, [], []]);
    return all;
  }

  async function subscribed(): Promise<Pair> {
    const nth = ++pairs;
    const plan = named('Pro', { nth });
    await world.plan(plan, [usage('calls', '1'), fixed('10', { invoice_cadence: 'ADVANCE' })]);
    const plan_id = world.id(`plan ${plan}`);
    const feature = { name: plan, lookup_key: plan, type: 'metered', meter_id: world.id('meter calls') };
    const { id: feature_id } = await world.post('/features', feature);
    await world.post('/entitlements', { plan_id, feature_id, feature_type: 'metered', usage_limit: 2 });
    for (const customer of BOTH) await world.subscribe(named(customer, { nth }), plan);
    return { nth, plan_id, feature_id };
  }

  /** After the rest: the customers of each pair whose draft is planned for finalization, and the totals of both. */
  async function final(all: readonly Pair[]): Promise<[string[], string[]][]> {
    planned = [];
    world.at(new Date(START + 2 * HOUR_MS).toISOString());
    const report = await finalizeDueInvoices(services(), { now: world.now, delay_seconds: 7200, only: scope() });
    expect([report.finalized, report.failed, report.waiting]).to.deep.equal([2 * all.length, [], []]);
    return Promise.all(
      all.map(async (pair) => {
        const again = BOTH.filter((customer) => planned.includes(id(customer, pair)));
        const totals = await Promise.all(BOTH.map(async (customer) => (await last(customer, pair))!.total));
        return [again, totals] as [string[], string[]];
      }),
    );
  }

  async function last(customer: string, pair: Pair) {
    return (await world.invoices(named(customer, pair))).at(-1);
  }

  const priced = (amount: string, { plan_id }: Pair, database: Database = services().postgres) =>
    database('prices').where({ entity_id: plan_id, type: 'USAGE' }).update({ amount });

  // Before all others, whose corrections would be of its months or later ones, and whose subscriptions it would bill for a year.
  it('are planned again when events of somebody else are corrected, where usage was invoiced before', async () => {
    const nth = ++pairs;
    const [customer, plan, event_id] = [named('acme', { nth }), named('Calls', { nth }), `other-${nth}`];
    world.at('2030-01-01T00:00:00Z');
    await world.plan(plan, [usage('calls', '1')]);
    // Who is billed alone is planned twice anyhow.
    await world.subscribe(named('bravo', { nth }), plan);
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
    for (const one of BOTH) await world.cancel(named(one, { nth }));
    await world.finalize();
  });

  // Also before the others, whose subscriptions it would bill for months.
  it('are planned again when a coupon works again that was used up on the invoice of a parent of before', async () => {
    const nth = ++pairs;
    world.at('2031-01-01T00:00:00Z');
    const [parent, child, plan] = [named('parent', { nth }), named('child', { nth }), named('Seat', { nth })];
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
    const month = async (of: number, between: () => Promise<unknown> = async () => {}) => {
      const begins = Date.UTC(2031, of);
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
    for (const later of [2, 3]) await month(later);
    expect((await world.invoices(child)).at(-1)!.total).to.equal('10');
    await month(4, () => world.post(`/invoices/${together!.id}/void`, {}));
    expect((await world.invoices(child)).at(-1)!.total).to.equal('9');
  });

  it('are not planned again when nothing changes that they are planned from', async () => {
    const [pair] = (await drafted()) as [Pair];
    const acme = named('acme', pair);
    // Somebody else uses, the next month is used, and something that nothing is charged for.
    await world.use('charlie', 'calls', 3, { at: at(12) });
    await world.use(acme, 'calls', 3);
    await world.use(acme, 'other', 3, { at: at(12) });
    await world.post('/wallets', { external_customer_id: acme, currency: 'eur' });
    await table('customers', world.id(`customer ${acme}`)).update({ name: 'A' });
    const { postgres } = services();
    await postgres('prices').whereNot({ entity_id: pair.plan_id }).update({ description: '' });
    await world.waitForPipeline();
    expect(await final([pair])).to.deep.equal([[[], ['13', '13']]]);
    const { last_computed_at, finalized_at } = (await last('acme', pair))!;
    expect(last_computed_at).to.equal(finalized_at);
  });

  const renamed = (external_id: string, pair: Pair) =>
    table('customers', world.id(`customer ${named('acme', pair)}`)).update({ external_id });

  type Change = readonly [
    what: string,
    happens: (pair: Pair) => Promise<unknown>,
    whose: readonly string[],
    totals: readonly [string, string],
  ];
  const OWN_CHANGES: readonly Change[] = [
    [
      'an event comes late',
      (pair) => world.use(named('acme', pair), 'calls', 7, { at: at(20) }),
      ['acme'],
      ['20', '13'],
    ],
    ['a price changes', (pair) => priced('2', pair), BOTH, ['16', '16']],
    [
      'more is free',
      ({ plan_id }) => services().postgres('entitlements').where({ entity_id: plan_id }).update({ usage_limit: '4' }),
      BOTH,
      ['11', '11'],
    ],
    [
      'what is free is of another meter',
      ({ feature_id }) => table('features', feature_id).update({ meter_id: world.id('meter other') }),
      BOTH,
      ['15', '15'],
    ],
    ['a customer has another name in events', (pair) => renamed('nobody', pair), ['acme'], ['10', '13']],
    [
      'there is a coupon',
      (pair) =>
        services()
          .postgres('coupon_associations')
          .insert({
            ...scope(),
            id: `of ${pair.nth}`,
            coupon_id,
            subscription_id: id('acme', pair),
            start_date: at(1),
          }),
      ['acme'],
      ['11.7', '13'],
    ],
    ['nothing happens to them', async () => {}, [], ['13', '13']],
  ];

  it(`are planned again, and no others, when ${OWN_CHANGES.map(([what]) => what).join('; ')}`, async () => {
    const all = await drafted(OWN_CHANGES.length);
    for (const [index, [, happens]] of OWN_CHANGES.entries()) await happens(all[index]!);
    await world.waitForPipeline();
    const found = await final(all);
    expect(OWN_CHANGES.map(([what], index) => [what, ...found[index]!])).to.deep.equal(
      OWN_CHANGES.map(([what, , whose, totals]) => [what, whose, totals]),
    );
  });

  const CHANGES_OF_ALL: readonly Change[] = [
    ['everything that was used is forgotten', async () => memory.running.clear(), BOTH, ['13', '13']],
    [
      'nobody knows which records have changed',
      async (pair) => {
        await priced('2', pair);
        await purgeRecordChanges(services().postgres);
        await purgeRecordChanges(services().postgres);
      },
      BOTH,
      ['16', '16'],
    ],
  ];
  for (const [what, happens, whose, totals] of CHANGES_OF_ALL)
    it(`are planned again when ${what}`, async () => {
      const [pair] = (await drafted()) as [Pair];
      await happens(pair);
      await world.waitForPipeline();
      expect(await final([pair])).to.deep.equal([[whose, totals]]);
    });

  const isVoid = async (pair: Pair) => {
    const path = `/events/${encodeURIComponent(named('acme', pair))}` as const;
    const answer = await world.api.request('POST', `${path}/void`, { body: { reason: 'wrong' } });
    expect(answer.status, answer.text).to.equal(202);
    await world.waitForPipeline();
    expect((await world.get(`${path}/corrections`)).items.map(({ state }) => state)).to.deep.equal(['applied']);
  };

  it('that were edited say what was agreed on', async () => {
    const [pair] = (await drafted()) as [Pair];
    const draft = await last('acme', pair);
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
    expect((await final([pair]))[0]![1]).to.deep.equal(['6', '13']);
  });

  it('are planned again with a change that began before they were planned, and was there after', async () => {
    const changing = await other.transaction();
    try {
      await changing('customers').where(scope()).forUpdate().select('id');
      await changing.raw('select pg_current_xact_id()');
      const [pair] = (await drafted()) as [Pair];
      await priced('2', pair, changing);
      await changing.commit();
      expect(await final([pair])).to.deep.equal([[BOTH, ['16', '16']]]);
    } finally {
      if (!changing.isCompleted()) await changing.rollback();
    }
  });

  it('are planned again when an event is void; others, of which no usage was invoiced before, are not', async () => {
    const corrected = await drafted();
    await isVoid(corrected[0]!);
    expect(await final(corrected)).to.deep.equal([[['acme'], ['10', '13']]]);
    expect(await final(await drafted())).to.deep.equal([[[], ['13', '13']]]);
  });
}).timeout(240_000);
