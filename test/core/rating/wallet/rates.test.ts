import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { computePayableMoney, toCredits } from '../../../../core/rating/wallet/rates.ts';

describe('credits and money', () => {
  it('what is put in pays the same amount, whatever a credit is worth', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 1, max: 1e7 }), (cents, rate) => {
        const amount = new Decimal(cents).dividedBy(100);
        const conversion_rate = new Decimal(rate).dividedBy(1e6).toFixed();
        const credits = toCredits(amount, conversion_rate);
        expect(credits.decimalPlaces()).to.be.at.most(12);
        expect(computePayableMoney(credits, conversion_rate, 'usd').toFixed()).to.equal(amount.toFixed());
        // Taken out again it leaves nothing.
        expect(toCredits(amount, conversion_rate).minus(credits).toFixed()).to.equal('0');
      }),
    );
  });
  it('whole minor units are paid, and no part of one', () => {
    expect(computePayableMoney(new Decimal('10.999'), '1', 'usd').toFixed()).to.equal('10.99');
    expect(computePayableMoney(new Decimal('10.999'), '1', 'jpy').toFixed()).to.equal('10');
  });
  it('what they can pay they have, however fine the rate', () => {
    expect(computePayableMoney(new Decimal('9.999999999999'), '1.0000000000001', 'usd').toFixed()).to.equal('9.99');
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 1, max: 1e9 }), (units, rate) => {
        const credits = new Decimal(units).times('1e-8').plus('9.999999999999');
        const conversion_rate = new Decimal(rate).times('1e-13').plus(1).toFixed();
        const amount = computePayableMoney(credits, conversion_rate, 'usd');
        expect(toCredits(amount, conversion_rate).lte(credits)).to.equal(true);
      }),
    );
  });
});
