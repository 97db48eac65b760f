/** Decimal text and Moyasar's integers: exact in both directions, or refused. */
import { expect } from 'chai';
import { fromSmallestUnits, toPayableUnits, toSmallestUnits } from '../../../integrations/moyasar/amounts.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';

describe('integrations/moyasar/amounts', () => {
  const exact: [amount: string, currency: string, integer: number][] = [
    ['1', 'sar', 100],
    ['119.1', 'SAR', 11_910],
    ['1', 'kwd', 1_000],
    ['1.234', 'kwd', 1_234],
    ['1234', 'jpy', 1_234],
    ['90071992547409.91', 'usd', Number.MAX_SAFE_INTEGER],
  ];
  for (const [amount, currency, integer] of exact)
    it(`${amount} ${currency} is ${integer}`, () => {
      expect(toSmallestUnits(amount, currency)).to.equal(integer);
      expect(fromSmallestUnits(String(integer), currency)).to.equal(amount);
    });

  const refused: [amount: string, currency: string, why: RegExp][] = [
    ['12.345', 'sar', /12\.345 sar.* smallest amount is 0\.01/],
    ['1.5', 'jpy', /smallest amount is 1/],
    ['1.2345', 'kwd', /smallest amount is 0\.001/],
    ['1', 'xyz', /no unit for amounts in xyz/],
    ['0.99', 'sar', /at least 1 sar, not 0\.99/],
    ['0.099', 'kwd', /at least 0\.1 kwd, not 0\.099/],
    ['99', 'jpy', /at least 100 jpy, not 99/],
  ];
  for (const [amount, currency, why] of refused)
    it(`${amount} ${currency} is refused`, () => {
      expect(() => toPayableUnits(amount, currency)).to.throw(ProviderError, why);
    });
});
