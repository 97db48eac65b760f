import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { compare, divideRounded, type Exact, exactText, minus, plus, times } from '../../../core/metering/exact.ts';
import {
  ExactSum,
  fromScaled,
  parseQuantity,
  roundToQuantity,
  scaledToDecimal,
  toScaled,
} from '../../../core/metering/quantity.ts';
import { toDecimal } from '../../support/exact-decimal.ts';
import { samples } from '../../support/samples.ts';

/** Wide enough that no sum or product of two quantities is rounded. */
const Wide = Decimal.clone({ precision: 200 });

describe('quantity: a number text becomes an exact quantity or is refused', () => {
  const accepted: [string, string][] = [
    ['0', '0'],
    ['-0', '0'],
    ['42.5', '42.5'],
    ['-7', '-7'],
    ['100.25', '100.25'],
    [' 5 ', '5'],
    ['\t5.50\n', '5.5'],
    ['+5', '5'],
    ['.5', '0.5'],
    ['5.', '5'],
    ['007', '7'],
    ['1e3', '1000'],
    ['1.5E-3', '0.0015'],
    ['0e999999999999', '0'],
    ['0.00e-99', '0'],
    ['1.0000000000000000000000000000000000', '1'],
    ['9007199254740991', '9007199254740991'],
    ['9007199254740993.25', '9007199254740993.25'],
    ['999999999999999999999999.999999999999999999999999', '999999999999999999999999.999999999999999999999999'],
    ['0.000000000000000000000001', '0.000000000000000000000001'],
    ['1e-24', '0.000000000000000000000001'],
    ['1e23', '100000000000000000000000'],
  ];
  for (const [text, value] of accepted) {
    it(`${JSON.stringify(text)} is ${value}`, () => expect(exactText(exact(text))).to.equal(value));
  }

  for (const text of [
    '',
    ' ',
    'abc',
    'NaN',
    'Infinity',
    '-Infinity',
    '0x10',
    '1_000',
    '1,000',
    '1 2',
    '--1',
    '+-1',
    '.',
    '-',
    'e5',
    '1e',
    '1e1.5',
    '1.2.3',
    'true',
    'null',
    '١',
    '5%',
    '$5',
  ]) {
    it(`${JSON.stringify(text)} is not a number`, () => expect(parseQuantity(text)).to.equal('is not a number'));
  }
  for (const text of [
    '1e24',
    '-1e24',
    '1000000000000000000000000',
    '1e999999999999999999999',
    `1${'0'.repeat(1000)}`,
  ]) {
    it(`${text.slice(0, 30)} is too large`, () => expect(parseQuantity(text)).to.equal('is too large'));
  }
  const rounded: [string, string][] = [
    ['1e-25', '0'],
    ['4.999e-25', '0'],
    ['5e-25', '0.000000000000000000000001'],
    ['-5e-25', '-0.000000000000000000000001'],
    ['0.0000000000000000000000001', '0'],
    ['1e-999999999999999999999', '0'],
    ['1.0000000000000000000000001', '1'],
    ['1.2345678901234567e-9', '0.000000001234567890123457'],
    ['0.3333333333333333333333333333', '0.333333333333333333333333'],
    ['-0.6666666666666666666666666667', '-0.666666666666666666666667'],
    ['0.9999999999999999999999995', '1'],
    [`0.${'1'.repeat(5000)}`, `0.${'1'.repeat(24)}`],
  ];
  for (const [text, value] of rounded) {
    it(`${text.slice(0, 40)} is ${value}, rounded half away from zero`, () =>
      expect(exactText(exact(text))).to.equal(value));
  }
  it('what rounding makes too large is too large', () =>
    expect(parseQuantity('999999999999999999999999.9999999999999999999999995')).to.equal('is too large'));

  it('every finer number is what decimal.js rounds it to', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }),
        fc.integer({ min: 37, max: 90 }),
        (digits, places) => {
          const text = `${digits}e-${places}`;
          expect(exactText(exact(text))).to.equal(
            new Wide(text).toDecimalPlaces(24, Wide.ROUND_HALF_UP).plus(0).toFixed(),
          );
        },
      ),
      { numRuns: samples(1000) },
    );
  });

  it('every usable number is the number that decimal.js reads', () => {
    fc.assert(
      fc.property(quantityText(), (text) => {
        const value = exact(text);
        expect(toDecimal(value).toFixed()).to.equal(plain(new Decimal(text)));
        expect(scaledToDecimal(toScaled(value)).toFixed()).to.equal(plain(new Decimal(text)));
        expect(compare(fromScaled(toScaled(value)), value)).to.equal(0);
      }),
      { numRuns: samples(1000) },
    );
  });

  it('adds, subtracts, multiplies and compares as decimal.js does with enough digits', () => {
    fc.assert(
      fc.property(quantityText(), quantityText(), (a, b) => {
        const [x, y] = [exact(a), exact(b)];
        const [dx, dy] = [new Wide(a), new Wide(b)];
        expect(exactText(plus(x, y))).to.equal(plain(dx.plus(dy)));
        expect(exactText(minus(x, y))).to.equal(plain(dx.minus(dy)));
        expect(exactText(times(x, y))).to.equal(plain(dx.times(dy)));
        expect(Math.sign(compare(x, y))).to.equal(dx.comparedTo(dy) + 0);
      }),
      { numRuns: samples(2000) },
    );
  });

  it('a running sum of any quantities, in any order, is their sum', () => {
    fc.assert(
      fc.property(fc.array(quantityText(), { maxLength: 40 }), fc.nat(40), (texts, cut) => {
        const expected = texts.reduce((sum, text) => sum.plus(text), new Wide(0));
        const whole = sumOf(texts);
        expect(scaledToDecimal(whole.scaled).toFixed()).to.equal(plain(expected));
        const parts = sumOf(texts.slice(cut).reverse());
        parts.addSum(sumOf(texts.slice(0, cut)));
        expect(parts.scaled).to.equal(whole.scaled);
      }),
      { numRuns: samples(1000) },
    );
  });

  it('a sum stays exact where it leaves the safe integers', () => {
    const sum = sumOf(['9007199254740991', '9007199254740991', '0.25', '9007199254740991.5', '-0.000001']);
    expect(scaledToDecimal(sum.scaled).toFixed()).to.equal('27021597764222973.749999');
  });

  it('results are rounded half away from zero to 24 places, and refused from 10^24 on', () => {
    const half = times(exact('0.000000000000000000000001'), exact('0.5'));
    expect(exactText(roundToQuantity(half) as Exact)).to.equal('0.000000000000000000000001');
    expect(exactText(roundToQuantity(times(half, exact('-1'))) as Exact)).to.equal('-0.000000000000000000000001');
    expect(exactText(roundToQuantity(times(half, exact('0.9'))) as Exact)).to.equal('0');
    expect(roundToQuantity(times(exact('1e12'), exact('1e12')))).to.equal('is too large');
    expect(roundToQuantity(times(exact('-1e12'), exact('1e12')))).to.equal('is too large');
    expect(exactText(roundToQuantity(times(exact('1e12'), exact('1e11'))) as Exact)).to.equal('1' + '0'.repeat(23));
  });

  it('divides half away from zero', () => {
    const cases: [bigint, bigint, bigint][] = [
      [5n, 2n, 3n],
      [-5n, 2n, -3n],
      [5n, -2n, -3n],
      [4n, 3n, 1n],
      [-1n, 2n, -1n],
      [1n, 3n, 0n],
      [6n, 3n, 2n],
    ];
    for (const [a, b, expected] of cases) expect(divideRounded(a, b)).to.equal(expected);
  });
});

