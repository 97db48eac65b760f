// A range is cut into stretches, and what they add makes the charge again (docs/rules/usage.md, "What a day adds to a charge").
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import {
  type ChargedAmounts,
  type ChargeInterval,
  computeAddedCharge,
  computeUncovered,
  cutTo,
  isNothing,
  NOTHING_CHARGED,
  splitRange,
} from '../../../core/rating/charge-intervals.ts';

const us = (text: string) => Date.parse(text) * 1000;
const stretch = (start: string, end: string): ChargeInterval => ({ start_us: us(start), end_us: us(end) });
const told = (all: readonly ChargeInterval[]) =>
  all.map(({ start_us, end_us }) => [start_us, end_us].map((at) => new Date(at / 1000).toISOString().slice(5, 16)));

describe('stretches', () => {
  const march = stretch('2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z');

  it('are the range itself where it is not split', () => {
    expect(splitRange(march, null, 'UTC')).to.deep.equal([march]);
  });

  it('begin at the midnights of the clock, the first and the last cut to the range', () => {
    const range = stretch('2026-03-28T12:00:00Z', '2026-03-30T12:00:00Z');
    expect(told(splitRange(range, 'DAY', 'Europe/Berlin'))).to.deep.equal([
      ['03-28T12:00', '03-28T23:00'],
      ['03-28T23:00', '03-29T22:00'],
      ['03-29T22:00', '03-30T12:00'],
    ]);
  });

  it('begin and end within a millisecond', () => {
    const range = { start_us: us('2026-03-01T22:00:00Z') + 1, end_us: us('2026-03-02T23:00:00Z') + 1 };
    const midnight = us('2026-03-02T23:00:00Z');
    expect(splitRange(range, 'DAY', 'Africa/Lagos')).to.deep.equal([
      { start_us: range.start_us, end_us: midnight - 86_400_000_000 },
      { start_us: midnight - 86_400_000_000, end_us: midnight },
      { start_us: midnight, end_us: range.end_us },
    ]);
  });

  it('are months from first to first', () => {
    const range = stretch('2026-01-31T00:00:00Z', '2026-03-02T00:00:00Z');
    expect(told(splitRange(range, 'MONTH', 'UTC'))).to.deep.equal([
      ['01-31T00:00', '02-01T00:00'],
      ['02-01T00:00', '03-01T00:00'],
      ['03-01T00:00', '03-02T00:00'],
    ]);
  });

  for (const [title, covering, gaps] of [
    ['all of it', [], [['03-01T00:00', '04-01T00:00']]],
    ['nothing', [['2026-02-15', '2026-04-15']], []],
    ['the rest', [['2026-03-10', '2026-05-01']], [['03-01T00:00', '03-10T00:00']]],
    [
      'before, between and after, however they lie',
      [
        ['2026-03-20', '2026-03-25'],
        ['2026-03-05', '2026-03-12'],
        ['2026-03-10', '2026-03-11'],
      ],
      [
        ['03-01T00:00', '03-05T00:00'],
        ['03-12T00:00', '03-20T00:00'],
        ['03-25T00:00', '04-01T00:00'],
      ],
    ],
  ] as const)
    it(`leave uncovered ${title}`, () => {
      const times = covering.map(([start, end]) => stretch(`${start}T00:00:00Z`, `${end}T00:00:00Z`));
      expect(told(computeUncovered(march, times))).to.deep.equal(gaps);
    });

  it('what is covered and what is not are the range, once', () => {
    const day = fc.integer({ min: 0, max: 60 });
    const time = fc.tuple(day, day).filter(([a, b]) => a < b);
    fc.assert(
      fc.property(time, fc.array(time, { maxLength: 5 }), ([start_us, end_us], times) => {
        const range = { start_us, end_us };
        const covering = times.map(([start, end]) => ({ start_us: start, end_us: end }));
        for (let at = start_us; at < end_us; at++) {
          const holds = (all: readonly ChargeInterval[]) =>
            all.filter((one) => one.start_us <= at && at < one.end_us).length;
          expect(holds(computeUncovered(range, covering))).to.equal(
            holds(cutTo([range], range)) - (holds(covering) > 0 ? 1 : 0),
          );
        }
      }),
    );
  });
});

describe('what stretches add to a charge', () => {
  const charged = fc
    .tuple(fc.integer(), fc.integer(), fc.nat())
    .map(([q, a, event_count]) => ({ quantity: new Decimal(q).div(8), amount: new Decimal(a).div(100), event_count }));

  it('adds up to the charge, whatever it was in between', () => {
    fc.assert(
      fc.property(fc.array(charged, { minLength: 1 }), (states) => {
        const parts = states.map((after, index) => computeAddedCharge(states[index - 1] ?? NOTHING_CHARGED, after));
        const sum = (of: (one: ChargedAmounts) => Decimal) => sumDecimals(parts.map(of)).toFixed();
        const last = states.at(-1)!;
        expect(sum(({ quantity }) => quantity)).to.equal(last.quantity.toFixed());
        expect(sum(({ amount }) => amount)).to.equal(last.amount.toFixed());
        expect(parts.reduce((count, { event_count }) => count + event_count, 0)).to.equal(last.event_count);
      }),
    );
  });

  it('is nothing where nothing moved, and something where only an event was', () => {
    expect(isNothing(computeAddedCharge(NOTHING_CHARGED, NOTHING_CHARGED))).to.equal(true);
    expect(isNothing({ ...NOTHING_CHARGED, event_count: 1 })).to.equal(false);
  });
});
