/**
 * For each line of a chain, the cost of the chain up to the start and up to the end of the line (docs/rules/proration.md, "Usage over a
 * change"), exact and before commitments. A line pays the difference, so the lines add up to the cost of the chain, however many lines it
 * has.
 */

import { addParts } from '../../catalog/pricing/add-parts.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../../catalog/pricing/charge.ts';
import { termsKey } from '../../catalog/pricing/equal-terms.ts';
import type { ChargePart } from '../../catalog/pricing/terms.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { windowAt } from '../../foundation/time/window.ts';
import { applyAllowances, computeAmountAbove } from '../allowances/allowance.ts';
import { type Chain, sharedTimes } from './chain.ts';
import {
  allowedPrefixes,
  joinedAllowances,
  joinedParts,
  type MeasuredLine,
  type Prefix,
  type UnitsByBucket,
} from './prefixes.ts';
import { BucketCost } from './runs.ts';

export type LineCost = {
  readonly until_begin: Decimal;
  readonly until_end: Decimal;
  /** Charged units of the line; for the rules `shared` and `integral`, the units of the whole chain, of which the line pays a share. */
  readonly quantity: Decimal;
  /** Units of `quantity` that entitlements made free; null if nothing is granted. */
  readonly free: Decimal | null;
  /** Charge parts that add up to `until_end` − `until_begin`. */
  readonly parts: readonly ChargePart[];
};

type PricedLine = {
  readonly service: Period;
  readonly price: PriceTerms;
  readonly terms: string;
  /** Measurement of the line; null if nothing is measured yet. */
  readonly measured: MeasuredLine | null;
};

type ChainCostInput = Pick<Chain, 'whole' | 'windows'> & { readonly lines: readonly PricedLine[] };

/** Costs of the lines, in chain order. */
export function chainCosts<Item extends { readonly price: PriceTerms }>(
  chain: Chain<Item>,
  measure: (line: Chain<Item>['lines'][number]) => MeasuredLine | null,
): LineCost[] {
  const lines = chain.lines.map((line) => {
    const { price } = line.item;
    return { service: line.service, price, terms: termsKey(price), measured: measure(line) };
  });
  return COSTS_BY_RULE[chain.rule]({ ...chain, lines });
}

const ONE = new Decimal(1);
const QUANTITY_PLACES = 24;

const COSTS_BY_RULE = { additive: additiveCosts, shared: sharedCosts, integral: integralCosts } as const;

/**
 * Costs of lines each of which charges the events that occur while it is active. In each bucket, tiers continue from line to line as long
 * as the terms are equal.
 */
function additiveCosts({ lines, windows }: ChainCostInput): LineCost[] {
  const isBucketed = lines.some(({ measured }) => measured?.buckets);
  const own = lines.map((line) => toUnitsByBucket(line, windows));
  const buckets = new Map<Milliseconds, BucketCost>();
  let cost = ZERO;
  let until_begin = ZERO;
  let before: Prefix | null = null;
  return allowedPrefixes(lines, own, isBucketed).map((prefix, index) => {
    const { added, parts } = addLine(buckets, { lines, index, units: prefix.added });
    cost = cost.plus(added);
    const { allowances, free, quantity } = prefix;
    const until_end = applyMoneyGrants(cost, computeAmountAbove(allowances), free);
    const line: LineCost = {
      until_begin,
      until_end,
      quantity: quantity.minus(before?.quantity ?? ZERO),
      free: free && free.minus(before?.free ?? ZERO),
      parts: addParts(parts).filter(({ units, amount }) => !units.isZero() || !amount.isZero()),
    };
    until_begin = until_end;
    before = prefix;
    return line;
  });
}

/**
 * Returns the charge after grants of money, which leave the amount `above` them. If units are free as well, they are subtracted from `cost`
 * already, and the higher of the two amounts is charged.
 */
export function applyMoneyGrants(cost: Decimal, above: Decimal | null, free: Decimal | null): Decimal {
  if (above === null) return cost;
  return free === null ? Decimal.min(above, cost) : Decimal.max(above, cost);
}

function toUnitsByBucket({ service, measured }: PricedLine, windows: Chain['windows']): UnitsByBucket {
  if (measured === null) return new Map();
  if (measured.buckets === null) return new Map([[0, measured.quantity]]);
  const starts = measured.bucket_starts ?? [];
  return new Map(
    measured.buckets.map((values, index) => {
      const start = starts[index]!;
      // The first bucket of a line can also be the last of the preceding line. Both lines use the start of its window as key.
      const isCut = index === 0 && windows !== null;
      const at = isCut ? windowAt(Math.max(start, service.start), windows.size, windows).start : start;
      return [at, sumDecimals(values)] as const;
    }),
  );
}

