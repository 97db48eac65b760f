/**
 * Entry point of the scheduler: the table of jobs, the table of queued work, and their runners. A tick only enqueues a job. The database
 * and the instant passed in decide which records are due, so tests and the demo can move time with `runOnce`. Any number of processes may
 * run the scheduler.
 */
import { fileURLToPath } from 'node:url';
import type { TaskList } from 'graphile-worker';
import type { Logger } from 'pino';
import { z } from 'zod';
import { createMailer } from '../actions/delivery/mail/mailer.ts';
import { createWebhookBackend } from '../actions/delivery/webhooks/backend.ts';
import type { DeliveryResult } from '../actions/delivery/webhooks/send-delivery.ts';
import type { Config } from '../config.ts';
import { HOUR_SECONDS } from '../core/foundation/time/durations.ts';
import { runProcess } from '../process/process.ts';
import { createSealer } from '../storage/foundation/secrets/sealing.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { measureLedger } from '../storage/monitoring/ledger-metrics.ts';
import { type JobLane, recordTurn } from '../storage/queue/fair-jobs.ts';
import type { WaitingTask } from '../storage/queue/job-waits.ts';
import { isOvertaken } from '../storage/queue/jobs.ts';
import { inTrace } from '../tracing/spans.ts';
import { type JobReport, LANES, PATIENT_LANES, type QueuedWork, type ScheduledJob, type WorkerLane } from './job.ts';
import { advanceTestClockWork } from './jobs/advance-test-clock.ts';
import { auditSampleJob } from './jobs/audit-sample.ts';
import { billThresholdWork } from './jobs/bill-threshold.ts';
import { checkAlertsWork } from './jobs/check-alerts.ts';
import { cloneEnvironmentWork } from './jobs/clone-environment.ts';
import { computeInvoiceWork } from './jobs/compute-invoice.ts';
import { createConnectionWork } from './jobs/connection-work.ts';
import { createDueJobs } from './jobs/due-work.ts';
import { enqueuePushesJob, enqueueReadsJob } from './jobs/enqueue-connections.ts';
import { createExportWork, EXPORT_SLICE_MS } from './jobs/export.ts';
import { finalizeInvoiceWork } from './jobs/finalize-invoice.ts';
import { createImportWork } from './jobs/import-records.ts';
import { type MailedInvoice, mailInvoiceWork } from './jobs/mail-invoice.ts';
import { makeDailyRollupsJob } from './jobs/make-daily-rollups.ts';
import { notifyRejectionsWork } from './jobs/notify-rejections.ts';
import { purgeAnswersJob } from './jobs/purge-answers.ts';
import { purgeAuditLogJob } from './jobs/purge-audit-log.ts';
import { purgeDocumentsJob } from './jobs/purge-documents.ts';
import { purgeImportFilesJob } from './jobs/purge-import-files.ts';
import { purgeJobsJob } from './jobs/purge-jobs.ts';
import { purgeOAuthSessionsJob } from './jobs/purge-oauth-sessions.ts';
import { purgeRecordChangesJob } from './jobs/purge-record-changes.ts';
import { purgeReservationEventsJob } from './jobs/purge-reservation-events.ts';
import { purgeSeriesJob } from './jobs/purge-series.ts';
import { purgeSessionsJob } from './jobs/purge-sessions.ts';
import { purgeSystemEventsJob } from './jobs/purge-system-events.ts';
import { retryWebhooksJob } from './jobs/retry-webhooks.ts';
import { sealSecretsJob } from './jobs/seal-secrets.ts';
import { sendWebhooksJob } from './jobs/send-webhooks.ts';
import { streamRevenueJob } from './jobs/stream-revenue.ts';
import { streamSystemEventsJob } from './jobs/stream-system-events.ts';
import { syncPlanPricesWork } from './jobs/sync-plan-prices.ts';
import {
  jobMetrics,
  measureJobWaits,
  measureOutbox,
  measureProviderEvents,
  measurePushes,
  measureWebhooks,
  webhookMetrics,
} from './metrics.ts';
import { startTicks } from './ticks.ts';
import { createTimeSlice } from './time-slice.ts';
import { type Liveness, startWorker } from './worker.ts';

