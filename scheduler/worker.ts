/**
 * Runs the jobs of the queue (graphile-worker). It sends a heartbeat every few seconds and takes the jobs of workers without one. By itself
 * graphile-worker would honour the lock of a killed process for four hours (docs/decisions/0020-jobs.md).
 */
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { Logger as QueueLogger, type Runner, run, type TaskList } from 'graphile-worker';
import type { Logger } from 'pino';
import type { Stores } from '../storage/foundation/stores.ts';
import {
  connectJobs,
  deleteWorker,
  endLostRuns,
  freeLostJobs,
  type JobsPool,
  sendHeartbeat,
} from '../storage/queue/jobs.ts';
import { jobMetrics } from './metrics.ts';

export type Liveness = {
  readonly beat_ms: number;
  /** Time without a heartbeat after which a worker is dead; together with `beat_ms` this is below 15 seconds. */
  readonly dead_after_ms: number;
};
const LIVENESS: Liveness = { beat_ms: 2_500, dead_after_ms: 10_000 };

/** Earliest time of the next cleanup after dead workers. The workers of a process share it, so that one of them cleans up for all. */
type CleanupSchedule = { next_at: number };

/** Concurrent jobs per lane of a process; per tenant at most one of each kind. A job mostly waits for the stores. */
const JOBS_AT_ONCE = 4;
/**
 * One connection listens for new jobs. The others take jobs, return them and send the heartbeat, one statement each. Jobs do their work on
 * the connections of the process. With two more, the lanes of two schedulers used nearly all of the 100 connections that Postgres has by
 * default.
 */
const CONNECTIONS = JOBS_AT_ONCE;
const RESTART_AFTER_MS = 1_000;

type WorkerServices = Pick<Stores, 'postgres'> & { readonly logger: Logger };

/** Runs until it is stopped: if the queue's connection is lost, it restarts. */
export function startWorker(
  tasks: TaskList,
  { postgres, logger }: WorkerServices,
  liveness: Liveness = LIVENESS,
  cleanup: CleanupSchedule = { next_at: 0 },
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  let runner: Runner | undefined;
  const start = async () => {
    // Each start gets its own pool, because a shutdown that hangs would still occupy connections of a shared one.
    const pool = connectJobs(postgres, {
      max: CONNECTIONS,
      log: (message) => logger.warn({ reason: message }, 'the job queue lost a connection'),
    });
    const ending = new WorkerEnding();
    const fetches = new JobFetches();
    const pulse = startPulse(pool, logger, { ...liveness, cleanup }, () => {
      if (!fetches.isStuckSinceBeat()) return;
      logger.error('the job worker fails to take jobs though its database answers');
      ending.begin();
      void runner?.stop().catch((error: unknown) => logger.warn({ err: error }, 'the job worker was ending'));
    });
    try {
      runner = await runTasks(tasks, {
        pool,
        logger,
        onPool: pulse.register,
        onShutdown: () => stopping.signal.aborted || ending.begin(),
        fetches,
      });
      if (stopping.signal.aborted) await runner.stop();
      else await Promise.race([runner.promise, ending.over]);
      if (!stopping.signal.aborted) logger.error('the job worker has ended and is started again');
    } catch (error) {
      logger.error({ err: error }, 'the job worker has ended and is started again');
    } finally {
      runner = undefined;
      ending.begin();
      await Promise.race([pulse.stop().then(() => pool.end()), ending.over]).catch((error: unknown) =>
        logger.warn({ err: error }, 'the job worker was ending'),
      );
      ending.forget();
    }
  };
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await start();
      await wait(RESTART_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await runner?.stop().catch((error: unknown) => logger.warn({ err: error }, 'the job worker was stopping'));
      await running;
    },
  };
}

/** Longest wait for the end of a worker, because a worker that lost its database during an operation may never end. */
const END_MS = 20_000;

class WorkerEnding {
  readonly over: Promise<void>;
  #end!: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.over = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  begin(): void {
    this.#timer ??= setTimeout(this.#end, END_MS);
  }

  forget(): void {
    clearTimeout(this.#timer);
  }
}

