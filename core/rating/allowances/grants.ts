/**
 * Computes the usage that usage-ordered grants make free (docs/rules/entitlements.md, "Grants"). Usage opens a grant if
 * none is open and draws from it in the order of usage. Usage above the quota is charged. Additive grants are one pool,
 * and the grant that ends first is used first. With parallel grants, usage is free if every grant leaves it free.
 */

import type { GRANT_MEASURES } from '../../catalog/entitlement/grant-record.ts';
import type { Entitlement } from '../../catalog/entitlement/record.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { groupBy } from '../../foundation/group-by.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { computeGrantWindow, type GrantDuration } from './grant-window.ts';
import type { OrderedUsage, UsagePortion } from './ordered-usage.ts';

export type GrantMeasure = (typeof GRANT_MEASURES)[number];

/** Grants of one duration, summed over all sources. */
export type Grants = { readonly quota: Decimal; readonly duration: GrantDuration };

/**
 * Terms of all groups of grants. Groups are independent; the grants within a group add up. `cycles` are consecutive
 * whole billing periods.
 */
export type Granting = {
  readonly measure: GrantMeasure;
  readonly groups: readonly (readonly Grants[])[];
  readonly cycles: readonly Period[];
  readonly timezone: string;
};

/** Intervals in each of which usage up to a limit is free. */
export type FreeWindows = {
  readonly limit: Decimal;
  readonly windows: readonly (Period & { readonly limit?: Decimal })[];
};

/** Intervals with limits on free usage, computed from grants, and the usage in the measure of these grants (units or money). */
export type UsedGrants = { readonly free: FreeWindows; readonly usage: OrderedUsage };

type GrantSourceTerms = Pick<
  Entitlement,
  | 'grant_measure'
  | 'grant_quota'
  | 'grant_duration_value'
  | 'grant_duration_unit'
  | 'grant_allocation_behavior'
  | 'aggregation_mode'
> & { readonly entitlement_id: string; readonly quantity: number };

/**
 * Returns the key of the group to which a grant source belongs. Each parallel entitlement forms its own group; other
 * sources are grouped by measure.
 */
export function deriveGrantGroup({ aggregation_mode, grant_measure, entitlement_id }: GrantSourceTerms): string {
  return aggregation_mode === 'parallel' ? entitlement_id : grant_measure!;
}

/** Groups the sources of grants by duration, in the order of the grants. */
export function groupGrantsByDuration<Source extends GrantSourceTerms>(
  sources: readonly Source[],
): [Source, ...Source[]][] {
  return [...groupBy(sources, (source) => JSON.stringify(toGrantDuration(source))).values()];
}

/** Grants of one group, one per duration. */
export function sumGrants(sources: readonly GrantSourceTerms[]): Grants[] {
  return groupGrantsByDuration(sources).map((of) => ({
    duration: toGrantDuration(of[0]),
    quota: sumDecimals(of.map(({ grant_quota, quantity }) => new Decimal(grant_quota!).times(String(quantity)))),
  }));
}

function toGrantDuration({
  grant_duration_unit: unit,
  grant_duration_value,
  grant_allocation_behavior,
}: GrantSourceTerms): GrantDuration {
  if (unit === 'subscription_period') return { unit };
  return { unit: unit!, value: grant_duration_value!, allocation: grant_allocation_behavior ?? 'first_usage' };
}

type OpenedGrant = Period & { used: Decimal };
/**
 * Interval in which the grants of a group are exhausted. It lasts until one of the grants ends. `limit` units of the exhausting event were
 * still free.
 */
type ExhaustedInterval = Period & {
  readonly limit: Decimal;
  /** Usage in the interval up to the instant of the `GrantHistoryState` from which the history continues. */
  readonly before?: Decimal;
};
/** History of one group. `opened` has one list per grant duration, in the order of the group; each list is in order of time. */
type GrantGroupHistory = {
  readonly opened: readonly (readonly OpenedGrant[])[];
  readonly used_up: readonly ExhaustedInterval[];
};

