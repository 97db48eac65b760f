/** The first and the last instants that an event may have: whatever is accepted is held by a range, and by its windows. */
import { expect } from 'chai';
import { startWorld, type World } from '../support/world.ts';

const FIRST = '1900-01-01T00:00:00Z';
const LAST = '2254-12-31T23:59:59.999999Z';
const ACCEPTED = [
  FIRST,
  '1900-01-01T00:00:00.000001Z',
  '1900-01-31T23:59:59.999999Z',
  '1969-12-31T23:59:59.999999Z',
  '1970-01-01T00:00:00Z',
  '2254-12-01T00:00:00Z',
  '2254-12-31T23:00:00Z',
  '2254-12-31T23:59:59.999998Z',
];
const REFUSED = [
  ['1899-12-31T23:59:59.999999Z', /years 1900 and 2254/],
  [LAST, /before the last microsecond of 2254/],
  ['2254-12-31T23:59:59.999999999Z', /before the last microsecond of 2254/],
  ['2255-01-01T01:00:00+01:00', /years 1900 and 2254/],
  ['2255-01-01T00:59:59.999999+01:00', /before the last microsecond of 2254/],
  ['2255-01-01T00:00:00Z', /years 1900 and 2254/],
] as const;
const ZONES = ['UTC', 'Pacific/Kiritimati', 'America/New_York', 'Asia/Kolkata'];

describe('events at the ends of time', () => {
  let world: World;
  const event = (timestamp: string, index: number) => ({
    event_id: `e${index}`,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp,
    properties: { n: 1 },
  });
  const usage = async (body: object) => {
    const path = '/events/usage/meter';
    const answer = await world.api.request('POST', path, { body: { meter_id: world.id('meter calls'), ...body } });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };

  before(async () => {
    world = await startWorld({ now: '2026-04-01T00:00:00Z' });
    await world.meter('calls', { type: 'SUM', field: 'n' }, { event_name: 'call' });
    await world.post('/customers', { external_id: 'acme' });
    await world.send(ACCEPTED.map(event));
    await world.waitForPipeline();
  });
  after(() => world.stop());

  for (const [timestamp, why] of REFUSED) {
    it(`${timestamp} is refused, alone and in a bulk`, async () => {
      const alone = await world.api.request('POST', '/events', { body: event(timestamp, 99) });
      const bulk = await world.api.request('POST', '/events/bulk', { body: { events: [event(timestamp, 99)] } });
      for (const answer of [alone, bulk]) {
        expect(answer.status).to.equal(400);
        expect(answer.body.error!.message)
          .to.match(/timestamp/)
          .and.match(why);
      }
    });
  }

  it('are all held by the longest range, and each by one that ends behind it', async () => {
    expect((await usage({ start_time: FIRST, end_time: LAST })).value).to.equal('8');
    for (const [index, start_time] of ACCEPTED.entries()) {
      const end_time = ACCEPTED[index + 1] ?? LAST;
      expect((await usage({ start_time, end_time })).value, start_time).to.equal('1');
    }
  });

  it('are all held by the windows of such a range, on every clock', async () => {
    const ranges = [
      [FIRST, '1900-02-02T00:00:00Z', 3],
      ['2254-11-30T00:00:00Z', LAST, 3],
    ] as const;
    for (const timezone of ZONES) {
      for (const window_size of ['HOUR', '3HOUR', 'DAY', 'WEEK', 'MONTH']) {
        for (const [start_time, end_time, count] of ranges) {
          const { results } = await usage({ start_time, end_time, window_size, timezone });
          const sum = results!.reduce((all: number, { value }: { value: string }) => all + Number(value), 0);
          expect(sum, `${window_size} ${timezone} from ${start_time}`).to.equal(count);
        }
      }
    }
  });
});
