/** What FIXED prices of a cost sheet cost (docs/rules/costs.md, "What costs whether or not it is used"): laws, and a plain model. */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../../core/foundation/decimal.ts';
import {
  computeFixedCost,
  computeFixedCostsByWindow,
  type FixedPrice,
  planFixedLines,
} from '../../../../core/invoicing/costs/fixed-cost.ts';
import { samples } from '../../../support/samples.ts';

const DAY_US = 86_400_000_000;
const us = (text: string) => Date.parse(text) * 1_000;

const price = (terms: Partial<FixedPrice>): FixedPrice => ({
  id: 'price_1',
  parent_price_id: '',
  start_date: '2026-01-31T00:00:00Z',
  end_date: null,
  created_at: '2026-06-01T00:00:00Z',
  billing_model: 'FLAT_FEE',
  tier_mode: null,
  amount: '31',
  tiers: null,
  transform_quantity: null,
  currency: 'usd',
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  min_quantity: null,
  ...terms,
});
const costsOf = (prices: readonly FixedPrice[], start: string, end: string) => {
  const range = { start_us: us(start), end_us: us(end) };
  return planFixedLines(prices, range).map((line) => computeFixedCost(line, range).cost.toFixed());
};

describe('core: fixed prices of a cost sheet', () => {
  // Periods from the 31st end on the 28th, and on the 31st again.
  for (const [terms, start, end, costs] of [
    [{}, '2026-01-31', '2026-02-28', ['31']],
    [{}, '2026-02-28', '2026-03-31', ['31']],
    [{}, '2026-01-01', '2026-03-01', ['32']],
    [{}, '2025-01-01', '2026-01-31', []],
    [{ end_date: '2026-03-10T00:00:00Z' }, '2026-02-28', '2026-04-30', ['10']],
    [{ billing_period: 'ANNUAL', amount: '365' }, '2026-02-01', '2026-02-08', ['7']],
    [{ billing_period: 'DAILY', start_date: '1990-01-01T06:00:00Z', amount: '4' }, '2026-01-01', '2026-01-02', ['4']],
    [{ billing_period: 'WEEKLY', billing_period_count: 2, amount: '14' }, '2026-03-01', '2026-03-04', ['3']],
    [{ min_quantity: '3' }, '2026-02-28', '2026-03-31', ['93']],
    [{ billing_period: 'ONETIME' }, '2026-01-31', '2026-02-01', ['31']],
    [{ billing_period: 'ONETIME' }, '2026-01-01', '2026-01-31', ['0']],
    [{ billing_period: 'ONETIME' }, '2026-02-01', '2026-03-31', ['0']],
    [{ start_date: null }, '2026-06-01', '2026-06-02', ['1.033333333333333333333333']],
  ] as const)
    it(`${JSON.stringify(terms)} from ${start} to ${end}: ${costs.join() || 'nothing'}`, () => {
      const found = costsOf([price(terms as Partial<FixedPrice>)], start, end);
      expect(found.filter((cost) => cost !== '0')).to.deep.equal(costs.filter((cost) => (cost as string) !== '0'));
    });

  it('one that follows a ONETIME price does not cost it again', () => {
    const first = price({ billing_period: 'ONETIME', end_date: '2026-02-02T00:00:00Z' });
    const second = price({
      id: 'price_2',
      parent_price_id: 'price_1',
      billing_period: 'ONETIME',
      start_date: '2026-02-02T00:00:00Z',
    });
    expect(costsOf([first, second], '2026-01-01', '2026-04-01').filter((cost) => cost !== '0')).to.deep.equal(['31']);
  });

  it('ranges side by side, and the windows of each, add up', () => {
    const terms = fc.record({
      billing_period: fc.constantFrom('MONTHLY', 'ANNUAL', 'WEEKLY', 'DAILY', 'QUARTERLY', 'HALF_YEARLY', 'ONETIME'),
      billing_period_count: fc.integer({ min: 1, max: 3 }),
      amount: fc.constantFrom('0.01', '7', '33.333', '1000'),
      min_quantity: fc.constantFrom(null, '3'),
      start_date: fc.constantFrom('2025-12-31T23:59:59.999Z', '2026-01-31T12:00:00Z', '2024-02-29T00:00:00Z'),
    });
    const cuts = fc.uniqueArray(fc.integer({ min: 0, max: 120 * DAY_US }), { minLength: 2, maxLength: 6 });
    const size = fc.constantFrom('6HOUR' as const, 'DAY' as const, 'WEEK' as const, 'MONTH' as const);
    fc.assert(
      fc.property(terms, cuts, size, (stated, parts, window) => {
        const at = parts.toSorted((a, b) => a - b).map((part) => us('2026-01-01') + part);
        const one = price(stated as Partial<FixedPrice>);
        const costIn = (start_us: number, end_us: number) =>
          planFixedLines([one], { start_us, end_us }).flatMap((line) => {
            const { cost } = computeFixedCost(line, { start_us, end_us });
            const windows = sumDecimals(computeFixedCostsByWindow(window, line).map((each) => each.cost));
            expect(windows.toFixed()).to.equal(cost.toFixed());
            return cost;
          });
        const whole = sumDecimals(costIn(at[0]!, at.at(-1)!));
        const apart = sumDecimals(at.slice(1).flatMap((end, index) => costIn(at[index]!, end)));
        expect(apart.toFixed()).to.equal(whole.toFixed());
        expect(whole.gte(new Decimal(0))).to.equal(true);
      }),
      { numRuns: samples(200) },
    );
  });
});
