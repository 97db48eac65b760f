/** Table `tasks`. */
import type { Pojo } from 'objection';
import type { Scope } from '../../core/scope.ts';
import { type Task, taskShape } from '../../core/task/record.ts';
import type { ExportCut } from '../exports/cuts.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

export interface TaskModel extends Task {}

export class TaskModel extends ScopedModel {
  static override tableName = 'tasks';
  static override recordName = 'task';
  /** How far work is, is no record that somebody changes. */
  static override isAudited = false as const;
  static override record = taskShape;
  /** Whether the clock has asked for it: of one range it does so once. */
  declare is_scheduled: boolean;
  /** By the machine's clock; null where an environment's own has asked. */
  declare asked_at: string | null;
  /** By what a file is known that is being written; null of none. */
  declare upload_id: string | null;
  /** What was there when the file of a schedule was cut (storage/exports/cuts.ts); null before, and of other files. */
  declare cut_number: string | null;
  declare cut_offsets: Readonly<Record<string, string>> | null;

  /** Postgres gives large whole numbers as text; no file has more records than a number can say. */
  override $parseDatabaseJson(row: Pojo): Pojo {
    const json = super.$parseDatabaseJson(row);
    for (const count of COUNTS) if (typeof json[count] === 'string') json[count] = Number(json[count]);
    return json;
  }
}

const COUNTS = ['total_records', 'processed_records', 'successful_records', 'failed_records', 'size_bytes'];

/** Of the files that came with their requests, and whose rows are not done. */
export async function sumWaitingUploadBytes(database: Database, scope: Scope): Promise<number> {
  const [row] = await TaskModel.in(scope, database)
    .where({ task_type: 'IMPORT', file_url: '' })
    .whereIn('task_status', ['PENDING', 'PROCESSING'])
    .sum('size_bytes as size_bytes');
  return row?.size_bytes ?? 0;
}

/** To the file and to all before it that have none, of the same schedule. How far they are, is in no audit log. */
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

/** Of each schedule the last file that is to be written and was not cut: with it those before it are. */
export async function listLastUncutFiles(database: Database, scope: Scope): Promise<TaskModel[]> {
  return TaskModel.in(scope, database)
    .where({ task_type: 'EXPORT', is_scheduled: true })
    .whereIn('task_status', ['PENDING', 'PROCESSING'])
    .whereNull('cut_number')
    .distinctOn('scheduled_task_id')
    .orderBy([{ column: 'scheduled_task_id' }, { column: 'range_end', order: 'desc' }]);
}

/** Where the files of its schedule begin, and what was there when the one before it was cut; null where there is none. */
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
