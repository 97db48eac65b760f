/** POST /costs/analytics-v2 (docs/rules/costs.md): figures that can be followed by hand. */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { CostAnalytics, CostItem, Costsheet, Feature } from '../../support/answers.ts';
import { fixed, startWorld, tiers, usage, type World } from '../../support/world.ts';

const total = (texts: readonly string[]) => sumDecimals(texts.map((text) => new Decimal(text))).toFixed();
const JANUARY = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' };
const at = (day: string) => `2026-01-${day}T10:00:00Z`;

describe('costs: analytics', () => {
  let world: World;
  let feature: Feature;
  const ask = async (body: object, status = 200) => {
    const answer = await world.api.request('POST', '/costs/analytics-v2', { body });
    expect(answer.status, answer.text).to.equal(status);
    return answer.body;
  };
  const costPrice = (sheet: string, meter: string, terms: object) =>
    world.post('/prices', {
      entity_type: 'COSTSHEET',
      entity_id: sheet,
      currency: 'usd',
      type: 'USAGE',
      billing_model: 'FLAT_FEE',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      invoice_cadence: 'ARREAR',
      price_unit_type: 'FIAT',
      meter_id: world.id(`meter ${meter}`),
      ...terms,
    });
  const short = ({ external_customer_id, meter_name, total_cost, total_quantity, total_events }: CostItem) =>
    [external_customer_id, meter_name, total_cost, total_quantity, total_events].join(' ');
  const points = ({ cost_by_period }: CostItem) =>
    cost_by_period!.map(({ timestamp, cost, quantity, event_count }) =>
      [timestamp.slice(5, 10), cost, quantity, event_count].join(' '),
    );

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.meter('peak', { type: 'MAX', field: 'n' });
    await world.meter('users', { type: 'COUNT_UNIQUE', field: 'n' });
    feature = await world.post('/features', {
      name: 'Calls',
      type: 'metered',
      meter_id: world.id('meter calls'),
    });
    await world.plan('Pro', [fixed('31', { invoice_cadence: 'ADVANCE' }), fixed('62'), usage('calls', '1')]);
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
    await world.send([
      world.event('acme', 'calls', { n: 8, at: at('03') }),
      world.event('acme', 'calls', { n: 6, at: at('04') }),
      world.event('acme', 'peak', { n: 4, at: at('03') }),
      world.event('acme', 'peak', { n: 9, at: at('05') }),
      world.event('acme', 'users', { n: 1, at: at('03') }),
      world.event('acme', 'users', { n: 1, at: at('04') }),
      world.event('acme', 'users', { n: 2, at: at('04') }),
      world.event('stranger', 'calls', { n: 2, at: at('05') }),
    ]);
    await world.on('2026-01-11');
    await world.waitForPipeline();
  });
  after(() => world.stop());

  it('without a cost sheet nothing costs anything, and the answer says that there is none', async () => {
    const { total_cost, roi, roi_percent, costsheet_id, cost_analytics } = await ask(JANUARY);
    expect([total_cost, roi, roi_percent, costsheet_id, cost_analytics]).to.deep.equal(['0', '0', '0', null, []]);
  });

  describe('with one', () => {
    let sheet: Costsheet;
    before(async () => {
      sheet = (await world.post('/costs', { name: 'Ours' })).costsheet;
      const tiered = tiers('calls', [
        [10, '0.5'],
        [null, '0.25', '1'],
      ]);
      const { meter: _, ...terms } = tiered;
      await costPrice(sheet.id, 'calls', terms);
      await costPrice(sheet.id, 'peak', { amount: '0.003' });
      await costPrice(sheet.id, 'users', { amount: '0.1' });
    });

    // 14 calls: 10 × 0.5 + 4 × 0.25 + 1 = 7; a peak of 9 is 0.027; 2 users are 0.2; the stranger’s 2 calls 1.
    it('one item for each customer and meter, the dearest first, also of who is no customer', async () => {
      const { cost_analytics, total_cost, costsheet_id, pagination } = await ask(JANUARY);
      expect(cost_analytics.map(short)).to.deep.equal([
        'acme calls 7 14 2',
        'stranger calls 1 2 1',
        'acme users 0.2 2 3',
        'acme peak 0.027 9 2',
      ]);
      expect([total_cost, costsheet_id, pagination]).to.deep.equal([
        '8.227',
        sheet.id,
        { total: 4, limit: 50, offset: 0, next_cursor: null },
      ]);
      expect(cost_analytics.map(({ customer_id }) => customer_id === null)).to.deep.equal([false, true, false, false]);
    });

    it('periods add up: what a day added, of distinct values those that are new', async () => {
      const { cost_analytics } = await ask(JANUARY);
      expect(cost_analytics.map(points)).to.deep.equal([
        ['01-03 4 8 1', '01-04 3 6 1'],
        ['01-05 1 2 1'],
        ['01-03 0.1 1 1', '01-04 0.1 2 2'],
        ['01-03 0.012 4 1', '01-05 0.015 9 1'],
      ]);
    });

    // Of January the advance charge is on the opening invoice; 62 in arrears and 14 calls are on none yet.
    it('revenue of a running month: fixed charges by their time, usage as the preview says it', async () => {
      const { total_revenue, margin, margin_percent, revenue_parts, currency } = await ask({
        ...JANUARY,
        external_customer_id: 'acme',
      });
      expect([total_revenue, margin, margin_percent, currency]).to.deep.equal([
        '107',
        '99.773',
        '93.245794392523364486',
        'usd',
      ]);
      expect(revenue_parts).to.deep.include({ usage: '14', fixed: '93', drafts: '0', finalized: '31', open: '76' });
    });

    it('the last seven days without a range: 7 of 31 days of fixed charges, and the usage in them', async () => {
      const { total_revenue, start_time, end_time, revenue_parts } = await ask({});
      expect([start_time, end_time]).to.deep.equal(['2026-01-04T00:00:00Z', '2026-01-11T00:00:00Z']);
      expect([total_revenue, revenue_parts.usage, revenue_parts.fixed]).to.deep.equal(['27', '6', '21']);
    });

    it('by feature: usage of its meter alone', async () => {
      const { total_revenue, total_cost, cost_analytics } = await ask({ ...JANUARY, feature_ids: [feature.id] });
      expect([total_revenue, total_cost, cost_analytics.length]).to.deep.equal(['14', '8', 2]);
      expect([cost_analytics[0]!.total_revenue, cost_analytics[0]!.margin]).to.deep.equal(['14', '7']);
    });

    it('by source: the cost of the customer, shared by usage', async () => {
      await world.api.request('POST', '/events', {
        body: { ...world.event('acme', 'calls', { n: 14, at: at('06') }), source: 'other' },
      });
      await world.waitForPipeline();
      const { cost_analytics } = await ask({ ...JANUARY, feature_ids: [feature.id], group_by: ['source'] });
      // 28 calls cost 10 × 0.5 + 18 × 0.25 + 1 = 10.5.
      expect(cost_analytics.map((item) => `${item.source} ${short(item)}`)).to.deep.equal([
        'other acme calls 5.25 14 1',
        'world acme calls 5.25 14 2',
        'world stranger calls 1 2 1',
      ]);
      expect(cost_analytics.map(points)).to.deep.equal([
        ['01-06 5.25 14 1'],
        ['01-03 3 8 1', '01-04 2.25 6 1'],
        ['01-05 1 2 1'],
      ]);
    });

    it('with a filter on properties: what passes, by the price alone', async () => {
      const asked = { ...JANUARY, external_customer_id: 'acme', property_filters: { n: ['8'] } };
      const { total_revenue, total_cost } = await ask(asked);
      expect([total_revenue, total_cost]).to.deep.equal(['8', '4']);
    });

    it('pages, and records where they are asked for', async () => {
      const { cost_analytics, pagination, total_cost } = await ask({
        ...JANUARY,
        limit: 1,
        offset: 1,
        expand: ['meter', 'price'],
      });
      expect(pagination).to.deep.equal({ total: 4, limit: 1, offset: 1, next_cursor: null });
      expect(cost_analytics[0]!.meter!.id).to.equal(cost_analytics[0]!.meter_id);
      expect(cost_analytics[0]!.price!.id).to.equal(cost_analytics[0]!.price_id);
      expect(total_cost).to.equal('11.727');
    });

    it('a price that follows another holds from then on, and the first for what was before', async () => {
      const { cost_analytics } = await ask({ ...JANUARY, external_customer_id: 'acme' });
      const peak = cost_analytics.find((item) => item.meter_name === 'peak');
      world.at('2026-01-12');
      await world.api.request('PUT', `/prices/${peak!.price_id}`, { body: { amount: '1' } });
      await world.send([world.event('acme', 'peak', { n: 2, at: at('13') })]);
      world.at('2026-01-14');
      await world.waitForPipeline();
      const after = await ask({ ...JANUARY, external_customer_id: 'acme' });
      const peaks = after.cost_analytics.filter((item) => item.meter_name === 'peak');
      expect(peaks.map(short)).to.deep.equal(['acme peak 2 2 1', 'acme peak 0.027 9 2']);
    });
  });

  describe('with fixed prices', () => {
    const FEBRUARY = { start_time: '2026-02-01T00:00:00Z', end_time: '2026-03-01T00:00:00Z' };
    let sheet: Costsheet;
    const fixedPrice = (amount: string, terms: object = {}) =>
      costPrice(sheet.id, 'calls', {
        type: 'FIXED',
        meter_id: null,
        amount,
        start_date: '2026-01-11T00:00:00Z',
        ...terms,
      });
    const fixedItems = ({ cost_analytics }: CostAnalytics) =>
      cost_analytics.filter(({ meter_id }) => meter_id === null).map(short);

    before(async () => {
      sheet = (await world.post('/costs', { name: 'With servers' })).costsheet;
      await costPrice(sheet.id, 'calls', { amount: '0.5' });
    });

    // 21 of the 31 days from 11 January to 11 February are in January: 310 × 21/31 = 210.
    it('each costs its share of its periods from its start on, as an item of nobody, in the totals of all', async () => {
      const without = (await ask(JANUARY)).total_cost;
      const server = await fixedPrice('310', { min_quantity: '2' });
      const { cost_analytics, total_cost, margin, total_revenue } = await ask(JANUARY);
      const { cost_by_period, ...item } = cost_analytics.find(({ meter_id }) => meter_id === null)!;
      expect(item).to.deep.include({
        total_cost: '420',
        price_id: server.id,
        external_customer_id: null,
        total_events: 0,
      });
      expect([item.customer_id, item.total_revenue, item.margin]).to.deep.equal([null, null, null]);
      expect([cost_by_period!.length, cost_by_period![0]!.timestamp, cost_by_period![0]!.cost]).to.deep.equal([
        21,
        '2026-01-11T00:00:00Z',
        '20',
      ]);
      expect(total(cost_by_period!.map(({ cost }) => cost))).to.equal('420');
      expect(total_cost).to.equal(total([without, '420']));
      expect(margin).to.equal(total([total_revenue, `-${total_cost}`]));
    });

    it('one that costs once costs it at its start, and nothing in the ranges beside it', async () => {
      await fixedPrice('99', {
        billing_period: 'ONETIME',
        invoice_cadence: 'ADVANCE',
        start_date: '2026-02-01T00:00:00Z',
      });
      expect(fixedItems(await ask(JANUARY))).to.deep.equal(['  420 1.35483870967741935483871 0']);
      expect(fixedItems(await ask(FEBRUARY))).to.include('  99 1 0');
    });

    it('one whose period has no end in the calendar is refused', async () => {
      const body = { entity_type: 'COSTSHEET', entity_id: sheet.id, currency: 'usd', type: 'FIXED', amount: '1' };
      const terms = { billing_model: 'FLAT_FEE', billing_period: 'ANNUAL', billing_period_count: 9_000 };
      const more = { billing_cadence: 'RECURRING', invoice_cadence: 'ARREAR', price_unit_type: 'FIAT' };
      const { status, text } = await world.api.request('POST', '/prices', { body: { ...body, ...terms, ...more } });
      expect([status, text.includes('billing_period')]).to.deep.equal([400, true]);
    });

    it('one that follows another goes on in its periods', async () => {
      const { price_id } = (await ask(JANUARY)).cost_analytics.filter(({ meter_id }) => meter_id === null)[0]!;
      world.at('2026-01-21');
      await world.api.request('PUT', `/prices/${price_id}`, { body: { amount: '620' } });
      // Of the same month 10 days at 2 × 310, and 11 in January at 2 × 620.
      const items = (await ask(JANUARY)).cost_analytics.filter(({ meter_id }) => meter_id === null);
      expect(items.map(({ total_cost }) => total_cost)).to.deep.equal(['440', '200']);
    });

    it('what is asked about one customer, a feature or a filter has none of them, and no group divides them', async () => {
      for (const asked of [
        { external_customer_id: 'acme' },
        { feature_ids: [feature.id] },
        { property_filters: { n: ['8'] } },
      ])
        expect(fixedItems(await ask({ ...JANUARY, ...asked })), JSON.stringify(asked)).to.deep.equal([]);
      const { cost_analytics } = await ask({ ...JANUARY, group_by: ['source'] });
      const items = cost_analytics.filter(({ meter_id }) => meter_id === null);
      expect(items.map(({ total_cost, source }) => [total_cost, source])).to.deep.equal([
        ['440', null],
        ['200', null],
      ]);
    });
  });

  it('says what is wrong with a question', async () => {
    for (const [body, field] of [
      [{ start_time: JANUARY.start_time }, 'end_time'],
      [{ end_time: JANUARY.end_time }, 'start_time'],
      [{ start_time: JANUARY.end_time, end_time: JANUARY.start_time }, 'end_time'],
      [{ ...JANUARY, expand: ['plan'] }, 'expand'],
      [{ ...JANUARY, limit: 0 }, 'limit'],
      [{ ...JANUARY, group_by: ['country'] }, 'group_by[0]'],
    ] as const)
      expect((await ask(body, 400)).message, JSON.stringify(body)).to.include(field);
    await ask({ ...JANUARY, external_customer_id: 'nobody' }, 404);
  });

  it('answers the same under its older name', async () => {
    const older = await world.api.request('POST', '/costs/analytics', { body: JANUARY });
    const { as_of: _a, ...said } = older.body;
    const { as_of: _b, ...same } = await ask(JANUARY);
    expect(said).to.deep.equal(same);
  });
});
