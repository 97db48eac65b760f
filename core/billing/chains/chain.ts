/**
 * Usage lines that follow one another inside one billing period are a chain (docs/rules/proration.md, "Usage over a change"): the lines of
 * one source (the plan, or an add-on) on one meter in one period, one after the other. A line joins the chain that ended last at or before
 * its begin; lines that run at one time are chains of their own. What a chain costs is computed at one place for all of its lines
 * (chain-costs.ts), so that a change between equal prices changes no total.
 */
import { groupBy } from '../../group-by.ts';
import type { ChainRule } from '../../metering/aggregations/aggregation.ts';
import type { Milliseconds } from '../../time/instant.ts';
import type { Period } from '../../time/period.ts';
import type { WindowGrid, WindowSize } from '../../time/window.ts';

/** Terms by which a line joins a chain. */
export type ChainTerms = {
  readonly rule: ChainRule;
  /** Source and meter: lines of one key may be one chain. */
  readonly key: string;
  /** The line that it goes on for; null where it follows none. */
  readonly follows_id: string | null;
  /** The windows of the meter, each of which is a period of its own; null without. */
  readonly windows: (WindowGrid & { readonly size: WindowSize }) | null;
};

export type LinkedItem = { readonly id: string; readonly chain_terms?: ChainTerms | null };

/** A line with the half-open time in which it is active in the period. */
export type ChainLine<Item> = { readonly item: Item; readonly service: Period };

export type Chain<Item = unknown> = {
  readonly rule: ChainRule;
  /** In order of time. */
  readonly lines: readonly ChainLine<Item>[];
  /** The regular period in which they lie: of its full length, also where the period is short or cut. */
  readonly whole: Period;
  /** From when on values count for a level: the begin of the period, or of the subscription where the meter never resets. */
  readonly level_since: Milliseconds;
  /** Begin of the billing period; a customer that left a family before it is not counted. */
  readonly begins: Milliseconds;
  readonly windows: ChainTerms['windows'];
  /** Nothing later is measured: the period still runs. */
  readonly measured_until?: Milliseconds;
};

/** A service period of a line, before it is known what it belongs to. */
export type Linkable<Item extends LinkedItem> = ChainLine<Item> & {
  readonly whole: Period;
  readonly level_since: Milliseconds;
  readonly begins: Milliseconds;
};

/** By service period the chain that it is in. What is alone and not an integral is in none: it is charged by itself. */
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

/** Lines that end where another begins, or before; of several that do, the one that it follows, or that ended last. */
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

/** From the begin of its first line to the end of its last. */
export function chainWindow({ lines, measured_until = Number.POSITIVE_INFINITY }: Chain): Period {
  return { start: lines[0]!.service.start, end: Math.min(lines.at(-1)!.service.end, measured_until) };
}

/** Times between its lines, in which none of them is active: what happens then is charged by nobody. */
export function computeGaps({ lines }: Chain): Period[] {
  return lines.slice(1).flatMap(({ service }, index) => {
    const gap = { start: lines[index]!.service.end, end: service.start };
    return gap.start < gap.end ? [gap] : [];
  });
}

/** A line of a chain counts its own events, those of all of the chain, or all that make the level that it bills. */
export function usageWindowIn(chain: Chain, service: Period): Period {
  const end = Math.min(service.end, chain.measured_until ?? service.end);
  if (chain.rule === 'shared') return chainWindow(chain);
  return { start: chain.rule === 'integral' ? chain.level_since : service.start, end: Math.max(service.start, end) };
}

/**
 * How long each line of a chain holds in a time that is shared among them: the first reaches back to its begin, the last on to its end, and a
 * gap counts to the line before it. Lines that are not active in it have nothing of it.
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
