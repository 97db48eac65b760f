/** Table `tasks`. */
import { type Task, taskShape } from '../../core/task/record.ts';
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
  /** By what a file is known that is being written; null of none. */
  declare upload_id: string | null;
}
