import { z } from 'zod';
import { anyCase, metadata, optionalKey } from '../../../core/foundation/record.ts';
import { ENCODINGS } from '../../../core/platform/import/mapping/record.ts';
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
const mapping = optionalKey.default(null).meta({
  description:
    'Name of a saved mapping or a preset that reads a CSV file. Default: the columns have the names of fields.',
  example: 'FOCUS',
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
    mapping,
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
  mapping: mapping.meta({ ...mapping.meta(), example: '' }),
});

export const PreviewQuery = UploadQuery.omit({ file_name: true });

const row = z.int().min(1);
export const PreviewAnswer = z
  .object({
    encoding: z.enum(ENCODINGS).meta({ description: 'Encoding of the file, stated by the mapping or recognized.' }),
    sha256: z.string().meta({ description: 'SHA-256 of the file, in hexadecimal.' }),
    same_file_as: taskShape.shape.same_file_as,
    rows_read: z.int().meta({ description: 'Number of rows read, at most 1000.' }),
    is_whole_file: z.boolean().meta({ description: 'Whether the file has no further rows.' }),
    accepted_rows: z.int().meta({ description: 'Number of read rows that an import would accept.' }),
    refused_rows: z.int().meta({ description: 'Number of read rows that an import would refuse.' }),
    accepted: z
      .array(
        z.object({
          row: row.meta({ description: 'Row in a spreadsheet; in JSON the number of the value.' }),
          record: z.record(z.string(), z.unknown()).meta({ description: 'Event or request that the row becomes.' }),
        }),
      )
      .meta({ description: 'The first ten accepted rows.' }),
    refused: z
      .array(
        z.object({
          row: row.meta({ description: 'Row in a spreadsheet; in JSON the number of the value.' }),
          field: z.string().meta({ description: 'Field at fault.' }),
          code: z.string().meta({ description: 'Error code.' }),
          message: z.string().meta({ description: 'Reason.' }),
        }),
      )
      .meta({ description: 'The first ten refused rows.' }),
    error_summary: z
      .string()
      .nullable()
      .meta({ description: 'Fault that would fail the import after these rows; null without one.' }),
  })
  .meta({ id: 'ImportPreviewResponse' });

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
