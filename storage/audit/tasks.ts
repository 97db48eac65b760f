/**
 * Tasks against their records: the counts of a file or an import against its run, and the rejected rows of an import against its
 * report. The files of a schedule are checked against each other. Each query is one statement, so it reads one snapshot.
 */
import type { Database } from '../foundation/stores.ts';
import { type AuditFault, findFaults } from './questions.ts';

export type TaskFault = AuditFault<'export_ranges_differ' | 'export_counts_differ' | 'import_report_differs'>;

/** Null selects all tasks. */
export type Tasks = readonly string[] | null;

const isSelectedTask = (row: string) => `(:ids::text[] is null or ${row}.id = any(:ids::text[]))`;
const RUN = `left join workflow_runs w
    on w.tenant_id = t.tenant_id and w.environment_id = t.environment_id and w.id = t.workflow_id`;

const QUESTIONS: Readonly<Record<TaskFault['kind'], string>> = {
  // The files of a schedule are contiguous, and its next range begins where the last file ends.
  export_ranges_differ: `
    select t.id, format('from %s', t.range_start) as stored, format('the one before ends at %s', b.range_end) as found
      from tasks t
      join lateral (select b.range_end from tasks b
                     where b.scheduled_task_id = t.scheduled_task_id and b.is_scheduled and b.id <> t.id
                       and (b.range_start, b.id) < (t.range_start, t.id)
                     order by b.range_start desc, b.id desc limit 1) b on true
     where t.is_scheduled and b.range_end <> t.range_start and ${isSelectedTask('t')}
    union all
    select t.id, format('until %s', t.range_end), format('the next range begins at %s', s.next_start)
      from scheduled_tasks s
      join lateral (select t.id, t.range_end from tasks t where t.scheduled_task_id = s.id and t.is_scheduled
                     order by t.range_start desc, t.id desc limit 1) t on true
     where t.range_end <> s.next_start and ${isSelectedTask('t')}`,
  export_counts_differ: `
    select t.id, format('%s records, %s of them whole, %s refused, %s bytes, %s', t.total_records, t.successful_records,
                        t.failed_records, t.size_bytes, t.sha256) as stored,
           format('its run has told %s', coalesce(w.result::text, 'nothing')) as found
      from tasks t ${RUN}
     where t.task_type = 'EXPORT' and t.task_status = 'COMPLETED' and ${isSelectedTask('t')}
       and ((t.total_records, t.processed_records, t.failed_records) is distinct from (t.successful_records, t.successful_records, 0)
            or jsonb_typeof(t.files) = 'array' and row (t.total_records::numeric, t.size_bytes::numeric) is distinct from
                 (select row (sum((f ->> 'records')::numeric), sum((f ->> 'size_bytes')::numeric)) from jsonb_array_elements(t.files) f)
            or w.id is not null and (t.total_records::text, t.size_bytes::text, t.sha256)
                 is distinct from (w.result ->> 'records', w.result ->> 'size_bytes', w.result ->> 'sha256'))`,
  import_report_differs: `
    select t.id, format('%s rows, %s taken over, %s refused', coalesce(t.total_records, t.processed_records), t.successful_records,
                        t.failed_records) as stored,
           format('the report has %s, its run has told %s', f.refused, coalesce(w.result::text, 'nothing')) as found
      from tasks t ${RUN}
      left join lateral (select count(*) as refused from import_faults f where f.task_id = t.id) f on true
     where t.task_type = 'IMPORT' and ${isSelectedTask('t')}
       and (t.processed_records <> t.successful_records + t.failed_records or t.failed_records <> f.refused
            or t.task_status = 'COMPLETED' and (t.total_records is distinct from t.processed_records
               or w.id is not null and (t.total_records::text, t.successful_records::text, t.failed_records::text)
                    is distinct from (w.result ->> 'total_records', w.result ->> 'successful_records', w.result ->> 'failed_records')))`,
};

/** Finds the first `limit` faults of each kind. */
export function findTaskFaults(database: Database, selection: { ids: Tasks; limit: number }): Promise<TaskFault[]> {
  return findFaults(database, QUESTIONS, selection);
}

export type TaskSums = { readonly exports: number; readonly imports: number; readonly scheduled_tasks: number };

export async function loadTaskSums(database: Database): Promise<TaskSums> {
  const { rows } = await database.raw(
    `select (select count(*) from tasks where task_type = 'EXPORT')::int as exports,
            (select count(*) from tasks where task_type = 'IMPORT')::int as imports,
            (select count(*) from scheduled_tasks)::int as scheduled_tasks`,
  );
  return rows[0];
}

type WholeExport = { readonly id: string; readonly tenant_id: string; readonly environment_id: string };

/** Lists completed exports after this id, in the order of ids. */
export async function listCompletedExports(database: Database, after: string, limit: number): Promise<WholeExport[]> {
  const { rows } = await database.raw(
    `select id, tenant_id, environment_id from tasks
      where task_type = 'EXPORT' and task_status = 'COMPLETED' and id > ? order by id limit ?`,
    [after, limit],
  );
  return rows;
}
