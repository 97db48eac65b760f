/**
 * Independent limits (docs/rules/entitlements.md, "Limits beside each other"). Usage is free if all limits leave it
 * free, and each limit counts all usage, including charged usage. Within an interval in which no limit begins or ends,
 * each limit charges the last units used. So the limit that charges the most units decides, regardless of the instants
 * at which the limits were reached.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import type { Period } from '../../foundation/time/period.ts';

/** Usage of a charge within one interval. */
export type UsageInterval = Period & { readonly used: Decimal };

/** Interval of a limit, with its usage before the charge. */
type LimitWindowUsage = Period & { readonly before: Decimal; readonly limit?: Decimal };
type LimitUsage = { readonly limit: Decimal | null; readonly windows: readonly LimitWindowUsage[] };

/**
 * Divides a charge into intervals in which no limit begins or ends. Returns none for a single limit, or if no limit begins or ends inside
 * the charge.
 */
export function splitAtLimits(
  allowances: readonly { readonly windows: readonly Period[] }[],
  { start, end }: Period,
): Period[] {
  if (allowances.length < 2) return [];
  const bounds = allowances.flatMap(({ windows }) => windows.flatMap((one) => [one.start, one.end]));
  const within = bounds.filter((at) => start < at && at < end);
  const cuts = [...new Set([start, ...within, end])].sort((a, b) => a - b);
  if (cuts.length <= 2) return [];
  return cuts.slice(1).map((until, index) => ({ start: cuts[index]!, end: until }));
}

/** Computes the units that are charged because they are above any of the limits. `parts` are in order of time. */
export function computeAboveAnyLimit(allowances: readonly LimitUsage[], parts: readonly UsageInterval[]): Decimal {
  const growths = allowances.map(buildGrowth);
  return sumDecimals(parts.map((part) => Decimal.max(...growths.map((growth) => growth(part)))));
}

/**
 * Returns a function that computes how many units above the limit are added in one part. The function has state: call it with the parts in
 * order of time.
 */
function buildGrowth({ limit, windows }: LimitUsage): (part: UsageInterval) => Decimal {
  if (limit === null) return () => ZERO;
  const used = new Map<LimitWindowUsage, Decimal>();
  return (part) => {
    const window = windows.find(({ start, end }) => start <= part.start && part.end <= end);
    if (window === undefined) return ZERO;
    const before = used.get(window) ?? window.before;
    const after = before.plus(part.used);
    used.set(window, after);
    const above = (count: Decimal) => Decimal.max(ZERO, count.minus(window.limit ?? limit));
    return above(after).minus(above(before));
  };
}
