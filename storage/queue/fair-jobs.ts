/**
 * Order of jobs with slots that all tenants share, such as exports. The tenant whose last job ran longest ago comes first, with its oldest
 * job (docs/decisions/0021-fairness.md). graphile-worker takes jobs by priority and then by `run_at`. So each tenant has one job in front,
 * whose `run_at` is the time of the tenant's last turn (a run of one of its jobs). Its other jobs have a lower priority, and one of them
 * moves to the front at each turn.
 */

import type { Database } from '../foundation/stores.ts';
import { addJob, type JobPosition, type NewJob } from './jobs.ts';

/** A lane: the jobs of one task of one tenant, which run one after another and compete with those of other tenants. */
export type JobLane = { readonly task: string; readonly queue: string };

/** Priority of the one job per tenant that is in front. */
const IN_FRONT = 0;
/**
 * Priority of the other jobs of a tenant. They run only if no job is in front, so a job that never moves to the front
 * is delayed but not lost.
 */
const BACK_PRIORITY = 1;

/**
 * Maximum wait that counts for the order, and the wait of a tenant without a turn yet. Without this limit, many new
 * tenants would each go first and delay the others without end.
 */
const LONGEST_AGO = `interval '1 hour'`;

const WAITS = `task_identifier = ? and queue_name = ? and locked_at is null and attempts < max_attempts`;

/**
 * Adds a job in the transaction that makes it necessary. The job is in front if no job of its tenant is there yet. Two
 * concurrent calls may both add a job in front; the next turn corrects that. A turn in the future, from before the clock
 * of the database was moved back, delays nothing.
 */
export async function addJobFairly(transaction: Database, job: NewJob): Promise<void> {
  const { task, queue, key } = job;
  // A job with this key is replaced, so it is not counted as waiting.
  const { rows } = await transaction.raw(
    `select exists (select from graphile_worker.jobs where ${WAITS} and priority = ? and run_at <= clock_timestamp()
                      and key is distinct from ?) as is_behind,
            least(clock_timestamp(), greatest(max(turn_at), clock_timestamp() - ${LONGEST_AGO})) as since
       from job_turns where task = ? and queue = ?`,
    [task, queue, IN_FRONT, key, task, queue],
  );
  const [{ is_behind, since }] = rows;
  await addAtPriority(
    transaction,
    job,
    is_behind ? { priority: BACK_PRIORITY, run_at: null } : { priority: IN_FRONT, run_at: since },
  );
}

/** Adds a job whose payload names its lane. */
async function addAtPriority(transaction: Database, job: NewJob, place: JobPosition): Promise<void> {
  const line: JobLane = { task: job.task, queue: job.queue };
  await addJob(transaction, { ...job, payload: { ...job.payload, line } }, place);
}

/**
 * Adds the continuation of a job in the transaction that records its progress, before the other jobs of its lane.
 * `recordTurn` sets its position among other tenants.
 */
export async function addContinuation(transaction: Database, job: NewJob): Promise<void> {
  const { task, queue } = job;
  const { rows } = await transaction.raw(
    `select least(min(run_at), clock_timestamp()) - interval '1 millisecond' as run_at from graphile_worker.jobs where ${WAITS}`,
    [task, queue],
  );
  await addAtPriority(transaction, job, { priority: IN_FRONT, run_at: rows[0].run_at });
}

/**
 * Adds a job that becomes due after a delay. It then runs before the other jobs of its task and queue. The queue goes by
 * the clock of the database, so a time of this process would be due too early or too late there.
 */
export async function addDelayedJob(transaction: Database, job: NewJob, delay_ms: number): Promise<void> {
  const sql = `select clock_timestamp() + ? * interval '1 millisecond' as run_at`;
  const { rows } = await transaction.raw(sql, [delay_ms]);
  await addAtPriority(transaction, job, { priority: IN_FRONT, run_at: rows[0].run_at });
}

/**
 * Whether a job of these tasks could use the slot of the caller's job. A job of another queue cannot if a job of that
 * queue is running, because a queue runs one job at a time. A job of the caller's own queue can, unless the queue runs
 * its jobs in order (`in_order`): then the caller's job continues first.
 */
export async function hasWaiters(
  database: Database,
  tasks: readonly string[],
  { queue }: JobLane,
  { in_order }: { in_order: boolean },
): Promise<boolean> {
  const { rows } = await database.raw(
    `select exists (
       select from graphile_worker.jobs as waiting
        where task_identifier = any(?) and locked_at is null and attempts < max_attempts and run_at <= now()
          and case when queue_name = ? then not ?::boolean else not exists (
            select from graphile_worker.jobs as begun
             where begun.queue_name = waiting.queue_name and begun.locked_at is not null) end) as is_waited_for`,
    [[...tasks], queue, in_order],
  );
  return rows[0].is_waited_for;
}

/**
 * Records a turn: the tenant moves to the end of the order, and its longest waiting job to the front of its lane. If all jobs of the lane
 * wait for a retry, the earliest one moves to the front. Called at the beginning of a job, so that the turn is recorded whatever happens,
 * and at its end, so that a long turn counts as recent.
 */
export async function recordTurn(database: Database, { task, queue }: JobLane): Promise<void> {
  await database.transaction(async (transaction) => {
    await transaction.raw(
      `insert into job_turns (task, queue, turn_at) values (?, ?, clock_timestamp())
       on conflict (task, queue) do update set turn_at = excluded.turn_at`,
      [task, queue],
    );
    await transaction.raw(
      `with waiting as (
         select id, priority, run_at, row_number() over (order by greatest(run_at, now()), priority, run_at, id) as place
           from graphile_worker.jobs where ${WAITS}
       )
       select graphile_worker.reschedule_jobs(array[id],
                priority := case when place = 1 then ?::integer else ?::integer end,
                run_at := case when place = 1 then greatest(run_at, now()) else run_at end)
         from waiting where place = 1 or priority = ?`,
      [task, queue, IN_FRONT, BACK_PRIORITY, IN_FRONT],
    );
  });
}
