/** Requests and answers of tasks. */
import { z } from 'zod';
import { anyCase } from '../../core/record.ts';
import { TASK_STATUSES, taskShape } from '../../core/task/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape } from '../http/list.ts';

export const TaskAnswer = taskShape.meta({ id: 'TaskResponse' });
export const TaskListAnswer = listAnswer(TaskAnswer, 'ListTasksResponse');

const { task_type, entity_type } = taskShape.shape;

export const TaskFilter = listShape({
  task_type: task_type.optional().meta({ description: 'Imports or exports alone.' }),
  entity_type: entity_type.optional().meta({ description: 'What the records of the file are.' }),
  task_status: anyCase(TASK_STATUSES).optional().meta({ description: 'How far it is.' }),
  scheduled_task_id: z.string().optional().meta({ description: 'The runs of this scheduled task.' }),
  created_by: z.string().optional().meta({ description: 'Those that this user has asked for.' }),
}).meta({ id: 'TaskFilter' });
export type TaskFilter = z.output<typeof TaskFilter>;

export const taskGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    task_type: 'string',
    entity_type: 'string',
    task_status: 'string',
    scheduled_task_id: 'string',
    started_at: 'date',
    completed_at: 'date',
    failed_at: 'date',
    range_start: 'date',
    range_end: 'date',
  },
};

export const UpdateTaskStatus = z
  .object({
    task_status: anyCase(TASK_STATUSES).meta({
      description: 'PENDING becomes PROCESSING or FAILED, PROCESSING COMPLETED or FAILED, FAILED PROCESSING again.',
    }),
  })
  .meta({ id: 'UpdateTaskStatusRequest', example: { task_status: 'FAILED' } });
