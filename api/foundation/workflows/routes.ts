/** Workflows: progress of work that was accepted with 202. */
import { notFound } from '../../../core/foundation/error.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import {
  ResultQuery,
  runParams,
  WorkflowFilter,
  WorkflowListAnswer,
  WorkflowResult,
  WorkflowSummaryAnswer,
  workflowGrammar,
} from './schema.ts';

const tag = 'Workflows';

export const workflowRoutes: Route[] = [
  route({
    method: 'post',
    path: '/workflows/search',
    operation_id: 'queryWorkflow',
    summary: 'Search workflows',
    description: 'Returns background work of requests, with its status. Default order: newest first.',
    tag,
    access: 'workflow:read',
    body: WorkflowFilter,
    success: 200,
    answer: WorkflowListAnswer,
    handle: async ({ body }, { scope, services }) => {
      const runs = narrow(WorkflowRunModel.in(scope, services.postgres), [
        ['id', body.workflow_id],
        ['workflow_type', body.workflow_type],
        ['task_queue', body.task_queue],
        ['workflow_status', body.workflow_status],
        ['entity', body.entity],
        ['entity_id', body.entity_id],
      ]);
      const { items, pagination } = await fetchPage(runs, body, workflowGrammar);
      return { items: items.map(execution), pagination };
    },
  }),
  route({
    method: 'get',
    path: '/workflows/:workflow_id/:run_id/summary',
    operation_id: 'getWorkflowSummary',
    summary: "Get a workflow run's progress",
    description:
      'Returns the status, which is `Running` until the run ends. An attempt with a temporary failure is repeated.',
    tag,
    access: 'workflow:read',
    params: runParams,
    success: 200,
    answer: WorkflowSummaryAnswer,
    handle: async ({ params }, context) => {
      const run = await fetchRun(params.workflow_id, context);
      if (run.run_id !== params.run_id) throw notFound('run', params.run_id);
      const hasFailed = run.workflow_status === 'Failed' || run.workflow_status === 'TimedOut';
      // A run counts as one activity once it has begun, regardless of its number of attempts.
      const { result, error } = run;
      return {
        ...execution(run),
        result,
        error,
        activity_count: run.attempt > 0 ? 1 : 0,
        failed_activities: hasFailed ? 1 : 0,
      };
    },
  }),
  route({
    method: 'get',
    path: '/tasks/result',
    operation_id: 'getTaskResult',
    summary: 'Get the result of a workflow',
    description: 'Returns the status as a sentence, with the cause of a failed run or of the last failed attempt.',
    tag,
    access: 'workflow:read',
    query: ResultQuery,
    success: 200,
    answer: WorkflowResult,
    handle: async ({ query }, context) => {
      const run = await fetchRun(query.workflow_id, context);
      return { message: sentence(run), workflow_id: run.id, run_id: run.run_id };
    },
  }),
];

function fetchRun(workflow_id: string, { scope, services }: Context): Promise<WorkflowRunModel> {
  return WorkflowRunModel.fetch(scope, workflow_id, { database: services.postgres });
}

function execution(run: WorkflowRunModel) {
  const { id, run_id, workflow_type, task_queue, workflow_status, entity, entity_id, created_by } = run;
  const { start_time, close_time } = run;
  const duration_ms = close_time === null ? null : toInstant(close_time) - toInstant(start_time);
  return {
    workflow_id: id,
    run_id,
    workflow_type,
    task_queue,
    status: workflow_status,
    entity,
    entity_id,
    start_time,
    close_time,
    duration_ms,
    total_duration: duration_ms === null ? null : `${duration_ms / 1000}s`,
    created_by,
  };
}

/**
 * Formats the outcome of a run, such as `Failed: an invoice that is FINALIZED cannot be computed`; while it runs, the error of the last
 * attempt.
 */
function sentence({ workflow_status, attempt, error }: WorkflowRunModel): string {
  if (error === null) return workflow_status;
  if (workflow_status === 'Running') return `Running: try ${attempt} failed: ${error.message}; it is tried again`;
  return `${workflow_status}: ${error.message}`;
}
