/** Scheduled tasks: what is exported again and again. */
import {
  archiveScheduledTask,
  createScheduledTask,
  enableScheduledTask,
  listScheduleReads,
  runScheduledTask,
} from '../../actions/exports/scheduled-tasks.ts';
import { requireRead } from '../../core/access/role.ts';
import { invalid } from '../../core/error.ts';
import type { ExportRange } from '../../core/export/range.ts';
import type { ScheduledTask } from '../../core/scheduled-task/record.ts';
import { narrow } from '../../storage/models/page.ts';
import { ScheduledTaskModel } from '../../storage/models/scheduled-task.ts';
import { TaskModel } from '../../storage/models/task.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../http/route.ts';
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
    summary: 'Export something again and again',
    description:
      'A file for each hour, day, or part of an hour, some minutes after its end; the first one is of the interval that is running. Whoever makes it must be allowed to read what is in the files.',
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
    description: 'Those that are not archived unless `status` is stated, newest first unless `sort` is.',
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
    description: 'With the range of its next file; an archived one is answered, too.',
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
      'What passed while it was disabled is exported when it is enabled again, a file for each interval. An archived one is refused.',
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
    description: 'No file is written by itself any more. Its tasks, and the files, stay.',
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
    summary: 'Export now, of the last whole interval or of another range',
    description:
      'A task of its own, beside those of the schedule: a range of a year at most, which need not be whole intervals.',
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
    summary: 'Nothing to do: periods end by the clock',
    description: 'For older clients. The scheduler looks for periods that have ended every two minutes, asked or not.',
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

/** Both ends or none. */
function rangeIn(body: ExportRangeInput): ExportRange | null {
  const { start_time = null, end_time = null } = body ?? {};
  if (start_time === null && end_time === null) return null;
  if (start_time === null) throw invalid('start_time', 'goes with end_time');
  if (end_time === null) throw invalid('end_time', 'goes with start_time');
  return { start_us: start_time, end_us: end_time };
}

function running({ id, workflow_id, range_start, range_end }: TaskModel, range: ExportRange | null) {
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
