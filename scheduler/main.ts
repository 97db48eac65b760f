/**
 * The clock's entrance: the table of jobs, and what runs them. The ticks only say that it is time; what is due is decided
 * by the database and the instant that is passed in, so that tests and the demo can move time with `runOnce`.
 */
import cron from 'node-cron';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Stores } from '../storage/stores.ts';
import type { Job, JobReport } from './job.ts';
import { billDuePeriodsJob } from './jobs/bill-due-periods.ts';
import { finalizeDueInvoicesJob } from './jobs/finalize-due-invoices.ts';

export type SchedulerServices = Stores & {
  readonly config: Pick<Config, 'BILLING_INTERVAL_SECONDS' | 'FINALIZATION_DELAY_SECONDS'>;
  readonly logger: Logger;
};

export type Scheduler = {
  /** No more ticks; resolves when what runs has ended. */
  stop(): Promise<void>;
  /** Every job once, in the order of the table, at this instant. */
  runOnce(now: Date): Promise<Record<string, JobReport>>;
};

/** The table of jobs: one file to add, one line to list it. */
export function jobsOf(services: SchedulerServices): Job[] {
  const { BILLING_INTERVAL_SECONDS, FINALIZATION_DELAY_SECONDS } = services.config;
  return [
    billDuePeriodsJob(services, BILLING_INTERVAL_SECONDS),
    finalizeDueInvoicesJob(services, {
      every_seconds: BILLING_INTERVAL_SECONDS,
      delay_seconds: FINALIZATION_DELAY_SECONDS,
    }),
  ];
}

export function startScheduler(services: SchedulerServices, { clock }: { clock: () => Date }): Scheduler {
  const { logger } = services;
  const jobs = jobsOf(services);
  const running = new Map<string, Promise<unknown>>();
  const startedAt = new Map<string, number>();

  // One tick a second for all jobs: an interval may be any number of seconds, which cron's own fields cannot say.
  const ticks = cron.schedule('* * * * * *', () => {
    for (const job of jobs) {
      const isTime =
        performance.now() - (startedAt.get(job.name) ?? Number.NEGATIVE_INFINITY) >= job.every_seconds * 1000;
      // A job that is still running in this process is left out: the run in hand sees the same work.
      if (!isTime || running.has(job.name)) continue;
      startedAt.set(job.name, performance.now());
      const run = runJob(job, clock(), logger).catch(() => undefined); // Logged; the next time it is tried again.
      running.set(
        job.name,
        run.finally(() => running.delete(job.name)),
      );
    }
  });
  return {
    async stop() {
      await ticks.destroy();
      await Promise.allSettled(running.values());
    },
    async runOnce(now) {
      const reports: Record<string, JobReport> = {};
      for (const job of jobs) reports[job.name] = await runJob(job, now, logger);
      return reports;
    },
  };
}

async function runJob(job: Job, now: Date, logger: Logger): Promise<JobReport> {
  try {
    const report = await job.run(now);
    for (const { id, error } of report.failed)
      logger.error({ job: job.name, id, err: error }, 'a job failed for a record');
    if (report.waiting.length > 0) logger.info({ job: job.name, waiting: report.waiting }, 'left for the next run');
    logger.debug({ job: job.name, ...report.done }, 'job done');
    return report;
  } catch (error) {
    logger.error({ job: job.name, err: error }, 'a job failed');
    throw error;
  }
}
