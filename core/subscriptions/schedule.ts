/**
 * A scheduled change of a subscription at a future instant, one at a time (docs/rules/subscriptions.md, "Schedules").
 * It can be undone until it is executed.
 */
import { z } from 'zod';
import { notAllowed } from '../foundation/error.ts';
import { metadata, timestampText } from '../foundation/record.ts';
import { DAY_MS, MINUTE_MS } from '../foundation/time/durations.ts';
import { type Milliseconds, toInstant } from '../foundation/time/instant.ts';

export const SCHEDULE_TYPES = ['plan_change', 'cancellation'] as const;
export const SCHEDULE_STATUSES = ['pending', 'executing', 'executed', 'cancelled', 'failed'] as const;

export const SubscriptionSchedule = z.object({
  id: z.string(),
  subscription_id: z.string().meta({ description: 'Subscription that changes.' }),
  schedule_type: z.enum(SCHEDULE_TYPES).meta({ description: 'Kind of change: a cancellation or a plan change.' }),
  scheduled_at: timestampText.meta({ description: 'Instant of the change.' }),
  status: z.enum(SCHEDULE_STATUSES).meta({
    description: 'Status. It is pending until the change is executed, undone, or given up after failed attempts.',
  }),
  configuration: z.record(z.string(), z.unknown()).nullish().meta({ description: 'Requested change.' }),
  executed_at: timestampText.nullish().meta({ description: 'Instant of the execution; null before.' }),
  cancelled_at: timestampText
    .nullish()
    .meta({ description: 'Instant at which the schedule was undone; null otherwise.' }),
  execution_result: z
    .record(z.string(), z.unknown())
    .nullish()
    .meta({ description: 'Result of the execution; null before.' }),
  error_message: z.string().nullish().meta({ description: 'Reason of the failure; null without one.' }),
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  failed_attempts: z.number().int().default(0).meta({ description: 'Number of failed attempts. Default: 0.' }),
  next_attempt_at: timestampText
    .nullish()
    .meta({ description: 'Instant of the next attempt; null if no attempt has failed.' }),
  tenant_id: z.string(),
  environment_id: z.string(),
  created_at: timestampText,
  updated_at: timestampText,
  created_by: z.string(),
  updated_by: z.string(),
});
export type SubscriptionSchedule = z.infer<typeof SubscriptionSchedule>;

/** Delay after each failure, in order. The failure after the last delay is final. */
const RETRY_DELAYS_MS = [MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS, 360 * MINUTE_MS] as const;

/** Instant of the next attempt; null if no attempt remains. */
export function computeScheduleRetryAt(failed_attempts: number, now: Milliseconds): Milliseconds | null {
  const after = RETRY_DELAYS_MS[failed_attempts - 1];
  return after === undefined ? null : now + after;
}

export function isPending({ status }: Pick<SubscriptionSchedule, 'status'>): boolean {
  return status === 'pending';
}

/**
 * Whether this is a cancellation that credits the unserved time (docs/rules/proration.md, "Credits of a cancellation").
 */
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

/** Days until the change, rounded up; 0 if it is no longer pending. */
export function computeDaysUntil({ status, scheduled_at }: SubscriptionSchedule, now: Milliseconds): number {
  if (status !== 'pending') return 0;
  return Math.max(0, Math.ceil((toInstant(scheduled_at) - now) / DAY_MS));
}
