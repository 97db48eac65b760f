/** What a meter measured, in the order in which it happened: of a meter that adds events up. */
import { type Decimal, ZERO } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';

/** What was used at one instant, in units or in money. */
export type UsagePortion = { readonly at: Milliseconds; readonly used: Decimal };

export class OrderedUsage {
  /** In order of time, one for each instant. */
  readonly portions: readonly UsagePortion[];
  /** What was used before the portion of the same place. */
  readonly #before: readonly Decimal[];

  constructor(portions: readonly UsagePortion[]) {
    this.portions = portions;
    const before = [ZERO];
    for (const { used } of portions) before.push(before.at(-1)!.plus(used));
    this.#before = before;
  }

  /** In a half-open range of time. */
  sumBetween({ start, end }: Period): Decimal {
    if (start >= end) return ZERO;
    return this.#before[this.findIndex(end)]!.minus(this.#before[this.findIndex(start)]!);
  }

  /** What was used before the instant, and from it on. */
  splitAt(at: Milliseconds): [before: OrderedUsage, behind: OrderedUsage] {
    const place = this.findIndex(at);
    return [new OrderedUsage(this.portions.slice(0, place)), new OrderedUsage(this.portions.slice(place))];
  }

  /** Of the first portion at the instant or behind it. */
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
