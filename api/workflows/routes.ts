/** Workflows: how far the work is that was answered with 202. */
import { notFound } from '../../core/error.ts';
import { toInstant } from '../../core/time/instant.ts';
import { narrow } from '../../storage/models/page.ts';
import { WorkflowRunModel } from '../../storage/models/workflow-run.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, type Route, route } from '../http/route.ts';
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
    description:
      'Long work that requests have asked for, each with how far it is. Newest first unless `sort` says otherwise.',
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
    summary: 'How far one run of a workflow is',
    description: '`Running` until it has ended; a try that fails for a reason that may pass is made again.',
    tag,
    access: 'workflow:read',
    params: runParams,
    success: 200,
    answer: WorkflowSummaryAnswer,
    handle: async ({ params }, context) => {
      const run = await fetchRun(params.workflow_id, context);
      if (run.run_id !== params.run_id) throw notFound('run', params.run_id);
      const hasFailed = run.workflow_status === 'Failed' || run.workflow_status === 'TimedOut';
      // The work of a run is one activity, however often it is tried.
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
    summary: 'What became of a workflow, in a sentence',
    description: 'Its status, and why it or its last try failed.',
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

/** `Failed: an invoice that is FINALIZED cannot be computed`; while it runs, why the last try failed. */
function sentence({ workflow_status, attempt, error }: WorkflowRunModel): string {
  if (error === null) return workflow_status;
  if (workflow_status === 'Running') return `Running: try ${attempt} failed: ${error.message}; it is tried again`;
  return `${workflow_status}: ${error.message}`;
}