type AddedLine = { readonly lines: readonly PricedLine[]; readonly index: number; readonly units: UnitsByBucket };

/** Adds to each bucket the charged units by which the line changed it. Returns the added cost and its parts. */
function addLine(
  buckets: Map<Milliseconds, BucketCost>,
  { lines, index, units }: AddedLine,
): { added: Decimal; parts: ChargePart[] } {
  const parts: ChargePart[] = [];
  let added = ZERO;
  for (const [bucket, own] of units) {
    if (own.isZero()) continue;
    const cost = buckets.get(bucket) ?? new BucketCost(lines, index);
    buckets.set(bucket, cost);
    const line = cost.add(index, own);
    added = added.plus(line.added);
    parts.push(...line.parts);
  }
  return { added, parts };
}

/** Costs of lines that share one measured value: each line charges its price for its share of the time, bucket by bucket. */
function sharedCosts({ lines, whole, windows }: ChainCostInput): LineCost[] {
  // All lines have the same measurement.
  const measured = lines.find((line) => line.measured !== null)?.measured ?? null;
  if (measured === null) return lines.map(emptyLineCost);
  const allowed = applyAllowances(measured);
  const shares =
    allowed.buckets === null
      ? [{ units: [allowed.quantity], ...computeWeights(lines, whole, measured) }]
      : bucketShares({ lines, whole, windows }, allowed.buckets, measured.bucket_starts ?? []);
  const quantity = billedQuantity(allowed.quantity);
  return computeShareCosts(lines, shares).map((cost) => ({ ...cost, quantity, free: allowed.free }));
}

/** Measured values that all lines share: line `index` pays `weights[index] / total` of their cost. */
type CostShare = { readonly units: readonly Decimal[]; readonly weights: readonly Decimal[]; readonly total: Decimal };

/**
 * Computes the shares by time. If several reset periods of a limit leave units to charge, computes them by the units that each reset period
 * leaves.
 */
function computeWeights(lines: readonly PricedLine[], whole: Period, measured: MeasuredLine): Omit<CostShare, 'units'> {
  const resets = resetShares(lines, whole, measured);
  if (resets !== null) return resets;
  const times = computeSharedTimes(lines, whole);
  return { weights: times, total: sumDecimals(times) };
}

function computeSharedTimes(lines: readonly PricedLine[], time: Period): Decimal[] {
  return sharedTimes(
    lines.map(({ service }) => ({ item: null, service })),
    time,
  ).map((ms) => new Decimal(ms));
}

/** Computes the shares by reset period. Null if at most one reset period leaves units to charge. */
function resetShares(
  lines: readonly PricedLine[],
  whole: Period,
  { allowances = [], parts = [] }: MeasuredLine,
): Omit<CostShare, 'units'> | null {
  const [allowance, ...others] = allowances;
  if (!allowance || allowance.limit === null || others.length > 0 || parts.length > 0) return null;
  if (allowance.windows.length < 2) return null;
  const { limit } = allowance;
  const left = allowance.windows.map(({ start, end, before, after, limit: own = limit }) => {
    const above = Decimal.max(ZERO, after.minus(own)).minus(Decimal.max(ZERO, before.minus(own)));
    const times = computeSharedTimes(lines, { start: Math.max(start, whole.start), end: Math.min(end, whole.end) });
    return { above: Decimal.max(ZERO, above), times, time: sumDecimals(times) };
  });
  if (left.some(({ above, time }) => above.gt(0) && time.isZero()) || left.every(({ above }) => above.isZero()))
    return null;
  // A common denominator makes the shares add up to exactly 1.
  const divisors = [...new Set(left.filter(({ time }) => time.gt(0)).map(({ time }) => time.toFixed()))];
  const common = divisors.reduce((product, time) => product.times(time), ONE);
  const weights = lines.map((_, index) =>
    sumDecimals(
      left.flatMap(({ above, times, time }) =>
        time.isZero() ? [] : [above.times(times[index]!).times(common.dividedBy(time))],
      ),
    ),
  );
  return { weights, total: sumDecimals(weights) };
}

