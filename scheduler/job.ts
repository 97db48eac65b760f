import type { DueWorkReport } from '../actions/schedule/due-work.ts';

/**
 * A scheduled job: a name, an interval, and a function. `run` gets the instant as an argument and returns a report, which is logged as one
 * line. Two runs may overlap, in one process or in several.
 */
export type ScheduledJob = {
  readonly name: string;
  readonly every_seconds: number;
  /** `onDone` gets the counts so far while a long run is in progress. */
  run(now: Date, onDone?: (done: JobReport['done']) => void): Promise<JobReport>;
  /** Ends a job whose runs leave work in flight for the next run: begins nothing more, and resolves when all of that work has ended. */
  end?(): Promise<void>;
};

/** Result of one run. */
export type JobReport = DueWorkReport;

/**
 * Long work that a request has put into the queue, with a payload of its own. If a worker dies, its work may run twice, at once or one
 * after the other. An error that it throws is retried later.
 */
export type QueuedWork = {
  readonly name: string;
  /** Lane whose slots the work uses; `soon` if absent. */
  readonly lane?: WorkerLane;
  /** The jobs of a tenant run in the order of their requests. A job yields its slot to other tenants, not to the tenant's next job. */
  readonly in_order?: true;
  /** True if a resumed run rereads input that was processed already. Its time slice is then at least as long as the rereading. */
  readonly rereads_input?: true;
  run(payload: unknown, attempt: WorkAttempt): Promise<TaskOutcome>;
};

/**
 * Each lane has its own slots, so that quick work does not wait for slow work:
 * - `soon`: scheduled jobs, and work of minutes
 * - `long`: work on all records of an environment
 * - `copies`: copies of environments, which yield no slot before they end
 * - `imports`: imports of uploaded files
 * - `fetched-imports`: imports of files from a URL, as slow as its server
 * - `files`: files of exports, as slow as their destination
 * - `providers`: records for the accounts of tenants at providers, as slow as the providers
 * - `slow-files`: exports that were not done after their time slice
 */
export const LANES = [
  'soon',
  'long',
  'copies',
  'imports',
  'fetched-imports',
  'files',
  'slow-files',
  'providers',
] as const;
export type WorkerLane = (typeof LANES)[number];

/** Jobs of these lanes hold a slot for minutes or hours. While any job of such a lane runs, it is normal that others wait for a slot. */
export const PATIENT_LANES: readonly WorkerLane[] = ['copies', 'fetched-imports', 'files', 'slow-files', 'providers'];

export type WorkAttempt = {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  readonly is_last: boolean;
  /** Aborted when the process is about to end and has waited for some seconds. */
  readonly signal: AbortSignal;
  /**
   * Returns false if the time slice is over and another job waits for a slot of the lane. A job that then stops must be resumable by a
   * later run.
   */
  readonly mayGoOn: () => Promise<boolean>;
};

/** Result of a task. `failed` means that it is not retried, `overtaken` that another job or a later tick does the rest of its work. */
export type TaskOutcome = 'completed' | 'failed' | 'overtaken';
