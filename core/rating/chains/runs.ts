/**
 * Prices the units of a chain line by line (docs/rules/proration.md, "Usage over a change"). Lines with equal terms form one run, in which
 * tiers and packages continue; different terms restart them. A run below 0 is subtracted from the runs before it, the latest first, and
 * then from later ones. So a correction credits the charge of the units that it corrects.
 */

import { billedQuantity, chargeParts, type PriceTerms } from '../../catalog/pricing/charge.ts';
import type { ChargePart } from '../../catalog/pricing/terms.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';

type PricedUnits = { readonly price: PriceTerms; readonly terms: string; readonly units: Decimal };

/** Cost of one bucket, to which lines add units in order of time. An addition prices only the changed units. */
export class BucketCost {
  readonly #lines: readonly Omit<PricedUnits, 'units'>[];
  readonly #runs: PricedUnits[] = [];
  #next: number;
  #cost = ZERO;
  #isCorrected = false;

  /** `first` is the index of the first line that adds units. */
  constructor(lines: readonly Omit<PricedUnits, 'units'>[], first: number) {
    this.#lines = lines;
    this.#next = first;
  }

  /** Adds units of line `index`. A line without units between two others also ends a run if its terms differ. */
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

/** Subtracts units from the runs, the latest first. Returns the units that exceed all runs. */
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
