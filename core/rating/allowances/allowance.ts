/**
 * Computes the usage that entitlements make free (docs/rules/entitlements.md, "What is free"). In each reset period the
 * first units up to the limit are free, in the order of usage; the price applies to the rest. A charge pays the growth
 * of the units above the limit between its start and its end. So it does not matter how many charges share a reset
 * period, or how many reset periods one charge contains. Limits of different reset periods are independent
 * (independent-limits.ts). Usage-ordered grants (grants.ts) are limits of intervals that usage itself begins.
 */

import type { UsageResetPeriod } from '../../catalog/entitlement/record.ts';
import { Decimal, type DecimalInput, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import type { FreeWindows, Granting } from './grants.ts';
import { computeAboveAnyLimit, type UsageInterval } from './independent-limits.ts';
import type { OrderedUsage } from './ordered-usage.ts';

/** Limits of all entitlements with one reset period, added up. A null limit is unlimited. */
export type LimitAllowance = { readonly limit: Decimal | null; readonly usage_reset_period: UsageResetPeriod | null };
/** Usage-ordered grants of one measure. */
export type GrantedAllowance = Pick<Granting, 'measure' | 'groups'>;
export type Allowance = LimitAllowance | GrantedAllowance;

/**
 * A reset period that overlaps a charge. `before` is its usage until the charge begins, `after` its usage until the
 * charge or the window ends.
 */
export type AllowedWindow = {
  readonly start: Milliseconds;
  readonly end: Milliseconds;
  readonly before: Decimal;
  readonly after: Decimal;
  /** Limit of a short first period. Default: the limit of the allowance. */
  readonly limit?: Decimal;
};
export type MeasuredAllowance = {
  readonly limit: Decimal | null;
  readonly windows: readonly AllowedWindow[];
  /** Terms of the grants, if the allowance comes from grants. If their measure is `amount`, limit and usage are money. */
  readonly granting?: Granting;
};

/** Windows of grants that overlap a charge, with their usage. */
export function measureGrants(
  { limit, windows }: FreeWindows,
  { usage, charge, granting }: { usage: OrderedUsage; charge: Period; granting: Granting },
): MeasuredAllowance {
  const until = ({ start, end }: Period, at: Milliseconds) => usage.sumBetween({ start, end: Math.min(end, at) });
  const met = windows.filter(({ end }) => end > charge.start);
  return {
    limit,
    windows: met.map((one) => ({ ...one, before: until(one, charge.start), after: until(one, charge.end) })),
    granting,
  };
}

type AllowanceUsage = {
  readonly quantity: Decimal;
  readonly buckets: readonly (readonly Decimal[])[] | null;
  readonly bucket_starts?: readonly Milliseconds[] | null;
  readonly allowances?: readonly MeasuredAllowance[];
  /** Parts of the charge in which no limit begins or ends, if several independent limits apply. */
  readonly parts?: readonly UsageInterval[];
};

export type BillableUsage = Pick<AllowanceUsage, 'quantity' | 'buckets'> & {
  /** Units that are not charged; null without an entitlement. */
  readonly free: Decimal | null;
};

export function applyAllowances({ quantity, buckets, bucket_starts, ...measured }: AllowanceUsage): BillableUsage {
  const allowances = filterUnitAllowances(measured.allowances ?? []);
  if (allowances.length === 0) return { quantity, buckets, free: null };
  const used = Decimal.max(quantity, ZERO);
  if (buckets !== null) {
    const left = computeBillableBuckets(buckets, bucket_starts ?? [], allowances);
    const billable = sumDecimals(left.flat());
    return { quantity: billable, buckets: left, free: used.minus(billable) };
  }
  const { parts = [] } = measured;
  const above = parts.length > 0 ? [computeAboveAnyLimit(allowances, parts)] : allowances.map(computeAboveLimit);
  const billable = Decimal.min(used, Decimal.max(ZERO, ...above));
  return { quantity: billable, buckets, free: used.minus(billable) };
}

export function filterUnitAllowances(allowances: readonly MeasuredAllowance[]): MeasuredAllowance[] {
  return allowances.filter((one) => !isAmountAllowance(one));
}

/** Part of the usage cost (money) above the grants with the measure `amount`; null without such grants. */
export function computeAmountAbove(allowances: readonly MeasuredAllowance[] = []): Decimal | null {
  const above = allowances.filter(isAmountAllowance).map((allowance) => computeAboveLimit(allowance));
  return above.length === 0 ? null : Decimal.max(ZERO, ...above);
}

function isAmountAllowance({ granting }: MeasuredAllowance): boolean {
  return granting?.measure === 'amount';
}

function computeAboveLimit({ limit, windows }: MeasuredAllowance): Decimal {
  if (limit === null) return ZERO;
  return sumDecimals(
    windows.map(({ before, after, limit: own = limit }) => computeExcess(after, own).minus(computeExcess(before, own))),
  );
}

function computeExcess(used: DecimalInput, free: Decimal): Decimal {
  return Decimal.max(ZERO, new Decimal(used).minus(free));
}

/** Computes the charged units per window. The first units across all windows are free. */
function computeBillableBuckets(
  buckets: readonly (readonly Decimal[])[],
  starts: readonly Milliseconds[],
  allowances: readonly MeasuredAllowance[],
): Decimal[][] {
  const rooms = allowances.map(buildRoom);
  return buckets.map((values, index) =>
    values.map((value) => {
      const free = rooms.map((take) => take(starts[index] ?? 0, Decimal.max(value, ZERO)));
      return value.minus(Decimal.min(...free));
    }),
  );
}

type TakeFreeUnits = (at: Milliseconds, units: Decimal) => Decimal;

function buildRoom({ limit, windows }: MeasuredAllowance): TakeFreeUnits {
  if (limit === null) return (_at, units) => units;
  const left = windows.map(({ before, limit: own = limit }) => Decimal.max(ZERO, own.minus(Decimal.max(before, ZERO))));
  return (at, units) => {
    const index = windows.findLastIndex(({ start }) => start <= at);
    const place = Math.max(index, 0);
    const free = Decimal.min(left[place] ?? ZERO, units);
    left[place] = (left[place] ?? ZERO).minus(free);
    return free;
  };
}
