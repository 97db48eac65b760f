/** Table `scheduled_tasks`. */
import { type ScheduledTask, scheduledTaskShape } from '../../core/scheduled-task/record.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

export interface ScheduledTaskModel extends ScheduledTask {}

export class ScheduledTaskModel extends ScopedModel {
  static override tableName = 'scheduled_tasks';
  static override recordName = 'scheduled task';
  static override record = scheduledTaskShape;
  /** The next range, [start, end). */
  declare next_start: string;
  declare next_end: string;
}

export type DueTask = { readonly id: string; readonly tenant_id: string; readonly environment_id: string };

/** Those whose next range was over at this instant: of each tenant in turn, so that none waits for who has many to catch up; of one, who waits longest comes first. */
export async function dueScheduledTasks(database: Database, over_at: Date, limit: number): Promise<DueTask[]> {
  const { rows } = await database.raw(
    `select id, tenant_id, environment_id from (
       select id, tenant_id, environment_id, next_end, row_number() over (partition by tenant_id order by next_end, id) as turn
         from scheduled_tasks where enabled and status = 'published' and next_end <= ?) as due
      order by turn, next_end, id limit ?`,
    [over_at.toISOString(), limit],
  );
  return rows;
}

/** What its next range is. Nobody has changed the record: how far it is, is in no audit log. */
export async function moveOn(
  database: Database,
  { id, tenant_id, environment_id }: DueTask,
  next: Pick<ScheduledTaskModel, 'next_start' | 'next_end'>,
): Promise<void> {
  await database('scheduled_tasks').where({ id, tenant_id, environment_id }).update(next);
}
