/**
 * Units that lines of a chain have charged are priced one after the other (docs/rules/proration.md, "Usage over a change"). Lines with
 * equal terms are one run, in which tiers and packages go on; if terms differ, they begin again. A run below 0 is taken off the runs
 * before it, the latest first, and then off later ones, so that a correction gives back the charge of the units it corrects.
 */
import { Decimal, sumDecimals, ZERO } from '../../decimal.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../../pricing/charge.ts';
import type { ChargePart } from '../../pricing/terms.ts';

export type PricedUnits = { readonly price: PriceTerms; readonly terms: string; readonly units: Decimal };

/** Cost of one bucket, to which lines add their units in order of time. Only what a line changes is priced again. */
export class BucketCost {
  readonly #lines: readonly Omit<PricedUnits, 'units'>[];
  readonly #runs: PricedUnits[] = [];
  #next: number;
  #cost = ZERO;
  #isCorrected = false;

  /** `first`: the line that adds first. */
  constructor(lines: readonly Omit<PricedUnits, 'units'>[], first: number) {
    this.#lines = lines;
    this.#next = first;
  }

  /** Lines between two that add something break a run, too, where their terms differ. */
  add(index: number, units: Decimal): { added: Decimal; parts: ChargePart[] } {
    for (; this.#next < index; this.#next++) this.#join(this.#next, ZERO);
    const last = this.#runs.at(-1);
    const { price, terms } = this.#lines[index]!;
    const used = last?.terms === terms ? Decimal.max(last.units, ZERO) : ZERO;
    const parts = partsAdded(price, used, units);
    this.#join(index, units);
    this.#next = index + 1;
    const before = this.#cost;
    this.#isCorrected ||= this.#runs.at(-1)!.units.isNegative();
    this.#cost = this.#isCorrected
      ? computeRunCost(this.#runs)
      : sumDecimals([before, ...parts.map(({ amount }) => amount)]);
    return { added: this.#cost.minus(before), parts };
  }

  #join(index: number, units: Decimal): void {
    const { price, terms } = this.#lines[index]!;
    const last = this.#runs.at(-1);
    if (last?.terms === terms) this.#runs[this.#runs.length - 1] = { ...last, units: last.units.plus(units) };
    else this.#runs.push({ price, terms, units });
  }
}

/** By tier what units add to a run. */
function partsAdded(price: PriceTerms, used: Decimal, units: Decimal): ChargePart[] {
  const parts = chargeParts(price, billedQuantity(used.plus(units)));
  return used.isZero() ? parts : [...parts, ...chargeParts(price, used).map(negatedPart)];
}

function negatedPart({ units, flat_amount, amount, ...part }: ChargePart): ChargePart {
  return { ...part, units: units.negated(), flat_amount: flat_amount.negated(), amount: amount.negated() };
}

function computeRunCost(runs: readonly PricedUnits[]): Decimal {
  const left = applyCorrections(runs).flatMap(({ price, units }) => chargeParts(price, units));
  return sumDecimals(left.map(({ amount }) => amount));
}

function applyCorrections(runs: readonly PricedUnits[]): PricedUnits[] {
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

/** Takes units off the runs, the latest first. Answers the units that exceed all of the runs. */
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