export type SchedulerServices = Stores & {
  readonly config: Pick<
    Config,
    | 'AUDIT_LOG_RETENTION_DAYS'
    | 'BILLING_INTERVAL_SECONDS'
    | 'FINALIZATION_DELAY_SECONDS'
    | 'EXPORT_ALLOW_PRIVATE_ADDRESSES'
    | 'EXPORT_DELAY_SECONDS'
    | 'EXPORT_DIRECTORY'
    | 'DAY_ROWS_AFTER_DAYS'
    | 'IMPORT_ALLOWED_ADDRESSES'
    | 'IMPORT_FILE_MAX_MB'
    | 'MAIL_FROM'
    | 'PDF_FONTS_DIR'
    | 'PROVIDER_ADDRESSES'
    | 'RESERVATION_EVENT_RETENTION_DAYS'
    | 'SECRETS_KEYS'
    | 'SMTP_URL'
    | 'SVIX_TOKEN'
    | 'SVIX_SERVER_URL'
    | 'SYSTEM_EVENT_RETENTION_DAYS'
    | 'WEBHOOK_ALLOW_PRIVATE_ADDRESSES'
    | 'WEBHOOK_RETRY_ENABLED'
    | 'WEBHOOK_RETRY_RATE_LIMIT'
    | 'WEBHOOK_RETRY_MAX_ATTEMPTS'
    | 'WEBHOOK_RETRY_EXCLUDED_TENANTS'
    | 'WEBHOOK_RETRY_ALLOWED_EVENT_TYPES'
  >;
  readonly logger: Logger;
};

export type Scheduler = {
  /** Ends ticks and jobs; resolves when all running work has ended. */
  stop(): Promise<void>;
  /** Runs every job once, in the order of the table, at this instant, bypassing the queue. */
  runOnce(now: Date): Promise<Record<string, JobReport>>;
};

const FIVE_MINUTES = 300;
const MINUTE = 60;
const TWO_SECONDS = 2;

/** The table of jobs: a new job needs one file and one line here. */
function createJobs(services: SchedulerServices): ScheduledJob[] {
  const {
    DAY_ROWS_AFTER_DAYS,
    AUDIT_LOG_RETENTION_DAYS: retention_days,
    RESERVATION_EVENT_RETENTION_DAYS,
  } = services.config;
  return [
    ...createDueJobs(services, services.config),
    purgeAnswersJob(services, HOUR_SECONDS),
    purgeJobsJob(services, HOUR_SECONDS),
    purgeRecordChangesJob(services, FIVE_MINUTES),
    purgeDocumentsJob(services, HOUR_SECONDS),
    purgeImportFilesJob(services, HOUR_SECONDS),
    purgeSeriesJob(services, HOUR_SECONDS),
    purgeReservationEventsJob(services, {
      every_seconds: HOUR_SECONDS,
      retention_days: RESERVATION_EVENT_RETENTION_DAYS,
    }),
    ...(retention_days === undefined
      ? []
      : [purgeAuditLogJob(services, { every_seconds: HOUR_SECONDS, retention_days })]),
    auditSampleJob(services, FIVE_MINUTES),
    makeDailyRollupsJob(services, { every_seconds: FIVE_MINUTES, after_days: DAY_ROWS_AFTER_DAYS }),
    streamRevenueJob(services, TWO_SECONDS),
    ...createEventJobs(services),
    enqueueReadsJob(services, MINUTE),
    enqueuePushesJob(services, MINUTE),
    purgeOAuthSessionsJob(services, HOUR_SECONDS),
    purgeSessionsJob(services, HOUR_SECONDS),
  ];
}

/** Jobs that deliver system events. */
function createEventJobs(services: SchedulerServices): ScheduledJob[] {
  const { config, logger, log } = services;
  const sending = {
    max_attempts: config.WEBHOOK_RETRY_MAX_ATTEMPTS,
    enabled: config.WEBHOOK_RETRY_ENABLED,
    excluded_tenants: config.WEBHOOK_RETRY_EXCLUDED_TENANTS,
    allowed_event_types: config.WEBHOOK_RETRY_ALLOWED_EVENT_TYPES,
    onSent: (sent: DeliveryResult) => {
      webhookMetrics.sent(sent);
      const { delivery_id, detail } = sent;
      if (detail !== null) logger.info({ delivery_id, detail }, 'an address of a webhook was refused');
      if (sent.disabled === null) return;
      const { id, tenant_id, environment_id, disabled_reason: reason } = sent.disabled;
      logger.warn({ tenant_id, environment_id, endpoint_id: id, reason }, 'a webhook endpoint was switched off');
    },
  };
  const sealing = createSealer(config.SECRETS_KEYS);
  const webhooks = {
    postgres: services.postgres,
    backend: createWebhookBackend(config),
    sealing,
    mails: config.SMTP_URL !== undefined,
  };
  return [
    sendWebhooksJob(webhooks, { ...sending, every_seconds: TWO_SECONDS }),
    retryWebhooksJob(webhooks, {
      ...sending,
      every_seconds: MINUTE,
      rate_limit: config.WEBHOOK_RETRY_RATE_LIMIT,
    }),
    ...(config.SECRETS_KEYS.length > 0 ? [sealSecretsJob(services, { sealing, every_seconds: HOUR_SECONDS })] : []),
    ...(log.publishSystemEvents ? [streamSystemEventsJob(services, TWO_SECONDS)] : []),
    purgeSystemEventsJob(services, { every_seconds: HOUR_SECONDS, retention_days: config.SYSTEM_EVENT_RETENTION_DAYS }),
  ];
}

