/**
 * What entitlements make free that are granted bit by bit (docs/rules/entitlements.md, "Grants"). Usage opens a grant where none
 * lasts, and uses it up in the order in which it happens; what is used while nothing is left is charged. Grants that add up are one
 * pool of several: first is drawn from the one that ends first. Those that hold beside each other leave free what all leave free.
 */
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import { groupBy } from '../group-by.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { GRANT_MEASURES } from './grant-record.ts';
import { computeGrantWindow, type GrantDuration } from './grant-window.ts';
import type { OrderedUsage, UsagePortion } from './ordered-usage.ts';
import type { Entitlement } from './record.ts';

export type GrantMeasure = (typeof GRANT_MEASURES)[number];

/** Grants of one length, those of all sources together. */
export type Grants = { readonly quota: Decimal; readonly duration: GrantDuration };

/** Groups hold beside each other; the grants of one add up. `cycles` are whole billing periods, one after the other. */
export type Granting = {
  readonly measure: GrantMeasure;
  readonly groups: readonly (readonly Grants[])[];
  readonly cycles: readonly Period[];
  readonly timezone: string;
};

/** What is free up to a limit in each of some stretches of time. */
export type FreeWindows = {
  readonly limit: Decimal;
  readonly windows: readonly (Period & { readonly limit?: Decimal })[];
};

type GrantSourceTerms = Pick<
  Entitlement,
  | 'grant_measure'
  | 'grant_quota'
  | 'grant_duration_value'
  | 'grant_duration_unit'
  | 'grant_allocation_behavior'
  | 'aggregation_mode'
> & { readonly entitlement_id: string; readonly quantity: number };

/** Sources with the same are one group: what holds beside others is one by itself, as often as it is held. */
export function deriveGrantGroup({ aggregation_mode, grant_measure, entitlement_id }: GrantSourceTerms): string {
  return aggregation_mode === 'parallel' ? entitlement_id : grant_measure!;
}

/** Those of one length together, in the order of the grants that they are. */
export function groupGrantsByDuration<Source extends GrantSourceTerms>(
  sources: readonly Source[],
): [Source, ...Source[]][] {
  return [...groupBy(sources, (source) => JSON.stringify(toGrantDuration(source))).values()];
}

/** Of the sources of one group. */
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

/** A grant that was opened, with what was drawn from it. */
type OpenedGrant = Period & { used: Decimal };
/** From where nothing is left until one of the grants ends; `limit` of what is used in its first instant was free still. */
type ExhaustedInterval = Period & {
  readonly limit: Decimal;
  /** Of a history that goes on: what was used of it before. */
  readonly before?: Decimal;
};
/** What became of the grants of a group, in the order in which they are stated; those of each in order of time. */
type GrantGroupHistory = {
  readonly opened: readonly (readonly OpenedGrant[])[];
  readonly used_up: readonly ExhaustedInterval[];
};

/** How a group stands at an instant of its cycle: all of it that what comes later goes by. */
export type GrantHistoryState = {
  readonly at: Milliseconds;
  /** The last grants that were opened; null where none was. */
  readonly last: readonly (OpenedGrant | null)[];
  readonly over: ExhaustedInterval | null;
  /** In the cycle. */
  readonly used: Decimal;
};

/** Where the usage of a history ends at an instant. */
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
 * In steps, one a portion: there may be a million, and whoever counts them lets others have their turn. Behind what is known of a cycle it goes on, with
 * the usage from there.
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
      // An event of nothing is no use.
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

/** It is drawn from. */
function copyGrant(grant: OpenedGrant | null): OpenedGrant | null {
  return grant && { ...grant };
}

type GrantDrawing = {
  readonly group: readonly Grants[];
  readonly running: readonly OpenedGrant[];
  readonly last: ExhaustedInterval | undefined;
};

/** Draws what there is; what begins where nothing is left. */
function drawFromGrants({ at, used }: UsagePortion, { group, running, last }: GrantDrawing): ExhaustedInterval | null {
  // Of what grants nothing nothing is drawn; what is given back in a stretch in which nothing is left is set off against what is charged there.
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
 * Up to which limits usage is free. Grants of one length alone are limits themselves; of others nothing is free where any group is
 * used up.
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

/** Stretches in which some group is used up, those that overlap as one: nothing in them is free but what the first instant had left. */
export function mergeExhaustedIntervals(intervals: readonly ExhaustedInterval[]): FreeWindows {
  const windows: { start: Milliseconds; end: Milliseconds; limit: Decimal }[] = [];
  for (const { start, end, limit } of intervals.toSorted((a, b) => a.start - b.start || a.limit.comparedTo(b.limit))) {
    const last = windows.at(-1);
    if (last && start < last.end) last.end = Math.max(last.end, end);
    else windows.push({ start, end, limit });
  }
  return { limit: ZERO, windows };
}

/** One of the grants of a group, as it is at an instant: opened, or waiting for usage. */
export type GrantState = {
  readonly quota: Decimal;
  readonly used: Decimal;
  readonly window: Period | null;
};
export type GrantGroupState = {
  readonly limit: Decimal;
  /** What is charged, too. */
  readonly used: Decimal;
  /** From where usage that is not in it would count, until where usage begins again from 0, at the latest. */
  readonly window: Period;
  readonly grants: readonly GrantState[];
};

/** How a group is in its cycle. */
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
  // What grants nothing is compared with all that is used.
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
