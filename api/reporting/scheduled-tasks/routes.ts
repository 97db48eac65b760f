/** Scheduled tasks: recurring exports. */
import {
  archiveScheduledTask,
  createScheduledTask,
  enableScheduledTask,
  listScheduleReads,
  runScheduledTask,
} from '../../../actions/reporting/exports/scheduled-tasks.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { RequestedRange } from '../../../core/foundation/time/range.ts';
import type { ScheduledTask } from '../../../core/platform/scheduled-task/record.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import {
  CreateScheduledTask,
  RunNow,
  RunNowAnswer,
  ScheduledTaskAnswer,
  ScheduledTaskFilter,
  ScheduledTaskListAnswer,
  scheduledTaskGrammar,
  UpdateScheduledTask,
} from './schema.ts';

const tag = 'Scheduled tasks';
const one = { tag, path: '/tasks/scheduled/:id', params: idParams } as const;

export const scheduledTaskRoutes: Route[] = [
  route({
    method: 'post',
    path: '/tasks/scheduled',
    operation_id: 'createScheduledTask',
    summary: 'Create a scheduled export',
    description:
      'Exports a file for each hour, day or part of an hour, some minutes after the interval ends. The first file ' +
      'covers the current interval. The creator needs permission to read the exported records.',
    tag,
    access: 'task:write',
    body: CreateScheduledTask,
    success: 201,
    answer: ScheduledTaskAnswer,
    idempotency: {
      replay: (done, _input, { scope, services }) =>
        ScheduledTaskModel.fetch(scope, done.made('scheduled_task'), { database: services.postgres }),
    },
    handle: ({ body }, context) => {
      requireReads(body, context);
      return createScheduledTask(context.services, context.scope, {
        fields: body,
        author: toAuthor(context),
        may_be_private: context.services.config.EXPORT_ALLOW_PRIVATE_ADDRESSES,
      });
    },
  }),
  route({
    method: 'get',
    path: '/tasks/scheduled',
    operation_id: 'listScheduledTasks',
    summary: 'List scheduled tasks',
    description:
      'Returns a page of scheduled tasks. Default: not archived, newest first; `status` and `sort` change that.',
    tag,
    access: 'task:read',
    query: ScheduledTaskFilter,
    success: 200,
    answer: ScheduledTaskListAnswer,
    handle: ({ query }, context) => findScheduledTasks(query, context),
  }),
  route({
    ...one,
    method: 'get',
    operation_id: 'getScheduledTask',
    summary: 'Get a scheduled task',
    description: 'Returns the task with the range of its next file, even if it is archived.',
    access: 'task:read',
    success: 200,
    answer: ScheduledTaskAnswer,
    handle: ({ params }, { scope, services }) =>
      ScheduledTaskModel.fetch(scope, params.id, { database: services.postgres }),
  }),
  route({
    ...one,
    method: 'put',
    operation_id: 'updateScheduledTask',
    summary: 'Enable or disable a scheduled task',
    description:
      'Sets `enabled`. After it is enabled again, the missed intervals are exported, one file each. Refused for ' +
      'an archived task.',
    access: 'task:write',
    body: UpdateScheduledTask,
    success: 200,
    answer: ScheduledTaskAnswer,
    handle: async ({ params, body }, context) => {
      await requireScheduleReads(params.id, context);
      const author = toAuthor(context);
      return enableScheduledTask(context.services, context.scope, { id: params.id, ...body, author });
    },
  }),
  route({
    ...one,
    method: 'delete',
    operation_id: 'deleteScheduledTask',
    summary: 'Archive a scheduled task',
    description: 'Stops the scheduled files. Existing tasks and files remain.',
    access: 'task:write',
    success: 204,
    handle: ({ params }, context) =>
      archiveScheduledTask(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
  route({
    ...one,
    method: 'post',
    path: '/tasks/scheduled/:id/run',
    operation_id: 'triggerScheduledTaskRun',
    summary: 'Run a scheduled export now',
    description:
      'Exports the last whole interval, or the range of the body, as a separate task beside the schedule. The ' +
      'range is at most a year, and need not be whole intervals.',
    access: 'task:write',
    body: RunNow,
    success: 200,
    answer: RunNowAnswer,
    idempotency: {
      replay: async (done, { body }, { scope, services }) =>
        running(await TaskModel.fetch(scope, done.made('task'), { database: services.postgres }), rangeIn(body)),
    },
    handle: async ({ params, body }, context) => {
      const range = rangeIn(body);
      await requireScheduleReads(params.id, context);
      const request = { id: params.id, range, author: toAuthor(context), received_at: context.received_at };
      return running(await runScheduledTask(context.services, context.scope, request), range);
    },
  }),
  route({
    method: 'post',
    path: '/tasks/scheduled/schedule-update-billing-period',
    operation_id: 'scheduleUpdateBillingPeriod',
    summary: 'Request period processing (no effect)',
    description:
      'Accepted for older clients, without effect: every two minutes the scheduler processes periods that have ended.',
    tag,
    access: 'cron:write',
    success: 200,
    answer: MessageAnswer,
    idempotency: 'same',
    handle: async () => ({ message: 'periods end by the clock of the scheduler: nothing had to be asked for' }),
  }),
];

type ExportScheduleConfig = Pick<ScheduledTask, 'entity_type' | 'job_config'>;

function requireReads(scheduled: ExportScheduleConfig, { principal }: Context): void {
  for (const entity of listScheduleReads(scheduled))
    requireRead(principal, entity, `an export of ${scheduled.entity_type}`);
}

async function requireScheduleReads(id: string, context: Context): Promise<void> {
  const { scope, services } = context;
  requireReads(await ScheduledTaskModel.fetch(scope, id, { database: services.postgres }), context);
}

type ExportRangeInput = { start_time: number | null; end_time: number | null } | undefined;

/** Both ends are required, or neither. */
function rangeIn(body: ExportRangeInput): RequestedRange | null {
  const { start_time = null, end_time = null } = body ?? {};
  if (start_time === null && end_time === null) return null;
  if (start_time === null) throw invalid('start_time', 'goes with end_time');
  if (end_time === null) throw invalid('end_time', 'goes with start_time');
  return { start_us: start_time, end_us: end_time };
}

function running({ id, workflow_id, range_start, range_end }: TaskModel, range: RequestedRange | null) {
  return {
    workflow_id,
    message: 'the export is being made',
    start_time: range_start,
    end_time: range_end,
    mode: range === null ? 'automatic' : 'custom',
    task_id: id,
  };
}

function findScheduledTasks(input: ScheduledTaskFilter, { scope, services }: Context) {
  const query = narrow(ScheduledTaskModel.in(scope, services.postgres), [
    ['connection_id', input.connection_id],
    ['entity_type', input.entity_type],
    ['interval', input.interval],
    ['enabled', input.enabled],
  ]);
  return fetchPage(query, input, scheduledTaskGrammar);
}
