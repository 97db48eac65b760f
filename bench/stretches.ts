/**
 * Who held the event loop, and for how long at one time: a CPU profile of some seconds, of which samples that follow one another and began in the
 * same function of ours are one stretch. What begins back to back is one, too: others had no turn in between.
 */
import { type Profiler, Session } from 'node:inspector/promises';

export type Stretches = {
  readonly who: string;
  readonly total_ms: number;
  readonly longest_ms: number;
  /** How many took longer than `LONG_MS`. */
  readonly long: number;
}[];

export const LONG_MS = 2;
const SAMPLED_EVERY_US = 500;
const US_PER_MS = 1000;

/** From now on; what it answers ends it. */
export async function watchStretches(): Promise<() => Promise<Stretches>> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLED_EVERY_US });
  await session.post('Profiler.start');
  return async () => {
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    return stretchesOf(profile);
  };
}

function stretchesOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Stretches {
  const whoOf = beginnersOf(nodes);
  const stretches = new Map<string, number[]>();
  let last: string | null = null;
  for (const [at, id] of samples.entries()) {
    const who = whoOf.get(id) ?? null;
    // A sample stands for the time until the next one.
    const took_us = timeDeltas[at + 1] ?? 0;
    if (who !== null) {
      const own = stretches.get(who) ?? [];
      stretches.set(who, own);
      if (who === last) own[own.length - 1]! += took_us;
      else own.push(took_us);
    }
    last = who;
  }
  return [...stretches].map(([who, took_us]) => summary(who, took_us)).sort((a, b) => b.longest_ms - a.longest_ms);
}

function summary(who: string, took_us: readonly number[]): Stretches[number] {
  return {
    who,
    total_ms: took_us.reduce((sum, one) => sum + one, 0) / US_PER_MS,
    longest_ms: Math.max(...took_us) / US_PER_MS,
    long: took_us.filter((one) => one > LONG_MS * US_PER_MS).length,
  };
}

/** By each node of the profile: the first function of ours on the way to it; null while nothing is done. */
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
