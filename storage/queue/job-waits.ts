/**
 * Measures how long runnable jobs wait. A long wait reveals a halted queue, or more work than the slots can do (docs/operations.md, "What
 * to watch").
 */
import type { Database } from '../foundation/stores.ts';

/**
 * A task whose waiting jobs are measured. Jobs of its `patient_lane` wait for each other's slot by design, so their
 * wait is not reported; null if it has no such lane.
 */
export type WaitingTask = { readonly task: string; readonly patient_lane: string | null };

/**
 * Returns the wait of the first runnable job per task in seconds; 0 if none waits. A queue runs one job at a time, so
 * only its first job counts, and none while a job of the queue runs. `run_at` may be an hour before the job was added
 * (fair-jobs.ts), so the wait starts when it was added.
 */
export async function loadJobWaits(
  database: Database,
  tasks: readonly WaitingTask[],
): Promise<{ task: string; seconds: number }[]> {
  const { rows } = await database.raw(
    `with known as (
       select task, patient_lane as lane from json_to_recordset(?::json) as asked (task text, patient_lane text)
     ), due as (
       select id, task_identifier as task, queue_name, priority, run_at, greatest(run_at, created_at) as since
         from graphile_worker.jobs where locked_at is null and attempts < max_attempts and run_at <= now()
     ), first as (
       select task, null as queue_name, min(since) as since from due where queue_name is null group by task
       union all
       (select distinct on (task, queue_name) task, queue_name, since from due where queue_name is not null
         order by task, queue_name, priority, run_at, id)
     ), begun as (
       select job.queue_name, known.lane
         from graphile_worker.jobs as job left join known on known.task = job.task_identifier where job.locked_at is not null
     )
     select known.task, coalesce(extract(epoch from now() - min(first.since)), 0)::double precision as seconds
       from known left join first on first.task = known.task
        and not exists (select from begun where begun.queue_name = first.queue_name)
        and not exists (select from begun where begun.lane = known.lane)
      group by known.task`,
    [JSON.stringify(tasks)],
  );
  return rows;
}
