/** POST /events/usage, POST /events/usage/meter, POST /meter-usage/… and GET /events/monitoring. */
import { expect } from 'chai';
import type { Usage } from '../../support/answers.ts';
import { startWorld, type World } from '../../support/world.ts';

describe('events: usage', () => {
  let world: World;
  const post = <Path extends string>(path: Path, body: object) => world.api.request('POST', path, { body });
  const ask = (body: object) => post('/events/usage', { event_name: 'call', ...body });
  const byMeter = (body: object) => post('/events/usage/meter', { meter_id: world.id('meter calls'), ...body });
  const told = ({ value, event_count, source }: Usage) => `${value} ${event_count} ${source}`;

  before(async () => {
    world = await startWorld({ now: '2026-04-01T00:00:00Z' });
    await world.meter('calls', { type: 'SUM', field: 'n' }, { event_name: 'call' });
    await world.meter('peaks', { type: 'MAX', field: 'n', bucket_size: 'DAY' }, { event_name: 'call' });
    const filters = [{ key: 'host', values: ['a', 'b'] }];
    await world.meter('filtered', { type: 'COUNT_UNIQUE', field: 'host' }, { event_name: 'call', filters });
    await world.post('/customers', { external_id: 'acme' });
    await world.send(
      [
        ['2026-03-28T22:59:59.999999Z', '1.5', 'a', 'acme'],
        ['2026-03-28T23:00:00Z', 2, 'b', 'acme'], // midnight in Berlin
        ['2026-03-29T21:59:59Z', 3, 'a', 'acme'],
        ['2026-03-29T22:00:00Z', '4', 'c', 'acme'], // the next midnight, an hour early
        ['2026-03-30T10:00:00Z', 1e3, 'a', 'globex'],
        ['2026-03-30T10:00:00Z', 'many', 'a', 'globex'], // not usable where a number is needed
      ].map(([timestamp, n, host, external_customer_id], index) => ({
        event_id: `e${index}`,
        event_name: ' call ',
        external_customer_id,
        timestamp,
        properties: { n, host },
      })),
    );
    await world.waitForPipeline();
  });
  after(() => world.stop());

  describe('POST /events/usage: 200', () => {
    const QUESTIONS: [body: object, expected: string][] = [
      [{ aggregation_type: 'sum', property_name: 'n' }, '1010.5 5 buckets'],
      [{ aggregation_type: 'SUM', property_name: 'n', external_customer_id: 'acme' }, '10.5 4 buckets'],
      [{ aggregation_type: 'Count' }, '6 6 raw'],
      [{ aggregation_type: 'COUNT', property_name: 'n' }, '6 6 raw'],
      [{ aggregation_type: 'AVG', property_name: 'n', external_customer_id: 'acme' }, '2.625 4 raw'],
      [{ aggregation_type: 'AVG', property_name: 'n', external_customer_id: 'nobody' }, '0 0 raw'],
      [{ aggregation_type: 'MAX', property_name: 'n', external_customer_id: 'acme' }, '4 4 raw'],
      [{ aggregation_type: 'LATEST', property_name: 'n', external_customer_id: 'acme' }, '4 4 raw'],
      [{ aggregation_type: 'COUNT_UNIQUE', property_name: 'host' }, '3 6 raw'],
      [{ aggregation_type: 'COUNT_UNIQUE', property_name: 'host', filters: { host: ['b', 'a'] } }, '2 5 buckets'],
      [{ aggregation_type: 'SUM_WITH_MULTIPLIER', property_name: 'n', multiplier: 0.5 }, '505.25 5 raw'],
      [{ aggregation_type: 'SUM_WITH_MULTIPLIER', property_name: 'n', multiplier: '0.1' }, '101.05 5 raw'],
      [
        { aggregation_type: 'MAX', property_name: 'n', bucket_size: 'day', external_customer_id: 'acme' },
        '6 4 buckets',
      ],
      [
        {
          aggregation_type: 'MAX',
          property_name: 'n',
          bucket_size: 'DAY',
          group_by_property: 'host',
          external_customer_id: 'acme',
        },
        '10.5 4 raw', // a 1.5 and b 2 on the 28th, a 3 and c 4 on the 29th
      ],
      [{ aggregation_type: 'SUM', expression: 'n * 2.0', external_customer_id: 'acme' }, '21 4 raw'],
      [
        {
          aggregation_type: 'WEIGHTED_SUM',
          property_name: 'n',
          external_customer_id: 'acme',
          start_time: '2026-03-29T20:00:00Z',
          end_time: '2026-03-30T00:00:00Z',
        },
        // 3 × 7201 s / 14400 s + 4 × 7200 s / 14400 s
        '3.500208333333333333333333 2 raw',
      ],
      [
        {
          aggregation_type: 'SUM',
          property_name: 'n',
          start_time: '2026-03-28T23:00:00Z',
          end_time: '2026-03-29T22:00:00Z',
        },
        '5 2 buckets',
      ],
      [
        {
          aggregation_type: 'SUM',
          property_name: 'n',
          start_time: '2026-03-28T22:59:59.999999Z',
          end_time: '2026-03-29T22:00:00.000001Z',
        },
        '10.5 4 buckets',
      ],
    ];
    for (const [body, expected] of QUESTIONS) {
      it(JSON.stringify(body), async () => {
        const answer = await ask(body);
        expect(answer.status, answer.text).to.equal(200);
        expect(told(answer.body)).to.equal(expected);
        expect(answer.body.event_name).to.equal('call');
        expect(answer.body.results).to.equal(null);
      });
    }

    it('windows on the clock of a timezone; their first may begin before the range', async () => {
      const zoned = { timezone: 'Europe/Berlin', window_size: 'day', start_time: '2026-03-28T12:00:00Z' };
      const { body } = await ask({
        aggregation_type: 'SUM',
        property_name: 'n',
        external_customer_id: 'acme',
        ...zoned,
      });
      expect(body.results).to.deep.equal([
        { window_size: '2026-03-27T23:00:00Z', value: '1.5' },
        { window_size: '2026-03-28T23:00:00Z', value: '5' },
        { window_size: '2026-03-29T22:00:00Z', value: '4' },
      ]);
      expect(body).to.include({ value: '10.5', type: 'SUM', as_of: '2026-04-01T00:00:00Z' });
    });

    it('windows from the first event on where no range is given', async () => {
      const hours = (await ask({ aggregation_type: 'SUM', property_name: 'n', window_size: 'MINUTE' })).body;
      expect(hours.results!.map(({ value }) => value)).to.deep.equal(['1.5', '2', '3', '4', '1000']);
      const nobody = {
        aggregation_type: 'SUM',
        property_name: 'n',
        window_size: 'HOUR',
        external_customer_id: 'nobody',
      };
      expect((await ask(nobody)).body).to.deep.include({ results: [], value: '0' });
    });

    it('months from the day of the billing anchor', async () => {
      const body = {
        aggregation_type: 'SUM',
        property_name: 'n',
        window_size: 'MONTH',
        billing_anchor: '2026-01-29T12:00:00Z',
      };
      const { results } = (await ask({ ...body, external_customer_id: 'acme' })).body;
      expect(results).to.deep.equal([
        { window_size: '2026-02-28T00:00:00Z', value: '3.5' },
        { window_size: '2026-03-29T00:00:00Z', value: '7' },
      ]);
    });

    it('by customer_id', async () => {
      const { id } = (await world.get('/customers?external_id=acme')).items[0]!;
      const answer = await ask({ aggregation_type: 'SUM', property_name: 'n', customer_id: id });
      expect(told(answer.body)).to.equal('10.5 4 buckets');
    });
  });

  describe('POST /events/usage: 400 and 404', () => {
    const sum = { aggregation_type: 'SUM', property_name: 'n' };
    const BAD: [body: object, field: string][] = [
      [{}, 'aggregation_type'],
      [{ aggregation_type: 'MEDIAN' }, 'aggregation_type'],
      [{ ...sum, event_name: ' ' }, 'event_name'],
      [{ ...sum, event_name: undefined }, 'event_name'],
      [{ aggregation_type: 'SUM' }, 'property_name'],
      [{ ...sum, multiplier: '2' }, 'multiplier'],
      [{ aggregation_type: 'SUM_WITH_MULTIPLIER', property_name: 'n' }, 'multiplier'],
      [{ aggregation_type: 'SUM_WITH_MULTIPLIER', property_name: 'n', multiplier: '0' }, 'multiplier'],
      [{ aggregation_type: 'AVG', property_name: 'n', bucket_size: 'DAY' }, 'bucket_size'],
      [{ ...sum, group_by: ['host'] }, 'group_by'],
      [{ ...sum, group_by: ['a', 'b'] }, 'group_by'],
      [{ ...sum, window_size: 'YEAR' }, 'window_size'],
      [{ ...sum, window_size: 'MINUTE', start_time: '2020-01-01T00:00:00Z' }, 'window_size'],
      [{ ...sum, bucket_size: '3HOUR', start_time: '1900-01-01T00:00:00Z' }, 'bucket_size'],
      [{ ...sum, bucket_size: 'HOUR', timezone: 'Asia/Kolkata', start_time: '1900-01-01T00:00:00Z' }, 'bucket_size'],
      [{ ...sum, timezone: '+02:00' }, 'timezone'],
      [{ ...sum, start_time: '2026-03-01' }, 'start_time'],
      [{ ...sum, start_time: '2026-03-01T00:00:00Z', end_time: '2026-03-01T00:00:00Z' }, 'end_time'],
      [{ ...sum, start_time: '2026-05-01T00:00:00Z' }, 'end_time'],
      [{ ...sum, filters: { host: 'a' } }, 'filters'],
      [{ aggregation_type: 'WEIGHTED_SUM', property_name: 'n' }, 'start_time'],
      [{ aggregation_type: 'SUM', expression: '1 +' }, 'expression'],
    ];
    for (const [body, field] of BAD) {
      it(JSON.stringify(body), async () => {
        const answer = await ask(body);
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.message).to.contain(field);
      });
    }

    it('404 for a customer_id that is nobody’s', async () => {
      expect((await ask({ ...sum, customer_id: 'cust_none' })).status).to.equal(404);
    });
  });

  describe('POST /events/usage/meter', () => {
    const QUESTIONS: [body: object, expected: string][] = [
      [{}, '1010.5 5 buckets'],
      [{ external_customer_id: 'globex' }, '1000 1 buckets'],
      [{ filters: { host: ['a'] } }, '1004.5 3 raw'],
      [{ filters: { n: ['1000', '3'] } }, '1003 2 raw'],
      [{ filters: {} }, '1010.5 5 buckets'],
      [{ bucket_size: 'HOUR' }, '1010.5 5 raw'],
    ];
    for (const [body, expected] of QUESTIONS) {
      it(`200: ${JSON.stringify(body)}`, async () => {
        const answer = await byMeter(body);
        expect(answer.status, answer.text).to.equal(200);
        expect(told(answer.body)).to.equal(expected);
      });
    }

    it('a window is never finer than the meter’s buckets', async () => {
      const answer = await byMeter({
        meter_id: world.id('meter peaks'),
        window_size: 'HOUR',
        external_customer_id: 'acme',
        start_time: '2026-03-01T00:00:00Z',
      });
      expect(answer.body.results, answer.text).to.deep.equal([
        { window_size: '2026-03-28T00:00:00Z', value: '2' },
        { window_size: '2026-03-29T00:00:00Z', value: '4' },
      ]);
      expect(answer.body.value).to.equal('6');
    });

    it('404 for an unknown meter, and for another tenant’s', async () => {
      expect((await byMeter({ meter_id: 'meter_none' })).status).to.equal(404);
      const { key } = await world.api.otherTenant();
      const body = { meter_id: world.id('meter calls') };
      expect((await world.api.request('POST', '/events/usage/meter', { body, key })).status).to.equal(404);
    });

    it('400 without a meter, and for buckets that the meter cannot have', async () => {
      expect((await byMeter({ meter_id: '' })).status).to.equal(400);
      expect((await byMeter({ meter_id: world.id('meter filtered'), bucket_size: 'DAY' })).status).to.equal(400);
    });
  });

  describe('POST /meter-usage', () => {
    const march = {
      external_customer_id: 'acme',
      start_time: '2026-03-01T00:00:00Z',
      end_time: '2026-04-01T00:00:00Z',
    };

    it('query: the meter’s own aggregation, and another', async () => {
      const meter_id = world.id('meter calls');
      const own = await post('/meter-usage/query', { ...march, meter_id, aggregation_type: 'SUM', window_size: 'DAY' });
      expect(own.status, own.text).to.equal(200);
      expect(own.body).to.deep.equal({
        meter_id,
        aggregation_type: 'SUM',
        total_value: '10.5',
        event_count: 4,
        points: [
          { timestamp: '2026-03-28T00:00:00Z', value: '3.5', event_count: 2 },
          { timestamp: '2026-03-29T00:00:00Z', value: '7', event_count: 2 },
        ],
        as_of: '2026-04-01T00:00:00Z',
        source: 'buckets',
      });
      const other = await post('/meter-usage/query', { ...march, meter_id, aggregation_type: 'max' });
      expect(other.body).to.include({ aggregation_type: 'MAX', total_value: '4', points: null, source: 'raw' });
    });

    it('analytics: several meters, in the order asked for', async () => {
      const meter_ids = [world.id('meter peaks'), world.id('meter calls')];
      const { body } = await post('/meter-usage/analytics', { ...march, meter_ids, aggregation_type: 'MAX' });
      expect(body.items.map((one) => [one.meter_id, one.total_value])).to.deep.equal([
        [meter_ids[0], '6'],
        [meter_ids[1], '4'],
      ]);
    });

    const BAD: [body: object, status: number, field: string][] = [
      [{ meter_id: 'meter_none' }, 404, 'meter_none'],
      [{ meter_id: undefined }, 400, 'meter_id'],
      [{ external_customer_id: '' }, 400, 'external_customer_id'],
      [{ start_time: undefined }, 400, 'start_time'],
      [{ end_time: '2026-03-01T00:00:00Z' }, 400, 'end_time'],
      [{ aggregation_type: undefined }, 400, 'aggregation_type'],
      [{ aggregation_type: 'SUM_WITH_MULTIPLIER' }, 400, 'multiplier'],
      [{ window_size: 'SECOND' }, 400, 'window_size'],
    ];
    for (const [change, status, field] of BAD) {
      it(`query ${status}: ${JSON.stringify(change)}`, async () => {
        const body = { ...march, meter_id: world.id('meter calls'), aggregation_type: 'SUM', ...change };
        const answer = await post('/meter-usage/query', body);
        expect(answer.status, answer.text).to.equal(status);
        expect(answer.body.message).to.contain(field);
      });
    }

    it('analytics 400 without meters', async () => {
      expect(
        (await post('/meter-usage/analytics', { ...march, meter_ids: [], aggregation_type: 'SUM' })).status,
      ).to.equal(400);
    });
  });

  describe('GET /events/monitoring', () => {
    const get = (query: '' | `?${string}`) => world.api.request('GET', `/events/monitoring${query}`);

    it('the last day when no range is given', async () => {
      world.at('2026-03-30T11:00:00Z');
      const { body } = await get('');
      expect(body).to.deep.equal({ total_count: 4, consumption_lag: 0, post_processing_lag: 0, points: null });
      world.at('2026-04-01');
    });

    it('points by window', async () => {
      const { body } = await get('?start_time=2026-03-28T00:00:00Z&end_time=2026-03-30T00:00:00Z&window_size=day');
      expect(body.total_count).to.equal(4);
      expect(body.points).to.deep.equal([
        { timestamp: '2026-03-28T00:00:00Z', event_count: 2 },
        { timestamp: '2026-03-29T00:00:00Z', event_count: 2 },
      ]);
    });

    for (const query of [
      'start_time=2026-03-28T00:00:00Z',
      'end_time=2026-03-28T00:00:00Z',
      'start_time=x&end_time=y',
      'window_size=x',
    ])
      it(`400: ?${query}`, async () => {
        expect((await get(`?${query}`)).status).to.equal(400);
      });
  });
});
