import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../../core/decimal.ts';
import { Exact, exactText } from '../../../../core/metering/exact.ts';
import { divide } from '../../../../core/metering/expression/arithmetic.ts';

describe('a quotient in an expression', () => {
  const integer = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: -1000, max: 1000 }),
    // Around powers of ten, where the count of digits changes.
    fc.tuple(fc.nat(15), fc.integer({ min: -2, max: 2 }), fc.boolean()).map(([power, by, negative]) => {
      const value = Math.min(10 ** power + by, Number.MAX_SAFE_INTEGER);
      return negative ? 0 - value : value;
    }),
  );
  const number = fc.tuple(integer, fc.nat(80)).map(([small, scale]) => new Exact(small, scale, undefined));

  it('has the 60 significant digits that decimal.js gives, half away from zero', () => {
    fc.assert(
      fc.property(number, number, (a, b) => {
        fc.pre(b.small !== 0);
        expect(exactText(divide(a, b))).to.equal(quotient(a, b).toFixed());
      }),
      { numRuns: 5_000 },
    );
  });

  it('is the same for integers that are safe and for those that are not', () => {
    fc.assert(
      fc.property(number, number, (a, b) => {
        fc.pre(b.small !== 0);
        const [bigA, bigB] = [beyondSafe(a), beyondSafe(b)];
        const [big, small] = [divide(bigA, bigB), divide(a, b)];
        expect(exactText(big)).to.equal(exactText(small));
        if (small.big !== undefined) expect(big.scale).to.equal(small.scale);
      }),
      { numRuns: 2_000 },
    );
  });

  const written: [a: number, b: number, text: string][] = [
    [1, 7, '0.142857142857142857142857142857142857142857142857142857142857'],
    [-2, 3, `-0.${'6'.repeat(59)}7`],
    [9007199254740991, 9007199254740990, '1.00000000000000011102230246251567869426645496570642418864393'],
    [1, 1024, '0.0009765625'],
  ];
  for (const [a, b, text] of written) {
    it(`${a} / ${b} is ${text.slice(0, 24)}…`, () => {
      expect(exactText(divide(new Exact(a, 0, undefined), new Exact(b, 0, undefined)))).to.equal(text);
    });
  }
});

function quotient(a: Exact, b: Exact): Decimal {
  return decimal(a).div(decimal(b));
}

function decimal({ small, scale }: Exact): Decimal {
  return new Decimal(small).div(new Decimal(10).pow(scale));
}

/** The same number with a mantissa that only a bigint holds. */
function beyondSafe({ small, scale }: Exact): Exact {
  return new Exact(0, scale + 20, BigInt(small) * 10n ** 20n);
}
