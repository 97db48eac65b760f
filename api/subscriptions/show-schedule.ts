/** Answer shape of a subscription schedule. */
import { z } from 'zod';
import { computeDaysUntil, isPending, SubscriptionSchedule } from '../../core/subscriptions/schedule.ts';
import type { SubscriptionScheduleModel } from '../../storage/models/subscriptions/subscription-schedule.ts';

export const ScheduleAnswer = SubscriptionSchedule.extend({
  days_until_execution: z.int().meta({ description: 'Days until the execution, rounded up; 0 after it.' }),
  can_be_cancelled: z.boolean().meta({ description: 'True if the schedule can still be cancelled.' }),
}).meta({ id: 'SubscriptionScheduleResponse' });

export function showSchedule(schedule: SubscriptionScheduleModel, now: Date) {
  return {
    ...schedule,
    days_until_execution: computeDaysUntil(schedule, now.getTime()),
    can_be_cancelled: isPending(schedule),
  };
}
