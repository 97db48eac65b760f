/**
 * A run of long work; a request returns its id, and the caller polls it (docs/rules/invoices.md, "Invoices computed later"). A run is
 * Running from its acceptance until its final end: a run that waits for a retry has not ended.
 */
import { z } from 'zod';
import { FarthingError } from '../../foundation/error.ts';
import { anyCase, baseFields, timestampText } from '../../foundation/record.ts';

/** Enum values of the API. This service uses Running, Completed, Failed and TimedOut. */
const WORKFLOW_STATUSES = [
  'Running',
  'Completed',
  'Failed',
  'Canceled',
  'Terminated',
  'ContinuedAsNew',
  'TimedOut',
  'Unknown',
] as const;
export const workflowStatus = anyCase(WORKFLOW_STATUSES);

export const WorkflowError = z.object({
  code: z.string().meta({ description: 'Error code as in an error response, or `timeout`.' }),
  message: z.string().meta({ description: 'Message for people.' }),
});
export type WorkflowError = z.infer<typeof WorkflowError>;

export const WorkflowRun = z.object({
  id: z.string(),
  run_id: z.string(),
  workflow_type: z.string(),
  workflow_status: workflowStatus,
  task_queue: z.string(),
  entity: z.string(),
  entity_id: z.string(),
  start_time: timestampText,
  close_time: timestampText.nullable(),
  /** Number of attempts that were started. */
  attempt: z.int(),
  result: z.record(z.string(), z.unknown()).nullable(),
  /** Reason of the end without a result, or of the last failed attempt. */
  error: WorkflowError.nullable(),
  ...baseFields,
});
export type WorkflowRun = z.infer<typeof WorkflowRun>;

/**
 * Whether a retry may succeed: only after a failure of a store or an unexpected error. A broken rule, such as a missing record or a state
 * that forbids the operation, would fail again.
 */
export function isRetryable(error: unknown): boolean {
  return !(error instanceof FarthingError) || error.http_status_code >= 500;
}

/** Error that the caller sees. Messages of the stores contain tables and statements, so they only go to the log. */
export function toWorkflowError(error: unknown): WorkflowError {
  if (isTimeout(error)) return { code: 'timeout', message: 'it took longer than it may' };
  if (error instanceof Error && error.name === 'AbortError')
    return { code: 'service_unavailable', message: 'its worker was stopped; it is tried again' };
  if (error instanceof FarthingError && error.code !== 'database_error')
    return { code: error.code, message: error.message };
  if (error instanceof FarthingError) return { code: error.code, message: 'the database could not answer' };
  return { code: 'internal_error', message: 'an unexpected error occurred' };
}

/** Whether the error is the reason of an `AbortSignal.timeout`. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}
