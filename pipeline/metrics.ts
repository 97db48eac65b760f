/** What the pipeline tells Prometheus: never a label by tenant or customer. */
import { Counter, Gauge, Histogram, register } from 'prom-client';
import type { EventOutcome } from '../storage/events/tables.ts';

const events = new Counter({
  name: 'farthing_pipeline_events_total',
  help: 'Events by what became of them',
  labelNames: ['outcome'] as const,
  registers: [register],
});
const sliceSeconds = new Histogram({
  name: 'farthing_pipeline_slice_seconds',
  help: 'Time from the plan of a slice to its end',
  buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60],
  registers: [register],
});
const retries = new Counter({
  name: 'farthing_pipeline_slice_retries_total',
  help: 'Tries of a slice that failed and were made again',
  registers: [register],
});
const identities = new Gauge({
  name: 'farthing_pipeline_identities',
  help: 'Event ids held in memory, by partition of the log',
  labelNames: ['partition'] as const,
  registers: [register],
});

const dayRowsBefore = new Gauge({
  name: 'farthing_day_rows_before_timestamp_seconds',
  help: 'Start of the first UTC day that has no day rows yet, as the worker that made the last ones knows it',
  registers: [register],
});
const dayRowsFailed = new Counter({
  name: 'farthing_day_rows_failures_total',
  help: 'Tries to make day rows that ended before all of them were made',
  registers: [register],
});

export const pipelineMetrics = {
  count(slice: {
    read: { dead: readonly EventOutcome[] };
    accepted: number;
    repeats: readonly EventOutcome[];
    metered: { unusable: readonly EventOutcome[]; unmatched: number };
  }): void {
    const conflicts = slice.repeats.filter((repeat) => repeat.outcome === 'conflict').length;
    events.inc({ outcome: 'accepted' }, slice.accepted);
    events.inc({ outcome: 'conflict' }, conflicts);
    events.inc({ outcome: 'duplicate' }, slice.repeats.length - conflicts);
    events.inc({ outcome: 'dead_letter' }, slice.read.dead.length);
    events.inc({ outcome: 'unusable' }, slice.metered.unusable.length);
    events.inc({ outcome: 'unmatched' }, slice.metered.unmatched);
  },
  slice(seconds: number): void {
    sliceSeconds.observe(seconds);
  },
  retry(): void {
    retries.inc();
  },
  dayRows({ days_before, problem }: { days_before: number; problem: Error | null }): void {
    dayRowsBefore.set(days_before * 86_400);
    if (problem) dayRowsFailed.inc();
  },
  identities(partition: number, count: number): void {
    identities.set({ partition: String(partition) }, count);
  },
  /** The partition is another worker's, which tells its own number. */
  noIdentities(partition: number): void {
    identities.remove({ partition: String(partition) });
  },
};
