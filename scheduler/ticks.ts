/**
 * The clock of the scheduler. A tick runs nothing: it enqueues each job once in each of its intervals, for any number of
 * schedulers.
 */
import cron, { type Logger as CronLogger } from 'node-cron';
import type { Logger } from 'pino';
import type { Database } from '../storage/foundation/stores.ts';
import { addTick } from '../storage/queue/jobs.ts';
import type { ScheduledJob } from './job.ts';
import { jobMetrics } from './metrics.ts';

type TickServices = { readonly postgres: Database; readonly logger: Logger };

export function startTicks(jobs: readonly ScheduledJob[], services: TickServices): { stop(): Promise<void> } {
  /** Next tick of each job, by the monotonic clock of this process; the database decides when an interval begins. */
  const nextAt = new Map<string, number>();
  let adding = Promise.resolve();
  let busy = false;

  // One timer per second serves all jobs: an interval may be any number of seconds, which cron fields cannot express.
  const tick = () => {
    if (busy) return;
    busy = true;
    adding = addDue(jobs, nextAt, services).finally(() => {
      busy = false;
    });
  };
  // A missed second needs no warning, because the next one makes up for it.
  const ticks = cron.schedule('* * * * * *', tick, {
    suppressMissedWarning: true,
    logger: cronLogger(services.logger),
  });
  return {
    async stop() {
      await ticks.destroy();
      await adding;
    },
  };
}

/** Replaces the library's coloured lines with log lines of the service. */
function cronLogger(logger: Logger): CronLogger {
  return {
    info: (message) => logger.debug({ part: 'ticks' }, message),
    warn: (message) => logger.warn({ part: 'ticks' }, message),
    error: (failure, err) => logger.error({ part: 'ticks', err: err ?? failure }, 'the clock of the ticks has failed'),
    debug: (failure) => logger.trace({ part: 'ticks', err: failure }),
  };
}

async function addDue(jobs: readonly ScheduledJob[], nextAt: Map<string, number>, { postgres, logger }: TickServices) {
  for (const job of jobs) {
    if (performance.now() < (nextAt.get(job.name) ?? 0)) continue;
    try {
      const { next_in_seconds } = await addTick(postgres, job);
      nextAt.set(job.name, performance.now() + next_in_seconds * 1000);
    } catch (error) {
      // The job is not enqueued for this interval yet: another scheduler enqueues it, or this one at the next tick.
      jobMetrics.tickFailed();
      logger.error({ job: job.name, err: error }, 'a tick could not be put into the queue');
    }
  }
}
