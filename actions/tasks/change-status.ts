/** The status of a task, moved by hand (docs/rules/tasks.md, "The status of a task"). */
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { moveTask, type TaskStatus } from '../../core/task/record.ts';
import { TaskModel } from '../../storage/models/task.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { addImportRun } from '../imports/import-later.ts';

export function changeTaskStatus(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, task_status, author }: { id: string; task_status: TaskStatus; author: Author },
): Promise<TaskModel> {
  return postgres.transaction(async (database) => {
    const task = await TaskModel.fetchPublished(scope, id, { database, lock: true });
    const moved = moveTask(task, task_status, { now: author.now, why: 'it was stopped by hand' });
    if (isResumed(task, task_status)) Object.assign(moved, await resumed(database, scope, { task_id: id, author }));
    return TaskModel.change(task, moved, { by: author, database });
  });
}

/** An import that has failed goes on behind the last row that is done (docs/rules/imports.md, "Resumed"). */
function isResumed(task: TaskModel, to: TaskStatus): boolean {
  return task.task_type === 'IMPORT' && task.task_status === 'FAILED' && to === 'PROCESSING';
}

async function resumed(database: Transaction, scope: Scope, run: { task_id: string; author: Author }) {
  return { workflow_id: (await addImportRun(database, scope, run)).id };
}
