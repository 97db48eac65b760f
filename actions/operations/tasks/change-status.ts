/** Changes the status of a task manually; a failed export runs again (docs/rules/tasks.md, "The status of a task"). */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { moveTask, type TaskStatus } from '../../../core/platform/task/record.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import { enqueueExport } from '../../reporting/exports/scheduled-tasks.ts';
import { addImportRun } from '../imports/import-later.ts';

export function changeTaskStatus(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, task_status, author }: { id: string; task_status: TaskStatus; author: Author },
): Promise<TaskModel> {
  return postgres.transaction(async (database) => {
    const task = await TaskModel.fetchPublished(scope, id, { database, lock: true });
    const moved: Partial<TaskModel> = moveTask(task, task_status, { now: author.now, why: 'it was stopped by hand' });
    if (task.task_type === 'EXPORT' && task_status === 'COMPLETED')
      throw notAllowed('an export is completed by its file alone');
    // A failed import resumes after the last row that is done (docs/rules/imports.md, "Resumed").
    if (task.task_type === 'IMPORT' && task.task_status === 'FAILED')
      moved.workflow_id = (await addImportRun(database, scope, { task, author })).id;
    const changed = await TaskModel.change(task, moved, { by: author, database });
    if (task.task_type !== 'EXPORT' || task.task_status !== 'FAILED') return changed;
    return enqueueExport(database, scope, { task: changed, author });
  });
}
