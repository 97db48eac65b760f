/** Amounts of Chargebee (integrations/chargebee/amounts.ts). */
import { expect } from 'chai';
import fc from 'fast-check';
import { fromCents, toCents } from '../../../integrations/chargebee/amounts.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';

describe('integrations/chargebee/amounts', () => {
  for (const [amount, currency, cents] of [
    ['12.34', 'usd', 1_234],
    ['-0.01', 'eur', -1],
    ['90071992547409.91', 'usd', 9_007_199_254_740_991],
    ['1234', 'jpy', 1_234],
    ['7', 'xof', 7],
    ['1.23', 'kwd', 123],
    ['0.5', 'bhd', 50],
  ] as const)
    it(`${amount} ${currency} is ${cents}, and back`, () => {
      expect(toCents(amount, currency)).to.equal(cents);
      expect(fromCents(String(cents), currency.toUpperCase())).to.equal(amount);
    });

  for (const [amount, currency, why] of [
    ['0.001', 'usd', /nearest 0/],
    ['1.234', 'kwd', /cannot represent 1.234 kwd: the smallest amount is 0.01, the nearest 1.23/],
    ['0.5', 'jpy', /cannot represent/],
    ['1', 'clp', /^clp is not supported/],
    ['1', 'isk', /^isk is not supported/],
    ['1', 'xxx', /^xxx is not supported/],
    ['90071992547409.92', 'usd', /too large/],
    ['x', 'usd', /is not an amount/],
  ] as const)
    it(`${amount} ${currency} is refused`, () => {
      expect(() => toCents(amount, currency))
        .to.throw(ProviderError, why)
        .with.property('error_class', 'person');
    });

  it('no digit is lost', () => {
    const safe = fc.maxSafeInteger();
    fc.assert(fc.property(safe, (cents) => toCents(fromCents(cents, 'USD'), 'usd') === cents));
  });
});
