/** Decimal text and Stripe's integers: exact in both directions, or refused. */
import { expect } from 'chai';
import fc from 'fast-check';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { fromMinorUnits, toMinorUnits } from '../../../integrations/stripe/amounts.ts';

const WHOLE = ['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'vnd', 'vuv', 'xaf', 'xof', 'xpf'];
const THOUSANDTHS = ['bhd', 'jod', 'kwd', 'omr', 'tnd'];

const refusal = (amount: string, currency: string) => {
  try {
    return `accepted as ${toMinorUnits(amount, currency)}`;
  } catch (error) {
    expect(error).to.be.instanceOf(ProviderError);
    expect((error as ProviderError).error_class).to.equal('person');
    return (error as Error).message;
  }
};

describe('integrations/stripe/amounts', () => {
  const exact: [amount: string, currency: string, integer: number][] = [
    ['12.34', 'usd', 1_234],
    ['12.34', 'USD', 1_234],
    ['12.30', 'eur', 1_230],
    ['-0.01', 'eur', -1],
    ['0', 'usd', 0],
    ['90071992547409.91', 'usd', Number.MAX_SAFE_INTEGER],
    ['1234', 'jpy', 1_234],
    ['1234.00', 'krw', 1_234],
    ['500', 'mga', 500],
    ['1.23', 'kwd', 1_230],
    ['1.230', 'bhd', 1_230],
    ['-5', 'tnd', -5_000],
    ['7', 'isk', 700],
    ['7', 'ugx', 700],
    ['7.25', 'huf', 725],
    ['7.25', 'twd', 725],
  ];
  for (const [amount, currency, integer] of exact)
    it(`${amount} ${currency} is ${integer}`, () => expect(toMinorUnits(amount, currency)).to.equal(integer));

  const refused: [amount: string, currency: string, why: RegExp][] = [
    ['12.345', 'usd', /12\.345 usd.* smallest amount is 0\.01, the nearest 12\.35$/],
    ['0.001', 'usd', /nearest 0$/],
    ['1.5', 'jpy', /1\.5 jpy.* smallest amount is 1, the nearest 2$/],
    ['12.50', 'mga', /smallest amount is 1, the nearest 13$/],
    ['1.234', 'kwd', /1\.234 kwd.* smallest amount is 0\.01, the nearest 1\.23$/],
    ['7.5', 'isk', /smallest amount is 1, the nearest 8$/],
    ['7.5', 'ugx', /smallest amount is 1, the nearest 8$/],
    ['1.25', 'iqd', /no unit for amounts in iqd/],
    ['1.25', 'usdc', /no unit for amounts in usdc/],
    ['90071992547409.92', 'usd', /too large/],
    ['1e3', 'usd', /"1e3" is not an amount/],
    ['', 'usd', /"" is not an amount/],
  ];
  for (const [amount, currency, why] of refused)
    it(`${JSON.stringify(amount)} ${currency} is refused`, () => expect(refusal(amount, currency)).to.match(why));

  it('an integer becomes an amount and the same integer again', () => {
    const currency = fc.constantFrom('usd', 'eur', 'inr', 'huf', 'twd', ...WHOLE);
    fc.assert(
      fc.property(fc.maxSafeInteger(), currency, (integer, code) => {
        expect(toMinorUnits(fromMinorUnits(integer, code), code)).to.equal(integer === 0 ? 0 : integer);
      }),
    );
  });

  it('only every tenth thousandth and every hundredth of a whole amount is accepted', () => {
    const steps = fc.constantFrom(
      ...THOUSANDTHS.map((code) => [code, 10] as const),
      ...['isk', 'ugx'].map((code) => [code, 100] as const),
    );
    fc.assert(
      fc.property(fc.integer(), steps, (integer, [code, step]) => {
        const text = fromMinorUnits(integer, code);
        if (integer % step === 0) expect(toMinorUnits(text, code)).to.equal(integer === 0 ? 0 : integer);
        else expect(refusal(text, code)).to.contain('cannot represent');
      }),
    );
  });
});
