/** Prometheus metrics of the log: the lag of the pipeline by partition, and whether the log answers. */
import { Gauge, register } from 'prom-client';
import { runWithTimeout } from '../foundation/in-time.ts';
import type { EventLog, PartitionLag } from './log.ts';

const NAMES = [
  'farthing_log_unprocessed_records',
  'farthing_log_oldest_unprocessed_seconds',
  'farthing_log_up',
] as const;
const [UNPROCESSED, OLDEST, UP] = NAMES;

export function measureLog(log: EventLog, now: () => Date): void {
  for (const name of NAMES) register.removeSingleMetric(name);
  const labelNames = ['partition'] as const;
  // Prometheus collects all three at the same moment, so the log answers them with one query.
  const loadLag = async (): Promise<PartitionLag[] | null> => runWithTimeout(() => log.lag());
  new Gauge({
    name: UNPROCESSED,
    help: 'Records that are not in the stores yet, by partition of the event log',
    labelNames,
    async collect() {
      const lag = await loadLag();
      this.reset();
      for (const each of lag ?? []) this.set({ partition: each.partition }, each.unprocessed_records);
    },
  });
  new Gauge({
    name: OLDEST,
    help: 'Age of the oldest record that is not in the stores yet, by partition of the event log; 0 when there is none',
    labelNames,
    async collect() {
      const lag = await loadLag();
      this.reset();
      for (const each of lag ?? []) this.set({ partition: each.partition }, ageInSeconds(each, now()));
    },
  });
  new Gauge({
    name: UP,
    help: 'Whether the event log answers',
    async collect() {
      this.set((await loadLag()) === null ? 0 : 1);
    },
  });
}

function ageInSeconds({ oldest_unprocessed_at_us: since }: PartitionLag, now: Date): number {
  return since === null ? 0 : Math.max(0, now.getTime() / 1000 - since / 1e6);
}
