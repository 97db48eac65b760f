/** What workflows look like on the wire. */
import { z } from 'zod';
import { WorkflowError, WorkflowRun, workflowStatus } from '../../core/workflow/record.ts';
import { type ListGrammar, listAnswer, listShape } from '../http/list.ts';

const ids = {
  workflow_id: z.string().meta({ description: 'The work that was asked for.' }),
  run_id: z.string().meta({ description: 'The one run of it.' }),
};

/** Keys that the execution and the summary share. */
const shared = {
  ...ids,
  workflow_type: z.string().meta({ description: 'What kind of work it is, such as ComputeInvoiceWorkflow.' }),
  status: workflowStatus.meta({ description: 'How far it is.' }),
  start_time: WorkflowRun.shape.start_time.meta({ description: 'When it was asked for.' }),
  close_time: WorkflowRun.shape.close_time.meta({ description: 'When it ended, well or not; null before.' }),
  duration_ms: z.int().nullable().meta({ description: 'From the start to the end; null before the end.' }),
  total_duration: z.string().nullable().meta({ description: 'The same for people, such as `64.2s`.' }),
};

export const WorkflowAnswer = z
  .object({
    ...shared,
    task_queue: z.string().meta({ description: 'The queue in which it stands, such as invoice.' }),
    entity: z.string().meta({ description: 'The kind of record that it is about, such as invoice.' }),
    entity_id: z.string().meta({ description: 'The record that it is about.' }),
    created_by: z.string(),
  })
  .meta({ id: 'WorkflowExecutionDTO' });

export const WorkflowListAnswer = listAnswer(WorkflowAnswer, 'ListWorkflowsResponse');

export const WorkflowSummaryAnswer = z
  .object({
    ...shared,
    activity_count: z.int().meta({ description: '1 when it was begun, else 0: tries of it are one activity.' }),
    failed_activities: z.int().meta({ description: '1 when it or its last try failed, else 0.' }),
    result: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'What it has done, in keys that its type has; null while there is nothing to tell.' }),
    error: WorkflowError.nullable().meta({ description: 'Why it ended without success, or why the last try failed.' }),
  })
  .meta({ id: 'WorkflowSummaryResponse' });

/** The ids of asynchronous work, and a sentence about it. */
export const WorkflowResult = z
  .object({ message: z.string().meta({ description: 'What was begun.' }), ...ids })
  .meta({ id: 'TemporalWorkflowResult' });

export const runParams = z.object({
  workflow_id: z.string().min(1).meta({ description: 'As the answer to the request named it.' }),
  run_id: z.string().min(1).meta({ description: 'As the answer to the request named it.' }),
});
export const ResultQuery = runParams.pick({ workflow_id: true });

export const WorkflowFilter = listShape({
  workflow_id: z.string().nullish().meta({ description: 'Id of the workflow.' }),
  workflow_type: z.string().nullish().meta({ description: 'What kind of work it is, such as ComputeInvoiceWorkflow.' }),
  task_queue: z.string().nullish().meta({ description: 'The queue in which it stands, such as invoice.' }),
  workflow_status: workflowStatus.nullish().meta({ description: 'How far it is.' }),
  entity: z.string().nullish().meta({ description: 'The kind of record that it is about, such as invoice.' }),
  entity_id: z.string().nullish().meta({ description: 'Id of that record.' }),
}).meta({ id: 'WorkflowExecutionFilter', example: { workflow_status: 'Completed', limit: 10 } });

export const workflowGrammar: ListGrammar = {
  columns: {
    run_id: 'string',
    workflow_type: 'string',
    workflow_status: 'string',
    task_queue: 'string',
    entity: 'string',
    entity_id: 'string',
    start_time: 'date',
    close_time: 'date',
    created_at: 'date',
  },
};
