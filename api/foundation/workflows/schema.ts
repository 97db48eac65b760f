import { z } from 'zod';
import { WorkflowError, WorkflowRun, workflowStatus } from '../../../core/platform/workflow/record.ts';
import { type ListGrammar, listAnswer, listShape } from '../../http/list.ts';

const ids = {
  workflow_id: z.string().meta({ description: 'Id of the workflow.' }),
  run_id: z.string().meta({ description: 'Id of the single run of the workflow.' }),
};

/** Keys that the execution and the summary share. */
const shared = {
  ...ids,
  workflow_type: z.string().meta({ description: 'Kind of work, such as ComputeInvoiceWorkflow.' }),
  status: workflowStatus.meta({ description: 'Status of the run.' }),
  start_time: WorkflowRun.shape.start_time.meta({ description: 'Instant at which the run was requested.' }),
  close_time: WorkflowRun.shape.close_time.meta({
    description: 'Instant at which the run ended, with or without success; null before.',
  }),
  duration_ms: z.int().nullable().meta({ description: 'Milliseconds from start to end; null before the end.' }),
  total_duration: z
    .string()
    .nullable()
    .meta({ description: 'Duration for people, such as `64.2s`; null before the end.' }),
};

const WorkflowAnswer = z
  .object({
    ...shared,
    task_queue: z.string().meta({ description: 'Queue of the work, such as invoice.' }),
    entity: z.string().meta({ description: 'Kind of record that the work concerns, such as invoice.' }),
    entity_id: z.string().meta({ description: 'Id of the record that the work concerns.' }),
    created_by: z.string(),
  })
  .meta({ id: 'WorkflowExecutionDTO' });

export const WorkflowListAnswer = listAnswer(WorkflowAnswer, 'ListWorkflowsResponse');

export const WorkflowSummaryAnswer = z
  .object({
    ...shared,
    activity_count: z.int().meta({ description: '1 after the work has begun, else 0. All attempts are one activity.' }),
    failed_activities: z.int().meta({ description: '1 if the run failed or timed out, else 0.' }),
    result: z.record(z.string(), z.unknown()).nullable().meta({
      description: 'Result of the work; its keys depend on the workflow type. Null before there is a result.',
    }),
    error: WorkflowError.nullable().meta({ description: 'Error of the failed run, or of the last failed attempt.' }),
  })
  .meta({ id: 'WorkflowSummaryResponse' });

/** Ids of asynchronous work, with a message. */
export const WorkflowResult = z
  .object({ message: z.string().meta({ description: 'Confirmation that the work has started.' }), ...ids })
  .meta({ id: 'TemporalWorkflowResult' });

export const runParams = z.object({
  workflow_id: z.string().min(1).meta({ description: 'Id from the answer that started the work.' }),
  run_id: z.string().min(1).meta({ description: 'Run id from the answer that started the work.' }),
});
export const ResultQuery = runParams.pick({ workflow_id: true });

export const WorkflowFilter = listShape({
  workflow_id: z.string().nullish().meta({ description: 'Id of the workflow.' }),
  workflow_type: z.string().nullish().meta({ description: 'Kind of work, such as ComputeInvoiceWorkflow.' }),
  task_queue: z.string().nullish().meta({ description: 'Queue of the work, such as invoice.' }),
  workflow_status: workflowStatus.nullish().meta({ description: 'Status of the run.' }),
  entity: z.string().nullish().meta({ description: 'Kind of record that the work concerns, such as invoice.' }),
  entity_id: z.string().nullish().meta({ description: 'Id of the record that the work concerns.' }),
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
