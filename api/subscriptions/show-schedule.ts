/** What is to happen to a subscription, as it is answered. */
import { z } from 'zod';
import { computeDaysUntil, isPending, SubscriptionSchedule } from '../../core/subscription/schedule.ts';
import type { SubscriptionScheduleModel } from '../../storage/models/subscription-schedule.ts';

export const ScheduleAnswer = SubscriptionSchedule.extend({
  days_until_execution: z.int().meta({ description: 'Days until then, begun ones too; 0 once it has happened.' }),
  can_be_cancelled: z.boolean().meta({ description: 'Whether it can be undone still.' }),
}).meta({ id: 'SubscriptionScheduleResponse' });

export function showSchedule(schedule: SubscriptionScheduleModel, now: Date) {
  return {
    ...schedule,
    days_until_execution: computeDaysUntil(schedule, now.getTime()),
    can_be_cancelled: isPending(schedule),
  };
}
