/**
 * What is to happen to a subscription at an instant that lies ahead (docs/rules/subscriptions.md, "Schedules"): one thing at a
 * time. It is undone until it happens.
 */
import { z } from 'zod';
import { notAllowed } from '../error.ts';
import { metadata, timestampText } from '../record.ts';
import { type Milliseconds, toInstant } from '../time/instant.ts';

export const SCHEDULE_TYPES = ['plan_change', 'cancellation'] as const;
export const SCHEDULE_STATUSES = ['pending', 'executing', 'executed', 'cancelled', 'failed'] as const;

export const SubscriptionSchedule = z.object({
  id: z.string(),
  subscription_id: z.string().meta({ description: 'The subscription to which it happens.' }),
  schedule_type: z.enum(SCHEDULE_TYPES).meta({ description: 'Whether it ends, or gets another plan.' }),
  scheduled_at: timestampText.meta({ description: 'When it happens.' }),
  status: z.enum(SCHEDULE_STATUSES).meta({ description: 'pending until it has happened, or was undone.' }),
  configuration: z.record(z.string(), z.unknown()).nullish().meta({ description: 'What was asked for.' }),
  executed_at: timestampText.nullish().meta({ description: 'When it happened; null before.' }),
  cancelled_at: timestampText.nullish().meta({ description: 'When it was undone; null while it was not.' }),
  execution_result: z.record(z.string(), z.unknown()).nullish().meta({ description: 'What it did; null before.' }),
  error_message: z.string().nullish().meta({ description: 'Why it failed; null when it did not.' }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  failed_attempts: z.number().int().default(0).meta({ description: 'How often it was tried and failed.' }),
  next_attempt_at: timestampText
    .nullish()
    .meta({ description: 'When it is tried again; null where it has not failed.' }),
  tenant_id: z.string(),
  environment_id: z.string(),
  created_at: timestampText,
  updated_at: timestampText,
  created_by: z.string(),
  updated_by: z.string(),
});
export type SubscriptionSchedule = z.infer<typeof SubscriptionSchedule>;

const MINUTE_MS = 60_000;
/** After the first failure, after the second …; with the one behind the last of them it has failed for good. */
const RETRY_DELAYS_MS = [MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS, 360 * MINUTE_MS] as const;

/** When what has failed so often is tried again; null when it is given up. */
export function computeScheduleRetryAt(failed_attempts: number, now: Milliseconds): Milliseconds | null {
  const after = RETRY_DELAYS_MS[failed_attempts - 1];
  return after === undefined ? null : now + after;
}

export function isPending({ status }: Pick<SubscriptionSchedule, 'status'>): boolean {
  return status === 'pending';
}

/** Whether it is a cancellation that credits the time behind it (docs/rules/proration.md, "Credits of a cancellation"). */
export function creditsUnusedTime({
  schedule_type,
  configuration,
}: Pick<SubscriptionSchedule, 'schedule_type' | 'configuration'>): boolean {
  return schedule_type === 'cancellation' && configuration?.proration_behavior === 'create_prorations';
}

export function checkPending(schedule: Pick<SubscriptionSchedule, 'id' | 'status'>): void {
  if (!isPending(schedule))
    throw notAllowed(`a schedule that is ${schedule.status} cannot be cancelled`, { id: schedule.id });
}

const DAY_MS = 86_400_000;

/** Whole days that are left, and none once it has happened. */
export function computeDaysUntil({ status, scheduled_at }: SubscriptionSchedule, now: Milliseconds): number {
  if (status !== 'pending') return 0;
  return Math.max(0, Math.ceil((toInstant(scheduled_at) - now) / DAY_MS));
}
