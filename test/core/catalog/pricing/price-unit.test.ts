import { expect } from 'chai';
import { checkPriceUnit, priceUnitFromFiat, priceUnitToFiat } from '../../../../core/catalog/pricing/price-unit.ts';

describe('price units', () => {
  it('amount in the unit × rate = amount in money, and back', () => {
    expect(priceUnitToFiat('250', '0.004').toFixed()).to.equal('1');
    expect(priceUnitFromFiat('1', '0.004').toFixed()).to.equal('250');
    expect(() => priceUnitFromFiat('1', '0')).to.throw('conversion_rate');
  });

  const valid = { code: 'crd', base_currency: 'EUR', conversion_rate: '0.25' };
  it('a sound one is accepted', () => expect(checkPriceUnit(valid)).to.equal(undefined));

  const rows: [string, object][] = [
    ['code', { code: 'c' }],
    ['code', { code: 'thirteen-char' }],
    ['code', { code: 'a b' }],
    ['base_currency', { base_currency: 'zzz' }],
    ['conversion_rate', { conversion_rate: '0' }],
    ['conversion_rate', { conversion_rate: '-1' }],
    ['conversion_rate', { conversion_rate: 'much' }],
  ];
  for (const [field, change] of rows)
    it(`${JSON.stringify(change)} is an error of ${field}`, () => {
      expect(() => checkPriceUnit({ ...valid, ...change })).to.throw(`${field}:`);
    });
});
