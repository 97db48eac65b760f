/**
 * What units cost that lines of a chain have charged one after the other (docs/rules/proration.md, "Usage over a change"): lines with equal
 * terms are one run, in which tiers and packages go on; where terms differ they begin again. A run below 0 is taken off the runs before it,
 * the latest first, and then off later ones, so that a correction gives back what was charged for what it corrects.
 */
import { Decimal, sumOf, ZERO } from '../../decimal.ts';
import { chargeParts, type PriceTerms } from '../../pricing/charge.ts';

export type PricedUnits = { readonly price: PriceTerms; readonly terms: string; readonly units: Decimal };

export function costOfUnits(price: PriceTerms, units: Decimal): Decimal {
  return sumOf(chargeParts(price, Decimal.max(units, ZERO)).map(({ amount }) => amount));
}

export function costOfRuns(entries: readonly PricedUnits[]): Decimal {
  const [only, ...others] = entries;
  if (only && others.length === 0) return costOfUnits(only.price, only.units);
  return sumOf(lessCorrected(joinRuns(entries)).map(({ price, units }) => costOfUnits(price, units)));
}

/** Neighbours with equal terms as one. */
export function joinRuns(entries: readonly PricedUnits[]): PricedUnits[] {
  const runs: PricedUnits[] = [];
  for (const entry of entries) {
    const last = runs.at(-1);
    if (last?.terms === entry.terms) runs[runs.length - 1] = { ...last, units: last.units.plus(entry.units) };
    else runs.push(entry);
  }
  return runs;
}

function lessCorrected(runs: readonly PricedUnits[]): PricedUnits[] {
  const left: PricedUnits[] = [];
  let owed = ZERO;
  for (const run of runs) {
    const taken = Decimal.min(owed, Decimal.max(run.units, ZERO));
    owed = owed.minus(taken);
    left.push({ ...run, units: Decimal.max(run.units, ZERO).minus(taken) });
    if (run.units.isNegative()) owed = owed.plus(takeBack(left, run.units.negated()));
  }
  return left;
}

/** What is more than all of the runs hold. */
function takeBack(runs: PricedUnits[], units: Decimal): Decimal {
  let rest = units;
  for (let index = runs.length - 1; index >= 0 && rest.gt(0); index--) {
    const run = runs[index]!;
    const taken = Decimal.min(run.units, rest);
    runs[index] = { ...run, units: run.units.minus(taken) };
    rest = rest.minus(taken);
  }
  return rest;
}
