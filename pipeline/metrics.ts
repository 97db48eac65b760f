/** Prometheus metrics of the pipeline. No label names a tenant or a customer. */
import { Counter, Gauge, Histogram, register } from 'prom-client';
import { DAY_SECONDS } from '../core/foundation/time/durations.ts';
import { countOutcomes, type PreparedSlice } from './slices/slice.ts';

const events = new Counter({
  name: 'farthing_pipeline_events_total',
  help: 'Events by what became of them',
  labelNames: ['outcome'] as const,
  registers: [register],
});
// Each series starts at 0, because an alert sees no increase in a series that begins with its first event.
for (const outcome of ['accepted', 'unmatched', ...Object.keys(countOutcomes({ outcomes: [] }))])
  events.inc({ outcome }, 0);
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
const partitionStopped = new Gauge({
  name: 'farthing_pipeline_partition_stopped',
  help: '1 while a partition of the log is halted, because one of its records is missing or differs; the log of the worker has the reason',
  labelNames: ['partition'] as const,
  registers: [register],
});
const identityFilesRemade = new Counter({
  name: 'farthing_identity_files_remade_total',
  help: 'Times that the identity files of a partition were made again from ClickHouse, because they were not what was written or belonged to something else',
  registers: [register],
});

// Dashboards use these two names with the older word for daily rollups.
const dailyRollupsBefore = new Gauge({
  name: 'farthing_day_rows_before_timestamp_seconds',
  help: 'Start of the first UTC day that has no daily rollups yet, as the worker that made the last ones knows it',
  registers: [register],
});
const dailyRollupsFailed = new Counter({
  name: 'farthing_day_rows_failures_total',
  help: 'Tries to make daily rollups that ended before all of them were made',
  registers: [register],
});

export const pipelineMetrics = {
  /** Counts a slice when it is done. Failed attempts are not counted. */
  count(slice: PreparedSlice): void {
    const counts = { accepted: slice.events.length, ...countOutcomes(slice), unmatched: slice.unmatched };
    for (const [outcome, count] of Object.entries(counts)) events.inc({ outcome }, count);
  },
  slice(seconds: number): void {
    sliceSeconds.observe(seconds);
  },
  retry(): void {
    retries.inc();
  },
  dailyRollups({ days_before, problem }: { days_before: number; problem: Error | null }): void {
    dailyRollupsBefore.set(days_before * DAY_SECONDS);
    if (problem) dailyRollupsFailed.inc();
  },
  identities(partition: number, count: number): void {
    identities.set({ partition: String(partition) }, count);
  },
  stopped(partition: number, is_stopped: boolean): void {
    partitionStopped.set({ partition: String(partition) }, is_stopped ? 1 : 0);
  },
  notStopped(partition: number): void {
    partitionStopped.remove({ partition: String(partition) });
  },
  identityFilesRemade(): void {
    identityFilesRemade.inc();
  },
  /** Removes the number of ids of a partition that this worker does not own any more: the new owner reports it. */
  noIdentities(partition: number): void {
    identities.remove({ partition: String(partition) });
  },
};
