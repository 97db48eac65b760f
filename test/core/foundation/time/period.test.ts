import { expect } from 'chai';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { formatMs } from '../../../../core/foundation/time/instant.ts';
import {
  calendarAnchor,
  calendarDays,
  nextPeriodEnd,
  type Period,
  type PeriodRule,
  periodContaining,
  periodsFrom,
  RECURRING_PERIODS,
  type RecurringPeriod,
  wholePeriod,
} from '../../../../core/foundation/time/period.ts';
import { toLocalMs } from '../../../../core/foundation/time/zone.ts';
import { samples } from '../../../support/samples.ts';

const DAY = 86_400_000;
const NEW_YORK = 'America/New_York';

describe('nextPeriodEnd', () => {
  // period, count, start, anchor, end, timezone
  const rows: [RecurringPeriod, number, string, string, string, string][] = [
    ['DAILY', 1, '2024-01-31T00:00Z', '2024-01-01T00:00Z', '2024-02-01T00:00Z', 'UTC'],
    ['DAILY', 1, '2024-01-01T00:00Z', '2023-12-01T09:00Z', '2024-01-01T09:00Z', 'UTC'],
    ['DAILY', 1, '2024-01-01T10:00Z', '2024-01-01T09:00Z', '2024-01-02T09:00Z', 'UTC'],
    ['DAILY', 3, '2024-01-01T10:00Z', '2024-02-01T09:00Z', '2024-01-04T09:00Z', 'UTC'],
    ['DAILY', 3, '2024-01-01T08:59Z', '2024-02-01T09:00Z', '2024-01-01T09:00Z', 'UTC'],
    ['DAILY', 1, '2024-03-09T15:00Z', '2024-03-01T15:00Z', '2024-03-10T14:00Z', NEW_YORK],
    ['WEEKLY', 1, '2024-01-01T00:00Z', '2024-01-01T00:00Z', '2024-01-08T00:00Z', 'UTC'],
    ['WEEKLY', 3, '2024-01-02T00:00Z', '2024-01-01T00:00Z', '2024-01-08T00:00Z', 'UTC'],
    ['WEEKLY', 3, '2024-01-08T06:00Z', '2024-01-01T00:00Z', '2024-01-29T00:00Z', 'UTC'],
    ['WEEKLY', 1, '2024-01-01T06:00Z', '2024-03-04T23:59Z', '2024-01-01T23:59Z', 'UTC'],
    ['WEEKLY', 1, '2024-11-02T04:00Z', '2024-11-02T04:00Z', '2024-11-09T05:00Z', NEW_YORK],
    ['MONTHLY', 1, '2023-01-31T00:00Z', '2023-01-31T00:00Z', '2023-02-28T00:00Z', 'UTC'],
    ['MONTHLY', 1, '2023-02-28T00:00Z', '2023-01-31T00:00Z', '2023-03-31T00:00Z', 'UTC'],
    ['MONTHLY', 3, '2024-05-02T00:00Z', '2024-01-31T00:00Z', '2024-05-31T00:00Z', 'UTC'],
    ['MONTHLY', 13, '2024-01-29T00:00Z', '2024-01-29T00:00Z', '2025-02-28T00:00Z', 'UTC'],
    ['MONTHLY', 1, '2024-03-01T05:00Z', '2024-03-01T05:00Z', '2024-04-01T04:00Z', NEW_YORK],
    ['MONTHLY', 1, '2024-02-10T07:30Z', '2024-02-10T07:30Z', '2024-03-10T07:30Z', NEW_YORK],
    ['MONTHLY', 1, '2024-03-10T07:30Z', '2024-02-10T07:30Z', '2024-04-10T06:30Z', NEW_YORK],
    ['MONTHLY', 2, '2024-03-10T00:00Z', '2030-03-10T12:00Z', '2024-03-10T12:00Z', 'UTC'],
    ['MONTHLY', 1, '2024-02-29T18:00Z', '2030-03-31T12:00Z', '2024-03-31T12:00Z', 'UTC'],
    ['MONTHLY', 1, '2024-03-10T06:30Z', '2024-02-10T07:30Z', '2024-03-10T07:30Z', NEW_YORK],
    ['MONTHLY', 1, '2024-11-03T05:45Z', '2024-09-03T05:30Z', '2024-12-03T06:30Z', NEW_YORK],
    ['QUARTERLY', 1, '2026-01-01T00:00Z', '2027-06-01T00:00Z', '2026-03-01T00:00Z', 'UTC'],
    ['QUARTERLY', 1, '2026-05-15T00:00Z', '2021-04-01T00:00Z', '2026-07-01T00:00Z', 'UTC'],
    ['QUARTERLY', 3, '2026-05-15T00:00Z', '2021-04-01T00:00Z', '2026-07-01T00:00Z', 'UTC'],
    ['QUARTERLY', 1, '2024-01-31T00:00Z', '2023-10-31T00:00Z', '2024-04-30T00:00Z', 'UTC'],
    ['QUARTERLY', 2, '2024-02-29T00:00Z', '2023-11-30T00:00Z', '2024-08-30T00:00Z', 'UTC'],
    ['QUARTERLY', 1, '2024-01-01T00:00Z', '2024-01-01T12:00Z', '2024-01-01T12:00Z', 'UTC'],
    ['HALF_YEARLY', 1, '2024-02-29T00:00Z', '2023-08-31T00:00Z', '2024-08-31T00:00Z', 'UTC'],
    ['HALF_YEARLY', 1, '2026-01-01T00:00Z', '2030-03-31T00:00Z', '2026-03-31T00:00Z', 'UTC'],
    ['HALF_YEARLY', 3, '2024-01-01T00:00Z', '2024-01-01T00:00Z', '2025-07-01T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2025-02-28T00:00Z', '2024-02-29T00:00Z', '2026-02-28T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2027-02-28T00:00Z', '2024-02-29T00:00Z', '2028-02-29T00:00Z', 'UTC'],
    ['ANNUAL', 2, '2024-09-01T00:00Z', '2024-12-25T00:00Z', '2024-12-25T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2024-09-01T00:00Z', '2025-03-01T00:00Z', '2025-03-01T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2024-01-15T00:00Z', '2020-06-15T00:00Z', '2024-06-15T00:00Z', 'UTC'],
    ['ANNUAL', 3, '2024-02-29T13:00Z', '2040-02-29T12:00Z', '2027-02-28T12:00Z', 'UTC'],
  ];
  for (const [billing_period, count, start, anchor, end, timezone] of rows)
    it(`${count} ${billing_period} from ${start}, anchor ${anchor}, ${timezone}: ${end}`, () => {
      const rule = { billing_period, billing_period_count: count, billing_anchor: Date.parse(anchor), timezone };
      const found = nextPeriodEnd({ ...rule, period_start: Date.parse(start) });
      expect(formatMs(found)).to.equal(formatMs(Date.parse(end)));
    });

  const monthly = { billing_period: 'MONTHLY', billing_period_count: 1, billing_anchor: 0, timezone: 'UTC' } as const;

  it('is cut at the subscription end, which must come after the start', () => {
    expect(nextPeriodEnd({ ...monthly, period_start: 0, subscription_end: 5 })).to.equal(5);
    expect(nextPeriodEnd({ ...monthly, period_start: 0, subscription_end: null })).to.equal(31 * DAY);
    expect(() => nextPeriodEnd({ ...monthly, period_start: 5, subscription_end: 5 })).to.throw('subscription_end');
  });

  for (const count of [0, -1, 1.5, Number.NaN])
    it(`refuses a count of ${count}`, () => {
      const rule = { ...monthly, billing_period: 'DAILY', billing_period_count: count, period_start: 0 } as const;
      expect(() => nextPeriodEnd(rule))
        .to.throw('billing_period_count')
        .with.property('code', 'validation_error');
    });

  it('refuses what does not recur and what is no timezone', () => {
    const onetime = { ...monthly, billing_period: 'ONETIME' as RecurringPeriod, period_start: 0 };
    expect(() => nextPeriodEnd(onetime)).to.throw('billing_period:');
    expect(() => nextPeriodEnd({ ...monthly, timezone: 'Nowhere', period_start: 0 })).to.throw('timezone:');
  });
});

