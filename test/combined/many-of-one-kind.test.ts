/** Meters, prices, windows and large events, as many as may be of each: what is answered, and what is refused. */
import { expect } from 'chai';
import { EVENT_NAME_COST_MAX } from '../../core/metering/meter-cost.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { csvRecords } from '../support/csv-records.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const MARCH = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-04-01T00:00:00Z' };

describe('many of one kind', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-04-01T00:00:00Z' });
    await world.customer('acme');
  });
  after(() => world.stop());

  const post = <Path extends string>(path: Path, body: object) => world.api.request('POST', path, { body });
  const countMeter = (event_name: string) =>
    post('/meters', { name: event_name, event_name, aggregation: { type: 'COUNT' } });
  const countMeters = async (event_name: string, count: number) => {
    const ids: string[] = [];
    while (ids.length < count) ids.push((await countMeter(event_name)).body.id);
    return ids;
  };
  const analytics = (meter_ids: readonly string[], fields: object = {}) => {
    const asked = { external_customer_id: 'acme', meter_ids, aggregation_type: 'COUNT' };
    return post('/meter-usage/analytics', { ...asked, ...MARCH, ...fields });
  };

  it('windows: 400 for more than an answer may be made of, whether or not events are in them', async () => {
    const meter_ids = await countMeters('many', 12);
    const refused = await analytics(meter_ids, { window_size: 'MINUTE' });
    expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'window_size']);
    for (const [window_size, ids] of [
      ['HOUR', meter_ids],
      ['MINUTE', meter_ids.slice(0, 2)],
    ] as const) {
      const { status, body } = await analytics(ids, { window_size });
      expect([status, body.items?.length]).to.deep.equal([200, ids.length]);
    }
    await world.waitForPipeline();
  });

  it('meters in one question: the store is asked about many at once', async () => {
    const meter_ids = await countMeters('few', 32);
    await world.waitForPipeline();
    await world.send([world.event('acme', 'few', { n: 1, at: '2026-03-05T10:00:00Z' })]);
    await world.waitForPipeline();
    const { clickhouse } = world.api.services;
    const ask = clickhouse.query.bind(clickhouse);
    let asked = 0;
    clickhouse.query = ((params: Parameters<typeof ask>[0]) => {
      asked++;
      return ask(params);
    }) as typeof clickhouse.query;
    try {
      const { body } = await analytics(meter_ids);
      const answers = body.items.map((one) => [one.meter_id, one.total_value, one.source]);
      expect(answers).to.deep.equal(meter_ids.map((id) => [id, '1', 'buckets']));
      expect(asked).to.be.within(1, 4);
    } finally {
      clickhouse.query = ask;
    }
  });

  it('large events: a page ends before its properties are too long to be sent, and the next goes on behind it', async () => {
    const text = 'x'.repeat(3 * 1024 * 1024);
    await world.send(
      Array.from({ length: 5 }, (_, i) => ({
        event_id: `large-${i}`,
        event_name: 'large',
        external_customer_id: 'acme',
        timestamp: `2026-02-10T00:00:0${i}Z`,
        properties: { text, tier: 'gold' },
      })),
    );
    await world.waitForPipeline();
    const ids = ({ body }: { body: { events: { id: string }[] } }) => body.events.map(({ id }) => id).join(' ');
    for (const property_filters of [undefined, { tier: ['gold'] }]) {
      const range = { event_name: 'large', order: 'asc', property_filters };
      const first = await post('/events/query', range);
      expect(ids(first)).to.equal('large-0 large-1 large-2');
      expect(first.body.has_more).to.equal(true);
      const second = await post('/events/query', { ...range, iter_last_key: first.body.iter_last_key });
      expect(ids(second)).to.equal('large-3 large-4');
      expect(second.body.has_more).to.equal(false);
      expect(ids(await post('/events/query', { ...range, offset: 3 }))).to.equal('large-3 large-4');
    }
  });

  it('prices: 400 invalid_operation beyond 5,000 active ones of one plan; those that ended do not count', async () => {
    await world.plan('Large', []);
    const row = await world.price('Large', fixed('1'));
    await world.api.services.postgres.raw(
      `insert into prices select (jsonb_populate_record(prices, jsonb_build_object('id', 'price_' || n))).*
         from prices, generate_series(1, 4998) n where prices.id = ?`,
      [row.id],
    );
    const { id: _id, ...terms } = { ...fixed('1'), id: null };
    const one = {
      entity_type: 'PLAN',
      entity_id: world.id('plan Large'),
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      price_unit_type: 'FIAT',
      ...terms,
    };
    const bulk = () => post('/prices/bulk', { items: [one, one] });
    const refused = await bulk();
    expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_operation']);
    await world.api.request('DELETE', `/prices/${row.id}`, { body: {} });
    expect((await bulk()).status).to.equal(201);
    expect((await post('/prices', one)).status).to.equal(400);
  });
});

