/**
 * Files of scheduled exports that are due, and files for which the advance of a test clock waits
 * (docs/rules/exports.md, "By the clock of an environment").
 */
import type { Knex } from 'knex';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';

const ENABLED = { enabled: true, status: 'published' };

/**
 * Lists the schedules whose next range was over at this instant. Tenants alternate, so that none waits for one with many files to catch up;
 * within a tenant the longest waiting comes first.
 */
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

/** Finds when the next file of this environment is due; `from` if one is being written. */
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

/** SQL join of unfinished files with the runs that write them. */
const UNFINISHED = (task: string, run: string) => `tasks ${task} join workflow_runs ${run}
     on ${run}.tenant_id = ${task}.tenant_id and ${run}.environment_id = ${task}.environment_id and ${run}.id = ${task}.workflow_id
        and ${run}.workflow_status = 'Running' and ${run}.workflow_type = '${EXPORT}'`;
const OPEN = (task: string) => `${task}.task_status in ('PENDING', 'PROCESSING')`;

/** Maximum time that the advance of a test clock waits for an export file, in real time since the job of the file was enqueued. */
const PATIENCE = `interval '10 minutes'`;

/**
 * SQL condition of a file for which the advance of a test clock does not wait: its run failed three times, was moved to the
 * job for slow exports, or waited too long for a slot. The upload may take any time, and so may uploads of other tenants that
 * occupy the slots.
 */
const PUT_OFF = (run: string) =>
  `(${run}.error is not null and ${run}.attempt >= 3 or ${run}.task_queue = 'slow-export'
    or exists (select from graphile_worker.jobs job where job.key = ${run}.run_id and job.created_at < now() - ${PATIENCE}))`;

/**
 * SQL condition of a scheduled file whose records are not fixed yet: it would include records that arrive while the
 * clock advances.
 */
const UNCUT = (task: string) => `(${task}.is_scheduled and ${task}.cut_number is null)`;

/**
 * SQL condition that the advance of a test clock waits for a file of this environment. A schedule with a file that is
 * put off (`PUT_OFF`) delays the advance only until the records of its files are fixed.
 */
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

/** Finds a running workflow that must end before the clock may advance. */
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
