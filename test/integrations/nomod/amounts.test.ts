/** Amounts of Nomod: texts with the decimals of the currency, or refused. */
import { expect } from 'chai';
import { fromNomodAmount, toNomodAmount } from '../../../integrations/nomod/amounts.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';

describe('integrations/nomod/amounts', () => {
  const exact: [amount: string, currency: string, text: string][] = [
    ['119.1', 'aed', '119.10'],
    ['1.234', 'kwd', '1.234'],
    ['1234', 'jpy', '1234'],
    ['90071992547409931.27', 'usd', '90071992547409931.27'],
  ];
  for (const [amount, currency, text] of exact)
    it(`${amount} ${currency} is ${text}`, () => {
      expect(toNomodAmount(amount, currency)).to.equal(text);
      expect(fromNomodAmount(text)).to.equal(amount);
    });

  const refused: [amount: string, currency: string, why: RegExp][] = [
    ['12.345', 'aed', /cannot represent 12\.345 aed: it has more than 2 decimals/],
    ['1.5', 'jpy', /more than 0 decimals/],
    ['1', 'xyz', /no amounts in xyz/],
    ['0', 'aed', /above 0, not 0 aed/],
    ['-1', 'aed', /above 0/],
    ['1e3', 'aed', /above 0, not 1e3/],
  ];
  for (const [amount, currency, why] of refused)
    it(`${amount} ${currency} is refused`, () => {
      expect(() => toNomodAmount(amount, currency)).to.throw(ProviderError, why);
    });
});
