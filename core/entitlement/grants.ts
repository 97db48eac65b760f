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
import { type GrantDuration, grantWindow } from './grant-window.ts';
import type { OrderedUsage, Portion } from './ordered-usage.ts';
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

type Terms = Pick<
  Entitlement,
  | 'grant_measure'
  | 'grant_quota'
  | 'grant_duration_value'
  | 'grant_duration_unit'
  | 'grant_allocation_behavior'
  | 'aggregation_mode'
> & { readonly entitlement_id: string; readonly quantity: number };

/** Sources with the same are one group: what holds beside others is one by itself, as often as it is held. */
export function grantGroupOf({ aggregation_mode, grant_measure, entitlement_id }: Terms): string {
  return aggregation_mode === 'parallel' ? entitlement_id : grant_measure!;
}

/** Those of one length together, in the order of the grants that they are. */
export function alikeGrants<Source extends Terms>(sources: readonly Source[]): [Source, ...Source[]][] {
  return [...groupBy(sources, (source) => JSON.stringify(durationOf(source))).values()];
}

/** Of the sources of one group. */
export function addedGrants(sources: readonly Terms[]): Grants[] {
  return alikeGrants(sources).map((of) => ({
    duration: durationOf(of[0]),
    quota: sumDecimals(of.map(({ grant_quota, quantity }) => new Decimal(grant_quota!).times(String(quantity)))),
  }));
}

function durationOf({
  grant_duration_unit: unit,
  grant_duration_value,
  grant_allocation_behavior,
}: Terms): GrantDuration {
  if (unit === 'subscription_period') return { unit };
  return { unit: unit!, value: grant_duration_value!, allocation: grant_allocation_behavior ?? 'first_usage' };
}

/** A grant that was opened, with what was drawn from it. */
type Opened = Period & { used: Decimal };
/** From where nothing is left until one of the grants ends; `limit` of what is used in its first instant was free still. */
type UsedUp = Period & {
  readonly limit: Decimal;
  /** Of a history that goes on: what was used of it before. */
  readonly before?: Decimal;
};
/** What became of the grants of a group, in the order in which they are stated; those of each in order of time. */
type GroupHistory = { readonly opened: readonly (readonly Opened[])[]; readonly used_up: readonly UsedUp[] };

/** How a group stands at an instant of its cycle: all of it that what comes later goes by. */
export type HistoryUntil = {
  readonly at: Milliseconds;
  /** The last grants that were opened; null where none was. */
  readonly last: readonly (Opened | null)[];
  readonly over: UsedUp | null;
  /** In the cycle. */
  readonly used: Decimal;
};

/** Where the usage of a history ends at an instant. */
export function historyUntil(
  at: Milliseconds,
  { history, usage, before }: { history: GroupHistory; usage: OrderedUsage; before: HistoryUntil | null },
): HistoryUntil {
  const over = history.used_up.at(-1);
  const used = usage.between({ start: Number.NEGATIVE_INFINITY, end: at });
  return {
    at,
    last: history.opened.map((all) => all.at(-1) ?? null),
    over: over ? { ...over, before: usedWhile(over, usage) } : null,
    used: used.plus(before?.used ?? ZERO),
  };
}

function usedWhile(over: UsedUp, usage: OrderedUsage): Decimal {
  return usage.between(over).plus(over.before ?? ZERO);
}

/**
 * In steps, one a portion: there may be a million, and whoever counts them lets others have their turn. Behind what is known of a cycle it goes on, with
 * the usage from there.
 */
export function* historyOf(
  group: readonly Grants[],
  { cycles, timezone }: Pick<Granting, 'cycles' | 'timezone'>,
  usage: OrderedUsage,
  before: HistoryUntil | null = null,
): Generator<undefined, GroupHistory, undefined> {
  const known = group.map((_, index) => copyOf(before?.last[index] ?? null));
  const opened = known.map((last): Opened[] => (last ? [last] : []));
  const used_up: UsedUp[] = before?.over ? [before.over] : [];
  for (const cycle of cycles) {
    const running = before ? known : group.map((): Opened | null => null);
    for (let place = usage.placeOf(cycle.start); place < usage.portions.length; place++) {
      const portion = usage.portions[place]!;
      if (portion.at >= cycle.end) break;
      // An event of nothing is no use.
      if (portion.used.isZero()) continue;
      for (const [index, { duration }] of group.entries()) {
        const last = running[index];
        if (last && portion.at < last.end) continue;
        const free_from = last?.end ?? cycle.start;
        const next = { ...grantWindow(portion.at, duration, { cycle, free_from, timezone }), used: ZERO };
        running[index] = next;
        opened[index]!.push(next);
      }
      const over = drawn(portion, { group, running: running as Opened[], last: used_up.at(-1) });
      if (over) used_up.push(over);
      yield;
    }
  }
  return { opened, used_up };
}

