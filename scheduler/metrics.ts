/** Prometheus metrics of the scheduler. No label names a tenant or a record. */
import { Counter, Gauge, Histogram, register } from 'prom-client';
import type { DeliveryResult } from '../actions/delivery/webhooks/send-delivery.ts';
import { CHECKS, type CheckName } from '../actions/operations/audit/findings.ts';
import { runWithTimeout } from '../storage/foundation/in-time.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { countFailedOutboxEntries } from '../storage/progress/event-outbox.ts';
import { countWaitingDeliveries } from '../storage/queue/due-deliveries.ts';
import { loadJobWaits, type WaitingTask } from '../storage/queue/job-waits.ts';
import { countPushes } from '../storage/queue/pending-pushes.ts';
import { countProviderEvents } from '../storage/queue/provider-events.ts';
import type { TaskOutcome } from './job.ts';

const jobs = new Counter({
  name: 'farthing_jobs_total',
  help: 'Jobs by task and outcome; thrown ones are tried again',
  labelNames: ['task', 'outcome'] as const,
  registers: [register],
});
const records = new Counter({
  name: 'farthing_job_records_total',
  help: 'Records by job and by what was done with them; waiting and failed ones are left for the next run',
  labelNames: ['task', 'done'] as const,
  registers: [register],
});
const seconds = new Histogram({
  name: 'farthing_job_seconds',
  help: 'Duration of jobs by task',
  labelNames: ['task'] as const,
  buckets: [0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 600, 1800],
  registers: [register],
});
const freed = new Counter({
  name: 'farthing_jobs_freed_total',
  help: 'Jobs that were taken from workers which had died',
  registers: [register],
});
const ticksFailed = new Counter({
  name: 'farthing_ticks_failed_total',
  help: 'Ticks that could not be put into the queue',
  registers: [register],
});

export const jobMetrics = {
  /** Each series starts at 0, because an alert sees no increase in a series that begins with its first failure. */
  known(tasks: readonly string[]): void {
    for (const task of tasks) {
      jobs.inc({ task, outcome: 'thrown' }, 0);
      records.inc({ task, done: 'failed' }, 0);
    }
  },
  /** Runs the task, and counts its outcome. */
  async measure<Outcome extends TaskOutcome>(task: string, run: () => Promise<Outcome>): Promise<Outcome> {
    const end = seconds.startTimer({ task });
    try {
      const outcome = await run();
      jobs.inc({ task, outcome });
      return outcome;
    } catch (error) {
      jobs.inc({ task, outcome: 'thrown' });
      throw error;
    } finally {
      end();
    }
  },
  records(task: string, done: Readonly<Record<string, number>>): void {
    for (const [what, count] of Object.entries(done)) records.inc({ task, done: what }, count);
  },
  /** Returns a callback for one run. It receives cumulative counts and adds each increase once. */
  growing(task: string): (done: Readonly<Record<string, number>>) => void {
    const counted = new Map<string, number>();
    return (done) => {
      for (const [what, count] of Object.entries(done)) {
        records.inc({ task, done: what }, count - (counted.get(what) ?? 0));
        counted.set(what, count);
      }
    };
  },
  freed(count: number): void {
    freed.inc(count);
  },
  tickFailed(): void {
    ticksFailed.inc();
  },
};

const WAIT = 'farthing_job_wait_seconds';

/**
 * Measures the queue, which all schedulers share, so each reports the same values. While Postgres is unavailable no value is reported, and
 * not 0.
 */
export function measureJobWaits({ postgres }: Pick<Stores, 'postgres'>, tasks: readonly WaitingTask[]): void {
  register.removeSingleMetric(WAIT);
  new Gauge({
    name: WAIT,
    help: 'How long the job of the task has waited that could have been begun first; 0 where none waits but as is meant',
    labelNames: ['task'] as const,
    async collect() {
      const waits = (await runWithTimeout(() => loadJobWaits(postgres, tasks))) ?? [];
      this.reset();
      for (const { task, seconds } of waits) this.set({ task }, seconds);
    },
  });
}

const webhookSeconds = new Histogram({
  name: 'farthing_webhook_seconds',
  help: 'Duration of tries to deliver a webhook, by how they ended',
  labelNames: ['outcome'] as const,
  buckets: [0.05, 0.25, 1, 2.5, 5, 10],
  registers: [register],
});
const endpointsDisabled = new Counter({
  name: 'farthing_webhook_endpoints_disabled_total',
  help: 'Webhook endpoints that were switched off because they failed for days',
  registers: [register],
});
for (const outcome of ['delivered', 'failed', 'given_up'] as const) webhookSeconds.zero({ outcome });

export const webhookMetrics = {
  sent({ how, duration_ms, disabled }: DeliveryResult): void {
    webhookSeconds.observe({ outcome: how }, duration_ms / 1_000);
    if (disabled !== null) endpointsDisabled.inc();
  },
};

