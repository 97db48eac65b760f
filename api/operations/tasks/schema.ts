import { z } from 'zod';
import { anyCase, metadata, optionalKey } from '../../../core/foundation/record.ts';
import { TASK_STATUSES, taskShape } from '../../../core/platform/task/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape } from '../../http/list.ts';

export const TaskAnswer = taskShape.meta({ id: 'TaskResponse' });
/** A file may have thousands of parts, so only a single task lists them. */
export const TaskListAnswer = listAnswer(
  taskShape.omit({ files: true }).meta({ id: 'ListedTask' }),
  'ListTasksResponse',
);

const { task_type, entity_type } = taskShape.shape;

const imported = anyCase(['EVENTS', 'CUSTOMERS', 'FEATURES', 'PRICES']).meta({
  description: 'Kind of record in the rows of the file.',
});
const importedType = anyCase(['CSV', 'JSON']).meta({
  description: 'CSV with a header, or JSON as an array or with one value per line.',
});
const file_name = optionalKey.default(null).meta({ description: 'Name of the file, for people.' });

export const CreateTask = z
  .object({
    task_type: task_type.meta({ description: 'Must be IMPORT.' }),
    entity_type: imported,
    file_type: importedType,
    file_url: z
      .string()
      .max(2_048)
      .meta({ description: 'https URL of a host with a public address; 2048 characters at most.' }),
    file_name,
    metadata,
  })
  .meta({
    id: 'CreateTaskRequest',
    example: {
      task_type: 'IMPORT',
      entity_type: 'CUSTOMERS',
      file_type: 'CSV',
      file_url: 'https://files.example.com/customers.csv',
      file_name: 'customers.csv',
    },
  });

export const UploadQuery = z.object({
  entity_type: imported.meta({ ...imported.meta(), example: 'CUSTOMERS' }),
  file_type: importedType.meta({ ...importedType.meta(), example: 'JSON' }),
  file_name,
});

export const TaskFilter = listShape({
  task_type: task_type.optional().meta({ description: 'Matches imports or exports only.' }),
  entity_type: entity_type.optional().meta({ description: 'Kind of record in the file.' }),
  task_status: anyCase(TASK_STATUSES).optional().meta({ description: 'Status of the task.' }),
  scheduled_task_id: z.string().optional().meta({ description: 'Matches runs of this scheduled task.' }),
  created_by: z.string().optional().meta({ description: 'Matches tasks that this user created.' }),
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
      description:
        'New status. PENDING can become PROCESSING or FAILED, PROCESSING can become COMPLETED or FAILED, and FAILED ' +
        'can become PROCESSING.',
    }),
  })
  .meta({ id: 'UpdateTaskStatusRequest', example: { task_status: 'FAILED' } });