/**
 * Number of consecutive heartbeats that reached the database while every attempt to take a job failed, after which the worker counts as
 * stuck. Each worker tries every two seconds.
 */
const STUCK_BEATS = 3;

/**
 * Detects that no jobs can be taken. graphile-worker caches the result of loading its tasks at its start, also a failure. If the connection
 * broke at that moment, it would never take a job again.
 */
class JobFetches {
  #isFailing = false;
  #beats = 0;

  failed(): void {
    this.#isFailing = true;
  }

  succeeded(): void {
    this.#isFailing = false;
    this.#beats = 0;
  }

  /** Must be called at each heartbeat; true at the one that shows that the worker is stuck. */
  isStuckSinceBeat(): boolean {
    return this.#isFailing && ++this.#beats === STUCK_BEATS;
  }
}

type RunOptions = {
  pool: JobsPool;
  logger: Logger;
  onPool: (id: string) => void;
  onShutdown: () => unknown;
  fetches: JobFetches;
};

function runTasks(taskList: TaskList, { pool, logger, onPool, onShutdown, fetches }: RunOptions): Promise<Runner> {
  const events = new EventEmitter();
  // The pool's id is the name under which the jobs are locked.
  events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => onPool(workerPool.id));
  events.on('pool:gracefulShutdown', onShutdown);
  events.on('worker:getJob:error', () => fetches.failed());
  for (const taken of ['worker:getJob:empty', 'job:start']) events.on(taken, () => fetches.succeeded());
  return run({
    pgPool: pool,
    taskList,
    parsedCronItems: [],
    concurrency: JOBS_AT_ONCE,
    // The process itself handles signals, because it shuts its parts down in order.
    noHandleSignals: true,
    events,
    logger: queueLogger(logger),
    // Both delays are set, because otherwise returning a job while the database is unavailable would end the process: nothing would await
    // that promise.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  });
}

/** Messages of the queue itself. The jobs log their own failures, with the records concerned. */
function queueLogger(logger: Logger): QueueLogger {
  return new QueueLogger(() => (level, message, meta) => {
    if (meta?.failure) return;
    const ours = ({ error: 'error', warning: 'warn', info: 'debug', debug: 'trace' } as const)[level];
    logger[ours]({ part: 'jobs' }, message);
  });
}

type PulseOptions = Liveness & { readonly cleanup: CleanupSchedule };

/** Sends the worker's heartbeat and checks the heartbeats of the others. */
function startPulse(
  pool: JobsPool,
  logger: Logger,
  { beat_ms, dead_after_ms, cleanup }: PulseOptions,
  onBeat: () => void,
) {
  const cleanUp = async () => {
    if (performance.now() < cleanup.next_at) return;
    // Less than the time between two beats, so that a worker which is alone cleans up at each of its own.
    cleanup.next_at = performance.now() + beat_ms / 2;
    const jobs = await freeLostJobs(pool, dead_after_ms);
    if (jobs > 0) logger.warn({ jobs }, 'jobs were taken from a worker that died');
    jobMetrics.freed(jobs);
    const ended = await endLostRuns(pool);
    if (ended.length > 0) logger.error({ workflows: ended }, 'workflows were broken off too often');
  };
  let id: string | undefined;
  let beating = Promise.resolve();
  const beatOnce = async () => {
    try {
      if (id !== undefined) await sendHeartbeat(pool, { id, host: hostname(), pid: process.pid });
      await cleanUp();
      onBeat();
    } catch (error) {
      logger.warn({ err: error }, 'the job worker could not say that it lives');
    }
  };
  const beatAgain = () => {
    beating = beating.then(beatOnce);
  };
  const timer = setInterval(beatAgain, beat_ms);
  return {
    register: (worker_id: string) => {
      id = worker_id;
      beatAgain();
    },
    async stop() {
      clearInterval(timer);
      await beating;
      if (id !== undefined) await deleteWorker(pool, id).catch(() => undefined); // Deleted or not, the worker soon counts as dead.
    },
  };
}
