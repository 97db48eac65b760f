/**
 * A job of the scheduler: a name, how often, and a verb. `run` gets the instant as an argument, may run twice at once in
 * any number of processes, and answers what it did in one line for the log.
 */
export type Job = {
  readonly name: string;
  readonly every_seconds: number;
  run(now: Date): Promise<JobReport>;
};

export type JobReport = {
  /** What was done, as counts. */
  readonly done: Readonly<Record<string, number>>;
  /** What was left for the next run. */
  readonly waiting: readonly string[];
  readonly failed: readonly { readonly id: string; readonly error: unknown }[];
};
