/**
 * What entitlements make free (docs/rules/entitlements.md, "What is free"). In each reset period the first units, up to the
 * limit, are free, in the order in which they were used; the price is for the rest. What a charge pays is what the units
 * above the limit grew by between its beginning and its end, so that it does not matter how many charges share a reset period,
 * nor how many reset periods lie in one charge. Limits of different reset periods hold beside each other (beside.ts). What is granted
 * bit by bit (grants.ts) is a limit of stretches of time that usage itself begins.
 */
import { Decimal, type DecimalInput, sumDecimals, ZERO } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { FreeWindows, Granting } from './grants.ts';
import { computeAboveAnyLimit, type UsageInterval } from './independent-limits.ts';
import type { OrderedUsage } from './ordered-usage.ts';
import type { UsageResetPeriod } from './record.ts';

/** All sources of one reset period together; no limit is unlimited. */
export type LimitAllowance = { readonly limit: Decimal | null; readonly usage_reset_period: UsageResetPeriod | null };
/** What is granted bit by bit, of one measure. */
export type GrantedAllowance = Pick<Granting, 'measure' | 'groups'>;
export type Allowance = LimitAllowance | GrantedAllowance;

/** One reset period that a charge meets: what was used in it until the charge begins, and until the charge or it ends. */
export type AllowedWindow = {
  readonly start: Milliseconds;
  readonly end: Milliseconds;
  readonly before: Decimal;
  readonly after: Decimal;
  /** Of a short first period; that of the allowance when absent. */
  readonly limit?: Decimal;
};
export type MeasuredAllowance = {
  readonly limit: Decimal | null;
  readonly windows: readonly AllowedWindow[];
  /** The grants that it is made of; of an amount the limit, and what was used, are money. */
  readonly granting?: Granting;
};

/** What a charge meets of what grants make free. */
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
  /** Where several of them hold beside each other, and cut the charge. */
  readonly parts?: readonly UsageInterval[];
};

export type BillableUsage = Pick<AllowanceUsage, 'quantity' | 'buckets'> & {
  /** Units that are not charged; null where nothing is granted. */
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

/** What of the money that usage costs is above what grants of an amount make free; null without any. */
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

/** Of a meter with windows the first of them are free. */
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