function bucketShares(
  { lines, whole, windows }: ChainCostInput,
  buckets: readonly (readonly Decimal[])[],
  starts: readonly Milliseconds[],
): CostShare[] {
  const windowIn = (at: Milliseconds) => (windows === null ? whole : windowAt(at, windows.size, windows));
  const begin = lines[0]!.service.start;
  // Lines share only a bucket in which one of them begins. Any other bucket belongs to the line that is active at its start.
  const cut = new Map(lines.slice(1).map(({ service }) => [windowIn(service.start).start, service.start]));
  return buckets.map((units, index) => {
    const at = Math.max(starts[index]!, begin);
    const window = index === 0 || cut.has(starts[index]!) ? windowIn(at) : null;
    if (window === null || !cut.has(window.start)) {
      const activeIndex = lines.findLastIndex(({ service }) => service.start <= at);
      return { units, weights: lines.map((_, place) => (place === activeIndex ? ONE : ZERO)), total: ONE };
    }
    const weights = computeSharedTimes(lines, {
      start: Math.max(window.start, whole.start),
      end: Math.min(window.end, whole.end),
    });
    return { units, weights, total: sumDecimals(weights) };
  });
}

/**
 * Costs of lines that share one integral over time: each line pays the price of the whole integral by its own terms, in proportion to its
 * own integral. Neighbouring lines of equal terms pay nothing if their integrals add up to 0 or less.
 */
function integralCosts({ lines, whole }: ChainCostInput): LineCost[] {
  const whole_us = new Decimal(whole.end - whole.start).times(1000);
  const integrals = lines.map(({ measured }) => measured?.integral ?? ZERO);
  const quantity = sumDecimals(integrals).dividedBy(whole_us).toDecimalPlaces(QUANTITY_PLACES);
  const allowed = applyAllowances({
    quantity,
    buckets: null,
    allowances: joinedAllowances(lines),
    parts: joinedParts(lines),
  });
  const runs = groupIntoRuns(lines);
  const sums = runs.map((places) => sumDecimals(places.map((place) => integrals[place]!)));
  const weights = lines.map((_, index) => {
    const run = runs.findIndex((places) => places.includes(index));
    return sums[run]!.gt(0) ? integrals[index]! : ZERO;
  });
  const total = sumDecimals(weights);
  const billed = billedQuantity(allowed.quantity);
  const share = { units: total.gt(0) ? [billed] : [], weights, total: total.gt(0) ? total : ONE };
  return computeShareCosts(lines, [share]).map((cost, index) => ({
    ...cost,
    quantity: integrals[index]!.dividedBy(whole_us).toDecimalPlaces(QUANTITY_PLACES),
    free: index === 0 ? allowed.free : allowed.free && ZERO,
  }));
}

/** Indexes of neighbouring lines with equal terms. */
function groupIntoRuns(lines: readonly PricedLine[]): number[][] {
  const runs: number[][] = [];
  for (const [index, { terms }] of lines.entries()) {
    if (index > 0 && lines[index - 1]!.terms === terms) runs.at(-1)!.push(index);
    else runs.push([index]);
  }
  return runs;
}

/**
 * Computes the costs of shares. It multiplies before it divides, and divides only once per total, so that shares that add up to 1 cost
 * exactly the whole.
 */
function computeShareCosts(
  lines: readonly PricedLine[],
  shares: readonly CostShare[],
): Pick<LineCost, 'until_begin' | 'until_end' | 'parts'>[] {
  const numerators = new Map<string, Decimal>();
  let until_begin = ZERO;
  return lines.map(({ price }, index) => {
    const parts: ChargePart[] = [];
    for (const { units, weights, total } of shares) {
      const weight = weights[index]!;
      if (weight.isZero()) continue;
      const own = units.flatMap((one) => chargeParts(price, billedQuantity(one)));
      const cost = sumDecimals(own.map(({ amount }) => amount));
      const key = total.toFixed();
      numerators.set(key, (numerators.get(key) ?? ZERO).plus(cost.times(weight)));
      parts.push(...(weight.eq(total) ? own : own.map((part) => timesShare(part, weight, total))));
    }
    const until_end = sumDecimals([...numerators].map(([total, sum]) => sum.dividedBy(total)));
    const line = { until_begin, until_end, parts: addParts(parts) };
    until_begin = until_end;
    return line;
  });
}

function emptyLineCost(): LineCost {
  return { until_begin: ZERO, until_end: ZERO, quantity: ZERO, free: null, parts: [] };
}

function timesShare(part: ChargePart, weight: Decimal, total: Decimal): ChargePart {
  const share = (value: Decimal) => value.times(weight).dividedBy(total);
  return { ...part, units: share(part.units), flat_amount: share(part.flat_amount), amount: share(part.amount) };
}
