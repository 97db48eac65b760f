import { expect } from 'chai';
import fc from 'fast-check';
import { formatMs } from '../../../../core/foundation/time/instant.ts';
import {
  listWindows,
  WINDOW_SIZES,
  type WindowSize,
  windowAt,
  windowStart,
  windowStarts,
} from '../../../../core/foundation/time/window.ts';
import { toLocalMs } from '../../../../core/foundation/time/zone.ts';
import { measureCpuMs } from '../../../support/cpu-time.ts';
import { samples } from '../../../support/samples.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ZONES = [
  'UTC',
  'America/New_York',
  'America/St_Johns',
  'America/Havana',
  'America/Santiago',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Chatham',
  'Africa/Casablanca',
  'Europe/Berlin',
];

describe('windowStart', () => {
  const rows: [WindowSize, string, string, string][] = [
    ['MINUTE', 'UTC', '2024-05-05T10:20:59.999Z', '2024-05-05T10:20:00Z'],
    ['30MIN', 'Asia/Kathmandu', '2024-05-05T10:20:00Z', '2024-05-05T10:15:00Z'],
    ['HOUR', 'Asia/Kolkata', '2024-05-05T10:20:00Z', '2024-05-05T09:30:00Z'],
    ['3HOUR', 'America/New_York', '2024-01-10T04:59:59Z', '2024-01-10T02:00:00Z'],
    ['6HOUR', 'UTC', '2024-01-10T06:00:00Z', '2024-01-10T06:00:00Z'],
    ['DAY', 'America/New_York', '2024-03-11T03:59:00Z', '2024-03-10T05:00:00Z'],
    ['DAY', 'Asia/Kathmandu', '2024-03-10T18:15:00Z', '2024-03-10T18:15:00Z'],
    ['DAY', 'America/Santiago', '2024-09-08T12:00:00Z', '2024-09-08T04:00:00Z'],
    ['WEEK', 'UTC', '2024-03-31T23:59:59Z', '2024-03-25T00:00:00Z'],
    ['WEEK', 'UTC', '1969-12-31T00:00:00Z', '1969-12-29T00:00:00Z'],
    ['WEEK', 'Europe/Berlin', '2024-03-31T22:00:00Z', '2024-03-31T22:00:00Z'],
    ['MONTH', 'America/New_York', '2024-04-01T03:59:59Z', '2024-03-01T05:00:00Z'],
  ];
  for (const [size, timezone, instant, start] of rows)
    it(`${size} in ${timezone} at ${instant} starts ${start}`, () => {
      expect(windowStart(Date.parse(instant), size, { timezone })).to.equal(Date.parse(start));
    });
});

describe('windows over a clock change', () => {
  const count = (size: WindowSize, timezone: string, from: string, to: string) =>
    windowStarts(Date.parse(from), Date.parse(to), size, { timezone }).length;

  it('a day has 23 or 25 hours, and four windows of 6HOUR', () => {
    expect(count('HOUR', 'America/New_York', '2024-03-10T05:00Z', '2024-03-11T04:00Z')).to.equal(23);
    expect(count('HOUR', 'America/New_York', '2024-11-03T04:00Z', '2024-11-04T05:00Z')).to.equal(25);
    expect(count('6HOUR', 'America/New_York', '2024-03-10T05:00Z', '2024-03-11T04:00Z')).to.equal(4);
    expect(count('6HOUR', 'America/New_York', '2024-11-03T04:00Z', '2024-11-04T05:00Z')).to.equal(4);
    expect(count('DAY', 'America/New_York', '2024-11-03T04:00Z', '2024-11-05T05:00Z')).to.equal(2);
  });

  it('3HOUR windows start when the clock shows 00, 03, 06 …', () => {
    const starts = windowStarts(Date.parse('2024-03-30T23:00Z'), Date.parse('2024-03-31T07:00Z'), '3HOUR', {
      timezone: 'Europe/Berlin',
    });
    expect(starts.map(formatMs)).to.deep.equal([
      '2024-03-30T23:00:00.000Z',
      '2024-03-31T01:00:00.000Z',
      '2024-03-31T04:00:00.000Z',
    ]);
  });

  it('a change of half an hour cuts the hour window that it falls in', () => {
    const windows = listWindows(Date.parse('2024-04-06T14:00Z'), Date.parse('2024-04-06T16:30Z'), 'HOUR', {
      timezone: 'Australia/Lord_Howe',
    });
    expect(windows.map(({ start, end }) => (end - start) / 60_000)).to.deep.equal([60, 30, 60]);
    expect(formatMs(windows[1]!.start)).to.equal('2024-04-06T15:00:00.000Z');
  });

  it('a day that does not exist has no window', () => {
    const starts = windowStarts(Date.parse('2011-12-29T10:00Z'), Date.parse('2012-01-01T10:00Z'), 'DAY', {
      timezone: 'Pacific/Apia',
    });
    expect(starts.map(formatMs)).to.deep.equal([
      '2011-12-29T10:00:00.000Z',
      '2011-12-30T10:00:00.000Z',
      '2011-12-31T10:00:00.000Z',
    ]);
  });
});

