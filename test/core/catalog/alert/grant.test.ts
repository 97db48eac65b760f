/** How much of a grant was used, as a part that is compared with levels (docs/rules/alerts.md, "Grants of entitlements"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { EXHAUSTED, usageRatio } from '../../../../core/catalog/alert/grant.ts';
import { deriveAlertState } from '../../../../core/catalog/alert/state.ts';
import { Decimal } from '../../../../core/foundation/decimal.ts';

describe('the part of a grant that was used', () => {
  const rows: [used: string, quota: string, ratio: string][] = [
    ['0', '3', '0'],
    ['1', '3', '0.333333'],
    ['2', '3', '0.666666'],
    ['9999999.999999', '10000000', '0.999999'],
    ['10000000', '10000000', '1'],
  ];
  for (const [used, quota, ratio] of rows)
    it(`${used} of ${quota} is ${ratio}`, () => {
      expect(usageRatio({ used: new Decimal(used), quota: new Decimal(quota) }).toFixed()).to.equal(ratio);
    });

  it('is exhausted when nothing is left, and never while something is', () => {
    const millionths = fc.bigInt({ min: 1n, max: 10n ** 20n });
    fc.assert(
      fc.property(millionths, fc.bigInt({ min: 0n, max: 1000n }), (whole, left) => {
        const quota = new Decimal(whole.toString()).dividedBy(1_000_000);
        const used = quota.minus(new Decimal(left.toString()).dividedBy(1_000_000));
        fc.pre(used.gte(0));
        const ratio = usageRatio({ used, quota }).toFixed();
        expect(deriveAlertState(EXHAUSTED, ratio)).to.equal(left === 0n ? 'in_alarm' : 'ok');
      }),
    );
  });
});
