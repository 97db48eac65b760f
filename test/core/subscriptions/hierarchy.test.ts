import { expect } from 'chai';
import {
  checkCanHaveInherited,
  checkNoThreshold,
  type HierarchyParent,
} from '../../../core/subscriptions/hierarchy.ts';

describe('a threshold in a family', () => {
  const TINY = `0.${'0'.repeat(400)}1`;
  const cases: [threshold: string | null, has: boolean][] = [
    [null, false],
    ['', false],
    ['0', false],
    ['0.00', false],
    ['100', true],
    // Nothing, as a number of the machine.
    [TINY, true],
  ];
  for (const [threshold, has] of cases)
    it(`of ${threshold === TINY ? 'next to nothing' : JSON.stringify(threshold)}: ${has ? 'refused' : 'none'}`, () => {
      const parent = {
        id: 'subs_1',
        subscription_type: 'STANDALONE',
        auto_invoice_threshold: threshold,
      } as HierarchyParent;
      for (const check of [() => checkNoThreshold(threshold, 'group'), () => checkCanHaveInherited(parent)])
        if (has) expect(check).to.throw(/auto_invoice_threshold/);
        else expect(check).not.to.throw();
    });
});
