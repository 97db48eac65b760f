/** Windows and buckets of usage as they are answered over HTTP: every size, clock changes, anchors, totals. */
import { expect } from 'chai';
import { WINDOW_SIZES } from '../../../core/foundation/time/window.ts';
import { startWorld, type World } from '../../support/world.ts';

describe('events: windows of usage', () => {
  let world: World;

  const ask = async (meter: string, body: object) => {
    const answer = await world.api.request('POST', '/events/usage/meter', {
      body: { meter_id: world.id(`meter ${meter}`), external_customer_id: 'acme', ...body },
    });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.source).to.equal('buckets');
    return answer.body;
  };
  const results = async (meter: string, body: object): Promise<string[]> =>
    (await ask(meter, body)).results!.map((one) => `${one.window_size.replace(':00Z', 'Z')} ${one.value}`);

  // Each event doubles the one before, so that a sum says which events are in it. The first is on a Monday.
  const STEPS = [
    '2026-03-02T00:00:10Z',
    '2026-03-02T00:00:50Z',
    '2026-03-02T00:01:00Z',
    '2026-03-02T00:16:00Z',
    '2026-03-02T00:31:00Z',
    '2026-03-02T01:01:00Z',
    '2026-03-02T03:01:00Z',
    '2026-03-02T06:01:00Z',
    '2026-03-02T12:01:00Z',
    '2026-03-03T00:00:00Z',
    '2026-03-10T00:00:00Z',
    '2026-04-01T00:00:00Z',
  ];
  const YEAR = { start_time: '2026-01-01T00:00:00Z', end_time: '2027-01-01T00:00:00Z' };
  const ALL = 2 ** STEPS.length - 1;

  before(async () => {
    world = await startWorld({ now: '2026-12-31T00:00:00Z' });
    await world.meter('steps');
    for (const size of WINDOW_SIZES) {
      await world.meter(`max ${size}`, { type: 'MAX', field: 'n', bucket_size: size }, { event_name: 'steps' });
      await world.meter(`sum ${size}`, { type: 'SUM', field: 'n', bucket_size: size }, { event_name: 'steps' });
    }
    await world.meter('hours', { type: 'COUNT' });
    await world.meter('days');
    for (const type of ['AVG', 'COUNT_UNIQUE', 'LATEST', 'MAX', 'WEIGHTED_SUM', 'COUNT', 'SUM']) {
      await world.meter(`total ${type}`, { type, field: 'n' }, { event_name: 'total' });
    }
    const multiplied = { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.1' };
    await world.meter('total SUM_WITH_MULTIPLIER', multiplied, { event_name: 'total' });
    const grouped = { type: 'MAX', field: 'n', bucket_size: 'HOUR', group_by: 'host' };
    await world.meter('grouped', grouped);
    await world.send(STEPS.map((at, index) => world.event('acme', 'steps', { n: 2 ** index, at })));
    await world.send(hoursOf('2026-03-28T22:30:00Z', 25).map((at) => world.event('acme', 'hours', { n: 1, at })));
    await world.send(hoursOf('2026-10-24T21:30:00Z', 27).map((at) => world.event('acme', 'hours', { n: 1, at })));
    await world.waitForPipeline();
  });
  after(() => world.stop());

  describe('buckets of the meter: Σ over buckets of the greatest in each', () => {
    const IN_UTC: [size: (typeof WINDOW_SIZES)[number], lost: number][] = [
      // What is lost are the events that share a bucket with a greater one.
      ['MINUTE', 1],
      ['15MIN', 1 + 2],
      ['30MIN', 1 + 2 + 4],
      ['HOUR', 1 + 2 + 4 + 8],
      ['3HOUR', 31],
      ['6HOUR', 63],
      ['12HOUR', 127],
      ['DAY', 255],
      ['WEEK', 511],
      ['MONTH', 1023],
    ];
    for (const [size, lost] of IN_UTC) {
      it(`MAX and SUM by ${size}`, async () => {
        expect((await ask(`max ${size}`, YEAR)).value).to.equal(String(ALL - lost));
        expect((await ask(`sum ${size}`, YEAR)).value).to.equal(String(ALL));
      });
    }

    it('aligned to the clock of the timezone', async () => {
      // 00:00 UTC is 05:30 in Kolkata: 00:31 begins another hour, and belongs to 06:00 with 03:01.
      const timezone = 'Asia/Kolkata';
      expect((await ask('max HOUR', { ...YEAR, timezone })).value).to.equal(String(ALL - (1 + 2 + 4) - 16));
      expect((await ask('max 3HOUR', { ...YEAR, timezone })).value).to.equal(String(ALL - (1 + 2 + 4) - (16 + 32)));
    });

    it('a range that ends inside of a bucket has what is before its end', async () => {
      const end_time = '2026-03-02T00:16:00Z';
      expect((await ask('max DAY', { ...YEAR, end_time })).value).to.equal('4');
      const start_time = '2026-03-02T00:00:50Z';
      expect((await ask('max HOUR', { ...YEAR, start_time, end_time: '2026-03-02T00:31:00Z' })).value).to.equal('8');
    });
  });

  describe('windows that are asked for', () => {
    const WINDOWS: [size: string, count: number, first: string][] = [
      ['MINUTE', 11, '2026-03-02T00:00Z 3'],
      ['15MIN', 10, '2026-03-02T00:00Z 7'],
      ['30MIN', 9, '2026-03-02T00:00Z 15'],
      ['HOUR', 8, '2026-03-02T00:00Z 31'],
      ['3HOUR', 7, '2026-03-02T00:00Z 63'],
      ['6HOUR', 6, '2026-03-02T00:00Z 127'],
      ['12HOUR', 5, '2026-03-02T00:00Z 255'],
      ['DAY', 4, '2026-03-02T00:00Z 511'],
      ['WEEK', 3, '2026-03-02T00:00Z 1023'],
      ['MONTH', 2, '2026-03-01T00:00Z 2047'],
    ];
    const spring = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-05-01T00:00:00Z' };
    for (const [window_size, count, first] of WINDOWS) {
      it(`by ${window_size}`, async () => {
        // Two months have more minutes than are answered at once.
        const end_time = window_size === 'MINUTE' ? '2026-04-04T00:00:00Z' : spring.end_time;
        const windows = await results('steps', { ...spring, end_time, window_size });
        expect([windows.length, windows[0]]).to.deep.equal([count, first]);
      });
    }

    it('the end belongs to the next window', async () => {
      const range = { start_time: '2026-03-02T00:00:10Z', end_time: '2026-03-03T00:00:00Z' };
      expect(await results('steps', { ...range, window_size: 'DAY' })).to.deep.equal(['2026-03-02T00:00Z 511']);
    });

    it('weeks begin on Monday, also over the turn of a year', async () => {
      await sendDays(['2026-01-04T23:59:59Z', '2026-01-05T00:00:00Z', '2025-12-29T00:00:00Z', '2025-12-28T23:59:59Z']);
      const range = { start_time: '2025-12-20T00:00:00Z', end_time: '2026-01-12T00:00:00Z' };
      expect(await results('days', { ...range, window_size: 'WEEK' })).to.deep.equal([
        '2025-12-22T00:00Z 8',
        '2025-12-29T00:00Z 5',
        '2026-01-05T00:00Z 2',
      ]);
    });

    it('months begin on the day of the anchor, clamped to short months', async () => {
      await sendDays([
        '2026-02-27T23:59:59Z',
        '2026-02-28T00:00:00Z',
        '2026-03-30T23:59:59Z',
        '2026-03-31T00:00:00Z',
        '2026-04-29T23:59:59Z',
        '2026-04-30T00:00:00Z',
      ]);
      const range = { start_time: '2026-01-31T00:00:00Z', end_time: '2026-05-31T00:00:00Z' };
      const billing_anchor = '2026-01-31T15:00:00Z';
      expect(await results('days', { ...range, window_size: 'MONTH', billing_anchor })).to.deep.equal([
        '2026-01-31T00:00Z 1',
        '2026-02-28T00:00Z 6',
        '2026-03-31T00:00Z 24',
        '2026-04-30T00:00Z 32',
      ]);
    });

    const timezone = 'Europe/Berlin';
    it('the day on which the clock goes forward has 23 hours', async () => {
      const range = { start_time: '2026-03-28T22:00:00Z', end_time: '2026-03-29T23:00:00Z', timezone };
      expect(await results('hours', { ...range, window_size: 'DAY' })).to.deep.equal([
        '2026-03-27T23:00Z 1',
        '2026-03-28T23:00Z 23',
        '2026-03-29T22:00Z 1',
      ]);
      const quarters = await results('hours', { ...range, window_size: '6HOUR' });
      expect(quarters.slice(1, 4)).to.deep.equal(['2026-03-28T23:00Z 5', '2026-03-29T04:00Z 6', '2026-03-29T10:00Z 6']);
      expect((await results('hours', { ...range, window_size: 'HOUR' })).length).to.equal(25);
    });

    it('the day on which it goes back has 25', async () => {
      const range = { start_time: '2026-10-24T21:00:00Z', end_time: '2026-10-26T00:00:00Z', timezone };
      expect(await results('hours', { ...range, window_size: 'DAY' })).to.deep.equal([
        '2026-10-23T22:00Z 1',
        '2026-10-24T22:00Z 25',
        '2026-10-25T23:00Z 1',
      ]);
      const quarters = await results('hours', { ...range, window_size: '6HOUR' });
      expect(quarters.slice(1, 3)).to.deep.equal(['2026-10-24T22:00Z 7', '2026-10-25T05:00Z 6']);
      // 02:00 comes twice, and is two windows.
      expect((await results('hours', { ...range, window_size: 'HOUR' })).length).to.equal(27);
    });
  });

  describe('the total is that of the range and not of its windows', () => {
    const TOTALS: [type: string, value: string, windows: string[]][] = [
      ['COUNT', '4', ['3', '1']],
      ['SUM', '16', ['6', '10']],
      ['AVG', '4', ['2', '10']],
      ['COUNT_UNIQUE', '3', ['2', '1']],
      ['LATEST', '10', ['1', '10']],
      ['MAX', '10', ['4', '10']],
      ['SUM_WITH_MULTIPLIER', '1.6', ['0.6', '1']],
      // (1 × 48 h + 4 × 36 h + 1 × 30 h + 10 × 12 h) / 48 h
      ['WEIGHTED_SUM', '7.125', ['3.25', '5']],
    ];
    before(async () => {
      const [monday, tuesday] = ['2026-06-01', '2026-06-02'];
      await world.send([
        world.event('acme', 'total', { n: 1, at: `${monday}T00:00:00Z` }),
        world.event('acme', 'total', { n: 4, at: `${monday}T12:00:00Z` }),
        world.event('acme', 'total', { n: 1, at: `${monday}T18:00:00Z` }),
        world.event('acme', 'total', { n: 10, at: `${tuesday}T12:00:00Z` }),
      ]);
      await world.waitForPipeline();
    });
    for (const [type, value, windows] of TOTALS) {
      it(type, async () => {
        const range = { start_time: '2026-06-01T00:00:00Z', end_time: '2026-06-03T00:00:00Z' };
        const answer = await ask(`total ${type}`, { ...range, window_size: 'DAY' });
        expect(answer.value).to.equal(value);
        expect(answer.results!.map((one) => one.value)).to.deep.equal(windows);
      });
    }
  });

  it('MAX by group: per bucket the greatest of each group, added up', async () => {
    const of = (host: string, n: number, at: string) => ({
      ...world.event('acme', 'grouped', { n, at }),
      properties: { n, host },
    });
    await world.send([
      of('a', 3, '2026-07-01T10:00:00Z'),
      of('a', 5, '2026-07-01T10:59:59Z'),
      of('b', 7, '2026-07-01T10:30:00Z'),
      of('a', 1, '2026-07-01T11:00:00Z'),
      of('b', 2, '2026-07-01T23:00:00Z'),
    ]);
    await world.waitForPipeline();
    const range = { start_time: '2026-07-01T00:00:00Z', end_time: '2026-07-02T00:00:00Z' };
    expect((await ask('grouped', range)).value).to.equal('15');
    expect(await results('grouped', { ...range, window_size: '3HOUR' })).to.deep.equal([
      '2026-07-01T09:00Z 13',
      '2026-07-01T21:00Z 2',
    ]);
    // Cut at 10:30, which only raw events can tell: 5 and 7 are behind it.
    const cut = { ...range, end_time: '2026-07-01T10:30:00Z' };
    expect((await ask('grouped', cut)).value).to.equal('3');
  });

  /** Events of 1, 2, 4, … */
  async function sendDays(times: readonly string[]): Promise<void> {
    await world.send(times.map((at, index) => world.event('acme', 'days', { n: 2 ** index, at })));
    await world.waitForPipeline();
  }
});

function hoursOf(first: string, count: number): string[] {
  return Array.from({ length: count }, (_, hour) => new Date(Date.parse(first) + hour * 3_600_000).toISOString());
}
