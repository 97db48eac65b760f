/**
 * Runs long work of a request. The request stores a run and a job in one transaction and returns the run's ids for polling. The job writes
 * its effect and its progress in one transaction, too, so the work takes effect once, however often it is tried.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { isRetryable, isTimeout, toWorkflowError } from '../../../core/platform/workflow/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import type { TransactionLimit } from '../../../storage/postgres/pool/bounded.ts';
import { addContinuation, addJobFairly } from '../../../storage/queue/fair-jobs.ts';
import { addJob, type NewJob } from '../../../storage/queue/jobs.ts';

/**
 * Number of attempts. The last one begins about half an hour after the first; the pauses are 2.7, 7.4, 20, 55, 148, 403 and 1,097 seconds.
 */
const ATTEMPTS = 8;

/** Payload of the job: the reference of the run. */
export type RunReference = Scope & { readonly workflow_id: string };

type RunJob = {
  readonly task: string;
  /** Jobs of a tenant with the same queue run one at a time. Default: the name of the job. */
  readonly queue?: string;
  /**
   * Whether runs yield the job's slots, which all tenants share, after a time quantum
   * (docs/decisions/0021-fairness.md).
   */
  readonly time_sliced?: true;
  /** A run that yields its slot continues before the tenant's next run begins. */
  readonly in_order?: true;
};

type NewRun = {
  job: RunJob;
  workflow_type: string;
  task_queue: string;
  entity: string;
  entity_id: string;
  author: Author;
  /** Error message if the database refuses the run, because another one is in progress. */
  conflict?: string;
};

/** Adds a run, with one queue per tenant and task, so that many runs of one tenant do not block other tenants. */
export async function addRun(
  transaction: Transaction,
  scope: Scope,
  { job, author, conflict, ...about }: NewRun,
): Promise<WorkflowRunModel> {
  const fields = {
    ...about,
    id: newId('workflow', author.now.getTime()),
    run_id: newId('run', author.now.getTime()),
    workflow_status: 'Running',
    start_time: author.now.toISOString(),
    ...createdBy(author),
  };
  const options = conflict === undefined ? { database: transaction } : { database: transaction, conflict };
  const run = await WorkflowRunModel.add(scope, fields, options);
  await enqueueRun(transaction, run, job, job.time_sliced ? addJobFairly : addJob);
  return run;
}

async function enqueueRun(
  transaction: Transaction,
  run: WorkflowRunModel,
  { task, queue = task }: RunJob,
  add: (transaction: Database, job: NewJob) => Promise<void>,
): Promise<void> {
  const { tenant_id, environment_id } = run;
  const payload: RunReference = { tenant_id, environment_id, workflow_id: run.id };
  await add(transaction, { task, payload, key: run.run_id, queue: `${queue}:${tenant_id}`, max_attempts: ATTEMPTS });
}

/** Adds a job that continues this run later, so that the current job can yield its slot to a waiting run. */
export async function requeueRun(transaction: Transaction, place: RunReference, job: RunJob): Promise<void> {
  const { run, ended } = await lockRun(transaction, place);
  if (!ended) await enqueueRun(transaction, run, job, job.in_order ? addContinuation : addJobFairly);
}

/** Replaces the job of the run by one of another task, for example after a timeout. */
export async function moveRun(
  { postgres }: Stores,
  place: RunReference,
  { job, why, now }: { job: RunJob; why: string; now: Date },
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    const { run, ended } = await lockRun(transaction, place);
    if (ended) return;
    await WorkflowRunModel.in(place, transaction)
      .where({ id: run.id })
      .patch({ task_queue: job.task, error: { code: 'timeout', message: why }, updated_at: now.toISOString() });
    await enqueueRun(transaction, run, job, job.time_sliced ? addJobFairly : addJob);
  });
}

export type RunAttempt = {
  readonly attempt: number;
  readonly is_last: boolean;
  readonly clock: () => Date;
  /**
   * Resolves to false when the time quantum is over and others wait (docs/decisions/0021-fairness.md). Absent for work
   * that does not yield.
   */
  readonly mayGoOn?: (() => Promise<boolean>) | undefined;
} & TransactionLimit;

/**
 * Makes one attempt. `failed` means that the run has ended and is not retried. A temporary error is thrown, and the
 * queue retries later.
 */
export async function tryRun<Ends extends 'completed' | 'failed' | 'overtaken'>(
  stores: Stores,
  place: RunReference,
  attempt: RunAttempt,
  work: () => Promise<Ends>,
): Promise<Ends | 'failed'> {
  const { clock } = attempt;
  try {
    const begun = WorkflowRunModel.in(place, stores.postgres).where({
      id: place.workflow_id,
      workflow_status: 'Running',
    });
    await begun.patch({ attempt: attempt.attempt, updated_at: clock().toISOString() });
    return await work();
  } catch (error) {
    await storeError(stores, place, { ...attempt, error, ends: attempt.is_last || !isRetryable(error) });
    if (isRetryable(error)) throw error;
    return 'failed';
  }
}

/** Locks the run and returns it with its outcome; `ended` is null while it runs. */
export async function lockRun(transaction: Database, place: RunReference) {
  const run = await WorkflowRunModel.fetch(place, place.workflow_id, { database: transaction, lock: true });
  const isOver = run.workflow_status !== 'Running';
  const outcome = run.workflow_status === 'Completed' ? ('completed' as const) : ('failed' as const);
  return { run, ended: isOver ? outcome : null };
}

/** Stores the progress of a run, in the transaction that writes its effect. */
export async function storeResult(transaction: Database, place: RunReference, result: Record<string, unknown>) {
  await WorkflowRunModel.in(place, transaction).where({ id: place.workflow_id }).patch({ result });
}

export async function completeRun(
  transaction: Database,
  place: RunReference,
  { result, now }: { result: Record<string, unknown>; now: Date },
): Promise<'completed'> {
  await WorkflowRunModel.in(place, transaction)
    .where({ id: place.workflow_id })
    .patch({ workflow_status: 'Completed', result, error: null, ...toClosedFields(now) });
  return 'completed';
}

async function storeError(
  { postgres }: Stores,
  place: RunReference,
  { error, ends, clock }: RunAttempt & { error: unknown; ends: boolean },
): Promise<void> {
  const now = clock();
  const how = isTimeout(error) ? 'TimedOut' : 'Failed';
  await WorkflowRunModel.in(place, postgres)
    .where({ id: place.workflow_id, workflow_status: 'Running' })
    .patch({
      error: toWorkflowError(error),
      updated_at: now.toISOString(),
      ...(ends ? { workflow_status: how, ...toClosedFields(now) } : {}),
    });
}

function toClosedFields(now: Date) {
  return { close_time: now.toISOString(), updated_at: now.toISOString() };
}