/** The table of work that requests and arriving usage enqueue: new work needs one file and one line here. */
export function createWork(
  services: SchedulerServices,
  clock: () => Date,
  export_slice_ms = EXPORT_SLICE_MS,
): QueuedWork[] {
  return [
    computeInvoiceWork(services, { clock }),
    finalizeInvoiceWork(services, { clock }),
    syncPlanPricesWork(services, { clock }),
    cloneEnvironmentWork(services, { clock }),
    advanceTestClockWork(services, { clock, settings: services.config }),
    billThresholdWork(services, { clock }),
    checkAlertsWork(services, { clock }),
    notifyRejectionsWork(services, { clock }),
    mailInvoiceWork(services, { clock, ...createMailOptions(services) }),
    ...createConnectionWork(services, { clock, settings: services.config }),
    ...createImportWork(services, { clock, settings: services.config }),
    ...createExportWork(services, { clock, settings: services.config, slice_ms: export_slice_ms }),
  ];
}

function createMailOptions({ config, logger }: SchedulerServices) {
  return {
    mailer: createMailer(config),
    fonts: config.PDF_FONTS_DIR ?? null,
    onMailed: ({ outcome, invoice_id, detail }: MailedInvoice) => {
      if (outcome === 'refused') logger.warn({ invoice_id, detail }, 'an invoice was refused by the mail server');
    },
  };
}

export function startScheduler(
  services: SchedulerServices,
  { clock, liveness, export_slice_ms }: { clock: () => Date; liveness?: Liveness; export_slice_ms?: number },
): Scheduler {
  const jobs = createJobs(services);
  measureLedger(services);
  measureWebhooks(services);
  measurePushes(services);
  measureProviderEvents(services);
  measureOutbox(services);
  const work = createWork(services, clock, export_slice_ms);
  const tasks = createTasks(services, { jobs, work, clock });
  jobMetrics.known(Object.keys(tasks));
  measureJobWaits(services, listWaitingTasks(tasks, work));
  const cleanup = { next_at: 0 };
  const workers = LANES.map((lane) => startWorker(listLaneTasks(tasks, work, lane), services, liveness, cleanup));
  const ticks = startTicks(jobs, services);
  return {
    async stop() {
      await ticks.stop();
      // Waits for deliveries that a finished run left in flight. A running job waits for its own deliveries.
      const end = () => jobs.flatMap((job) => job.end?.() ?? []);
      await Promise.all([...end(), ...workers.map((worker) => worker.stop())]);
      await Promise.all(end());
    },
    async runOnce(now) {
      const reports: Record<string, JobReport> = {};
      for (const job of jobs) reports[job.name] = await runJob(job, now, services.logger);
      return reports;
    },
  };
}

/** All tasks that the queue can run, by name. */
export function createTasks(
  services: SchedulerServices,
  { jobs, work, clock }: { jobs: readonly ScheduledJob[]; work: readonly QueuedWork[]; clock: () => Date },
): TaskList {
  const all = [
    ...jobs.map((job) => [job.name, tickTask(job, services, clock)] as const),
    ...work.map((each) => [each.name, workTask(each, services, listLaneNames(each, work))] as const),
  ];
  const tasks = Object.fromEntries(all);
  // If two tasks had one name, the queue would run only one of them.
  if (Object.keys(tasks).length < all.length)
    throw new Error(
      `two jobs have one name: ${all
        .map(([name]) => name)
        .sort((a, b) => (a < b ? -1 : 1))
        .join(', ')}`,
    );
  return tasks;
}

/** Tasks of one lane; a worker takes only the tasks that it is given. */
function listLaneTasks(tasks: TaskList, work: readonly QueuedWork[], lane: WorkerLane): TaskList {
  const getLane = mapLanes(work);
  return Object.fromEntries(Object.entries(tasks).filter(([name]) => getLane(name) === lane));
}

function mapLanes(work: readonly QueuedWork[]): (task: string) => WorkerLane {
  const lanes = new Map(work.map(({ name, lane = 'soon' }) => [name, lane]));
  return (task) => lanes.get(task) ?? 'soon';
}

