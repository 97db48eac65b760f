/**
 * The revenue dashboard (docs/rules/revenue.md): by customer, by window and what recurs, as plain sums over the invoices and line items say
 * it; rows are made anew however often, and audited.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { auditRecords } from '../../actions/operations/audit/records.ts';
import { rebuildRevenue } from '../../actions/operations/audit/revenue.ts';
import { streamRevenue } from '../../actions/reporting/revenue/stream-revenue.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { startWorker } from '../../scheduler/worker.ts';
import { addTick } from '../../storage/queue/jobs.ts';
import type { Dashboard, InvoiceLine } from '../support/answers.ts';
import { samples } from '../support/samples.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const YEAR = { period_start: '2026-01-01T00:00:00Z', period_end: '2027-01-01T00:00:00Z' };
const SETTLED = ['FINALIZED', 'SKIPPED'];
const total = (texts: readonly string[]) => sumDecimals(texts.map((text) => new Decimal(text))).toFixed();

type Moves = Dashboard['mrr'][string]['windows'][number];

describe('the revenue dashboard', () => {
  let world: World;
  const ask = async <Path extends string>(path: Path, body: object, status = 200) => {
    const answer = await world.api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(status);
    return answer.body;
  };
  const dashboard = (body: object) => ask('/dashboard/revenue-dashboard', body);
  const stream = () => streamRevenue(world.api.services);
  const audited = async () => {
    const findings: string[] = [];
    const asked = {
      checks: new Set(['revenue'] as const),
      log: null,
      identityFiles: async () => [],
      chance: Math.random,
    };
    await auditRecords(world.api.services, asked, ({ kind, what }) => findings.push(`${kind} ${what}`));
    return findings;
  };

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [fixed('30', { invoice_cadence: 'ADVANCE' }), usage('calls', '1')]);
    await world.plan('Euro', [fixed('120', { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL', currency: 'eur' })]);
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
    await world.use('acme', 'calls', 12, { at: '2026-01-05T00:00:00Z' });
    await world.on('2026-02-01', () => world.subscribe('euro', 'Euro', { currency: 'eur', billing_period: 'ANNUAL' }));
    await world.finalize();
    await world.on('2026-02-15', () => world.subscribe('beta', 'Pro'));
    await world.on('2026-03-15', () => world.cancel('acme'));
    await world.finalize();
    await stream();
  });
  after(() => world.stop());

  it('customers of each currency, the greatest first, with usage and fixed charges', async () => {
    const { items, summaries } = await dashboard(YEAR);
    const said = items.map((item) => [
      item.customer_name,
      item.external_customer_id,
      item.currency,
      item.total_revenue,
      item.total_usage_revenue,
      item.total_fixed_revenue,
    ]);
    const ofAcme = (await world.invoices('acme')).flatMap(({ line_items, invoice_status }) =>
      SETTLED.includes(invoice_status) ? line_items : [],
    );
    const ofBeta = (await world.invoices('beta')).flatMap(({ line_items, invoice_status }) =>
      SETTLED.includes(invoice_status) ? line_items : [],
    );
    const over = (lines: InvoiceLine[], type: string) =>
      total(lines.filter(({ price_type }) => price_type === type).map(({ amount }) => amount));
    const row = (name: string, lines: InvoiceLine[]) => [
      name,
      name,
      'usd',
      total(lines.map(({ amount }) => amount)),
      over(lines, 'USAGE'),
      over(lines, 'FIXED'),
    ];
    expect(said).to.deep.equal(
      [['euro', 'euro', 'eur', '120', '0', '120'], row('acme', ofAcme), row('beta', ofBeta)].sort((a, b) =>
        new Decimal(b[3]!).comparedTo(a[3]!),
      ),
    );
    expect(summaries.usd!.total_revenue).to.equal(total([...ofAcme, ...ofBeta].map(({ amount }) => amount)));
    expect([summaries.eur!.total_revenue, summaries.eur!.customer_count]).to.deep.equal(['120', 1]);
  });

  it('over time: a line counts where what it charges begins', async () => {
    const { graph } = await dashboard(YEAR);
    const points = graph.by_currency.usd!.map(({ label, value }) => `${label} ${value}`);
    expect(points).to.have.length(12);
    // 30 and 12 calls of January; 30 of February, and 30 of beta; 30 of March, of which half is given back, and 30 of beta.
    expect(points.slice(0, 2)).to.deep.equal(['Jan 2026 42', 'Feb 2026 60']);
    expect(points.at(-1)).to.equal('Dec 2026 0');
    const jan = await dashboard({ period_start: YEAR.period_start, period_end: '2026-02-01T00:00:00Z' });
    expect(jan.graph.total_revenue).to.have.length(31);
    expect(jan.graph.total_revenue[0]).to.deep.include({ label: '2026-01-01', value: '42' });
  });

  it('less what a cheaper plan and a cancellation give back into the wallet, and cost analytics say the same', async () => {
    const own = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const inAdvance = (amount: string) => [fixed(amount, { invoice_cadence: 'ADVANCE' })];
    await own.plan('Large', inAdvance('62'));
    await own.plan('Small', inAdvance('31'));
    for (const name of ['smaller', 'leaves']) await own.on('2026-01-01', () => own.subscribe(name, 'Large'));
    await own.finalize();
    await own.on('2026-01-11');
    const by = { proration_behavior: 'create_prorations' };
    const path = (name: string) => `/subscriptions/${own.id(`subscription ${name}`)}` as const;
    await own.post(`${path('smaller')}/change/v2/execute`, { target_plan_id: own.id('plan Small'), ...by });
    await own.post(`${path('leaves')}/cancel`, { cancellation_type: 'immediate', ...by });
    await own.on('2026-02-02');
    await own.finalize();
    await streamRevenue(own.api.services);
    const january = { period_start: '2026-01-01T00:00:00Z', period_end: '2026-02-01T00:00:00Z' };
    const { items } = await own.post('/dashboard/revenue-dashboard', january);
    const costs = await own.post('/costs/analytics-v2', {
      start_time: january.period_start,
      end_time: january.period_end,
    });
    // 62, less 42 for 21 of 31 days, and 21 for as many days of the smaller plan.
    const said = items.map((item) => `${item.customer_name} ${item.total_revenue}`);
    await own.stop();
    expect(said).to.deep.equal(['smaller 41', 'leaves 20']);
    expect(costs.total_revenue).to.equal('61');
  });

  it('what recurs, and how it moves', async () => {
    const { mrr } = await dashboard(YEAR);
    const moves = ({ window_label, opening, new: fresh, expansion, contraction, churn, closing }: Moves) =>
      [window_label, opening, fresh, expansion, contraction, churn, closing].join(' ');
    expect(mrr.usd!.windows.map(moves)).to.deep.equal([
      'Jan 2026 0 30 0 0 0 30',
      'Feb 2026 30 30 0 0 0 60',
      'Mar 2026 60 0 0 0 30 30',
    ]);
    expect([mrr.usd!.mrr, mrr.eur!.mrr]).to.deep.equal(['30', '10']);
    expect(mrr.usd!.windows.at(-1)!.window_end).to.equal('2026-03-15T00:00:00Z');
  });

  it('of some customers, and page by page', async () => {
    const whole = await dashboard(YEAR);
    const acme = world.id('customer acme');
    const own = await dashboard({ ...YEAR, customer_ids: [acme] });
    expect(own.items).to.deep.equal(whole.items.filter(({ customer_id }) => customer_id === acme));
    expect(Object.keys(own.summaries)).to.deep.equal(['usd']);
    const page = await dashboard({ ...YEAR, limit: 1, offset: 1 });
    expect(page.items).to.deep.equal([whole.items[1]]);
    expect(page.summaries).to.deep.equal(whole.summaries);
  });

  it('refuses what is no period', async () => {
    await ask('/dashboard/revenue-dashboard', { ...YEAR, period_end: YEAR.period_start }, 400);
    await ask('/dashboard/revenue-dashboard', { period_start: YEAR.period_start }, 400);
    const many = Array.from({ length: 1001 }, (_, index) => `cust_${index}`);
    await ask('/dashboard/revenue-dashboard', { ...YEAR, customer_ids: many }, 400);
    await ask('/dashboard/revenue-dashboard', { ...YEAR, window_size: 'MINUTE' }, 400);
  });

  it('trends: the last windows, the running one among them, and what the last thirty days have brought', async () => {
    const answer = await ask('/dashboard/revenues', { revenue_trend: { window_count: 3 } });
    const { revenue_trend, recent_subscriptions, invoice_payment_status, mrr } = answer;
    expect([revenue_trend.window_size, revenue_trend.window_count]).to.deep.equal(['MONTH', 3]);
    const windows = revenue_trend.currency_revenue_windows.usd!.windows;
    const whole = await dashboard(YEAR);
    expect(windows.map(({ window_label, total_revenue }) => `${window_label} ${total_revenue}`)).to.deep.equal(
      whole.graph.by_currency.usd!.slice(0, 3).map(({ label, value }) => `${label} ${value}`),
    );
    expect(mrr.usd!.mrr).to.equal('30');
    expect(recent_subscriptions.total_count).to.equal(1);
    expect(recent_subscriptions.plans).to.deep.include({ plan_id: world.id('plan Pro'), plan_name: 'Pro', count: 1 });
    expect(invoice_payment_status.pending).to.be.above(0);
  });

  it('a voided invoice is taken out again, and told twice the rows are the same', async () => {
    const before = await dashboard(YEAR);
    const [opening] = await world.invoices('euro');
    await ask(`/invoices/${opening!.id}/void`, {});
    await stream();
    expect((await dashboard(YEAR)).summaries.eur).to.equal(undefined);
    await rebuildRevenue(world.api.services);
    await rebuildRevenue(world.api.services);
    await stream();
    const after = await dashboard(YEAR);
    expect(after.summaries.usd).to.deep.equal(before.summaries.usd);
    expect(after.graph.by_currency).to.deep.equal({ usd: before.graph.by_currency.usd });
  });

  async function saidBy(own: World): Promise<string[]> {
    const { as_of, summaries } = await own.post('/dashboard/revenue-dashboard', YEAR);
    expect((await own.post('/dashboard/revenues', {})).as_of).to.equal(as_of);
    return [as_of, summaries.usd?.total_revenue ?? '0'];
  }

  describe('as of an instant', () => {
    let own: World;
    before(async () => {
      own = await startWorld({ now: '2026-01-01T00:00:00Z' });
      await own.plan('Pro', [fixed('30', { invoice_cadence: 'ADVANCE' })]);
      await own.on('2026-01-05', () => own.subscribe('acme', 'Pro'));
      await own.finalize();
    });
    after(() => own.stop());

    it('nothing is missing that was final before `as_of`, also while it is being committed', async () => {
      const { postgres } = own.api.services;
      await own.on('2026-01-20');
      const { id, finalized_at } = (await own.invoices('acme'))[0]!;
      const waiting = await saidBy(own);
      await streamRevenue(own.api.services);
      const all = await saidBy(own);
      own.at('2100-01-01');
      const transaction = await postgres.transaction();
      const { rows } = await transaction.raw('select now() as begun');
      await transaction.raw(`update invoices set invoice_status = 'VOIDED' where id = ?`, [id]);
      const [during] = await saidBy(own);
      await transaction.rollback();
      const [after] = await saidBy(own);
      expect(finalized_at).to.match(/^2026-01-05T/);
      expect(waiting).to.deep.equal(['2026-01-05T00:00:00Z', '0']);
      expect(all).to.deep.equal(['2026-01-20T00:00:00Z', '30']);
      expect(Date.parse(during!)).to.equal(Date.parse(rows[0].begun));
      expect(after).to.equal('2100-01-01T00:00:00Z');
    });

    it('as of no later than what is stamped and not yet written: a transaction that has locked, one that waits to, a job', async () => {
      const { postgres, logger } = own.api.services;
      const { id } = (await own.invoices('acme'))[0]!;
      await streamRevenue(own.api.services);
      own.at('2100-01-01');
      const asOf = async () => Date.parse((await saidBy(own))[0]!);
      const open = async () => {
        const transaction = await postgres.transaction();
        const { rows } = await transaction.raw('select now() as begun');
        return { transaction, begun: new Date(rows[0].begun).getTime() };
      };
      const lock = 'select id from invoices where id = ? for update';
      const holding = await open();
      await holding.transaction.raw(lock, [id]);
      expect(await asOf()).to.equal(holding.begun);
      const waiting = await open();
      const locked = waiting.transaction.raw(lock, [id]).then(() => undefined);
      await until('it waits', async () => {
        const { rows } = await postgres.raw(
          `select from pg_stat_activity where wait_event_type = 'Lock' and query like ?`,
          ['%from invoices where id = % for update'],
        );
        return rows.length > 0;
      });
      // The one that holds commits what it has stamped: it is told, and the other is still to write.
      await holding.transaction.raw(`update invoices set invoice_status = 'VOIDED' where id = ?`, [id]);
      await holding.transaction.commit();
      await locked;
      await streamRevenue(own.api.services);
      expect(await asOf()).to.equal(waiting.begun);
      await waiting.transaction.rollback();
      expect(await asOf()).to.equal(Date.parse('2100-01-01T00:00:00Z'));
      // A job gives all that it does the instant at which it began, however long it takes.
      let end = () => {};
      const asked = new Promise<void>((resolve) => {
        end = resolve;
      });
      const name = 'finalize-due-invoices';
      const worker = startWorker({ [name]: () => asked }, { postgres, logger });
      await addTick(postgres, { name, every_seconds: 60 });
      const isRunning = () => postgres('graphile_worker.jobs').whereNotNull('locked_at').select('locked_at');
      const [{ locked_at }] = await until('it runs', async () => {
        const jobs = await isRunning();
        return jobs.length > 0 && jobs;
      });
      expect(await asOf()).to.equal(new Date(locked_at).getTime());
      end();
      await until('it has ended', async () => (await isRunning()).length === 0);
      expect(await asOf()).to.equal(Date.parse('2100-01-01T00:00:00Z'));
      await worker.stop();
    });
  });

  it('with a clock it is as of where that stood before the advance, until everything is in', async () => {
    const own = await startWorld({ now: '2026-01-01T00:00:00Z', test_clock: true });
    await own.plan('Pro', [fixed('30', { invoice_cadence: 'ADVANCE' })]);
    await own.on('2026-01-05', () => own.subscribe('acme', 'Pro'));
    await streamRevenue(own.api.services);
    await own.advance('2026-02-05T00:00:01Z');
    await own.advance('2026-02-05T03:00:00Z');
    const waiting = await saidBy(own);
    await streamRevenue(own.api.services);
    const all = await saidBy(own);
    await own.stop();
    expect(waiting[0]).to.be.oneOf(['2026-01-05T00:00:00Z', '2026-02-05T00:00:01Z']);
    expect(all).to.deep.equal(['2026-02-05T03:00:00Z', '60']);
  });

  it('is audited: what differs is named, and made anew it does not', async () => {
    expect(await audited()).to.deep.equal([]);
    const { tenant_id, environment_id } = world.api.scope;
    const planted = { tenant_id, environment_id, currency: 'usd', version: '1000000' };
    const january = { year: 2026, earned_at: ['2026-01-01 00:00:00.000'] };
    await world.api.services.clickhouse.insert({
      table: 'revenue',
      format: 'JSONEachRow',
      values: [
        {
          ...planted,
          ...january,
          customer_id: world.id('customer acme'),
          usage: ['13'],
          fixed: ['30'],
          usage_of_year: '13',
          fixed_of_year: '30',
        },
        {
          ...planted,
          ...january,
          customer_id: 'cust_nobody',
          usage: ['1'],
          fixed: ['0'],
          usage_of_year: '1',
          fixed_of_year: '0',
        },
      ],
    });
    await world.api.services.clickhouse.insert({
      table: 'recurring_revenue',
      format: 'JSONEachRow',
      values: [
        {
          ...planted,
          customer_id: 'cust_nobody',
          line_item_id: 'subs_line_nothing',
          starts_at: '2026-01-01 00:00:00.000',
          ends_at: '2026-02-01 00:00:00.000',
          monthly: '5',
        },
      ],
    });
    const found = await audited();
    expect(found.map((text) => text.split(' ')[0])).to.deep.equal([
      'revenue_differs',
      'revenue_differs',
      'recurring_revenue_differs',
    ]);
    expect(found[0]).to.include(
      'says 13 of usage and 30 of fixed charges (2026-01-01T00:00:00.000Z: 13 and 30), and should',
    );
    await rebuildRevenue(world.api.services);
    await stream();
    expect(await audited()).to.deep.equal([]);
  });

  const history = fc.record({
    price: fc.integer({ min: 1, max: 50 }),
    joins: fc.integer({ min: 0, max: 80 }),
    used: fc.integer({ min: 0, max: 30 }),
    changes: fc.constantFrom('none', 'cancel', 'quantity'),
    after: fc.integer({ min: 1, max: 70 }),
  });

  it('on random histories what it says is the sum of the invoices, and movements lead from opening to closing', async () => {
    let names = 0;
    let year = 2026;
    // Subscriptions that continue would be billed for the months of the next year, too.
    await world.cancel('beta');
    await world.cancel('euro');
    await fc.assert(
      fc.asyncProperty(fc.array(history, { minLength: 3, maxLength: 5 }), async (drawn) => {
        year += 1;
        const begin = Date.parse(`${year}-01-01T00:00:00Z`);
        const day = (count: number) => new Date(begin + count * 86_400_000).toISOString();
        const deeds = drawn.flatMap(({ price, joins, used, changes, after }) => {
          const name = `drawn ${++names}`;
          const join = async () => {
            await world.plan(name, [fixed(String(price), { invoice_cadence: 'ADVANCE' }), usage('calls', '0.1')]);
            await world.subscribe(name, name);
            await world.use(name, 'calls', used);
          };
          const change = async () => {
            if (changes === 'cancel') await world.cancel(name);
            if (changes === 'quantity') await changeQuantity(name);
          };
          return [
            { at: joins, deed: join },
            { at: joins + after, deed: change },
          ];
        });
        for (const { at, deed } of deeds.toSorted((a, b) => a.at - b.at)) await world.on(day(at), deed);
        await world.on(day(160));
        await world.finalize();
        await stream();
        const period = { period_start: day(0), period_end: day(160) };
        const customer_ids = drawn.map((_, index) => world.id(`customer drawn ${names - drawn.length + index + 1}`));
        const { items, summaries, graph, mrr } = await dashboard({ ...period, customer_ids, window_size: 'MONTH' });
        const expected = new Map<string, string>();
        for (const [index, id] of customer_ids.entries()) {
          const invoices = await world.invoices(`drawn ${names - drawn.length + index + 1}`);
          const lines = invoices.flatMap(({ invoice_status, line_items }) =>
            SETTLED.includes(invoice_status)
              ? line_items.filter((line) => Date.parse(line.period_start!) < Date.parse(period.period_end))
              : [],
          );
          const sum = total(lines.map(({ amount }) => amount));
          if (sum !== '0') expected.set(id, sum);
        }
        const said = new Map(items.map(({ customer_id, total_revenue }) => [customer_id, total_revenue]));
        expect(Object.fromEntries(said)).to.deep.equal(Object.fromEntries(expected));
        expect(summaries.usd!.total_revenue).to.equal(total([...expected.values()]));
        expect(total(graph.total_revenue.map(({ value }) => value))).to.equal(summaries.usd!.total_revenue);
        const windows = mrr.usd!.windows;
        for (const [index, one] of windows.entries()) {
          const closing = total([one.opening, one.new, one.expansion, `-${one.contraction}`, `-${one.churn}`]);
          expect(closing, one.window_label).to.equal(one.closing);
          if (index > 0) expect(one.opening).to.equal(windows[index - 1]!.closing);
        }
        // At the end: the price of each that was not cancelled, times its quantity.
        const living = drawn.filter(({ changes, joins, after }) => changes !== 'cancel' || joins + after >= 160);
        const recurring = living.map(({ price, changes }) => String(price * (changes === 'quantity' ? 3 : 1)));
        expect(mrr.usd!.mrr).to.equal(total(recurring));
        expect(await audited()).to.deep.equal([]);
        const isLeft = async (name: string) => (await world.subscription(name)).subscription_status === 'cancelled';
        for (let nth = names - drawn.length + 1; nth <= names; nth++)
          if (!(await isLeft(`drawn ${nth}`))) await world.cancel(`drawn ${nth}`);
      }),
      { numRuns: samples(2), endOnFailure: true },
    );
  });

  async function changeQuantity(name: string): Promise<void> {
    const { line_items } = await world.subscription(name);
    const line = line_items.find(({ price_type }) => price_type === 'FIXED');
    const quantity_change_params = { line_items: [{ id: line!.id, quantity: '3' }] };
    await world.post(`/subscriptions/${world.id(`subscription ${name}`)}/modify/execute`, {
      type: 'quantity_change',
      quantity_change_params,
    });
  }
});
