import type { DueWorkReport } from '../actions/billing/due-work.ts';

/**
 * A job of the scheduler: a name, how often, and a verb. `run` gets the instant as an argument, may run twice at once in
 * any number of processes, and answers what it did in one line for the log.
 */
export type ScheduledJob = {
  readonly name: string;
  readonly every_seconds: number;
  /** `onDone` gets what was done so far, as counts, while a long run goes on. */
  run(now: Date, onDone?: (done: JobReport['done']) => void): Promise<JobReport>;
  /** Where runs leave something on its way to the next: nothing more is begun, and resolves when all that is has ended. */
  end?(): Promise<void>;
};

/** What a run of it has come to. */
export type JobReport = DueWorkReport;

/**
 * Long work that a request has put into the queue, with a payload of its own. It may run twice, at once or one after the
 * other, when a worker dies; what it throws is tried again later.
 */
export type QueuedWork = {
  readonly name: string;
  /** Among what it has its places; `soon` when absent. */
  readonly lane?: WorkerLane;
  /** Those of a tenant are done in the order in which they were asked for, each to its end: none gives its place to its own next. */
  readonly in_order?: true;
  /** Whoever goes on first reads again what is done: its turn is no shorter than that took. */
  readonly rereads_input?: true;
  run(payload: unknown, attempt: WorkAttempt): Promise<TaskOutcome>;
};

/**
 * Each has places of its own, so that nothing waits for what takes longer by its nature: what the clock asks for, and what is done in minutes;
 * what goes through all that an environment has; copies of environments, which give no place up before they end; imports of files that are here; of such as are fetched, and files of exports, which are as slow as
 * whoever sends or takes them; and of these such as have had their turn and are not done.
 */
export const LANES = ['soon', 'long', 'copies', 'imports', 'fetched-imports', 'files', 'slow-files'] as const;
export type WorkerLane = (typeof LANES)[number];

/** Of these a place is held for minutes or hours, and whoever waits for one does so as is meant, as long as any of them is at work. */
export const PATIENT_LANES: readonly WorkerLane[] = ['copies', 'fetched-imports', 'files', 'slow-files'];

export type WorkAttempt = {
  /** 1 for the first. */
  readonly attempt: number;
  readonly is_last: boolean;
  /** Given when the process is about to end and has waited for some seconds. */
  readonly signal: AbortSignal;
  /** False when its turn is over and another waits for a place of its lane; for what can be gone on with by another job. */
  readonly mayGoOn: () => Promise<boolean>;
};

/** `failed`: it has ended without success and is not tried again. `overtaken`: a later tick does its work. */
export type TaskOutcome = 'completed' | 'failed' | 'overtaken';
