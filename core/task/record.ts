/**
 * A task: an import reads a file into records, an export writes records into a file; it says how far that is
 * (docs/rules/tasks.md). What it may move to is decided here, and held by the database.
 */
import { z } from 'zod';
import { notAllowed } from '../error.ts';
import { anyCase, baseFields, metadata, timestampText } from '../record.ts';

export const TASK_TYPES = ['IMPORT', 'EXPORT'] as const;
export const TASK_STATUSES = ['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'] as const;
export const FILE_TYPES = ['CSV', 'JSON', 'PARQUET'] as const;
/** What can be imported, and what can be exported. */
export const TASK_ENTITY_TYPES = [
  'EVENTS',
  'PRICES',
  'CUSTOMERS',
  'FEATURES',
  'INVOICE',
  'CREDIT_TOPUPS',
  'CREDIT_USAGE',
  'USAGE_ANALYTICS',
] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
export type TaskEntityType = (typeof TASK_ENTITY_TYPES)[number];

const count = z.int().min(0);

/** One of the parts of a file: a file of its own, with a head of its own. */
const filePart = z.object({
  part: z.int().min(1).meta({ description: 'Which one, from 1.' }),
  file_name: z.string().meta({ description: 'What it is called.' }),
  file_url: z.string().meta({ description: 'Where it is.' }),
  records: count.meta({ description: 'How many records it has.' }),
  size_bytes: count.meta({ description: 'How long it is as it is stored.' }),
  sha256: z.string().meta({ description: 'Its digest as it is stored, in hexadecimal digits.' }),
});
export type FilePart = z.output<typeof filePart>;

export const taskShape = z.object({
  id: z.string(),
  task_type: anyCase(TASK_TYPES).meta({ description: 'Whether a file is read or written.' }),
  entity_type: anyCase(TASK_ENTITY_TYPES).meta({ description: 'What the records of the file are.' }),
  scheduled_task_id: z.string().nullable().meta({ description: 'The scheduled task of which it is a run.' }),
  workflow_id: z.string().nullable().meta({ description: 'The workflow that does it: /workflows tells of it.' }),
  file_url: z.string().meta({
    description:
      'Where the file is; empty before it is written. Of one in parts with `*` in the place of their numbers.',
  }),
  file_name: z.string().nullable().meta({ description: 'What the file is called; of one in parts likewise.' }),
  file_type: anyCase(FILE_TYPES).meta({ description: 'In which form the records are.' }),
  task_status: anyCase(TASK_STATUSES).meta({
    description: 'PENDING until it is begun, PROCESSING until it has ended, COMPLETED or FAILED then.',
  }),
  total_records: count.nullable().meta({ description: 'How many records the file has; null before that is known.' }),
  processed_records: count.meta({ description: 'How many of them have been looked at.' }),
  successful_records: count.meta({ description: 'How many were taken over.' }),
  failed_records: count.meta({ description: 'How many were refused.' }),
  error_summary: z.string().nullable().meta({
    description: 'Why it failed, or why records were refused; while it is tried again, what went wrong last.',
  }),
  sha256: z.string().nullable().meta({
    description:
      'The digest of the file as it is stored, in hexadecimal digits; null of one in parts, each of which has its own.',
  }),
  size_bytes: count.nullable().meta({ description: 'How long the file is as it is stored, with all its parts.' }),
  files: z.array(filePart).nullable().meta({
    description: 'The parts of a file that is in parts (`max_file_size_mb`), in order; null of any other.',
  }),
  range_start: timestampText.nullable().meta({ description: 'Of an export: from when on records are in it.' }),
  range_end: timestampText.nullable().meta({ description: 'Of an export: until when, exclusive.' }),
  as_of: timestampText.nullable().meta({
    description:
      'Of an export: everything that was accepted before this instant is in the file, as `X-As-Of` says of one on demand; null before that is known.',
  }),
  metadata,
  started_at: timestampText.nullable().meta({ description: 'When it was begun; null before.' }),
  completed_at: timestampText.nullable().meta({ description: 'When it was completed; null before.' }),
  failed_at: timestampText.nullable().meta({ description: 'When it failed; null where it has not.' }),
  ...baseFields,
});
export type Task = z.output<typeof taskShape>;

/** A scheduled task or a request says in small letters what is exported. */
export function toTaskEntityType(exported: Lowercase<TaskEntityType>): TaskEntityType {
  return exported.toUpperCase() as TaskEntityType;
}

/** To what a task may move; COMPLETED is final. */
const MOVES: Readonly<Record<TaskStatus, readonly TaskStatus[]>> = {
  PENDING: ['PROCESSING', 'FAILED'],
  PROCESSING: ['COMPLETED', 'FAILED'],
  FAILED: ['PROCESSING'],
  COMPLETED: [],
};

export type TaskChanges = Partial<
  Pick<Task, 'task_status' | 'started_at' | 'completed_at' | 'failed_at' | 'error_summary'>
>;

/** What of a task changes with its status; refused where it cannot move there. `why` is of one that fails. */
export function moveTask(task: Pick<Task, 'id' | 'task_status'>, to: TaskStatus, { now, why }: TaskMove): TaskChanges {
  if (!MOVES[task.task_status].includes(to))
    throw notAllowed(`a task that is ${task.task_status} cannot become ${to}`, { allowed: MOVES[task.task_status] });
  const instant = now.toISOString();
  if (to === 'FAILED') return { task_status: to, failed_at: instant, error_summary: why ?? null };
  if (to === 'COMPLETED') return { task_status: to, completed_at: instant, error_summary: null };
  return { task_status: to, started_at: instant, failed_at: null, error_summary: null };
}

export type TaskMove = { readonly now: Date; readonly why?: string };
