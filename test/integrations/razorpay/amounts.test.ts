/** Decimal text and Razorpay's integers: exact in both directions, or refused. */
import { expect } from 'chai';
import fc from 'fast-check';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { fromSubunits, toPayableSubunits, toSubunits } from '../../../integrations/razorpay/amounts.ts';

const refusal = (run: () => number) => {
  try {
    return `accepted as ${run()}`;
  } catch (error) {
    expect(error).to.be.instanceOf(ProviderError);
    expect((error as ProviderError).error_class).to.equal('person');
    return (error as Error).message;
  }
};

describe('integrations/razorpay/amounts', () => {
  const exact: [amount: string, currency: string, integer: number][] = [
    ['12.34', 'inr', 1_234],
    ['12.34', 'INR', 1_234],
    ['-0.01', 'inr', -1],
    ['1234', 'jpy', 1_234],
    ['1.23', 'kwd', 1_230],
    ['1.230', 'omr', 1_230],
    ['90071992547409.91', 'usd', Number.MAX_SAFE_INTEGER],
  ];
  for (const [amount, currency, integer] of exact)
    it(`${amount} ${currency} is ${integer}`, () => expect(toSubunits(amount, currency)).to.equal(integer));

  const refused: [amount: string, currency: string, why: RegExp][] = [
    ['12.345', 'inr', /12\.345 inr.* smallest amount is 0\.01, the nearest 12\.35$/],
    ['1.5', 'jpy', /smallest amount is 1, the nearest 2$/],
    ['1.234', 'kwd', /smallest amount is 0\.01, the nearest 1\.23$/],
    ['1', 'vnd', /no unit for amounts in vnd/],
    ['1', 'tnd', /no unit for amounts in tnd/],
    ['1', 'xyz', /no unit for amounts in xyz/],
    ['1e3', 'inr', /"1e3" is not an amount/],
  ];
  for (const [amount, currency, why] of refused)
    it(`${JSON.stringify(amount)} ${currency} is refused`, () =>
      expect(refusal(() => toSubunits(amount, currency))).to.match(why));

  it('less than 100 of the smallest unit cannot be paid', () => {
    expect(toPayableSubunits('1', 'inr')).to.equal(100);
    expect(toPayableSubunits('1', 'jpy')).to.equal(1);
    for (const amount of ['0.99', '0', '-5'])
      expect(refusal(() => toPayableSubunits(amount, 'inr'))).to.contain(`at least 1 inr, not ${amount}`);
    expect(refusal(() => toPayableSubunits('0', 'jpy'))).to.contain('at least 1 jpy');
  });

  it('an integer becomes an amount and the same integer again', () => {
    const currency = fc.constantFrom('inr', 'usd', 'eur', 'jpy');
    fc.assert(
      fc.property(fc.maxSafeInteger(), currency, (integer, code) => {
        expect(toSubunits(fromSubunits(integer, code), code)).to.equal(integer === 0 ? 0 : integer);
      }),
    );
  });
});
