/**
 * Consecutive usage lines inside one billing period form a chain (docs/rules/proration.md, "Usage over a change"): the lines of one source
 * (the plan, or an add-on) on one meter in one period. A line joins the chain that ended last at or before its start; concurrent lines form
 * separate chains. The cost of a chain is computed for all of its lines at once (chain-costs.ts), so that a change between equal prices
 * changes no total.
 */
import { groupBy } from '../../foundation/group-by.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import type { WindowGrid, WindowSize } from '../../foundation/time/window.ts';
import type { ChainRule } from '../../metering/aggregations/aggregation.ts';

export type ChainTerms = {
  readonly rule: ChainRule;
  /** Source and meter: lines with equal keys can form one chain. */
  readonly key: string;
  /** Id of the line that this line follows; null if it follows none. */
  readonly follows_id: string | null;
  /** Windows of the meter, each of which is measured and charged by itself; null for a meter without windows. */
  readonly windows: (WindowGrid & { readonly size: WindowSize }) | null;
};

export type LinkedItem = { readonly id: string; readonly chain_terms?: ChainTerms | null };

/** A line with the half-open interval in which it is active in the period. */
export type ChainLine<Item> = { readonly item: Item; readonly service: Period };

export type Chain<Item = unknown> = {
  readonly rule: ChainRule;
  /** Lines in order of time. */
  readonly lines: readonly ChainLine<Item>[];
  /** Regular period of the lines, at its full length even if the billed period is shorter. */
  readonly whole: Period;
  /**
   * Instant from which events count for a level (WEIGHTED_SUM): the start of the period, or of the subscription if the meter never resets.
   */
  readonly level_since: Milliseconds;
  /** Start of the billing period; a customer that left the hierarchy before it is not counted. */
  readonly begins: Milliseconds;
  readonly windows: ChainTerms['windows'];
  /** End of measurement while the period still runs. */
  readonly measured_until?: Milliseconds;
};

/** A service period of a line, before its chain is known. */
export type Linkable<Item extends LinkedItem> = ChainLine<Item> & {
  readonly whole: Period;
  readonly level_since: Milliseconds;
  readonly begins: Milliseconds;
};

/**
 * Maps each service period to its chain. A line that no other line joins is charged by itself and has no chain, except with the rule
 * `integral`.
 */
export function findChains<Item extends LinkedItem>(
  services: readonly Linkable<Item>[],
): ReadonlyMap<Linkable<Item>, Chain<Item>> {
  const found = new Map<Linkable<Item>, Chain<Item>>();
  const linked = services.filter(({ item }) => item.chain_terms);
  const toKey = ({ item, whole }: Linkable<Item>) => `${item.chain_terms!.key}/${whole.start}/${whole.end}`;
  for (const of of groupBy(linked, toKey).values()) {
    for (const members of groupIntoChains(of)) {
      const chain = buildChain(members);
      if (members.length === 1 && chain.rule !== 'integral') continue;
      for (const member of members) found.set(member, chain);
    }
  }
  return found;
}

function buildChain<Item extends LinkedItem>(members: readonly Linkable<Item>[]): Chain<Item> {
  const { item, whole, level_since, begins } = members[0]!;
  const { rule, windows } = item.chain_terms!;
  const lines = members.map(({ item, service }) => ({ item, service }));
  return { rule, lines, whole, level_since, begins, windows };
}

/**
 * Groups lines into chains. A line joins the chain that ended last, at or before the start of the line. If several chains ended then, the
 * chain of the line that it follows takes precedence.
 */
function groupIntoChains<Item extends LinkedItem>(services: readonly Linkable<Item>[]): Linkable<Item>[][] {
  const chains: Linkable<Item>[][] = [];
  for (const one of [...services].sort((a, b) => a.service.start - b.service.start)) {
    const open = chains.filter((chain) => chain.at(-1)!.service.end <= one.service.start);
    const latest = Math.max(...open.map((chain) => chain.at(-1)!.service.end));
    const last = open.filter((chain) => chain.at(-1)!.service.end === latest);
    const before = last.find((chain) => chain.at(-1)!.item.id === one.item.chain_terms!.follows_id) ?? last[0];
    if (before) before.push(one);
    else chains.push([one]);
  }
  return chains;
}

/** Time of the chain: from the start of its first line to the end of its last, at most until `measured_until`. */
function chainWindow({ lines, measured_until = Number.POSITIVE_INFINITY }: Chain): Period {
  return { start: lines[0]!.service.start, end: Math.min(lines.at(-1)!.service.end, measured_until) };
}

/** Intervals between the lines, in which none is active: usage in them is not charged. */
export function computeGaps({ lines }: Chain): Period[] {
  return lines.slice(1).flatMap(({ service }, index) => {
    const gap = { start: lines[index]!.service.end, end: service.start };
    return gap.start < gap.end ? [gap] : [];
  });
}

/**
 * Window in which the events of a line are counted: the line's own time, the time of the whole chain (`shared`), or the time since the
 * level of a WEIGHTED_SUM began (`integral`).
 */
export function computeChainUsageWindow(chain: Chain, service: Period): Period {
  const end = Math.min(service.end, chain.measured_until ?? service.end);
  if (chain.rule === 'shared') return chainWindow(chain);
  return { start: chain.rule === 'integral' ? chain.level_since : service.start, end: Math.max(service.start, end) };
}

/**
 * Milliseconds of a shared interval that count for each line. The first active line counts from the start of the interval, the last one
 * until its end. A gap counts for the line before it. Lines that are not active in the interval get 0.
 */
export function sharedTimes(lines: readonly ChainLine<unknown>[], time: Period): Milliseconds[] {
  const isIn = ({ service }: ChainLine<unknown>) => service.start < time.end && service.end > time.start;
  const those = lines.filter(isIn);
  return lines.map((line) => {
    const index = those.indexOf(line);
    if (index < 0) return 0;
    const start = index === 0 ? time.start : line.service.start;
    return (those[index + 1]?.service.start ?? time.end) - start;
  });
}
