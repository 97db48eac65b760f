/**
 * A task imports a file into records, or exports records into a file, and reports its progress (docs/rules/tasks.md). This file decides the
 * allowed status changes; the database enforces them.
 */
import { z } from 'zod';
import { notAllowed } from '../../foundation/error.ts';
import { anyCase, baseFields, metadata, timestampText } from '../../foundation/record.ts';
import { ENCODINGS } from '../import/mapping/record.ts';

const TASK_TYPES = ['IMPORT', 'EXPORT'] as const;
export const TASK_STATUSES = ['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'] as const;
const FILE_TYPES = ['CSV', 'JSON', 'PARQUET'] as const;
const TASK_ENTITY_TYPES = [
  'EVENTS',
  'PRICES',
  'CUSTOMERS',
  'FEATURES',
  'INVOICE',
  'INVOICE_LINES',
  'PAYMENTS',
  'CREDIT_NOTES',
  'SUBSCRIPTIONS',
  'CREDIT_TOPUPS',
  'CREDIT_USAGE',
  'USAGE_ANALYTICS',
  'FOCUS',
] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
type TaskEntityType = (typeof TASK_ENTITY_TYPES)[number];

const count = z.int().min(0);

/** A part of a file is a complete file with its own header. */
const filePart = z.object({
  part: z.int().min(1).meta({ description: 'Number of the part, from 1.' }),
  file_name: z.string().meta({ description: 'Name of the part.' }),
  file_url: z.string().meta({ description: 'Location of the part.' }),
  records: count.meta({ description: 'Number of records in the part.' }),
  size_bytes: count.meta({ description: 'Size of the part in bytes, as stored.' }),
  sha256: z.string().meta({ description: 'SHA-256 of the part as stored, in hexadecimal.' }),
});
export type FilePart = z.output<typeof filePart>;

export const taskShape = z.object({
  id: z.string(),
  task_type: anyCase(TASK_TYPES).meta({ description: 'Type of the task: IMPORT reads a file, EXPORT writes one.' }),
  entity_type: anyCase(TASK_ENTITY_TYPES).meta({ description: 'Type of the records of the file.' }),
  scheduled_task_id: z.string().nullable().meta({ description: 'Scheduled task that started this run; null if none.' }),
  workflow_id: z
    .string()
    .nullable()
    .meta({ description: 'Workflow that runs the task, as in /workflows; null if none.' }),
  file_url: z.string().meta({
    description: 'Location of the file; empty before it is written. For a file in parts, `*` replaces the part number.',
  }),
  file_name: z
    .string()
    .nullable()
    .meta({ description: 'Name of the file. For a file in parts, `*` replaces the part number.' }),
  file_type: anyCase(FILE_TYPES).meta({ description: 'Format of the file.' }),
  task_status: anyCase(TASK_STATUSES).meta({
    description: 'Status: PENDING until the task starts, PROCESSING until it ends, then COMPLETED or FAILED.',
  }),
  total_records: count.nullable().meta({ description: 'Number of records in the file; null until it is known.' }),
  processed_records: count.meta({ description: 'Number of records processed so far.' }),
  successful_records: count.meta({ description: 'Number of imported or exported records.' }),
  failed_records: count.meta({ description: 'Number of rejected records.' }),
  error_summary: z.string().nullable().meta({
    description: 'Reason of the failure, or of rejected records. During retries it is the last error.',
  }),
  sha256: z.string().nullable().meta({
    description: 'SHA-256 of the file as stored, in hexadecimal; null for a file in parts, each of which has its own.',
  }),
  size_bytes: count.nullable().meta({ description: 'Size of the file in bytes as stored, including all parts.' }),
  mapping: z
    .string()
    .nullable()
    .meta({ description: 'Mapping or preset that reads the file of an import; null without one.' }),
  encoding: z.enum(ENCODINGS).nullable().meta({
    description: 'Encoding of the file of an import, stated by its mapping or recognized; null until it is known.',
  }),
  same_file_as: z.string().nullable().meta({
    description: 'Id of the earliest import that took records of the same type from the same bytes; null if none did.',
  }),
  files: z.array(filePart).nullable().meta({
    description: 'Parts of a file in parts (`max_file_size_mb`), in order; null for any other file.',
  }),
  range_start: timestampText
    .nullable()
    .meta({ description: 'Start of the range of an export, inclusive; null for an import.' }),
  range_end: timestampText
    .nullable()
    .meta({ description: 'End of the range of an export, exclusive; null for an import.' }),
  as_of: timestampText.nullable().meta({
    description:
      'The file of an export contains everything that was accepted before this instant, like `X-As-Of` of an export on demand. Null until it is known.',
  }),
  metadata,
  started_at: timestampText.nullable().meta({ description: 'Time of the start; null before.' }),
  completed_at: timestampText.nullable().meta({ description: 'Time of the completion; null before.' }),
  failed_at: timestampText.nullable().meta({ description: 'Time of the failure; null if the task has not failed.' }),
  ...baseFields,
});
export type Task = z.output<typeof taskShape>;

/** Converts a type in lower case, as scheduled tasks and requests name it. */
export function toTaskEntityType(exported: Lowercase<TaskEntityType>): TaskEntityType {
  return exported.toUpperCase() as TaskEntityType;
}

/** Allowed status changes; COMPLETED is final. */
const MOVES: Readonly<Record<TaskStatus, readonly TaskStatus[]>> = {
  PENDING: ['PROCESSING', 'FAILED'],
  PROCESSING: ['COMPLETED', 'FAILED'],
  FAILED: ['PROCESSING'],
  COMPLETED: [],
};

type TaskChanges = Partial<Pick<Task, 'task_status' | 'started_at' | 'completed_at' | 'failed_at' | 'error_summary'>>;

/** Fields that change with the status; throws if the change is not allowed. `why` is for a failure. */
export function moveTask(task: Pick<Task, 'id' | 'task_status'>, to: TaskStatus, { now, why }: TaskMove): TaskChanges {
  if (!MOVES[task.task_status].includes(to))
    throw notAllowed(`a task that is ${task.task_status} cannot become ${to}`, { allowed: MOVES[task.task_status] });
  const instant = now.toISOString();
  if (to === 'FAILED') return { task_status: to, failed_at: instant, error_summary: why ?? null };
  if (to === 'COMPLETED') return { task_status: to, completed_at: instant, error_summary: null };
  return { task_status: to, started_at: instant, failed_at: null, error_summary: null };
}

type TaskMove = { readonly now: Date; readonly why?: string };
