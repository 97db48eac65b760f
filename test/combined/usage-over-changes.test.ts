/**
 * A change inside a period, and what its usage costs at every door (docs/rules/usage.md, "Over a change inside a period"): for each
 * aggregation, with and without buckets, and the price models in turn a change that is drawn by chance. A change between equal
 * prices changes no total, and nothing changes while no event arrives.
 */
import { expect } from 'chai';
import {
  type Changed,
  drawChanged,
  KINDS,
  MEASURES,
  modelAmounts,
  TERMS,
  totalWithoutEqualCuts,
} from '../support/changed-usage.ts';
import type { ModelTerms } from '../support/invoice-model.ts';
import { chanceOf, seedsToRun } from '../support/seeds.ts';
import { expectedAt, liveThrough, type StatedUsage } from '../support/usage-over-changes.ts';

/** SEED=7 for another; the long test goes through many. */
const SEED = seedsToRun(1)[0]!;
const MODELS = Object.keys(TERMS) as ModelTerms['model'][];

/** Two models for each aggregation, and the kinds of changes in turn. */
function drawAll(seed: number): Changed[] {
  const chance = chanceOf(seed);
  let kinds = chance.shuffled(KINDS);
  return MEASURES.flatMap((measure) =>
    chance
      .shuffled(MODELS)
      .slice(0, 2)
      .map((model) => {
        if (kinds.length === 0) kinds = chance.shuffled(KINDS);
        const kind = kinds.pop()!;
        return drawChanged(chance, { name: `${measure.name} ${model} ${kind}`, kind, measure, model });
      }),
  );
}

describe(`usage over changes, seed ${SEED}`, () => {
  const all = drawAll(SEED);
  let stated: StatedUsage;

  before(async function () {
    this.timeout(300_000);
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
