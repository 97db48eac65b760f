/** Limits beside each other (docs/rules/entitlements.md, "Limits beside each other"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../../core/foundation/decimal.ts';
import type { Period } from '../../../../core/foundation/time/period.ts';
import { applyAllowances, type MeasuredAllowance } from '../../../../core/rating/allowances/allowance.ts';
import { splitAtLimits } from '../../../../core/rating/allowances/independent-limits.ts';

type Used = { readonly at: number; readonly n: number };
/** Each its windows one after the other. */
type Limit = { readonly limit: number; readonly windows: readonly Period[] };

const inAll = (usage: readonly Used[], { start, end }: Period) =>
  sumDecimals(usage.filter(({ at }) => start <= at && at < end).map(({ n }) => new Decimal(n)));

function charged(usage: readonly Used[], limits: readonly Limit[], charge: Period): string {
  const within = ({ start, end }: Period) => ({ start, end: Math.min(end, charge.end) });
  const allowances: MeasuredAllowance[] = limits.map(({ limit, windows }) => ({
    limit: new Decimal(limit),
    windows: windows
      .filter(({ start, end }) => start < charge.end && charge.start < end)
      .map((one) => ({
        ...within(one),
        before: inAll(usage, { start: one.start, end: charge.start }),
        after: inAll(usage, within(one)),
      })),
  }));
  const parts = splitAtLimits(allowances, charge).map((part) => ({ ...part, used: inAll(usage, part) }));
  const quantity = inAll(usage, charge);
  return applyAllowances({ quantity, buckets: null, allowances, parts }).quantity.toFixed();
}

/** Unit after unit: each is free where no limit is used up, and all of them count it. */
function countedOut(usage: readonly Used[], limits: readonly Limit[], charge: Period): string {
  const counts = new Map<Period, number>();
  let units = 0;
  for (const { at, n } of usage.toSorted((a, b) => a.at - b.at)) {
    for (let unit = 0; unit < n; unit++) {
      const isUsedUp = limits.map(({ limit, windows }) => {
        const window = windows.find(({ start, end }) => start <= at && at < end)!;
        const count = (counts.get(window) ?? 0) + 1;
        counts.set(window, count);
        return count > limit;
      });
      if (charge.start <= at && at < charge.end && isUsedUp.includes(true)) units++;
    }
  }
  return String(units);
}

const every = (length: number, until: number): Period[] =>
  Array.from({ length: Math.ceil(until / length) }, (_, index) => ({
    start: index * length,
    end: (index + 1) * length,
  }));

describe('limits beside each other', () => {
  it('what is charged counts in all of them', () => {
    const day = { limit: 20, windows: every(10, 60) };
    const month = { limit: 30, windows: every(60, 60) };
    const charge = { start: 0, end: 60 };
    const usage = [
      { at: 11, n: 40 },
      { at: 21, n: 10 },
    ];
    expect(charged(usage, [day], charge)).to.equal('20');
    expect(charged(usage, [month], charge)).to.equal('20');
    expect(charged(usage, [day, month], charge)).to.equal('30');
    expect(charged(usage, [month, day], charge)).to.equal('30');
  });

  it('charge what counting unit by unit charges, however charges and limits are cut', () => {
    const used = fc.array(fc.record({ at: fc.nat(119), n: fc.integer({ min: 1, max: 9 }) }), { maxLength: 25 });
    const limit = fc.record({ limit: fc.nat(40), length: fc.constantFrom(7, 10, 24, 60, 120) });
    const bounds = fc.uniqueArray(fc.integer({ min: 1, max: 119 }), { maxLength: 3 });
    fc.assert(
      fc.property(used, fc.array(limit, { minLength: 1, maxLength: 3 }), bounds, (usage, terms, cuts) => {
        const limits = terms.map(({ length, ...rest }) => ({ ...rest, windows: every(length, 120) }));
        const ends = [...cuts.toSorted((a, b) => a - b), 120];
        for (const [index, end] of ends.entries()) {
          const charge = { start: ends[index - 1] ?? 0, end };
          expect(charged(usage, limits, charge)).to.equal(countedOut(usage, limits, charge));
        }
      }),
    );
  });
});
