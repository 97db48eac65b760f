import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import {
  checkCurrency,
  displayAmount,
  minorUnits,
  parseDecimal,
  roundMoney,
  withSymbol,
} from '../../../core/foundation/money.ts';

const amounts = fc
  .tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.integer({ min: 0, max: 18 }))
  .map(([digits, places]) => new Decimal(digits.toString()).div(new Decimal(10).pow(places)));
const currencies = fc.constantFrom('usd', 'jpy', 'kwd', 'clf', 'EUR');

describe('roundMoney: half away from zero to the ISO 4217 minor unit', () => {
  const rows: [string, string, string][] = [
    ['usd', '0.005', '0.01'],
    ['usd', '-0.005', '-0.01'],
    ['usd', '0.00499999999999999999', '0'],
    ['usd', '1.015', '1.02'],
    ['USD', '2.675', '2.68'],
    ['jpy', '0.5', '1'],
    ['jpy', '-0.5', '-1'],
    ['isk', '1.49', '1'],
    ['bhd', '0.0005', '0.001'],
    ['clf', '0.00005', '0.0001'],
    ['xcg', '0.125', '0.13'],
    ['usd', '123456789012345678901234567890.125', '123456789012345678901234567890.13'],
  ];
  for (const [currency, amount, rounded] of rows) {
    it(`${amount} ${currency} → ${rounded}`, () => expect(roundMoney(amount, currency).toFixed()).to.equal(rounded));
  }

  it('never answers a negative zero', () => expect(roundMoney('-0.004', 'usd').toJSON()).to.equal('0'));

  it('is idempotent, symmetric, and never further than half a minor unit away', () => {
    fc.assert(
      fc.property(amounts, currencies, (amount, currency) => {
        const rounded = roundMoney(amount, currency);
        const half = new Decimal(10).pow(-minorUnits(currency)).div(2);
        expect(roundMoney(rounded, currency).eq(rounded)).to.equal(true);
        expect(roundMoney(amount.negated(), currency).eq(rounded.negated())).to.equal(true);
        expect(rounded.minus(amount).abs().lte(half)).to.equal(true);
      }),
    );
  });
});

describe('currencies', () => {
  for (const unknown of ['', 'us', 'usdx', 'zzz', 'xau', 'xxx', '840'])
    it(`${JSON.stringify(unknown)} is refused`, () => {
      expect(() => minorUnits(unknown))
        .to.throw('currency:')
        .with.property('code', 'validation_error');
      expect(() => checkCurrency(unknown, 'base_currency')).to.throw('base_currency:');
    });

  it('stores the code in lower case', () => expect(checkCurrency('EUR')).to.equal('eur'));
});

describe('displayAmount', () => {
  const rows: [string, string, string][] = [
    ['12.5', 'usd', '$12.50'],
    ['0', 'usd', '$0.00'],
    ['0.000125', 'usd', '$0.000125'],
    ['-3', 'eur', '-€3.00'],
    ['100', 'jpy', '¥100'],
    ['1.5', 'kwd', 'KWD 1.500'],
    ['1234567.1', 'cad', 'CA$1234567.10'],
  ];
  for (const [amount, currency, shown] of rows)
    it(`${amount} ${currency} → ${shown}`, () => expect(displayAmount(amount, currency)).to.equal(shown));

  it('shows a custom unit with its own symbol', () => {
    expect(withSymbol('2.50', '◎')).to.equal('◎2.5');
    expect(withSymbol('7', 'TOK')).to.equal('TOK 7');
  });
});

describe('parseDecimal', () => {
  for (const text of ['0', '-0.5', '00.10', '12345678901234567890.123456789012345678', '1.0000000000000000000000000'])
    it(`${text} is decimal text`, () => expect(parseDecimal(text)?.eq(text)).to.equal(true));

  const refused = ['', ' 1', '1 ', '+1', '.5', '5.', '1e3', '1,5', '1_000', 'NaN', 'Infinity', '0x10', '--1', '١'];
  for (const text of [...refused, '123456789012345678901', '0.1234567890123456789'])
    it(`${JSON.stringify(text)} is not`, () => expect(parseDecimal(text)).to.equal(undefined));

  it('reads -0 as 0', () => expect(parseDecimal('-0.00')?.toJSON()).to.equal('0'));
});
