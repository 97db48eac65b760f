/** Usage of an additive meter, in the order of its events. */
import { type Decimal, ZERO } from '../../foundation/decimal.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';

/** Usage at one instant, in units or money. */
export type UsagePortion = { readonly at: Milliseconds; readonly used: Decimal };

export class OrderedUsage {
  /** Portions in order of time, one per instant. */
  readonly portions: readonly UsagePortion[];
  /** Cumulative usage before the portion with the same index. */
  readonly #before: readonly Decimal[];

  constructor(portions: readonly UsagePortion[]) {
    this.portions = portions;
    const before = [ZERO];
    for (const { used } of portions) before.push(before.at(-1)!.plus(used));
    this.#before = before;
  }

  /** Sums the usage from `start` up to but not including `end`. */
  sumBetween({ start, end }: Period): Decimal {
    if (start >= end) return ZERO;
    return this.#before[this.findIndex(end)]!.minus(this.#before[this.findIndex(start)]!);
  }

  /** Splits the usage into a part before `at` and a part from `at` on. */
  splitAt(at: Milliseconds): [before: OrderedUsage, after: OrderedUsage] {
    const place = this.findIndex(at);
    return [new OrderedUsage(this.portions.slice(0, place)), new OrderedUsage(this.portions.slice(place))];
  }

  /** Index of the first portion at or after the instant. */
  findIndex(at: Milliseconds): number {
    let low = 0;
    let high = this.portions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.portions[middle]!.at < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
