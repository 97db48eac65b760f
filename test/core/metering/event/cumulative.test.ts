// docs/rules/opentelemetry.md, "Cumulative temporality".
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { advanceSeries, type CumulativePoint, type SeriesState } from '../../../../core/metering/event/cumulative.ts';

const NOW = new Date('2026-10-01T00:00:00Z');
const START = BigInt(NOW.getTime() - 60_000) * 1_000_000n;
const pointAt = (seconds: number, value: string, count: string | null = null): CumulativePoint => ({
  start_nano: START,
  time_nano: START + BigInt(seconds) * 1_000_000_000n,
  value,
  count,
});

describe('a cumulative series', () => {
  const ROWS: [what: string, before: SeriesState, point: CumulativePoint, step: object][] = [
    ['first', null, pointAt(1, '5'), { kind: 'delta', value: '5', count: null }],
    ['first, without usage', null, pointAt(1, '0'), { kind: 'baseline' }],
    ['after a restore', { ...pointAt(1, '5'), rebase: true }, pointAt(2, '9'), { kind: 'baseline' }],
    [
      'after a restore, one that was sent before',
      { ...pointAt(2, '5'), rebase: true },
      pointAt(1, '4'),
      { kind: 'nothing' },
    ],
    ['first, of no length', null, pointAt(0, '5'), { kind: 'baseline' }],
    [
      'grown',
      pointAt(1, '0.1'),
      pointAt(2, '0.30000000000000004'),
      { kind: 'delta', value: '0.20000000000000004', count: null },
    ],
    ['of a histogram', pointAt(1, '2', '1'), pointAt(2, '2', '3'), { kind: 'delta', value: '0', count: '2' }],
    ['equal', pointAt(1, '5'), pointAt(2, '5'), { kind: 'nothing' }],
    ['repeated', pointAt(2, '5'), pointAt(2, '5'), { kind: 'nothing' }],
    ['late', pointAt(2, '5'), pointAt(1, '3'), { kind: 'nothing' }],
  ];
  for (const [what, before, point, step] of ROWS)
    it(`${what}: ${JSON.stringify(step)}`, () => {
      expect(advanceSeries(before, point, NOW)).to.deep.equal(step);
    });

  it('adds up to its last value, whichever of its points arrive, in any order', () => {
    const usage = fc.array(fc.tuple(fc.nat(1_000), fc.boolean()), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(usage, fc.infiniteStream(fc.nat()), (steps, order) => {
        let total = 0;
        const points = steps.map(([added], at) => pointAt(at + 1, String((total += added))));
        const arrived = points.filter((_, at) => steps[at]![1]).toSorted(() => (order.next().value % 2 === 0 ? 1 : -1));
        let state: SeriesState = null;
        let sum = new Decimal(0);
        for (const point of [...arrived, ...arrived]) {
          const step = advanceSeries(state, point, NOW);
          if (step.kind === 'delta') sum = sum.plus(step.value);
          if (step.kind === 'delta' || step.kind === 'baseline') state = point;
        }
        const last = arrived.toSorted((a, b) => Number(b.time_nano - a.time_nano))[0];
        expect(sum.toFixed()).to.equal(last?.value ?? '0');
      }),
    );
  });
});
