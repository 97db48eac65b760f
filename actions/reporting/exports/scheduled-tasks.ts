/** Creates, enables, disables, archives and runs scheduled tasks (docs/rules/exports.md, "Scheduled exports"). */
import type { PermissionEntity } from '../../../core/foundation/access/role.ts';
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { formatMs, formatUs, toUs } from '../../../core/foundation/time/instant.ts';
import type { RequestedRange } from '../../../core/foundation/time/range.ts';
import { checkMetadataFields } from '../../../core/platform/export/metadata-field.ts';
import { checkExportRange } from '../../../core/platform/export/range.ts';
import { findInterval, findLastWholeInterval } from '../../../core/platform/scheduled-task/interval.ts';
import { checkScheduledTask, type ScheduledTask } from '../../../core/platform/scheduled-task/record.ts';
import { toTaskEntityType } from '../../../core/platform/task/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Postgres, Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { markArrivalsBefore, markKnownSince } from '../../../storage/models/reporting/export-cuts.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import { addRun } from '../../foundation/workflows/run.ts';
import { findExportCapability } from './destinations.ts';
import { type ExportKind, listRequiredReads } from './export-kind.ts';
import { EXPORT_KINDS } from './kinds.ts';

type NewScheduledTask = Pick<ScheduledTask, 'connection_id' | 'entity_type' | 'interval' | 'enabled' | 'job_config'>;

type ScheduledExport = Pick<ScheduledTask, 'entity_type' | 'job_config'>;

export const EXPORT_JOB = { task: 'export', time_sliced: true } as const;
/** Job that continues exports after they have used up their time quantum. */
export const SLOW_EXPORT_JOB = { task: 'slow-export', time_sliced: true } as const;

export function listScheduleReads({ entity_type, job_config }: ScheduledExport): readonly PermissionEntity[] {
  return listRequiredReads(EXPORT_KINDS[entity_type], job_config.export_metadata_fields);
}

export async function createScheduledTask(
  { postgres }: Postgres,
  scope: Scope,
  { fields, author, may_be_private }: { fields: NewScheduledTask; author: Author; may_be_private: boolean },
): Promise<ScheduledTaskModel> {
  const made = await postgres.transaction(async (database) => {
    const connection = await ConnectionModel.fetchPublished(scope, fields.connection_id, { database, lock: true });
    findExportCapability(connection);
    checkScheduledTask({ ...fields, provider_type: connection.provider_type, may_be_private });
    const { about, columns }: ExportKind = EXPORT_KINDS[fields.entity_type];
    checkMetadataFields(fields.job_config.export_metadata_fields, {
      about,
      names: columns.map(({ name }) => name),
      field: 'job_config.export_metadata_fields',
    });
    const next = findInterval(fields.interval, author.now.getTime());
    const record = {
      id: newId('scheduled_task', author.now.getTime()),
      ...fields,
      next_start: formatMs(next.start),
      next_end: formatMs(next.end),
      ...createdBy(author),
    };
    const task = await ScheduledTaskModel.add(scope, record, { database });
    await markArrivalsBefore(database, scope, task.id);
    return task;
  });
  await markKnownSince(postgres, scope, made.id);
  return made;
}

/**
 * Enables or disables a scheduled task. After it is enabled again, it also exports the ranges that passed while it was disabled, so its
 * ranges are contiguous.
 */
export async function enableScheduledTask(
  { postgres }: Postgres,
  scope: Scope,
  { id, enabled, author }: { id: string; enabled: boolean; author: Author },
): Promise<ScheduledTaskModel> {
  return postgres.transaction(async (database) => {
    const task = await lockScheduledTask(scope, id, database);
    return ScheduledTaskModel.change(task, { enabled }, { by: author, database });
  });
}

export async function archiveScheduledTask(
  { postgres }: Postgres,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await postgres.transaction(async (database) => {
    const task = await lockScheduledTask(scope, id, database);
    await ScheduledTaskModel.change(task, { status: 'archived', enabled: false }, { by: author, database });
  });
}

async function lockScheduledTask(scope: Scope, id: string, database: Transaction): Promise<ScheduledTaskModel> {
  const task = await ScheduledTaskModel.fetch(scope, id, { database, lock: true });
  if (task.status !== 'published') throw notAllowed(`a scheduled task that is ${task.status} stays so`);
  return task;
}

/** Default range: the last complete interval. */
export async function runScheduledTask(
  { postgres }: Postgres,
  scope: Scope,
  { id, range, author, received_at }: { id: string; range: RequestedRange | null; author: Author; received_at: Date },
): Promise<TaskModel> {
  const now_ms = author.now.getTime();
  if (range) checkExportRange(range, toUs(now_ms));
  return postgres.transaction(async (database) => {
    const scheduled = await lockScheduledTask(scope, id, database);
    const whole = findLastWholeInterval(scheduled.interval, now_ms);
    const [start, end] = range
      ? [formatUs(range.start_us), formatUs(range.end_us)]
      : [formatMs(whole.start), formatMs(whole.end)];
    return addExport(database, scope, { scheduled, start, end, is_scheduled: false, asked_at: received_at, author });
  });
}

type NewExport = {
  scheduled: Pick<ScheduledTaskModel, 'id' | 'entity_type' | 'job_config'>;
  start: string;
  end: string;
  is_scheduled: boolean;
  /**
   * Instant of the request by the machine's clock: the file contains everything accepted before it. Null if the environment has a test
   * clock.
   */
  asked_at: Date | null;
  author: Author;
};

/** Adds the task and its job in one transaction. */
export async function addExport(
  database: Transaction,
  scope: Scope,
  { scheduled, start, end, is_scheduled, asked_at, author }: NewExport,
): Promise<TaskModel> {
  const task = await TaskModel.add(
    scope,
    {
      id: newId('task', author.now.getTime()),
      task_type: 'EXPORT',
      entity_type: toTaskEntityType(scheduled.entity_type),
      scheduled_task_id: scheduled.id,
      file_type: scheduled.job_config.format,
      task_status: 'PENDING',
      range_start: start,
      range_end: end,
      is_scheduled,
      asked_at: asked_at?.toISOString() ?? null,
      ...createdBy(author),
    },
    { database },
  );
  return enqueueExport(database, scope, { task, author });
}

/** Enqueues an export. Every attempt has a run of its own. */
export async function enqueueExport(
  database: Transaction,
  scope: Scope,
  { task, author }: { task: TaskModel; author: Author },
): Promise<TaskModel> {
  const run = await addRun(database, scope, {
    job: EXPORT_JOB,
    workflow_type: 'ExecuteExportWorkflow',
    task_queue: 'export',
    entity: 'task',
    entity_id: task.id,
    author,
  });
  return TaskModel.change(task, { workflow_id: run.id }, { by: author, database });
}