/** State of a group at an instant of its cycle. It suffices to continue the history. */
export type GrantHistoryState = {
  readonly at: Milliseconds;
  /** Last opened grant of each duration; null without one. */
  readonly last: readonly (OpenedGrant | null)[];
  readonly over: ExhaustedInterval | null;
  /** Usage of the cycle up to `at`. */
  readonly used: Decimal;
};

/** Returns the state at the instant `at`, from which later usage continues the history. */
export function toHistoryState(
  at: Milliseconds,
  { history, usage, before }: { history: GrantGroupHistory; usage: OrderedUsage; before: GrantHistoryState | null },
): GrantHistoryState {
  const over = history.used_up.at(-1);
  const used = usage.sumBetween({ start: Number.NEGATIVE_INFINITY, end: at });
  return {
    at,
    last: history.opened.map((all) => all.at(-1) ?? null),
    over: over ? { ...over, before: sumUsedWhile(over, usage) } : null,
    used: used.plus(before?.used ?? ZERO),
  };
}

function sumUsedWhile(over: ExhaustedInterval, usage: OrderedUsage): Decimal {
  return usage.sumBetween(over).plus(over.before ?? ZERO);
}

/**
 * Computes the history of a group. It yields after each portion, because there may be a million and other tasks have to run in between.
 * `before` is the state of the cycle after earlier usage; `usage` then contains only later usage.
 */
export function* computeGrantHistory(
  group: readonly Grants[],
  { cycles, timezone }: Pick<Granting, 'cycles' | 'timezone'>,
  usage: OrderedUsage,
  before: GrantHistoryState | null = null,
): Generator<undefined, GrantGroupHistory, undefined> {
  const known = group.map((_, index) => copyGrant(before?.last[index] ?? null));
  const opened = known.map((last): OpenedGrant[] => (last ? [last] : []));
  const used_up: ExhaustedInterval[] = before?.over ? [before.over] : [];
  for (const cycle of cycles) {
    const running = before ? known : group.map((): OpenedGrant | null => null);
    for (let place = usage.findIndex(cycle.start); place < usage.portions.length; place++) {
      const portion = usage.portions[place]!;
      if (portion.at >= cycle.end) break;
      // An event of 0 units opens no grant.
      if (portion.used.isZero()) continue;
      for (const [index, { duration }] of group.entries()) {
        const last = running[index];
        if (last && portion.at < last.end) continue;
        const free_from = last?.end ?? cycle.start;
        const next = { ...computeGrantWindow(portion.at, duration, { cycle, free_from, timezone }), used: ZERO };
        running[index] = next;
        opened[index]!.push(next);
      }
      const over = drawFromGrants(portion, { group, running: running as OpenedGrant[], last: used_up.at(-1) });
      if (over) used_up.push(over);
      yield;
    }
  }
  return { opened, used_up };
}

/** Copies the grant, because drawing changes it. */
function copyGrant(grant: OpenedGrant | null): OpenedGrant | null {
  return grant && { ...grant };
}

type GrantDrawing = {
  readonly group: readonly Grants[];
  readonly running: readonly OpenedGrant[];
  readonly last: ExhaustedInterval | undefined;
};

/** Draws `used` from the open grants. Returns the interval in which they are exhausted if `used` exhausts them, otherwise null. */
function drawFromGrants({ at, used }: UsagePortion, { group, running, last }: GrantDrawing): ExhaustedInterval | null {
  // Outside all grants nothing is drawn. In an interval in which they are exhausted, negative usage lowers the charged
  // usage instead.
  if (running.length === 0) return null;
  if (last && at < last.end) return null;
  const byEnd = running.map((grant, index) => ({ grant, quota: group[index]!.quota })).sort(compareGrantEnds);
  if (used.isNegative()) {
    byEnd[0]!.grant.used = byEnd[0]!.grant.used.plus(used);
    return null;
  }
  let left = used;
  for (const { grant, quota } of byEnd) {
    const taken = Decimal.min(left, quota.minus(grant.used));
    grant.used = grant.used.plus(taken);
    left = left.minus(taken);
  }
  return left.isZero() ? null : { start: at, end: byEnd[0]!.grant.end, limit: used.minus(left) };
}

