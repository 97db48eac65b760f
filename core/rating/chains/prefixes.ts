/**
 * Entitlements make part of the usage of a chain free (docs/rules/entitlements.md, "What is free"). The rest is computed for the first
 * line, for the first two, and so on, each time as if the chain ended with the last of these lines. A price change never restarts an
 * allowance: the reset periods of the lines are the same.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import {
  type AllowedWindow,
  applyAllowances,
  type BillableUsage,
  type MeasuredAllowance,
} from '../allowances/allowance.ts';
import type { UsageInterval } from '../allowances/independent-limits.ts';

/** Measurement of a line's meter in the service period of the line. */
export type MeasuredLine = {
  readonly quantity: Decimal;
  readonly buckets: readonly (readonly Decimal[])[] | null;
  readonly bucket_starts?: readonly Milliseconds[] | null;
  readonly allowances?: readonly MeasuredAllowance[];
  readonly parts?: readonly UsageInterval[];
  /** Set for a level (WEIGHTED_SUM): units × microseconds in the time of the line. */
  readonly integral?: Decimal | undefined;
};

type MeasuredService = { readonly service: Period; readonly measured: MeasuredLine | null };

/** Usage of a line by bucket start; under key 0 for a meter without windows. */
export type UnitsByBucket = ReadonlyMap<Milliseconds, Decimal>;

export type Prefix = Pick<BillableUsage, 'quantity' | 'free'> & {
  /** Charged units that the last line adds to each bucket that it changes. */
  readonly added: UnitsByBucket;
  readonly allowances: readonly MeasuredAllowance[];
};

/** Computes the charged units of the chain up to each of its lines. `units` are the units that each line measured itself. */
export function allowedPrefixes(
  lines: readonly MeasuredService[],
  units: readonly UnitsByBucket[],
  isBucketed: boolean,
): Prefix[] {
  if (lines.some(({ measured }) => measured?.allowances?.length)) return grantedPrefixes(lines, units, isBucketed);
  let quantity = ZERO;
  return lines.map(({ measured }, index) => {
    quantity = quantity.plus(measured?.quantity ?? ZERO);
    return { quantity: Decimal.max(quantity, ZERO), free: null, added: units[index]!, allowances: [] };
  });
}

function grantedPrefixes(
  lines: readonly MeasuredService[],
  units: readonly UnitsByBucket[],
  isBucketed: boolean,
): Prefix[] {
  let charged: UnitsByBucket = new Map();
  return lines.map((_, index) => {
    const before = lines.slice(0, index + 1);
    const added = addUnits(units.slice(0, index + 1));
    const quantity = sumDecimals(before.map(({ measured }) => measured?.quantity ?? ZERO));
    const allowances = isBucketed ? mergedAllowances(before) : joinedAllowances(before);
    const starts = [...added.keys()];
    const buckets = isBucketed ? starts.map((start) => [added.get(start)!]) : null;
    const parts = isBucketed ? [] : joinedParts(before);
    const allowed = applyAllowances({ quantity, buckets, bucket_starts: starts, allowances, parts });
    const left = allowed.buckets?.map(([value]) => Decimal.max(value!, ZERO)) ?? [allowed.quantity];
    const keys = isBucketed ? starts : [0];
    const isGranted = allowances.length > 0;
    const until = isGranted ? new Map(keys.map((start, place) => [start, left[place]!])) : added;
    const line = { ...allowed, added: changedUnits(charged, until), allowances };
    charged = until;
    return line;
  });
}

function changedUnits(before: UnitsByBucket, after: UnitsByBucket): UnitsByBucket {
  const changed = new Map<Milliseconds, Decimal>();
  for (const [start, value] of after) {
    const added = value.minus(before.get(start) ?? ZERO);
    if (!added.isZero()) changed.set(start, added);
  }
  return changed;
}

function addUnits(units: readonly UnitsByBucket[]): UnitsByBucket {
  const added = new Map<Milliseconds, Decimal>();
  for (const own of units) for (const [start, value] of own) added.set(start, (added.get(start) ?? ZERO).plus(value));
  return new Map([...added].sort(([a], [b]) => a - b));
}

type MeasuredServices = readonly MeasuredService[];

/**
 * Allowances of a chain of lines: the windows of all lines, one after another. Each line draws from a limit after the line before it, so
 * the free units of the lines add up to those of the chain.
 */
export function joinedAllowances(lines: MeasuredServices): MeasuredAllowance[] {
  return acrossLines(lines, (windows) => windows);
}

/** Allowances of a chain of lines for a meter with windows: each window has the usage before the first line and after the last one. */
function mergedAllowances(lines: MeasuredServices): MeasuredAllowance[] {
  return acrossLines(lines, (windows) => {
    const merged = new Map<Milliseconds, AllowedWindow>();
    for (const window of windows) {
      const before = merged.get(window.start)?.before ?? window.before;
      merged.set(window.start, { ...window, before });
    }
    return [...merged.values()].sort((a, b) => a.start - b.start);
  });
}

function acrossLines(
  lines: MeasuredServices,
  merge: (windows: AllowedWindow[]) => AllowedWindow[],
): MeasuredAllowance[] {
  const all = lines.flatMap(({ measured }) => (measured?.allowances?.length ? [measured.allowances] : []));
  const [first = []] = all;
  return first.map((allowance, index) => ({
    ...allowance,
    windows: merge(all.flatMap((allowances) => allowances[index]?.windows ?? [])),
  }));
}

/** Joins the parts of all lines. If a limit divides one line into parts, every undivided line counts as one part. */
export function joinedParts(lines: MeasuredServices): UsageInterval[] {
  if (!lines.some(({ measured }) => measured?.parts?.length)) return [];
  return lines.flatMap(({ service, measured }) => {
    if (measured === null) return [];
    return measured.parts?.length ? [...measured.parts] : [{ ...service, used: measured.quantity }];
  });
}
