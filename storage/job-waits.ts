/** How long jobs wait that could be done: what is told of a queue that stands, and of more work than its places do (docs/operations.md, "What to watch"). */
import type { Database } from './stores.ts';

/** `patient_lane`: among what it waits for a place as long as another of them is at work, and that is meant; null of what waits for nobody so long. */
export type WaitingTask = { readonly task: string; readonly patient_lane: string | null };

/**
 * Of each task the seconds for which the job has waited that could have been begun first; 0 where none waits. Of a queue that is its first, and
 * none while another of the queue is at work: they are done one after another. Who stands in line has a `run_at` that may be an hour before it came (storage/fair-jobs.ts),
 * so none has waited since before it was added.
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