describe('calendarAnchor', () => {
  const rows: [RecurringPeriod, string, string, string][] = [
    ['DAILY', '2024-03-10T04:59:59Z', NEW_YORK, '2024-03-10T05:00Z'],
    ['DAILY', '2024-09-07T12:00:00Z', 'America/Santiago', '2024-09-08T04:00Z'],
    ['WEEKLY', '2024-03-10T12:00:00Z', NEW_YORK, '2024-03-11T04:00Z'],
    ['MONTHLY', '2024-12-31T23:59:59Z', 'UTC', '2025-01-01T00:00Z'],
    ['QUARTERLY', '2024-12-31T00:00:00Z', 'Asia/Kathmandu', '2024-12-31T18:15Z'],
    ['QUARTERLY', '2024-12-31T18:15:00Z', 'Asia/Kathmandu', '2025-03-31T18:15Z'],
    ['HALF_YEARLY', '2024-06-30T00:00:00Z', 'UTC', '2024-07-01T00:00Z'],
    ['ANNUAL', '2024-02-29T00:00:00Z', 'UTC', '2025-01-01T00:00Z'],
  ];
  for (const [period, start, timezone, anchor] of rows)
    it(`${period} after ${start} in ${timezone}: ${anchor}`, () => {
      expect(calendarAnchor(Date.parse(start), period, timezone)).to.equal(Date.parse(anchor));
    });
});

