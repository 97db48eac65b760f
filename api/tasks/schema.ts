/** Requests and answers of tasks. */
import { z } from 'zod';
import { anyCase, metadata, optionalKey } from '../../core/record.ts';
import { TASK_STATUSES, taskShape } from '../../core/task/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape } from '../http/list.ts';

export const TaskAnswer = taskShape.meta({ id: 'TaskResponse' });
/** The parts of a file, which may be thousands, are told of one task alone. */
export const TaskListAnswer = listAnswer(
  taskShape.omit({ files: true }).meta({ id: 'ListedTask' }),
  'ListTasksResponse',
);

const { task_type, entity_type } = taskShape.shape;

const imported = anyCase(['EVENTS', 'CUSTOMERS', 'FEATURES', 'PRICES']).meta({
  description: 'What the rows of the file are.',
});
const importedType = anyCase(['CSV', 'JSON']).meta({
  description: 'CSV with a header; or JSON, as an array or a value in each line.',
});
const file_name = optionalKey.default(null).meta({ description: 'What the file is called, for people.' });

export const CreateTask = z
  .object({
    task_type: task_type.meta({ description: 'IMPORT.' }),
    entity_type: imported,
    file_type: importedType,
    file_url: z.string().max(2_048).meta({ description: 'An https URL, of a host with a public address.' }),
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