describe('many meters of one event name', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('400 for one more when they cost enough, and another name is free', async () => {
    const other = await api.otherTenant();
    // test/core/metering/meter-cost.test.ts counts how many meters without filters fit.
    const filters = Array.from({ length: 95 }, (_, index) => ({ key: `k${index}`, values: ['v'] }));
    const create = (event_name: string, key = api.key) =>
      api.request('POST', '/meters', { body: { name: 'm', event_name, aggregation: { type: 'COUNT' }, filters }, key });
    let made = 0;
    let answer = await create('crowded');
    while (answer.status === 201) {
      made++;
      answer = await create('crowded');
    }
    expect(made).to.equal(EVENT_NAME_COST_MAX / 100);
    const { code, details, message } = answer.body;
    expect([answer.status, code, details?.field]).to.deep.equal([400, 'validation_error', 'event_name']);
    expect(message).to.contain(`at most ${EVENT_NAME_COST_MAX} are allowed`);
    expect((await create('another')).status).to.equal(201);
    expect((await create('crowded', other.key)).status).to.equal(201);
    // An archived one costs nothing any more.
    const { body } = await api.request('GET', '/meters?event_name=crowded&limit=1');
    await api.request('DELETE', `/meters/${body.items[0]!.id}`);
    expect((await create('crowded')).status).to.equal(201);
  });
});

describe('a meter that nothing bills and that has no feature', () => {
  it('is in analytics under its own name, of few meters and of many', async () => {
    const bare = await startWorld({ now: '2026-03-01T00:00:00Z' });
    try {
      await bare.meter('tokens');
      await bare.meter('unseen');
      await bare.plan('Pro', [usage('tokens', '1')]);
      await bare.subscribe('acme', 'Pro');
      await bare.post('/customers', { external_id: 'guest', name: 'Guest' });
      bare.at('2026-03-20');
      await bare.send(
        ['acme', 'guest'].map((customer) => bare.event(customer, 'tokens', { n: 3, at: '2026-03-02T10:00:00Z' })),
      );
      const asked = { external_customer_ids: ['acme', 'guest'], ...MARCH };
      const shown = async () => {
        await bare.waitForPipeline();
        const { items } = await bare.post('/events/analytics', asked);
        return items.map((one) =>
          [one.external_customer_id, one.feature_id, one.total_usage, one.total_cost, one.price_id === null].join(' '),
        );
      };
      expect(await shown()).to.deep.equal(['acme  3 3 false', 'guest  3 0 true']);
      const range = new URLSearchParams({ ...MARCH, end_time: '2026-03-20T00:00:00Z' });
      const answer = await bare.api.request('GET', `/exports/usage_analytics?${range}`);
      const records = csvRecords(answer.text);
      expect(
        records.map((one) => [one.customer_external_id, one.feature_name, one.total_usage, one.total_cost]),
      ).to.deep.equal([
        ['acme', 'tokens', '3', '3'],
        ['guest', 'tokens', '3', '0'],
      ]);
      for (let count = 0; count < 25; count++) await bare.meter(`more ${count}`);
      expect(await shown()).to.deep.equal(['acme  3 3 false', 'guest  3 0 true']);
    } finally {
      await bare.stop();
    }
  });
});