describe('periods', () => {
  const start = Date.parse('2024-01-31T10:00Z');
  const rule: PeriodRule = {
    billing_anchor: start,
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    timezone: 'UTC',
    subscription_end: Date.parse('2024-04-05T00:00Z'),
  };

  it('follow one another up to the subscription end', () => {
    const ends = [...periodsFrom(start, rule)].map(({ end }) => formatMs(end).slice(0, 10));
    expect(ends).to.deep.equal(['2024-02-29', '2024-03-31', '2024-04-05']);
  });

  it('are half-open', () => {
    const second = { start: Date.parse('2024-02-29T10:00Z'), end: Date.parse('2024-03-31T10:00Z') };
    expect(periodContaining(second.start, start, rule)).to.deep.equal(second);
    expect(periodContaining(second.end - 1, start, rule)).to.deep.equal(second);
    expect(periodContaining(start - 1, start, rule)).to.equal(undefined);
    expect(periodContaining(Date.parse('2024-04-05T00:00Z'), start, rule)).to.equal(undefined);
  });

  it('have no cap: a daily subscription of twelve years has thousands', () => {
    const daily: PeriodRule = { ...rule, billing_period: 'DAILY', subscription_end: start + 12 * 365 * DAY };
    expect([...periodsFrom(start, daily)]).to.have.length(12 * 365);
  });
});

const instants = fc
  .integer({ min: Date.UTC(1990, 0) / 60_000, max: Date.UTC(2035, 0) / 60_000 })
  .map((m) => m * 60_000);
const zones = fc.constantFrom('UTC', NEW_YORK, 'Asia/Kathmandu', 'Australia/Lord_Howe', 'America/Santiago');
const rules = fc.record({
  billing_anchor: instants,
  billing_period: fc.constantFrom(...RECURRING_PERIODS),
  billing_period_count: fc.integer({ min: 1, max: 14 }),
  timezone: zones,
});

function localDay(at: number, { timezone }: PeriodRule): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timezone).toPlainDate();
}

const UNITS = {
  DAILY: ['days', 1],
  WEEKLY: ['days', 7],
  MONTHLY: ['months', 1],
  QUARTERLY: ['months', 3],
  HALF_YEARLY: ['months', 6],
  ANNUAL: ['months', 12],
} as const;

/** So many units after (or before) the anchor: the instant on the grid. */
function onGrid(units: number, rule: PeriodRule): number {
  const [unit, length] = UNITS[rule.billing_period];
  const anchor = Temporal.Instant.fromEpochMilliseconds(rule.billing_anchor).toZonedDateTimeISO(rule.timezone);
  // Added to the anchor itself, a clamped day is never passed on; the clock is the anchor's, moved only where it is skipped.
  return units === 0 ? rule.billing_anchor : anchor.add({ [unit]: units * length }).epochMilliseconds;
}

