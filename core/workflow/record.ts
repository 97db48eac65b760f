/**
 * A run of long work, whose id a request answers for the caller to ask after it
 * (docs/rules/invoices.md, "Invoices computed later"). A run is Running from the moment at which it is accepted until it
 * has ended for good: what waits for another try has not ended.
 */
import { z } from 'zod';
import { FarthingError } from '../error.ts';
import { anyCase, baseFields, timestampText } from '../record.ts';

/** All that the interface knows; ours are Running, Completed, Failed and TimedOut. */
export const WORKFLOW_STATUSES = [
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
export type WorkflowStatus = (typeof WORKFLOW_STATUSES)[number];

export const WorkflowError = z.object({
  code: z.string().meta({ description: 'As in the error record, or timeout.' }),
  message: z.string().meta({ description: 'For people.' }),
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
  /** How many times it was begun. */
  attempt: z.int(),
  result: z.record(z.string(), z.unknown()).nullable(),
  /** Why it ended without a result, or why the last try failed. */
  error: WorkflowError.nullable(),
  ...baseFields,
});
export type WorkflowRun = z.infer<typeof WorkflowRun>;

/**
 * Whether another try may succeed. What the rules forbid stays forbidden: the record is not there, or its state does not
 * allow it. A store that is away, and what we did not expect, may pass.
 */
export function isRetryable(error: unknown): boolean {
  return !(error instanceof FarthingError) || error.http_status_code >= 500;
}

/** What whoever asked for the work is told. What the stores say names tables and statements: it is for the log. */
export function toWorkflowError(error: unknown): WorkflowError {
  if (isTimeout(error)) return { code: 'timeout', message: 'it took longer than it may' };
  if (error instanceof Error && error.name === 'AbortError')
    return { code: 'service_unavailable', message: 'its worker was stopped; it is tried again' };
  if (error instanceof FarthingError && error.code !== 'database_error')
    return { code: error.code, message: error.message };
  if (error instanceof FarthingError) return { code: error.code, message: 'the database could not answer' };
  return { code: 'internal_error', message: 'an unexpected error occurred' };
}

/** What an `AbortSignal.timeout` gives as its reason. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}
