import { expect } from 'chai';
import fc from 'fast-check';
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
} from '../../../core/time/period.ts';
import { formatTimestamp } from '../../../core/time/timestamp.ts';
import { wallTime } from '../../../core/time/zone.ts';

const DAY = 86_400_000;
const NEW_YORK = 'America/New_York';

describe('nextPeriodEnd', () => {
  // period, count, start, anchor, end, timezone
  const rows: [RecurringPeriod, number, string, string, string, string][] = [
    ['DAILY', 1, '2024-01-31T00:00Z', '2024-01-01T00:00Z', '2024-02-01T00:00Z', 'UTC'],
    ['DAILY', 1, '2024-01-01T00:00Z', '2023-12-01T09:00Z', '2024-01-02T09:00Z', 'UTC'],
    ['DAILY', 1, '2024-03-09T15:00Z', '2024-03-01T15:00Z', '2024-03-10T14:00Z', NEW_YORK],
    ['WEEKLY', 1, '2024-01-01T00:00Z', '2024-01-01T00:00Z', '2024-01-08T00:00Z', 'UTC'],
    ['WEEKLY', 3, '2024-01-02T00:00Z', '2024-01-01T00:00Z', '2024-01-22T00:00Z', 'UTC'],
    ['WEEKLY', 1, '2024-11-02T04:00Z', '2024-11-02T04:00Z', '2024-11-09T05:00Z', NEW_YORK],
    ['MONTHLY', 1, '2023-01-31T00:00Z', '2023-01-31T00:00Z', '2023-02-28T00:00Z', 'UTC'],
    ['MONTHLY', 1, '2023-02-28T00:00Z', '2023-01-31T00:00Z', '2023-03-31T00:00Z', 'UTC'],
    ['MONTHLY', 3, '2024-05-02T00:00Z', '2024-01-31T00:00Z', '2024-05-31T00:00Z', 'UTC'],
    ['MONTHLY', 13, '2024-01-29T00:00Z', '2024-01-29T00:00Z', '2025-02-28T00:00Z', 'UTC'],
    ['MONTHLY', 1, '2024-03-01T05:00Z', '2024-03-01T05:00Z', '2024-04-01T04:00Z', NEW_YORK],
    ['MONTHLY', 1, '2024-02-10T07:30Z', '2024-02-10T07:30Z', '2024-03-10T07:30Z', NEW_YORK],
    ['MONTHLY', 1, '2024-03-10T07:30Z', '2024-02-10T07:30Z', '2024-04-10T06:30Z', NEW_YORK],
    ['QUARTERLY', 1, '2024-01-31T00:00Z', '2023-10-31T00:00Z', '2024-04-30T00:00Z', 'UTC'],
    ['QUARTERLY', 2, '2024-02-29T00:00Z', '2023-11-30T00:00Z', '2024-08-30T00:00Z', 'UTC'],
    ['QUARTERLY', 1, '2024-01-01T00:00Z', '2024-01-01T12:00Z', '2024-01-01T12:00Z', 'UTC'],
    ['HALF_YEARLY', 1, '2024-02-29T00:00Z', '2023-08-31T00:00Z', '2024-08-31T00:00Z', 'UTC'],
    ['HALF_YEARLY', 3, '2024-01-01T00:00Z', '2024-01-01T00:00Z', '2025-07-01T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2025-02-28T00:00Z', '2024-02-29T00:00Z', '2026-02-28T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2027-02-28T00:00Z', '2024-02-29T00:00Z', '2028-02-29T00:00Z', 'UTC'],
    ['ANNUAL', 2, '2024-09-01T00:00Z', '2024-12-25T00:00Z', '2024-12-25T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2024-09-01T00:00Z', '2025-03-01T00:00Z', '2025-03-01T00:00Z', 'UTC'],
    ['ANNUAL', 1, '2024-01-15T00:00Z', '2020-06-15T00:00Z', '2024-06-15T00:00Z', 'UTC'],
  ];
  for (const [billing_period, count, start, anchor, end, timezone] of rows)
    it(`${count} ${billing_period} from ${start}, anchor ${anchor}, ${timezone}: ${end}`, () => {
      const rule = { billing_period, billing_period_count: count, billing_anchor: Date.parse(anchor), timezone };
      const found = nextPeriodEnd({ ...rule, period_start: Date.parse(start) });
      expect(formatTimestamp(found)).to.equal(formatTimestamp(Date.parse(end)));
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
    const ends = [...periodsFrom(start, rule)].map(({ end }) => formatTimestamp(end).slice(0, 10));
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

describe('periods tile time for any anchor, timezone and count', () => {
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
      { numRuns: 400 },
    );
  });

  it('and from the second on they start on the anchor’s day of the month, or on the last of a shorter month', () => {
    const anchorDay = (rule: PeriodRule) => new Date(wallTime(rule.timezone, rule.billing_anchor)).getUTCDate();
    fc.assert(
      fc.property(instants, rules, (start, drawn) => {
        // At noon no clock change moves a date.
        const noon = drawn.billing_anchor - (wallTime(drawn.timezone, drawn.billing_anchor) % DAY) + DAY / 2;
        const rule = { ...drawn, billing_anchor: noon };
        if (rule.billing_period === 'DAILY' || rule.billing_period === 'WEEKLY') return;
        for (const { end } of take(8, periodsFrom(start, rule))) {
          const local = new Date(wallTime(rule.timezone, end));
          const lastDay = new Date(Date.UTC(local.getUTCFullYear(), local.getUTCMonth() + 1, 0)).getUTCDate();
          expect(local.getUTCDate()).to.equal(Math.min(anchorDay(rule), lastDay));
        }
      }),
      { numRuns: 400 },
    );
  });

  it('a calendar anchor lies after the start, at the first instant of a local date, no further than its period', () => {
    const longest = { DAILY: 2, WEEKLY: 8, MONTHLY: 32, QUARTERLY: 93, HALF_YEARLY: 185, ANNUAL: 367 };
    fc.assert(
      fc.property(instants, fc.constantFrom(...RECURRING_PERIODS), zones, (start, period, timezone) => {
        const anchor = calendarAnchor(start, period, timezone);
        expect(anchor > start && anchor <= start + longest[period] * DAY).to.equal(true);
        const date = (at: number) => formatTimestamp(wallTime(timezone, at)).slice(0, 10);
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
