import type { Pojo } from 'objection';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { UsedMapping } from '../../../core/platform/import/mapping/record.ts';
import { type Task, taskShape } from '../../../core/platform/task/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import type { ExportCut } from './export-cuts.ts';

export interface TaskModel extends Task {}

export class TaskModel extends ScopedModel {
  static override tableName = 'tasks';
  static override recordName = 'task';
  /** Not audited, because users do not change the progress of a task. */
  static override isAudited = false as const;
  static override record = taskShape;
  /** Whether the schedule created the task, which it does once per range. */
  declare is_scheduled: boolean;
  /** Instant of the request by the machine's clock; null if a test clock created the task. */
  declare asked_at: string | null;
  /** Id of the upload of a file that is being written; null if there is none. */
  declare upload_id: string | null;
  /**
   * The cut of a schedule's file: the records that existed then (storage/models/reporting/export-cuts.ts). Null before the cut, and for
   * other files.
   */
  declare cut_number: string | null;
  declare cut_offsets: Readonly<Record<string, string>> | null;
  /** Mapping of an import as it was when the import was accepted; null without one. */
  declare mapping_terms: UsedMapping | null;

  static override get jsonAttributes() {
    return [...super.jsonAttributes, 'mapping_terms'];
  }

  /** Postgres returns bigints as text; no file has more records than a number can express. */
  override $parseDatabaseJson(row: Pojo): Pojo {
    const json = super.$parseDatabaseJson(row);
    for (const count of COUNTS) if (typeof json[count] === 'string') json[count] = Number(json[count]);
    return json;
  }
}

const COUNTS = ['total_records', 'processed_records', 'successful_records', 'failed_records', 'size_bytes'];

/** Total size of the uploaded files whose rows are not imported yet. */
export async function sumWaitingUploadBytes(database: Database, scope: Scope): Promise<number> {
  const [row] = await TaskModel.in(scope, database)
    .where({ task_type: 'IMPORT', file_url: '' })
    .whereIn('task_status', ['PENDING', 'PROCESSING'])
    .sum('size_bytes as size_bytes');
  return row?.size_bytes ?? 0;
}

/** Finds the earliest other import that has or may still take records from the same bytes; null if there is none. */
export async function findSameFile(
  database: Database,
  scope: Scope,
  { id, entity_type, sha256 }: Pick<Task, 'id' | 'entity_type'> & { sha256: string },
): Promise<string | null> {
  const [task] = await TaskModel.in(scope, database)
    .where({ task_type: 'IMPORT', entity_type, sha256 })
    .whereNot({ id })
    .whereRaw(`(successful_records > 0 or task_status in ('PENDING', 'PROCESSING'))`)
    .orderBy(['created_at', 'id'])
    .limit(1);
  return task?.id ?? null;
}

/** Sets the cut (export-cuts.ts) of the file and of all earlier files of the schedule without one. Progress is not audited. */
export async function giveCut(
  database: Database,
  task: TaskModel,
  { number, offsets, as_of }: ExportCut & { as_of: string },
): Promise<void> {
  const { tenant_id, environment_id, scheduled_task_id, range_end } = task;
  await database('tasks')
    .where({ tenant_id, environment_id, scheduled_task_id, is_scheduled: true })
    .whereNull('cut_number')
    .where('range_end', '<=', range_end)
    .update({ cut_number: number, cut_offsets: JSON.stringify(offsets), as_of });
}

/** Lists each schedule's last unwritten file without a cut (export-cuts.ts); `giveCut` covers the files before it, too. */
export async function listLastUncutFiles(database: Database, scope: Scope): Promise<TaskModel[]> {
  return TaskModel.in(scope, database)
    .where({ task_type: 'EXPORT', is_scheduled: true })
    .whereIn('task_status', ['PENDING', 'PROCESSING'])
    .whereNull('cut_number')
    .distinctOn('scheduled_task_id')
    .orderBy([{ column: 'scheduled_task_id' }, { column: 'range_end', order: 'desc' }]);
}

/** Finds the start of the schedule's first file, and the cut of the file before this one; null if there is none. */
export async function findScheduledFiles(
  database: Database,
  { tenant_id, environment_id, scheduled_task_id, range_start }: TaskModel,
): Promise<{ first_start: string; before: ExportCut | null }> {
  const files = () => database('tasks').where({ tenant_id, environment_id, scheduled_task_id, is_scheduled: true });
  const [first] = await files().orderBy('range_start').limit(1).select('range_start');
  const [before] = await files().where('range_end', range_start).select('cut_number', 'cut_offsets');
  return {
    first_start: first.range_start,
    before: before ? { number: before.cut_number, offsets: before.cut_offsets } : null,
  };
}
