/**
 * Usage over changes that are drawn by chance, for every aggregation with every price model: each door says what the reference model says
 * (docs/rules/usage.md, "Over a change inside a period"). SEEDS=3,5 runs these alone.
 */
import { expect } from 'chai';
import { drawChanges, modelAmounts, totalWithoutEqualCuts } from '../support/changed-usage.ts';
import { createChance, seedsToRun } from '../support/seeds.ts';
import { expectedAt, liveThrough } from '../support/usage-over-changes.ts';

/** A seed combines each aggregation with this number of price models. */
const MODELS = 2;

describe('usage over changes: laws', function () {
  this.timeout(3_600_000);

  for (const seed of seedsToRun(1))
    it(`seed ${seed}`, async () => {
      const all = drawChanges(createChance(seed), MODELS);
      const stated = await liveThrough(all);
      for (const changed of all) {
        expect(totalWithoutEqualCuts(changed), changed.name).to.equal(modelAmounts(changed).total);
        const found = stated.get(changed.name)!;
        expect(found, changed.name).to.deep.equal(expectedAt(found, changed));
      }
    });
});
