/**
 * Whose job is next where tenants wait for each other's files and other long work: the one whose last turn is longest ago, and of its jobs the oldest
 * (docs/decisions/0021-fairness.md). graphile-worker takes jobs by their priority and then by `run_at`, so each tenant has one job in
 * front, whose `run_at` is when the tenant had its last turn; its others stand behind those of all, and come forward one at a turn.
 */
import { addJob, type JobPosition, type NewJob } from './jobs.ts';
import type { Database } from './stores.ts';

/** The jobs of one kind of a tenant, which wait for each other and stand in line with those of others. */
export type JobLane = { readonly task: string; readonly queue: string };

/** One of each tenant. */
const IN_FRONT = 0;
/** Done where nobody is in front: what was not brought forward, whatever the reason, is late, and not lost. */
const BACK_PRIORITY = 1;

/**
 * Longer ago counts no more, nor does having had no turn: else tenants that are made one after another would each go before all who wait,
 * and keep them waiting for ever.
 */
const LONGEST_AGO = `interval '1 hour'`;

const WAITS = `task_identifier = ? and queue_name = ? and locked_at is null and attempts < max_attempts`;

/**
 * Adds it in the transaction that makes it necessary, in front where none of its tenant's waits there. Of two that are added at one time both
 * may be: the first that has its turn sets the other back.
 */
export async function addJobFairly(transaction: Database, job: NewJob): Promise<void> {
  const { task, queue } = job;
  const { rows } = await transaction.raw(
    `select exists (select from graphile_worker.jobs where ${WAITS} and priority = ? and run_at <= clock_timestamp()) as is_behind,
            greatest(max(turn_at), clock_timestamp() - ${LONGEST_AGO}) as since
       from job_turns where task = ? and queue = ?`,
    [task, queue, IN_FRONT, task, queue],
  );
  const [{ is_behind, since }] = rows;
  await addAtPriority(
    transaction,
    job,
    is_behind ? { priority: BACK_PRIORITY, run_at: null } : { priority: IN_FRONT, run_at: since },
  );
}

/** The job says in which line it stands. */
async function addAtPriority(transaction: Database, job: NewJob, place: JobPosition): Promise<void> {
  const line: JobLane = { task: job.task, queue: job.queue };
  await addJob(transaction, { ...job, payload: { ...job.payload, line } }, place);
}

/**
 * Adds what has had its turn and goes on, in the transaction that says how far it is: before all of its line, which are done in order. Where it is among
 * those of other tenants, the end of its turn says (`noteTurn`).
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
 * Whether a job of these waits for a place, and not for another of its own line, of which one is done at a time; unless that is the line of who asks,
 * and not one whose jobs go in order.
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
 * A job of the line has its turn, or has had it: its tenant goes behind all who wait, with one of its jobs in front: that which is there already, else the one that
 * has waited longest, or where all are to be tried later the first of these. Said at the beginning, so that it is said whatever happens
 * then, and at the end, so that a turn that was long is not long ago.
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