function exact(text: string): Exact {
  const value = parseQuantity(text);
  if (typeof value === 'string') throw new Error(`${text} ${value}`);
  return value;
}

function sumOf(texts: readonly string[]): ExactSum {
  const sum = new ExactSum();
  for (const text of texts) sum.add(exact(text));
  return sum;
}

function plain(value: Decimal): string {
  return value.isZero() ? '0' : value.toFixed();
}

/** Usable quantities of every size, many of them at the edge of the safe integers. */
function quantityText(): fc.Arbitrary<string> {
  const digits = (max: number) => fc.stringMatching(new RegExp(`^[0-9]{0,${max}}$`));
  const any = fc
    .tuple(fc.constantFrom('', '-'), digits(24), digits(24))
    .map(([sign, whole, fraction]) => `${sign}${whole || '0'}${fraction === '' ? '' : `.${fraction}`}`);
  const common = fc
    .tuple(fc.integer({ min: -1e6, max: 1e6 }), fc.nat(6))
    .map(([n, places]) => (n / 10 ** places).toFixed(places));
  const edge = fc
    .tuple(fc.integer({ min: -3, max: 3 }), fc.constantFrom(1, -1))
    .map(([d, sign]) => String(2n ** 53n * BigInt(sign) + BigInt(d)));
  return fc.oneof(any, common, edge);
}