/** It is drawn from. */
function copyOf(grant: Opened | null): Opened | null {
  return grant && { ...grant };
}

type Drawing = {
  readonly group: readonly Grants[];
  readonly running: readonly Opened[];
  readonly last: UsedUp | undefined;
};

/** Draws what there is; what begins where nothing is left. */
function drawn({ at, used }: Portion, { group, running, last }: Drawing): UsedUp | null {
  // Of what grants nothing nothing is drawn; what is given back in a stretch in which nothing is left is set off against what is charged there.
  if (running.length === 0) return null;
  if (last && at < last.end) return null;
  const inTurn = running.map((grant, index) => ({ grant, quota: group[index]!.quota })).sort(endsFirst);
  if (used.isNegative()) {
    inTurn[0]!.grant.used = inTurn[0]!.grant.used.plus(used);
    return null;
  }
  let left = used;
  for (const { grant, quota } of inTurn) {
    const taken = Decimal.min(left, quota.minus(grant.used));
    grant.used = grant.used.plus(taken);
    left = left.minus(taken);
  }
  return left.isZero() ? null : { start: at, end: inTurn[0]!.grant.end, limit: used.minus(left) };
}

function endsFirst(a: { readonly grant: Opened }, b: { readonly grant: Opened }): number {
  return a.grant.end - b.grant.end;
}

/**
 * Up to which limits usage is free. Grants of one length alone are limits themselves; of others nothing is free where any group is
 * used up.
 */
export function* freeWindows(granting: Granting, usage: OrderedUsage): Generator<undefined, FreeWindows, undefined> {
  const histories: GroupHistory[] = [];
  for (const group of granting.groups) histories.push(yield* historyOf(group, granting, usage));
  const [group, ...others] = granting.groups;
  if (group?.length === 1 && others.length === 0) {
    const windows = histories[0]!.opened[0]!.map(({ start, end }) => ({ start, end }));
    return { limit: group[0]!.quota, windows };
  }
  return usedUpInAny(histories.flatMap(({ used_up }) => used_up));
}

/** Stretches in which some group is used up, those that overlap as one: nothing in them is free but what the first instant had left. */
export function usedUpInAny(stretches: readonly UsedUp[]): FreeWindows {
  const windows: { start: Milliseconds; end: Milliseconds; limit: Decimal }[] = [];
  for (const { start, end, limit } of stretches.toSorted((a, b) => a.start - b.start || a.limit.comparedTo(b.limit))) {
    const last = windows.at(-1);
    if (last && start < last.end) last.end = Math.max(last.end, end);
    else windows.push({ start, end, limit });
  }
  return { limit: ZERO, windows };
}

/** One of the grants of a group, as it is at an instant: opened, or waiting for usage. */
export type GrantNow = {
  readonly quota: Decimal;
  readonly used: Decimal;
  readonly window: Period | null;
};
export type GroupNow = {
  readonly limit: Decimal;
  /** What is charged, too. */
  readonly used: Decimal;
  /** From where usage that is not in it would count, until where usage begins again from 0, at the latest. */
  readonly window: Period;
  readonly grants: readonly GrantNow[];
};

/** How a group is in its cycle. */
export function groupAt(
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
    history: GroupHistory;
    before?: HistoryUntil | null;
  },
): GroupNow {
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
    const used = usage.between(cycle).plus(before?.used ?? ZERO);
    return { limit: ZERO, used, window: cycle, grants: [] };
  }
  const over = history.used_up.find(({ start, end }) => start <= at && at < end);
  const charged = over ? Decimal.max(ZERO, usedWhile(over, usage).minus(over.limit)) : ZERO;
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
