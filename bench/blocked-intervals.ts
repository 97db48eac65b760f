/**
 * Measures which functions block the event loop, and for how long, by a CPU profile of some seconds. Consecutive samples that began in the
 * same function of this repository are one interval. Calls that follow each other without a pause are one interval, too, because no other
 * work ran in between.
 */
import { type Profiler, Session } from 'node:inspector/promises';
import { eachRead } from './request-times.ts';

export type BlockedIntervals = {
  readonly intervals: {
    readonly who: string;
    readonly total_ms: number;
    readonly longest_ms: number;
    /** Number of intervals longer than `LONG_MS`. */
    readonly long: number;
  }[];
  readonly slowest: Slowest;
};

/** The slowest percent of the reads, and the work on the event loop between the request and the end of its answer. */
type Slowest = {
  readonly count: number;
  readonly from_ms: number;
  readonly mean_ms: number;
  /** Mean time per read, by the function that blocked the event loop. */
  readonly blocked_ms: readonly (readonly [who: string, mean_ms: number])[];
};

export const LONG_MS = 2;
const SLOWEST = 0.01;
const SAMPLED_EVERY_US = 250;
const US_PER_MS = 1000;
const NS_PER_MS = 1e6;
const NOBODY = 'nobody: Postgres was waited for';

/** Starts to measure; the returned function stops and returns the result. */
export async function watchBlockedIntervals(): Promise<() => Promise<BlockedIntervals>> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLED_EVERY_US });
  await session.post('Profiler.start');
  const reads: Read[] = [];
  const leave = eachRead(({ began_ms, ended_ms }) => reads.push({ began_ms, ended_ms }));
  return async () => {
    leave();
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    const found = stretchesOf(profile);
    return { intervals: summaries(found), slowest: slowestOf(reads, found) };
  };
}

type Read = { readonly began_ms: number; readonly ended_ms: number };
type Stretch = Read & { readonly who: string };

/** Intervals in order of time, by the clock of `performance.now`. An interval in which nothing ran is included. */
function stretchesOf({ nodes, samples = [], timeDeltas = [], startTime }: Profiler.Profile): Stretch[] {
  const whoOf = beginnersOf(nodes);
  const stretches: { who: string; began_ms: number; ended_ms: number }[] = [];
  // The profiler's clock and `performance.now` have different origins.
  const ahead_ms = Number(process.hrtime.bigint()) / NS_PER_MS - performance.now();
  let at_ms = startTime / US_PER_MS - ahead_ms;
  for (const [at, id] of samples.entries()) {
    at_ms += timeDeltas[at]! / US_PER_MS;
    const who = whoOf.get(id) ?? NOBODY;
    const last = stretches.at(-1);
    if (last) last.ended_ms = at_ms;
    // A sample represents the time until the next sample.
    if (who !== last?.who) stretches.push({ who, began_ms: at_ms, ended_ms: at_ms });
  }
  return stretches;
}

function summaries(stretches: readonly Stretch[]): BlockedIntervals['intervals'] {
  const took = new Map<string, number[]>();
  for (const { who, began_ms, ended_ms } of stretches) {
    if (who === NOBODY) continue;
    const own = took.get(who) ?? [];
    took.set(who, own);
    own.push(ended_ms - began_ms);
  }
  return [...took].map(([who, took_ms]) => summary(who, took_ms)).sort((a, b) => b.longest_ms - a.longest_ms);
}

function slowestOf(reads: readonly Read[], stretches: readonly Stretch[]): Slowest {
  const slowest = [...reads]
    .sort((a, b) => tookOf(b) - tookOf(a))
    .slice(0, Math.ceil(reads.length * SLOWEST))
    .sort((a, b) => a.began_ms - b.began_ms);
  const held = new Map<string, number>();
  let first = 0;
  for (const { began_ms, ended_ms } of slowest) {
    while (first < stretches.length && stretches[first]!.ended_ms <= began_ms) first++;
    for (let at = first; at < stretches.length && stretches[at]!.began_ms < ended_ms; at++) {
      const stretch = stretches[at]!;
      const both_ms = Math.min(stretch.ended_ms, ended_ms) - Math.max(stretch.began_ms, began_ms);
      held.set(stretch.who, (held.get(stretch.who) ?? 0) + both_ms);
    }
  }
  const count = Math.max(1, slowest.length);
  return {
    count: slowest.length,
    from_ms: slowest.reduce((least, read) => Math.min(least, tookOf(read)), Number.POSITIVE_INFINITY),
    mean_ms: slowest.reduce((sum, read) => sum + tookOf(read), 0) / count,
    blocked_ms: [...held].map(([who, ms]) => [who, ms / count] as const).sort(([, a], [, b]) => b - a),
  };
}

function tookOf({ began_ms, ended_ms }: Read): number {
  return ended_ms - began_ms;
}

function summary(who: string, took_ms: readonly number[]): BlockedIntervals['intervals'][number] {
  return {
    who,
    total_ms: took_ms.reduce((sum, one) => sum + one, 0),
    longest_ms: took_ms.reduce((most, one) => Math.max(most, one), 0),
    long: took_ms.filter((one) => one > LONG_MS).length,
  };
}

/** By node of the profile: the first function of this repository on the path to it; null if the event loop was idle. */
function beginnersOf(nodes: readonly Profiler.ProfileNode[]): Map<number, string | null> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Map<number, string | null>();
  const visit = (node: Profiler.ProfileNode, begun: string | null) => {
    const who = begun ?? nameOf(node);
    found.set(node.id, node.callFrame.functionName === '(idle)' ? null : (who ?? 'node'));
    for (const child of node.children ?? []) visit(byId.get(child)!, who);
  };
  const [root] = nodes;
  if (root) visit(root, null);
  return found;
}

function nameOf({ callFrame: { functionName, url } }: Profiler.ProfileNode): string | null {
  if (functionName === '(garbage collector)') return 'garbage';
  const [, file] =
    /^file:\/\/(?!.*\/node_modules\/).*?\/((?:api|actions|core|pipeline|process|scheduler|storage)\/.*\.ts)/.exec(
      url,
    ) ?? [];
  return file === undefined ? null : `${functionName || 'a function'} of ${file}`;
}
