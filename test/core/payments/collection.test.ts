/** What of an invoice is charged, and what is left to credits (docs/rules/payments.md, "Collected by itself"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { canBePaidInPart, computeCollection } from '../../../core/payments/collection.ts';

const cents = fc.integer({ min: 1, max: 100_000 }).map((one) => new Decimal(one).div(100));

describe('what is collected', () => {
  it('never more than remains, and with the credits all of it where something is charged', () => {
    fc.assert(
      fc.property(cents, cents, fc.boolean(), fc.boolean(), (remaining, credits, hasWay, inPart) => {
        const covered = Decimal.min(remaining, credits);
        const collected = computeCollection({ remaining, covered, hasPaymentMethod: hasWay, allows_partial: inPart });
        const isWhole = covered.eq(remaining) || hasWay;
        expect(collected === null).to.equal(!isWhole && !inPart);
        if (collected?.by === 'payment_method') expect(collected.amount.plus(covered).eq(remaining)).to.equal(true);
        if (collected?.by === 'credits') expect(collected.amount.eq(covered)).to.equal(true);
      }),
    );
  });

  it('nothing of what is paid', () => {
    const paid = { remaining: new Decimal(0), covered: new Decimal(0), hasPaymentMethod: true, allows_partial: true };
    expect(computeCollection(paid)).to.equal(null);
  });

  it('an opening is paid as a whole where it would be refused, a renewal is not', () => {
    const behavior = { payment_behavior: 'error_if_incomplete' } as const;
    expect(canBePaidInPart({ billing_reason: 'SUBSCRIPTION_CREATE' }, behavior)).to.equal(false);
    expect(canBePaidInPart({ billing_reason: 'SUBSCRIPTION_CYCLE' }, behavior)).to.equal(true);
    expect(canBePaidInPart({ billing_reason: 'SUBSCRIPTION_CREATE' }, null)).to.equal(true);
  });
});
