/**
 * A change inside a period, and what its usage costs at every door (docs/rules/usage.md, "Over a change inside a period"): for each
 * aggregation, with and without buckets, a price model and a change that are drawn by chance. A change between equal prices changes
 * no total, and nothing changes while no event arrives. test/long has every price model, and many seeds.
 */
import { expect } from 'chai';
import { drawChanges, modelAmounts, totalWithoutEqualCuts } from '../support/changed-usage.ts';
import { createChance, seedsToRun } from '../support/seeds.ts';
import { expectedAt, liveThrough, type UsageByDoor } from '../support/usage-over-changes.ts';

const SEED = seedsToRun(1)[0]!;

describe(`usage over changes, seed ${SEED}`, () => {
  const all = drawChanges(createChance(SEED), 1);
  let stated: UsageByDoor;

  before(async function () {
    this.timeout(900_000);
    stated = await liveThrough(all);
  });

  for (const changed of all)
    it(`${changed.name}: ${changed.cuts.length} terms`, () => {
      const { total } = modelAmounts(changed);
      expect(totalWithoutEqualCuts(changed)).to.equal(total);
      const found = stated.get(changed.name)!;
      expect(found).to.deep.equal(expectedAt(found, changed));
    });
});
