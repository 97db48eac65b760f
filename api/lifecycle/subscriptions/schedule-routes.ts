/** Schedules of subscriptions: list and cancel pending changes. */

import { z } from 'zod';
import { cancelSchedule } from '../../../actions/lifecycle/subscriptions/cancel-schedule.ts';
import { anyCase, orNull } from '../../../core/foundation/record.ts';
import { SCHEDULE_STATUSES, SCHEDULE_TYPES } from '../../../core/subscriptions/schedule.ts';
import { loadPage, NEWEST_FIRST, narrow } from '../../../storage/models/foundation/page.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import type { Effects } from '../../http/effects.ts';
import { buildWholeListPage, flag, listShape, matchAny, Pagination } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { ScheduleAnswer, showSchedule } from '../../subscriptions/show-schedule.ts';

const tag = 'Subscriptions';
const reads = { method: 'get', tag, access: 'subscription:read', success: 200 } as const;
const writes = { method: 'post', tag, access: 'subscription:write', success: 200 } as const;

export const SchedulesAnswer = z
  .object({
    schedules: z.array(ScheduleAnswer).meta({ description: 'Schedules, newest first.' }),
    count: z.int().meta({ description: 'Number of schedules in this answer.' }),
    next_cursor: Pagination.shape.next_cursor,
  })
  .meta({ id: 'GetPendingSchedulesResponse' });

const { limit, offset, cursor } = listShape({}).shape;
const ScheduleFilter = z
  .object({
    limit,
    offset,
    cursor,
    subscription_id: z.string().optional().meta({ description: 'Matches schedules of this subscription.' }),
    subscription_ids: matchAny('subscriptions'),
    pending_only: flag
      .default(false)
      .meta({ description: 'True omits schedules that were executed or cancelled. Default false.' }),
  })
  .meta({ id: 'SubscriptionScheduleFilter' });
type ScheduleFilter = z.output<typeof ScheduleFilter>;

const CancelSchedule = z
  .object({
    schedule_id: orNull(z.string()).meta({ description: 'Id of the schedule. Not needed if the path names it.' }),
    subscription_id: orNull(z.string()).meta({
      description: 'Id of the subscription, as an alternative to the schedule.',
    }),
    schedule_type: orNull(anyCase(SCHEDULE_TYPES)).meta({
      description: 'Type of the schedule to cancel; used with `subscription_id`.',
    }),
  })
  .meta({ id: 'CancelScheduleRequest', example: {} });
export const CancelScheduleAnswer = z
  .object({
    status: z.enum(SCHEDULE_STATUSES).meta({ description: 'Always cancelled.' }),
    message: z.string().meta({ description: 'Result of the operation, for people.' }),
  })
  .meta({ id: 'CancelScheduleResponse' });

const scheduleParams = z.object({ schedule_id: z.string().min(1).meta({ description: 'Id of the schedule.' }) });
const ONE = {
  ...reads,
  summary: 'Get a subscription schedule',
  description: 'Returns the schedule, even if it was executed or cancelled.',
  answer: ScheduleAnswer,
};
const ALL = {
  ...reads,
  summary: 'List subscription schedules',
  description:
    'Returns schedules, newest first, one page at a time. Executed and cancelled ones are included unless ' +
    '`pending_only` is set.',
  query: ScheduleFilter,
  answer: SchedulesAnswer,
};

export const scheduleRoutes: Route[] = [
  route({
    ...ALL,
    path: '/subscriptions/schedules',
    operation_id: 'listSubscriptionSchedulesOfAll',
    handle: ({ query }, context) => findSchedules(query, context),
  }),
  route({
    ...ALL,
    path: '/subscription-schedules',
    operation_id: 'listAllSubscriptionSchedules',
    handle: ({ query }, context) => findSchedules(query, context),
  }),
  route({
    ...reads,
    path: '/subscriptions/:id/schedules',
    operation_id: 'listSubscriptionSchedules',
    summary: 'List the schedules of a subscription',
    description: 'Returns schedules, newest first, including executed and cancelled ones.',
    params: idParams,
    query: buildWholeListPage('schedules'),
    answer: SchedulesAnswer,
    handle: async ({ params, query }, context) => {
      const { scope, services } = context;
      const { id } = await SubscriptionModel.fetch(scope, params.id, { database: services.postgres });
      return findSchedules({ ...ScheduleFilter.parse({}), ...query, subscription_id: id }, context);
    },
  }),
  route({
    ...ONE,
    path: '/subscriptions/schedules/:schedule_id',
    operation_id: 'getScheduleOfSubscription',
    params: scheduleParams,
    handle: ({ params }, context) => oneSchedule(params.schedule_id, context),
  }),
  route({
    ...ONE,
    path: '/subscription-schedules/:id',
    operation_id: 'getSubscriptionSchedule',
    params: idParams,
    handle: ({ params }, context) => oneSchedule(params.id, context),
  }),
  route({
    ...writes,
    path: '/subscriptions/schedules/:schedule_id/cancel',
    operation_id: 'cancelSubscriptionSchedule',
    summary: 'Cancel a subscription schedule',
    description:
      'Cancels a scheduled change. If it was a cancellation, the subscription continues, and charges shortened to the ' +
      'cancellation date are extended to the end of the period. If it was a plan change, it does not happen.',
    params: scheduleParams,
    body: CancelSchedule.nullish(),
    answer: CancelScheduleAnswer,
    example: { body: {} },
    idempotency: { replay: (...request) => replayUndo(...request) },
    handle: ({ params }, context) => undo({ schedule_id: params.schedule_id }, context),
  }),
  route({
    ...writes,
    path: '/subscriptions/schedules/cancel',
    operation_id: 'cancelScheduleOfSubscription',
    summary: 'Cancel a schedule by subscription',
    description:
      'Cancels the schedule with `schedule_id`, or the one with `subscription_id` and `schedule_type`. One of the ' +
      'two forms is required.',
    body: CancelSchedule,
    answer: CancelScheduleAnswer,
    example: { body: { subscription_id: 'subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X', schedule_type: 'cancellation' } },
    idempotency: { replay: (...request) => replayUndo(...request) },
    handle: ({ body }, context) => undo(body, context),
  }),
];

async function undo(named: Parameters<typeof cancelSchedule>[2]['named'], context: Context) {
  const { status, schedule_type } = await cancelSchedule(context.services, context.scope, {
    named,
    author: toAuthor(context),
  });
  return undone({ status, schedule_type });
}

function undone({ status, schedule_type }: Pick<SubscriptionScheduleModel, 'status' | 'schedule_type'>) {
  return { status, message: `the ${schedule_type.replace('_', ' ')} will not happen` };
}

async function replayUndo(done: Effects, _input: unknown, { scope, services }: Context) {
  const id = done.touched('subscription_schedule');
  return undone(await SubscriptionScheduleModel.fetch(scope, id, { database: services.postgres }));
}

async function oneSchedule(id: string, { scope, services, now }: Context) {
  return showSchedule(await SubscriptionScheduleModel.fetch(scope, id, { database: services.postgres }), now);
}

async function findSchedules(input: ScheduleFilter, { scope, services, now }: Context) {
  const schedules = narrow(SubscriptionScheduleModel.in(scope, services.postgres), [
    ['subscription_id', input.subscription_id],
    ['subscription_id', input.subscription_ids],
    ['status', input.pending_only ? 'pending' : undefined],
  ]);
  const { items, pagination } = await loadPage(schedules, { ...input, order: NEWEST_FIRST });
  const { next_cursor } = pagination;
  return { schedules: items.map((schedule) => showSchedule(schedule, now)), count: items.length, next_cursor };
}
