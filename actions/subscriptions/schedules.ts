/**
 * Notes what is to happen to a subscription, that it has happened, and that it was undone
 * (docs/rules/subscriptions.md, "Schedules"). Every caller holds the subscription's row.
 */
import type { Author } from '../../core/stamp.ts';
import type { SubscriptionSchedule } from '../../core/subscription/schedule.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscription-schedule.ts';
import { newId } from '../../storage/new-id.ts';
import type { Transaction } from '../../storage/stores.ts';

type Stated = Pick<SubscriptionSchedule, 'schedule_type' | 'scheduled_at' | 'configuration' | 'metadata'>;
type By = { readonly by: Author | Pick<Author, 'now'> };

export function addSchedule(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { author, ...stated }: Stated & { author: Author },
): Promise<SubscriptionScheduleModel> {
  const { user_id, now } = author;
  const at = now.toISOString();
  const stamps = { created_at: at, updated_at: at, created_by: user_id, updated_by: user_id };
  const record = {
    ...stated,
    ...stamps,
    id: newId('subscription_schedule', now.getTime()),
    subscription_id: subscription.id,
    status: 'pending',
  };
  const conflict = 'a change of this subscription is scheduled already';
  return SubscriptionScheduleModel.add(subscription, record, { database: transaction, conflict });
}

/** What was to happen by this instant has happened, in the transaction that did it. */
export async function noteExecuted(
  transaction: Transaction,
  schedule: SubscriptionScheduleModel,
  { by, execution_result }: By & { execution_result: Record<string, unknown> },
): Promise<void> {
  const executed_at = by.now.toISOString();
  const changes = { status: 'executed' as const, executed_at, execution_result };
  await SubscriptionScheduleModel.change(schedule, changes, { by, database: transaction });
}

/** The subscription has ended: what was to end it has happened, and what else was to happen never will. */
export async function closeSchedule(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { by }: By,
): Promise<void> {
  const schedule = await SubscriptionScheduleModel.pendingOf(subscription, subscription.id, transaction);
  if (!schedule) return;
  const execution_result = { subscription_status: subscription.subscription_status };
  if (schedule.schedule_type === 'cancellation') return noteExecuted(transaction, schedule, { by, execution_result });
  const changes = { status: 'cancelled' as const, cancelled_at: by.now.toISOString() };
  await SubscriptionScheduleModel.change(schedule, changes, { by, database: transaction });
}