function compareGrantEnds(a: { readonly grant: OpenedGrant }, b: { readonly grant: OpenedGrant }): number {
  return a.grant.end - b.grant.end;
}

/**
 * Computes the intervals with a limit on free usage. With a single group of one duration, they are the intervals of its grants. Otherwise
 * they are the intervals in which any group is exhausted, and usage outside them is free.
 */
export function* computeFreeWindows(
  granting: Granting,
  usage: OrderedUsage,
): Generator<undefined, FreeWindows, undefined> {
  const histories: GrantGroupHistory[] = [];
  for (const group of granting.groups) histories.push(yield* computeGrantHistory(group, granting, usage));
  const [group, ...others] = granting.groups;
  if (group?.length === 1 && others.length === 0) {
    const windows = histories[0]!.opened[0]!.map(({ start, end }) => ({ start, end }));
    return { limit: group[0]!.quota, windows };
  }
  return mergeExhaustedIntervals(histories.flatMap(({ used_up }) => used_up));
}

/**
 * Merges overlapping intervals of exhaustion to windows. In such a window, only the units that were still free at its first instant are
 * free.
 */
export function mergeExhaustedIntervals(intervals: readonly ExhaustedInterval[]): FreeWindows {
  const windows: { start: Milliseconds; end: Milliseconds; limit: Decimal }[] = [];
  for (const { start, end, limit } of intervals.toSorted((a, b) => a.start - b.start || a.limit.comparedTo(b.limit))) {
    const last = windows.at(-1);
    if (last && start < last.end) last.end = Math.max(last.end, end);
    else windows.push({ start, end, limit });
  }
  return { limit: ZERO, windows };
}

/** State of one grant of a group. `window` is null while the grant waits for usage that opens it. */
export type GrantState = {
  readonly quota: Decimal;
  readonly used: Decimal;
  readonly window: Period | null;
};
type GrantGroupState = {
  readonly limit: Decimal;
  /** Usage in the interval, including the charged part. */
  readonly used: Decimal;
  /** Interval in which further usage would count against the grants. It ends at the latest when usage resets to 0. */
  readonly window: Period;
  readonly grants: readonly GrantState[];
};

export function computeGrantGroupState(
  at: Milliseconds,
  {
    group,
    cycle,
    usage,
    history,
    before = null,
  }: {
    group: readonly Grants[];
    cycle: Period;
    usage: OrderedUsage;
    history: GrantGroupHistory;
    before?: GrantHistoryState | null;
  },
): GrantGroupState {
  const placed = group.map(({ quota, duration }, index) => {
    const all = history.opened[index]!;
    const place = all.findLastIndex(({ start }) => start <= at);
    const last = all[place];
    const running = last && at < last.end ? last : null;
    const begins = running?.start ?? last?.end ?? cycle.start;
    const ends = running?.end ?? all[place + 1]?.start ?? cycle.end;
    const isAlways = duration.unit === 'subscription_period';
    const window = running || isAlways ? { start: begins, end: ends } : null;
    return { begins, ends, now: { quota, used: running?.used ?? ZERO, window } };
  });
  // If no grant applies, all usage of the cycle is compared with a limit of 0.
  if (placed.length === 0) {
    const used = usage.sumBetween(cycle).plus(before?.used ?? ZERO);
    return { limit: ZERO, used, window: cycle, grants: [] };
  }
  const over = history.used_up.find(({ start, end }) => start <= at && at < end);
  const charged = over ? Decimal.max(ZERO, sumUsedWhile(over, usage).minus(over.limit)) : ZERO;
  const grants = placed.map(({ now }) => now);
  return {
    limit: sumDecimals(grants.map(({ quota }) => quota)),
    used: sumDecimals([charged, ...grants.map(({ used }) => used)]),
    window: {
      start: Math.min(...placed.map(({ begins }) => begins)),
      end: Math.min(...placed.map(({ ends }) => ends)),
    },
    grants,
  };
}
