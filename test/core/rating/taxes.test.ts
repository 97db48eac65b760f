import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { minorUnits } from '../../../core/foundation/money.ts';
import { spread } from '../../../core/foundation/spread.ts';
import { computeTaxes, type RateInForce } from '../../../core/rating/taxes.ts';
import { samples } from '../../support/samples.ts';

const money = (units: number, currency: string) =>
  new Decimal(units).dividedBy(new Decimal(10).pow(minorUnits(currency)));

function inclusive(id: string, { type, value }: { type: 'fixed' | 'percentage'; value: string }): RateInForce {
  const fixed_value = type === 'fixed' ? value : null;
  const percentage_value = type === 'percentage' ? value : null;
  const rate = { id, tax_rate_type: type, fixed_value, percentage_value, tax_behavior: 'inclusive' as const };
  return { rate, tax_association_id: null };
}

/** docs/rules/taxes.md, "On an invoice". */
describe('tax that is in the amounts', () => {
  const currencies = fc.constantFrom('usd', 'jpy', 'bhd');
  const amounts = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 6 });
  const rates = fc.array(
    fc.record({
      type: fc.constantFrom('fixed' as const, 'percentage' as const),
      units: fc.integer({ min: 0, max: 3_000 }),
    }),
    { minLength: 1, maxLength: 4 },
  );

  it('is never more than a line, and adds up to what each rate comes to', () => {
    fc.assert(
      fc.property(currencies, amounts, rates, (currency, lines, stated) => {
        const taxed = lines.map((units) => money(units, currency));
        const inForce = stated.map(({ type, units }, index) => {
          const value = type === 'fixed' ? money(units, currency) : new Decimal(units).dividedBy(100);
          return inclusive(`rate ${index}`, { type, value: value.toFixed() });
        });
        const { applied, lines: shares } = computeTaxes(taxed, inForce, currency);
        for (const [index, amount] of taxed.entries()) {
          const inside = sumDecimals(shares[index]!.map(({ tax_amount }) => tax_amount));
          expect(inside.lte(amount), `${inside.toFixed()} in ${amount.toFixed()}`).to.equal(true);
        }
        for (const { by, tax_amount } of applied) {
          const own = shares.flat().filter(({ tax_rate_id }) => tax_rate_id === by.rate.id);
          expect(sumDecimals(own.map((share) => share.tax_amount)).toFixed()).to.equal(tax_amount.toFixed());
        }
      }),
      { numRuns: samples(2_000) },
    );
  });

  it('is no cent more than a line of which it is nearly all', () => {
    const fixed = ['0.01', '22.85', '2.07'].map((value, index) => inclusive(`rate ${index}`, { type: 'fixed', value }));
    const { lines } = computeTaxes([new Decimal('24.87'), new Decimal('0.06')], fixed, 'usd');
    expect(lines.map((shares) => sumDecimals(shares.map(({ tax_amount }) => tax_amount)).toFixed())).to.deep.equal([
      '24.87',
      '0.06',
    ]);
  });

  it('an amount with more decimals than its currency is spread over nothing', () => {
    expect(() => spread(new Decimal('10.005'), [new Decimal(1), new Decimal(2)], 'usd')).to.throw('more decimals');
    expect(() => spread(new Decimal('100.5'), [new Decimal(1)], 'jpy')).to.throw('more decimals');
  });
});
