/**
 * Limits that hold beside each other (docs/rules/entitlements.md, "Limits beside each other"): free is what all of them leave free, and
 * each counts all usage, what was charged too. In a stretch of time within which none of them begins or ends, what a limit leaves to be
 * charged is what was used last; so of several it is the most that one of them leaves, whichever instants they were reached at.
 */
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import type { Period } from '../time/period.ts';

/** What of a charge was used in a stretch of it. */
export type UsageInterval = Period & { readonly used: Decimal };

/** A stretch of a limit, with what was used in it before the charge. */
type LimitWindowUsage = Period & { readonly before: Decimal; readonly limit?: Decimal };
type LimitUsage = { readonly limit: Decimal | null; readonly windows: readonly LimitWindowUsage[] };

/** The stretches of a charge within which no limit begins or ends; empty where one limit is alone, and where nothing cuts the charge. */
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

/** What limits leave to be charged together, of the parts of a charge in order of time. */
export function computeAboveAnyLimit(allowances: readonly LimitUsage[], parts: readonly UsageInterval[]): Decimal {
  const growths = allowances.map(buildGrowth);
  return sumDecimals(parts.map((part) => Decimal.max(...growths.map((growth) => growth(part)))));
}

/** What is above a limit grows by so much in a part, which is asked for behind those before it. */
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