/** How many units from the anchor an instant lies, when it is on the grid. */
function unitsOf(at: number, rule: PeriodRule): number | undefined {
  const [unit, length] = UNITS[rule.billing_period];
  const from = localDay(rule.billing_anchor, rule);
  const to = localDay(at, rule);
  const apart =
    unit === 'days' ? from.until(to, { largestUnit: 'day' }).days : (to.year - from.year) * 12 + to.month - from.month;
  const units = Math.round(apart / length);
  return onGrid(units, rule) === at ? units : undefined;
}

describe('periods tile time on the anchor’s grid, for any anchor, timezone and count', () => {
  it('without gap or overlap, each longer than nothing', () => {
    fc.assert(
      fc.property(instants, rules, (start, rule) => {
        let last = start;
        for (const period of take(12, periodsFrom(start, rule))) {
          expect(period.start).to.equal(last);
          expect(period.end).to.be.greaterThan(period.start);
          last = period.end;
        }
      }),
      { numRuns: samples(400) },
    );
  });

  it('end on the grid, and no period is longer than count × unit; from the second on each is just that', () => {
    fc.assert(
      fc.property(instants, rules, (start, rule) => {
        for (const [index, period] of take(6, periodsFrom(start, rule)).entries()) {
          const end = unitsOf(period.end, rule);
          expect(end, `${formatMs(period.end)} is on the grid`).to.not.equal(undefined);
          const whole = { start: onGrid(end! - rule.billing_period_count, rule), end: period.end };
          expect(period.start).to.be.at.least(whole.start);
          if (index > 0) expect(period).to.deep.equal(whole);
          expect(wholePeriod({ ...rule, period_start: period.start })).to.deep.equal(whole);
        }
      }),
      { numRuns: samples(400) },
    );
  });

  it('the first is whole only where a grid instant lies on the start’s own day, at or before it; else the next one ends it', () => {
    const near = fc.record({ day: fc.integer({ min: -400, max: 400 }), ms: fc.integer({ min: -3, max: 3 }) });
    fc.assert(
      fc.property(instants, rules, fc.option(near), (drawn, rule, close) => {
        // Half of the starts lie about a grid instant.
        const start = close ? onGrid(close.day, { ...rule, billing_period: 'DAILY' }) + close.ms * 3_600_000 : drawn;
        const [first] = take(1, periodsFrom(start, rule));
        const end = unitsOf(first!.end, rule)!;
        const before = onGrid(end - rule.billing_period_count, rule);
        if (before <= start && localDay(before, rule).equals(localDay(start, rule))) return;
        expect(onGrid(end - 1, rule)).to.be.at.most(start);
        expect(localDay(onGrid(end - 1, rule), rule).equals(localDay(start, rule))).to.equal(false);
      }),
      { numRuns: samples(1000) },
    );
  });

  it('a calendar anchor lies after the start, at the first instant of a local date, no further than its period', () => {
    const longest = { DAILY: 2, WEEKLY: 8, MONTHLY: 32, QUARTERLY: 93, HALF_YEARLY: 185, ANNUAL: 367 };
    fc.assert(
      fc.property(instants, fc.constantFrom(...RECURRING_PERIODS), zones, (start, period, timezone) => {
        const anchor = calendarAnchor(start, period, timezone);
        expect(anchor > start && anchor <= start + longest[period] * DAY).to.equal(true);
        const date = (at: number) => formatMs(toLocalMs(timezone, at)).slice(0, 10);
        expect(date(anchor - 1) < date(anchor)).to.equal(true);
      }),
    );
  });
});

describe('calendarDays', () => {
  it('adds up, whatever the clock does', () => {
    fc.assert(
      fc.property(instants, instants, instants, zones, (a, b, c, zone) => {
        expect(calendarDays(a, b, zone) + calendarDays(b, c, zone)).to.equal(calendarDays(a, c, zone));
      }),
    );
  });

  it('counts dates and not 24 hours', () => {
    expect(calendarDays(Date.parse('2024-03-10T04:59Z'), Date.parse('2024-03-10T05:00Z'), NEW_YORK)).to.equal(1);
    expect(calendarDays(Date.parse('2024-03-10T05:00Z'), Date.parse('2024-03-11T03:59Z'), NEW_YORK)).to.equal(0);
  });
});

function take(count: number, periods: Iterable<Period>): Period[] {
  const taken: Period[] = [];
  for (const period of periods) {
    taken.push(period);
    if (taken.length === count) break;
  }
  return taken;
}