const WAITING = 'farthing_webhooks_waiting';

/** Measures the waiting deliveries. While Postgres is unavailable no value is reported, and not 0. */
export function measureWebhooks({ postgres }: Pick<Stores, 'postgres'>): void {
  register.removeSingleMetric(WAITING);
  new Gauge({
    name: WAITING,
    help: 'Deliveries of webhooks that are not taken and not given up',
    async collect() {
      const count = await runWithTimeout(() => countWaitingDeliveries(postgres));
      if (count === null) this.remove();
      else this.set(count);
    },
  });
}

type CountGauge<Counts> = { readonly name: string; readonly count: keyof Counts; readonly help: string };

/** Measures counts by one query per scrape. While Postgres is unavailable no value is reported, and not 0. */
function measureCounts<Counts extends object>(
  gauges: readonly CountGauge<Counts>[],
  count: () => Promise<Counts>,
): void {
  let running: Promise<Counts | null> | null = null;
  const loadShared = () => (running ??= runWithTimeout(count).finally(() => (running = null)));
  for (const { name, count: field, help } of gauges) {
    register.removeSingleMetric(name);
    new Gauge({
      name,
      help,
      async collect() {
        const counts = await loadShared();
        if (counts === null) this.remove();
        else this.set(counts[field] as number);
      },
    });
  }
}

/** Measures the records for providers. */
export function measurePushes({ postgres }: Pick<Stores, 'postgres'>): void {
  measureCounts(
    [
      {
        name: 'farthing_pushes_pending',
        count: 'pending',
        help: 'Records that wait to be sent to a provider',
      },
      {
        name: 'farthing_pushes_oldest_seconds',
        count: 'oldest_seconds',
        help: 'How long the first of them has waited, without those of connections that need a person',
      },
      {
        name: 'farthing_pushes_refused',
        count: 'refused',
        help: 'Records that a provider refused; each waits for a person',
      },
      {
        name: 'farthing_connections_needing_attention',
        count: 'needing_attention',
        help: 'Connections whose provider refuses the credentials, or whose archive was interrupted, so that nothing is sent',
      },
    ],
    () => countPushes(postgres),
  );
}

/** Measures the events that providers have sent. */
export function measureProviderEvents({ postgres }: Pick<Stores, 'postgres'>): void {
  measureCounts(
    [
      {
        name: 'farthing_provider_events_waiting',
        count: 'waiting',
        help: 'Events of providers whose effect has not followed yet',
      },
      {
        name: 'farthing_provider_events_oldest_seconds',
        count: 'oldest_seconds',
        help: 'How long the first of them has waited, without those of connections that need a person',
      },
      {
        name: 'farthing_provider_events_failed',
        count: 'failed',
        help: 'Events of providers whose last attempt failed',
      },
    ],
    () => countProviderEvents(postgres),
  );
}

/** Measures the events that the log refused for good. */
export function measureOutbox({ postgres }: Pick<Stores, 'postgres'>): void {
  const help = 'Entries of the event outbox that the log refused for good; their events do not count';
  measureCounts([{ name: 'farthing_outbox_entries_refused', count: 'failed', help }], () =>
    countFailedOutboxEntries(postgres),
  );
}

const auditedRows = new Counter({
  name: 'farthing_audit_rows_total',
  help: 'Bucket rows that were recounted from the raw events',
  registers: [register],
});
const auditedDays = new Counter({
  name: 'farthing_audit_days_total',
  help: 'Days of meters that were audited',
  registers: [register],
});
const auditedRanges = new Counter({
  name: 'farthing_audit_ranges_total',
  help: 'Ranges of the ledger whose rows were compared with it',
  registers: [register],
});
const auditDifferences = new Counter({
  name: 'farthing_audit_differences_total',
  help: 'What an audit found, by check; of bucket rows their fields: anything but 0 is a fault to be looked into',
  labelNames: ['check'] as const,
  registers: [register],
});
// Each series starts at 0, because an alert sees no increase in a series that begins with its first fault.
for (const check of CHECKS) auditDifferences.inc({ check }, 0);
const auditedAt = new Gauge({
  name: 'farthing_audit_last_sample_seconds',
  help: 'When the last sample was audited, in seconds since 1970',
  registers: [register],
});

type AuditSampleCounts = {
  readonly days: number;
  readonly rows: number;
  readonly ranges: number;
  readonly differences: ReadonlyMap<CheckName, number>;
};

export const auditMetrics = {
  sampled({ days, rows, ranges, differences }: AuditSampleCounts): void {
    auditedDays.inc(days);
    auditedRows.inc(rows);
    auditedRanges.inc(ranges);
    for (const [check, count] of differences) auditDifferences.inc({ check }, count);
    auditedAt.setToCurrentTime();
  },
};
