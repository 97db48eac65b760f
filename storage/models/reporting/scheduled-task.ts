import { type ScheduledTask, scheduledTaskShape } from '../../../core/platform/scheduled-task/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface ScheduledTaskModel extends ScheduledTask {}

export class ScheduledTaskModel extends ScopedModel {
  static override tableName = 'scheduled_tasks';
  static override recordName = 'scheduled task';
  static override record = scheduledTaskShape;
  /** The next range, [start, end). */
  declare next_start: string;
  declare next_end: string;
  /** Number of the cut at its creation; null in a schedule of an earlier version. */
  declare arrivals_after: string | null;
}

/** Sets the next range. The audit log has no entry for it, because no user changes the progress of a schedule. */
export async function moveOn(
  database: Database,
  { id, tenant_id, environment_id }: Pick<ScheduledTaskModel, 'id' | 'tenant_id' | 'environment_id'>,
  next: Pick<ScheduledTaskModel, 'next_start' | 'next_end'>,
): Promise<void> {
  await database('scheduled_tasks').where({ id, tenant_id, environment_id }).update(next);
}

/** Whether the schedule has or will have a file. If so, its next range begins where that file ends. */
export async function hasFiles(
  database: Database,
  { id, tenant_id, environment_id }: ScheduledTaskModel,
): Promise<boolean> {
  const own = { tenant_id, environment_id, scheduled_task_id: id, is_scheduled: true };
  const found = await database('tasks').where(own).select('id').limit(1);
  return found.length > 0;
}

/** Whether any schedule of the environment has or will have a file. */
export async function hasScheduledFiles(
  database: Database,
  { tenant_id, environment_id }: Pick<ScheduledTaskModel, 'tenant_id' | 'environment_id'>,
): Promise<boolean> {
  const found = await database('tasks').where({ tenant_id, environment_id, is_scheduled: true }).select('id').limit(1);
  return found.length > 0;
}