describe('MONTH windows on an anchor', () => {
  const starts = (anchor: string, from: string, to: string, timezone = 'UTC') =>
    windowStarts(Date.parse(from), Date.parse(to), 'MONTH', { timezone, billing_anchor: Date.parse(anchor) }).map(
      formatMs,
    );

  it('clamp to the end of short months and come back', () => {
    expect(starts('2023-08-30T09:30:00Z', '2024-01-30T00:00:00Z', '2024-04-01T00:00:00Z')).to.deep.equal([
      '2024-01-30T00:00:00.000Z',
      '2024-02-29T00:00:00.000Z',
      '2024-03-30T00:00:00.000Z',
    ]);
  });

  it('take the day of the month that the local clock shows', () => {
    expect(
      starts('2024-01-31T20:00:00Z', '2024-05-10T00:00:00Z', '2024-05-11T00:00:00Z', 'Asia/Kolkata'),
    ).to.deep.equal(['2024-04-30T18:30:00.000Z']);
  });
});

describe('windows tile time', () => {
  const instants = fc.integer({ min: Date.UTC(1975, 0), max: Date.UTC(2040, 0) });
  const grids = fc.record({
    timezone: fc.constantFrom(...ZONES),
    billing_anchor: fc.option(instants),
  });
  const sizes = fc.constantFrom(...WINDOW_SIZES);

  it('each instant lies in its window, and every instant of a window has the same one', () => {
    fc.assert(
      fc.property(instants, sizes, grids, fc.double({ min: 0, max: 1, noNaN: true }), (instant, size, grid, share) => {
        const window = windowAt(instant, size, grid);
        expect(window.start <= instant && instant < window.end).to.equal(true);
        const inside = Math.min(window.end - 1, window.start + Math.floor((window.end - window.start) * share));
        for (const at of [window.start, inside, window.end - 1]) expect(windowAt(at, size, grid)).to.deep.equal(window);
        expect(windowStart(window.end, size, grid)).to.equal(window.end);
      }),
      { numRuns: samples(2000) },
    );
  });

  it('the windows of a range follow one another without gap or overlap', () => {
    const spans: Record<string, number> = { DAY: 400 * DAY, WEEK: 900 * DAY, MONTH: 2000 * DAY };
    fc.assert(
      fc.property(instants, sizes, grids, fc.double({ min: 0, max: 1, noNaN: true }), (from, size, grid, share) => {
        const to = from + Math.floor(share * (spans[size] ?? 4 * DAY));
        const windows = listWindows(from, to, size, grid);
        windows.forEach((window, index) => {
          expect(window.start).to.be.lessThan(window.end);
          if (index > 0) expect(window.start).to.equal(windows[index - 1]!.end);
        });
        if (to > from) {
          expect(windows[0]!.start <= from && from < windows[0]!.end).to.equal(true);
          expect(windows.at(-1)!.start < to && to <= windows.at(-1)!.end).to.equal(true);
        } else expect(windows).to.be.empty;
      }),
      { numRuns: samples(300) },
    );
  });

  it('windows of a day and more start at the first instant of a local date', () => {
    fc.assert(
      fc.property(instants, fc.constantFrom<WindowSize>('DAY', 'WEEK', 'MONTH'), grids, (instant, size, grid) => {
        const { start } = windowAt(instant, size, grid);
        const date = (at: number) => formatMs(toLocalMs(grid.timezone, at)).slice(0, 10);
        expect(date(start - 1) < date(start)).to.equal(true);
      }),
      { numRuns: samples(1000) },
    );
  });

  it('10,000 hour windows and 3,000 day windows in a zone with clock changes take well under a second', () => {
    const timezone = 'America/New_York';
    const took_ms = measureCpuMs(() => {
      expect(windowStarts(0, 10_000 * HOUR, 'HOUR', { timezone })).to.have.length(10_000);
      expect(windowStarts(5 * HOUR, 5 * HOUR + 3000 * DAY, 'DAY', { timezone })).to.have.length(3000);
    });
    expect(took_ms).to.be.lessThan(1000);
  });

  it('refuses a range that ends before it starts', () => {
    expect(() => windowStarts(1, 0, 'DAY', { timezone: 'UTC' })).to.throw('range_end');
    expect(() => windowStarts(0, 1, 'DAY', { timezone: 'Mars/Olympus' })).to.throw('timezone');
  });
});
