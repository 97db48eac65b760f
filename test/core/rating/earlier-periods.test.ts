/** A subscription whose periods began anew: which grid holds when, and what a short first period has of a limit. */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { computeLimitIn, computeLimitWindow, listLimitWindows } from '../../../core/rating/allowances/reset.ts';
import type { BilledSubscription } from '../../../core/rating/charges.ts';
import { computeAmountIn } from '../../../core/rating/commitments/subscription.ts';
import { applyPeriodGridAt, periodGridEnd, splitByPeriodGrid } from '../../../core/rating/earlier-periods.ts';

const at = (text: string) => Date.parse(`${text}T00:00:00Z`);
const monthly = { billing_period: 'MONTHLY', billing_period_count: 1 } as const;
const subscription: BilledSubscription = {
  start_ms: at('2026-01-01'),
  end_ms: null,
  billing_anchor_ms: at('2026-03-15'),
  billing_period: 'QUARTERLY',
  billing_period_count: 1,
  timezone: 'UTC',
  earlier: [
    { ...monthly, until_ms: at('2026-02-08'), billing_anchor_ms: at('2026-01-01') },
    {
      billing_period: 'WEEKLY',
      billing_period_count: 1,
      until_ms: at('2026-03-15'),
      billing_anchor_ms: at('2026-02-08'),
    },
  ],
};

describe('periods that began anew', () => {
  it('hold until others begin', () => {
    const period = (day: string) => applyPeriodGridAt(subscription, at(day)).billing_period;
    expect(['2026-01-01', '2026-02-07', '2026-02-08', '2026-03-14', '2026-03-15'].map(period)).to.deep.equal([
      'MONTHLY',
      'MONTHLY',
      'WEEKLY',
      'WEEKLY',
      'QUARTERLY',
    ]);
    expect([
      periodGridEnd(subscription, at('2026-02-07')),
      periodGridEnd(subscription, at('2026-03-15')),
    ]).to.deep.equal([at('2026-02-08'), null]);
  });

  it('each measure a commitment by themselves: a month, a quarter of one, five weeks, a quarter of a year', () => {
    const committed = { amount: new Decimal('28'), overage_factor: new Decimal(1), true_up: true, duration: null };
    const of = (start: string, end: string) =>
      computeAmountIn({ start: at(start), end: at(end) }, subscription, committed);
    expect(of('2026-01-01', '2026-02-08').toFixed()).to.equal('35');
    expect(of('2026-02-08', '2026-03-15').toFixed()).to.equal('140');
    expect(of('2026-01-01', '2026-06-15').toFixed()).to.equal('203');
  });

  it('windows of a limit end where they do', () => {
    const limited = { subscription, usage_reset_period: null, reset_usage: 'BILLING_PERIOD' } as const;
    const windows = listLimitWindows({ start: at('2026-02-03'), end: at('2026-02-20') }, limited);
    expect(windows.map(({ start, end }) => [start, end])).to.deep.equal([
      [at('2026-02-01'), at('2026-02-08')],
      [at('2026-02-08'), at('2026-02-15')],
      [at('2026-02-15'), at('2026-02-20')],
    ]);
  });

  const instant = fc.integer({ min: subscription.start_ms, max: at('2027-01-01') });

  it('any time is cut into parts that follow one another, and the shares of the parts are that of the whole', () =>
    fc.assert(
      fc.property(instant, instant, (a, b) => {
        const asked = { start: Math.min(a, b), end: Math.max(a, b) + 1 };
        const parts = splitByPeriodGrid(asked, subscription).map(([part]) => part);
        expect([parts[0]!.start, parts.at(-1)!.end]).to.deep.equal([asked.start, asked.end]);
        for (const [index, part] of parts.entries()) if (index > 0) expect(part.start).to.equal(parts[index - 1]!.end);
        const committed = { amount: new Decimal('100'), overage_factor: new Decimal(1), true_up: true, duration: null };
        const sum = sumDecimals(parts.map((part) => computeAmountIn(part, subscription, committed)));
        expect(
          sum
            .minus(computeAmountIn(asked, subscription, committed))
            .abs()
            .lt('1e-12'),
        ).to.equal(true);
      }),
    ));
});

describe('a short first period', () => {
  const calendar = { ...subscription, earlier: [], ...monthly, billing_anchor_ms: at('2026-06-01') };
  const of = (limit: string, start: string, usage_reset_period: 'DAILY' | 'MONTHLY' | 'NEVER' | null = null) => {
    const limited = { subscription: calendar, usage_reset_period, reset_usage: 'BILLING_PERIOD' } as const;
    return computeLimitIn(new Decimal(limit), at(start), limited).toFixed();
  };
  it('has its share of a limit, in whole units', () => {
    expect(of('1000', '2026-05-20')).to.equal('387');
    expect(of('1000', '2026-05-20', 'MONTHLY')).to.equal('387');
    expect(of('31', '2026-05-31')).to.equal('1');
    expect(of('1000', '2026-06-01')).to.equal('1000');
  });
  it('begins where a trial ends, inside a month of the calendar', () => {
    const tried = { ...calendar, start_ms: at('2026-06-01'), trial_end_ms: at('2026-06-10') };
    const limited = { subscription: tried, usage_reset_period: null, reset_usage: 'BILLING_PERIOD' } as const;
    const windows = listLimitWindows({ start: at('2026-06-05'), end: at('2026-07-05') }, limited);
    expect(windows).to.deep.equal([
      { start: at('2026-06-01'), end: at('2026-06-10') },
      { start: at('2026-06-10'), end: at('2026-07-01') },
      { start: at('2026-07-01'), end: at('2026-07-05') },
    ]);
    expect(computeLimitIn(new Decimal(1000), at('2026-06-10'), limited).toFixed(), '21 of 30 days').to.equal('700');
    const now = { ...limited, current: { start: at('2026-06-01'), end: at('2026-06-10') } };
    expect(computeLimitWindow(at('2026-06-05'), now)).to.deep.equal(windows[0]);
    const paid = { ...limited, current: { start: at('2026-06-10'), end: at('2026-07-01') } };
    expect(computeLimitWindow(at('2026-06-15'), paid)).to.deep.equal(windows[1]);
  });
  it('has all of a limit that is reset at other times', () => {
    expect([of('1000', '2026-05-20', 'DAILY'), of('1000', '2026-05-20', 'NEVER')]).to.deep.equal(['1000', '1000']);
  });
});
