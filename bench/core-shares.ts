/** Cores that a measurement has used, and those that other work of the machine has taken from it. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Service } from './processes.ts';
import { fixed } from './report.ts';

type CoreShares = { readonly service: number; readonly generator: number; readonly others: number };

/** Share of the machine from which other work makes answers late. */
const OTHERS_MAX = 0.15;

/** Starts to measure; the returned function returns the mean numbers of cores since then. */
export function watchCores({ cpu }: Pick<Service, 'cpu'>): () => CoreShares {
  const read = () => {
    const { user, system } = process.cpuUsage();
    return { at: performance.now() / 1_000, service: cpu().total, generator: (user + system) / 1e6, all: readBusy() };
  };
  const before = read();
  return () => {
    const after = read();
    const share = (name: 'service' | 'generator' | 'all') => (after[name] - before[name]) / (after.at - before.at);
    const [service, generator] = [share('service'), share('generator')];
    return { service, generator, others: Math.max(0, share('all') - service - generator) };
  };
}

export function isDisturbed({ others }: CoreShares): boolean {
  return others > OTHERS_MAX * availableParallelism();
}

export function formatShares(shares: CoreShares): string {
  const { service, generator, others } = shares;
  const warning = isDisturbed(shares) ? ': DISTURBED by other work' : '';
  return `cores: service ${fixed(service)}, generator ${fixed(generator)}, others ${fixed(others)} of ${availableParallelism()}${warning}`;
}

const TICKS_PER_SECOND = 100;

/** Seconds in which the cores of the machine were busy, without those that they were idle or waited for a disk. */
function readBusy(): number {
  const [line] = readFileSync('/proc/stat', 'utf8').split('\n');
  const [user, nice, system, , , irq, softirq, steal] = line!.split(/\s+/).slice(1).map(Number) as number[];
  return (user! + nice! + system! + irq! + softirq! + steal!) / TICKS_PER_SECOND;
}
