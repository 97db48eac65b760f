import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { Exact, exactText, toExact } from '../../../../core/metering/exact.ts';
import { divide, naturalLogarithm, power, squareRoot } from '../../../../core/metering/expression/arithmetic.ts';
import { samples } from '../../../support/samples.ts';

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
      { numRuns: samples(5_000) },
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
      { numRuns: samples(2_000) },
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

describe('a root, a logarithm and a power in an expression', () => {
  // decimal.js is now and then wrong in the last digit: it is asked for many more than are compared.
  const Long = Decimal.clone({ precision: 160 });
  const longOf = (value: Exact) => new Long(exactText(value));
  const rounded = (value: Decimal) => value.toSignificantDigits(60).toDecimalPlaces(400).toFixed();
  const mantissa = fc.oneof(fc.bigInt({ min: 1n, max: 10n ** 15n }), fc.bigInt({ min: 1n, max: 10n ** 60n }));
  const positive = fc.oneof(
    fc.tuple(mantissa, fc.nat(60)).map(([value, scale]) => toExact(value, scale)),
    // Close to 1, where the logarithm has few of the digits.
    fc
      .tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: -999, max: 999 }))
      .map(([scale, by]) => toExact(10n ** BigInt(scale) + BigInt(Math.max(by, -9)), scale)),
  );

  it('a root has the first 60 significant digits, rounded', () => {
    fc.assert(
      fc.property(positive, (value) => {
        expect(exactText(squareRoot(value))).to.equal(rounded(longOf(value).sqrt()));
      }),
      { numRuns: samples(2_000) },
    );
  });

  it('a logarithm has them', () => {
    fc.assert(
      fc.property(positive, (value) => {
        expect(exactText(naturalLogarithm(value))).to.equal(rounded(longOf(value).ln()));
      }),
      { numRuns: samples(500) },
    );
  });

  // The middle between two numbers of 60 digits, and the digit that decides stands 60 zeros or nines behind it.
  const zeros = (count: number) => '0'.repeat(count);
  const middles: [value: string, log: string][] = [
    [`0.${'9'.repeat(58)}7`, `-0.${zeros(58)}3${zeros(58)}5`],
    [`1.${zeros(58)}3`, `0.${zeros(58)}2${'9'.repeat(58)}6`],
  ];
  for (const [value, text] of middles) {
    it(`a logarithm that is close to a middle: ${value.slice(0, 4)}…${value.slice(-3)}`, () => {
      expect(exactText(naturalLogarithm(exactOfText(value)))).to.equal(text);
    });
  }
  it('a power that is close to a middle, and one that lies in it', () => {
    const above = exactOfText(`1.${zeros(58)}1`);
    expect(exactText(power(above, exactOfText('0.5')))).to.equal('1');
    expect(exactText(power(above, exactOfText('1.5')))).to.equal(`1.${zeros(58)}2`);
    expect(exactText(power(above, exactOfText('-0.5')))).to.equal(`0.${'9'.repeat(59)}5`);
    // The cube of 10^20 + 5 has 61 digits.
    const square = toExact((10n ** 20n + 5n) ** 2n, 0);
    expect(exactText(power(square, exactOfText('1.5')))).to.equal(`${(10n ** 20n + 5n) ** 3n + 5n}`);
  });

  it('a power has them, of an exponent that is not whole', () => {
    const fraction = fc
      .tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.integer({ min: 1, max: 20 }))
      .map(([value, scale]) => toExact(BigInt(value * 10 + 1), scale));
    fc.assert(
      fc.property(positive, fraction, (base, exponent) => {
        const size = longOf(base).ln().times(longOf(exponent));
        fc.pre(size.abs().lt(600));
        expect(exactText(power(base, exponent))).to.equal(rounded(longOf(base).pow(longOf(exponent))));
      }),
      { numRuns: samples(300) },
    );
  });

  const written: [base: string, exponent: string, text: string][] = [
    ['9', '0.5', '3'],
    ['8', '-0.5', '0.35355339059327376220042218105242451964241796884423701829417'],
    ['0.25', '1.5', '0.125'],
    ['10', '308', `1${'0'.repeat(308)}`],
    ['2', '-1e3', '0'],
    ['-2', '3', '-8'],
    ['-1.5', '701', 'a negative number of 124 digits'],
    ['0', '0.5', '0'],
    ['1', '123456789.5', '1'],
    ['1.000000000000000000000001', '1000000000000000000000000', '2.718281828459045235360286'],
  ];
  for (const [base, exponent, text] of written) {
    it(`pow(${base}, ${exponent}) is ${text.slice(0, 30)}`, () => {
      const found = exactText(power(exactOfText(base), exactOfText(exponent)));
      if (text.startsWith('a negative')) expect(found).to.match(/^-\d{124}(\.\d+)?$/);
      else expect(found.slice(0, text.length)).to.equal(text);
    });
  }

  it('no power and no number as its result is told', () => {
    expect(() => power(exactOfText('-2'), exactOfText('0.5'))).to.throw('is not a number');
    expect(() => power(exactOfText('2'), exactOfText('1e20'))).to.throw('is too large');
    expect(() => power(exactOfText('0'), exactOfText('-0.5'))).to.throw('is too large');
  });
});

function exactOfText(text: string): Exact {
  const value = new Decimal(text);
  return toExact(BigInt(value.toFixed().replace('.', '')), value.decimalPlaces());
}

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
