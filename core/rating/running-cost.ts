/**
 * Exact cost of a usage line up to the end of each window of a range (docs/rules/usage.md, "Analytics"). A window costs the amount that it
 * adds, so windows add up to the range with every price and every meter. Free units and a commitment are used up in order of time. The
 * true-up of a windowed commitment is charged with each window, any other true-up only at the end of the range.
 */

import { type Decimal, ZERO } from '../foundation/decimal.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import { type MeasuredAllowance, measureGrants } from './allowances/allowance.ts';
import type { Granting, UsedGrants } from './allowances/grants.ts';
import type { UsageInterval } from './allowances/independent-limits.ts';
import { type CommitmentInfo, computedText } from './commitments/info.ts';
import { type CommitmentPart, committedCharge } from './commitments/line.ts';
import { type MeasuredUsage, type PricedItem, priceUsageCharge } from './line-amount.ts';

/** Allowances of the range with their usage before it, and the intervals of the range if several independent limits apply. */
type RangeAllowances = {
  readonly allowances: readonly MeasuredAllowance[];
  readonly parts: readonly UsageInterval[];
};

type RunningCostRange = {
  readonly window: Period;
  readonly met: RangeAllowances;
  readonly part: CommitmentPart | undefined;
  readonly grants: ReadonlyMap<Granting, UsedGrants>;
};

type WindowUsage = {
  readonly window: Period;
  /** Usage of this window only. */
  readonly measured: MeasuredUsage;
  /** Measured value from the start of the range to the end of the window; undefined for a meter with windows of its own. */
  readonly running: Decimal | undefined;
};

type AddedCost = {
  readonly cost: Decimal;
  /** Set for a windowed commitment only. */
  readonly commitment_info: CommitmentInfo | null;
  /** Usage of the window with its free units. */
  readonly measured: MeasuredUsage;
};

export class RunningCost {
  readonly #item: PricedItem;
  readonly #range: RunningCostRange;
  #allowances: readonly MeasuredAllowance[];
  #parts: readonly UsageInterval[];
  #quantity = ZERO;
  /** Cost before the commitment. */
  #base = ZERO;
  #cost = ZERO;

  constructor(item: PricedItem, range: RunningCostRange) {
    this.#item = item;
    this.#range = range;
    this.#allowances = range.met.allowances.map((allowance) => ({
      ...allowance,
      windows: allowance.windows.map((one) => ({ ...one, after: one.before })),
    }));
    this.#parts = range.met.parts.map((one) => ({ ...one, used: ZERO }));
  }

  /** Adds a window to the cost. Windows must be added in order of time. */
  add({ window, measured, running }: WindowUsage): AddedCost {
    const added = running === undefined ? this.#addOwn(window, measured) : this.#addUntil(window, measured, running);
    const cost = this.#committed(added.base);
    const before = this.#cost;
    this.#cost = cost;
    return { cost: cost.minus(before), commitment_info: added.commitment_info, measured: added.measured };
  }

  /** Each window of a meter with windows of its own is priced separately, so the costs of windows add up. */
  #addOwn(window: Period, measured: MeasuredUsage) {
    const { commitment = null } = this.#item;
    const allowances = this.#allowances.map((allowance) => {
      const granted = this.#measureGranted(allowance, window);
      return granted ?? drawUnits({ ...allowance, windows: resetWindows(allowance) }, window.start, measured.quantity);
    });
    this.#allowances = allowances;
    const own = { ...measured, allowances };
    const item = { ...this.#item, commitment: commitment?.windows ? commitment : null };
    const { exact, commitment_info, exact_parts } = priceUsageCharge(item, window, {
      measured: own,
      currency: item.price.currency,
    });
    const info = commitment_info && exact_parts ? { ...commitment_info, ...computedText(exact_parts) } : null;
    return { base: this.#base.plus(exact!), commitment_info: info, measured: own };
  }

  #addUntil({ start, end }: Period, measured: MeasuredUsage, running: Decimal) {
    const units = running.minus(this.#quantity);
    this.#quantity = running;
    const until = { start: this.#range.window.start, end };
    this.#allowances = this.#allowances.map(
      (allowance) => this.#measureGranted(allowance, until) ?? drawUnits(allowance, start, units),
    );
    this.#parts = addUsedUnits(this.#parts, start, units);
    const all = { ...measured, quantity: running, allowances: this.#allowances, parts: this.#parts };
    const item = { ...this.#item, commitment: null };
    const { exact } = priceUsageCharge(item, until, { measured: all, currency: item.price.currency });
    return { base: exact!, commitment_info: null, measured: all };
  }

  /** Measures the free usage of an allowance of grants in the interval of a charge; null for an allowance without grants. */
  #measureGranted({ granting }: MeasuredAllowance, charge: Period): MeasuredAllowance | null {
    if (granting === undefined) return null;
    const used = this.#range.grants.get(granting);
    return used ? measureGrants(used.free, { usage: used.usage, charge, granting }) : null;
  }

  /** Cost up to the last added window under the commitment, without its true-up, which is due only when the range is over. */
  #committed(base: Decimal): Decimal {
    this.#base = base;
    const { commitment, price } = this.#item;
    const { part } = this.#range;
    if (!commitment || commitment.windows || !part) return base;
    return committedCharge(base, { commitment, price, part: { ...part, is_last: false } }).charged.charge;
  }
}

function resetWindows({ windows }: MeasuredAllowance): MeasuredAllowance['windows'] {
  return windows.map((one) => ({ ...one, before: one.after }));
}

/** Adds units to an allowance. They count for the reset period in which their window begins. */
function drawUnits(allowance: MeasuredAllowance, at: Milliseconds, units: Decimal): MeasuredAllowance {
  const { windows } = allowance;
  const place = Math.max(
    0,
    windows.findLastIndex(({ start }) => start <= at),
  );
  const used = windows.map((one, index) => (index === place ? { ...one, after: one.after.plus(units) } : one));
  return { ...allowance, windows: used };
}

function addUsedUnits(parts: readonly UsageInterval[], at: Milliseconds, units: Decimal): UsageInterval[] {
  const place = Math.max(
    0,
    parts.findLastIndex(({ start }) => start <= at),
  );
  return parts.map((one, index) => (index === place ? { ...one, used: one.used.plus(units) } : one));
}
