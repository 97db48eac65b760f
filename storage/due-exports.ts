/** Files of schedules whose time is over, and those that an advance of a clock waits for (docs/rules/exports.md, "By the clock of an environment"). */
import type { Knex } from 'knex';
import type { Scope } from '../core/scope.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';
import type { Database } from './stores.ts';

const ENABLED = { enabled: true, status: 'published' };

/** Those whose next range was over at this instant: of each tenant in turn, so that none waits for who has many to catch up; of one, who waits longest comes first. */
export async function listDueScheduledTasks(
  database: Database,
  { over_at, limit, ...filter }: DueQuery & { over_at: Date; limit: number },
): Promise<DueRecord[]> {
  const due = database('scheduled_tasks').where(ENABLED).where('next_end', '<=', over_at);
  return listRoundRobin(database, narrowToEnvironments(due, 'scheduled_tasks', filter), {
    by: ['next_end'],
    round: limit,
    ...filter,
  });
}

/** When the next file of this environment is due; or now, where one is being written. */
export function nextExportDue(
  database: Database,
  scope: Scope,
  { from, delay_seconds }: { from: Date; delay_seconds: number },
): Instant {
  const over = buildEarliestQuery(database, scope, {
    of: () => database('scheduled_tasks').where(ENABLED),
    columns: ['next_end'],
  });
  const waits = database.raw(`case when ? then ?::timestamptz end`, [isWriting(database, scope), from.toISOString()]);
  return database.raw('least(? + make_interval(secs => ?), ?)', [over, delay_seconds, waits]);
}

const EXPORT = 'ExecuteExportWorkflow';

/** Files of which something is still to be done, with the runs that do it. */
const UNFINISHED = (task: string, run: string) => `tasks ${task} join workflow_runs ${run}
     on ${run}.tenant_id = ${task}.tenant_id and ${run}.environment_id = ${task}.environment_id and ${run}.id = ${task}.workflow_id
        and ${run}.workflow_status = 'Running' and ${run}.workflow_type = '${EXPORT}'`;
const OPEN = (task: string) => `${task}.task_status in ('PENDING', 'PROCESSING')`;

/** By the machine, from when it was put into the queue. */
const PATIENCE = `interval '10 minutes'`;

/**
 * What three tries could not write, seconds apart, or one not in its turn, may take as long as its store likes; and so may what has had no
 * turn for long, for tenants wait for each other's stores.
 */
const PUT_OFF = (run: string) =>
  `(${run}.error is not null and ${run}.attempt >= 3 or ${run}.task_queue = 'slow-export'
    or exists (select from graphile_worker.jobs job where job.key = ${run}.run_id and job.created_at < now() - ${PATIENCE}))`;

/** Of a schedule, and which records it has is not decided: it would have what comes while the clock goes on. */
const UNCUT = (task: string) => `(${task}.is_scheduled and ${task}.cut_number is null)`;

/** Whether a file is being written; of a schedule that has one that is put off none is waited for, once it is decided what they have. */
function isWriting(database: Database, { tenant_id, environment_id }: Scope): Knex.Raw {
  return database.raw(
    `exists (select from ${UNFINISHED('t', 'w')}
              where t.tenant_id = ? and t.environment_id = ? and ${OPEN('t')}
                and (${UNCUT('t')}
                     or not exists (select from ${UNFINISHED('put_off', 'r')}
                                     where put_off.tenant_id = t.tenant_id and put_off.environment_id = t.environment_id
                                       and put_off.scheduled_task_id = t.scheduled_task_id and ${OPEN('put_off')}
                                       and ${PUT_OFF('r')})))`,
    [tenant_id, environment_id],
  );
}

/** What is to end before the clock advances. */
export async function findRunningWorkflow(
  database: Database,
  scope: Scope,
): Promise<{ id: string; workflow_type: string } | null> {
  const { tenant_id, environment_id } = scope;
  const [run] = await database('workflow_runs')
    .where({ tenant_id, environment_id, workflow_status: 'Running' })
    .where((counts) => {
      void counts.where('workflow_type', '<>', EXPORT).orWhereRaw('?', [isWriting(database, scope)]);
    })
    .select('id', 'workflow_type')
    .limit(1);
  return run ?? null;
}
