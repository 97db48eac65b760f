/** Tasks: imports and exports with their progress. */
import { getImportedEntity, IMPORTED } from '../../../actions/operations/imports/import-later.ts';
import { changeTaskStatus } from '../../../actions/operations/tasks/change-status.ts';
import { requireWrite } from '../../../core/foundation/access/role.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { importRoutes } from './imports.ts';
import { mappingRoutes } from './mapping-routes.ts';
import { TaskAnswer, TaskFilter, TaskListAnswer, taskGrammar, UpdateTaskStatus } from './schema.ts';

const tag = 'Tasks';

export const taskRoutes: Route[] = [
  route({
    method: 'get',
    path: '/tasks',
    operation_id: 'listTasks',
    summary: 'List tasks',
    description: 'Returns imports and exports with their progress. Default order: newest first.',
    tag,
    access: 'task:read',
    query: TaskFilter,
    success: 200,
    answer: TaskListAnswer,
    handle: ({ query }, context) => findTasks(query, context),
  }),
  route({
    method: 'get',
    path: '/tasks/:id',
    operation_id: 'getTask',
    summary: 'Get a task',
    description: 'Returns the task with the numbers of records read, imported and refused, and the cause of a failure.',
    tag,
    access: 'task:read',
    params: idParams,
    success: 200,
    answer: TaskAnswer,
    handle: ({ params }, { scope, services }) => TaskModel.fetch(scope, params.id, { database: services.postgres }),
  }),
  route({
    method: 'put',
    path: '/tasks/:id/status',
    operation_id: 'updateTaskStatus',
    summary: 'Set the status of a task',
    description:
      'Stops or restarts a task, or sets its status by hand. A transition that the status does not allow is ' +
      'refused; COMPLETED is final. Restarting an import also needs permission to write the records of its file.',
    tag,
    access: 'task:write',
    params: idParams,
    body: UpdateTaskStatus,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params, body }, context) => {
      if (body.task_status === 'PROCESSING') await requireImportWrite(params.id, context);
      const author = toAuthor(context);
      const task = await changeTaskStatus(context.services, context.scope, { id: params.id, ...body, author });
      return { message: `the task is ${task.task_status}` };
    },
  }),
  ...importRoutes,
  ...mappingRoutes,
];

/** Restarting an import writes the records of its file, so it needs their permission. */
async function requireImportWrite(id: string, { principal, scope, services }: Context): Promise<void> {
  const task = await TaskModel.fetchPublished(scope, id, { database: services.postgres });
  if (task.task_type !== 'IMPORT') return;
  const entity_type = getImportedEntity(task);
  requireWrite(principal, IMPORTED[entity_type], `an import of ${entity_type}`);
}

function findTasks(input: TaskFilter, { scope, services }: Context) {
  const query = narrow(TaskModel.in(scope, services.postgres), [
    ['task_type', input.task_type],
    ['entity_type', input.entity_type],
    ['task_status', input.task_status],
    ['scheduled_task_id', input.scheduled_task_id],
    ['created_by', input.created_by],
  ]);
  return fetchPage(query, input, taskGrammar);
}