function listWaitingTasks(tasks: TaskList, work: readonly QueuedWork[]): WaitingTask[] {
  const getLane = mapLanes(work);
  return Object.keys(tasks).map((task) => {
    const lane = getLane(task);
    return { task, patient_lane: PATIENT_LANES.includes(lane) ? lane : null };
  });
}

const Tick = z.object({ slot: z.int() });

function tickTask(job: ScheduledJob, { postgres, logger }: SchedulerServices, clock: () => Date): TaskList[string] {
  return async (payload) => {
    const { slot } = Tick.parse(payload);
    await jobMetrics.measure(job.name, async () => {
      if (await isOvertaken(postgres, { name: job.name, slot })) return 'overtaken';
      await runJob(job, clock(), logger);
      return 'completed';
    });
  };
}

function listLaneNames({ lane }: QueuedWork, work: readonly QueuedWork[]): string[] {
  return work.filter((other) => other.lane === lane).map(({ name }) => name);
}

/** Builds the queue task of a kind of work. `lane`: task names of all work that shares the slots with it. */
function workTask(work: QueuedWork, services: SchedulerServices, lane: readonly string[]): TaskList[string] {
  const { logger, postgres } = services;
  return async (payload, { job, abortSignal: signal }) => {
    const { line } = InLine.parse(payload);
    const mayGoOn = line ? createTimeSlice(postgres, { ...work, line, lane }) : async () => true;
    const attempt = { attempt: job.attempts, is_last: job.attempts >= job.max_attempts, signal, mayGoOn };
    try {
      const outcome = await inTrace(`job ${work.name}`, { kind: 'consumer', parent: traceparentIn(payload) }, () =>
        runInQueue(line, services, () => jobMetrics.measure(work.name, () => work.run(payload, attempt))),
      );
      if (outcome === 'failed') logger.warn({ job: work.name, payload }, 'a job has failed and is not tried again');
    } catch (error) {
      const { attempts, max_attempts } = job;
      logger.error({ job: work.name, payload, attempts, max_attempts, err: error }, 'a try of a job failed');
      throw error;
    }
  };
}

/** If tenants share the slots fairly, the payload names the queue of the tenant's jobs (storage/queue/fair-jobs.ts). */
const InLine = z.object({ line: z.object({ task: z.string(), queue: z.string() }).optional() });

async function runInQueue<Done>(
  line: JobLane | undefined,
  { postgres, logger }: SchedulerServices,
  work: () => Promise<Done>,
): Promise<Done> {
  if (!line) return work();
  await recordTurn(postgres, line);
  try {
    return await work();
  } finally {
    await recordTurn(postgres, line).catch((error: unknown) =>
      logger.warn({ line, err: error }, 'the end of a turn could not be noted'),
    );
  }
}

/** A traced request adds its `traceparent` to the payload of the work (storage/queue/jobs.ts). */
function traceparentIn(payload: unknown): string | undefined {
  return Traced.safeParse(payload).data?.traceparent;
}

const Traced = z.object({ traceparent: z.string().optional() });

const SELLER_UNKNOWN =
  'no invoice becomes final, because the seller has no name: set it with PUT /tenants/update, or `company` of the setting invoice_pdf_config';

function runJob(job: ScheduledJob, now: Date, logger: Logger): Promise<JobReport> {
  return inTrace(`job ${job.name}`, { attributes: { job: job.name } }, () => runAndReport(job, now, logger));
}

async function runAndReport(job: ScheduledJob, now: Date, logger: Logger): Promise<JobReport> {
  try {
    const recordDone = jobMetrics.growing(job.name);
    const report = await job.run(now, recordDone);
    for (const { id, error } of report.failed)
      logger.error({ job: job.name, id, err: error }, 'a job failed for a record');
    for (const { ids, error } of report.without_alert_checks ?? [])
      logger.warn({ job: job.name, ids, err: error }, 'done, but alerts wait for the look of the hour');
    if (report.waiting.length > 0) logger.info({ job: job.name, waiting: report.waiting }, 'left for the next run');
    const { done, waiting, without_seller = [], failed } = report;
    if (without_seller.length > 0) logger.warn({ job: job.name, waiting: without_seller }, SELLER_UNKNOWN);
    logger.debug({ job: job.name, ...done }, 'job done');
    recordDone(done);
    const left = { waiting: waiting.length, without_seller: without_seller.length, failed: failed.length };
    jobMetrics.records(job.name, left);
    return report;
  } catch (error) {
    logger.error({ job: job.name, err: error }, 'a job failed');
    throw error;
  }
}

/** `npm run scheduler`: the scheduler as a process of its own; any number may run. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  runProcess('scheduler', async (services) => startScheduler(services, { clock: services.clock }));
}
