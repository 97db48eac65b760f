/**
 * Records that a change of a subscription is scheduled, executed or cancelled (docs/rules/subscriptions.md, "Schedules"). Every caller
 * holds the lock on the subscription's row.
 */
import { errorRecord, FarthingError } from '../../core/foundation/error.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import { computeScheduleRetryAt, isPending, type SubscriptionSchedule } from '../../core/subscriptions/schedule.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscriptions/subscription-schedule.ts';
import { emit } from '../foundation/emit.ts';

type ScheduleTerms = Pick<SubscriptionSchedule, 'schedule_type' | 'scheduled_at' | 'configuration' | 'metadata'>;
type ScheduleChangeBy = { readonly by: Author | Pick<Author, 'now'> };

export function addSchedule(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { author, ...requested }: ScheduleTerms & { author: Author },
): Promise<SubscriptionScheduleModel> {
  const { user_id, now } = author;
  const at = now.toISOString();
  const stamps = { created_at: at, updated_at: at, created_by: user_id, updated_by: user_id };
  const record = {
    ...requested,
    ...stamps,
    id: newId('subscription_schedule', now.getTime()),
    subscription_id: subscription.id,
    status: 'pending',
  };
  const conflict = 'a change of this subscription is scheduled already';
  return SubscriptionScheduleModel.add(subscription, record, { database: transaction, conflict });
}

/** Records the execution, in the transaction that made the change. */
export async function noteExecuted(
  transaction: Transaction,
  schedule: SubscriptionScheduleModel,
  { by, execution_result }: ScheduleChangeBy & { execution_result: Record<string, unknown> },
): Promise<void> {
  const executed_at = by.now.toISOString();
  const changes = {
    status: 'executed' as const,
    executed_at,
    execution_result,
    next_attempt_at: null,
    error_message: null,
  };
  await SubscriptionScheduleModel.change(schedule, changes, { by, database: transaction });
}

/**
 * Thrown if a scheduled change failed; all its writes are rolled back. If a request triggered the change, its caller gets the original
 * error.
 */
export class ScheduleNotDone extends FarthingError {
  readonly schedule: SubscriptionScheduleModel;

  constructor(schedule: SubscriptionScheduleModel, error: unknown) {
    const known =
      error instanceof FarthingError ? error : new FarthingError('internal_error', 'an error of the service');
    const { code, message, details, http_status_code } = known;
    super(code, message, { cause: error, http_status_code, ...(details && { details }) });
    this.schedule = schedule;
  }

  get isRefusal(): boolean {
    return this.http_status_code < 500;
  }

  /** Whether the stores were unavailable, so that the failure is not the fault of the schedule. */
  get isOutage(): boolean {
    return this.http_status_code === 503;
  }
}

type FailedScheduleInput = ScheduleChangeBy & {
  readonly subscription: SubscriptionModel;
  readonly error: FarthingError;
};

/** Records that the change will never happen. The subscription continues unchanged, and an event reports the failure. */
export async function noteFailed(
  transaction: Transaction,
  schedule: SubscriptionScheduleModel,
  { subscription, error, by }: FailedScheduleInput,
): Promise<void> {
  const { code, message, details } = errorRecord(error);
  const changes = { status: 'failed' as const, error_message: message, next_attempt_at: null };
  await SubscriptionScheduleModel.change(schedule, changes, { by, database: transaction });
  const also = { schedule_id: schedule.id, error: { code, message, details } };
  await emit(transaction, 'subscription.plan_change.failed', { record: subscription, by, also });
}

/** Records a failed attempt. A refusal is final; any other error is retried later, until the retries are exhausted. */
export async function noteTry(
  { postgres }: Pick<Stores, 'postgres'>,
  error: ScheduleNotDone,
  now: Date,
): Promise<void> {
  if (error.isOutage) return;
  await postgres.transaction(async (transaction) => {
    const { id, subscription_id, ...scope } = error.schedule;
    const subscription = await SubscriptionModel.fetch(scope, subscription_id, { database: transaction, lock: true });
    const schedule = await SubscriptionScheduleModel.fetch(scope, id, { database: transaction });
    if (!isPending(schedule)) return;
    const failed_attempts = schedule.failed_attempts + 1;
    const retryAt = error.isRefusal ? null : computeScheduleRetryAt(failed_attempts, now.getTime());
    const changes = {
      failed_attempts,
      error_message: error.message,
      next_attempt_at: retryAt === null ? null : formatMs(retryAt),
    };
    const by = { now };
    const noted = await SubscriptionScheduleModel.change(schedule, changes, { by, database: transaction });
    if (retryAt === null) await noteFailed(transaction, noted, { subscription, error, by });
  });
}

/**
 * Closes the schedule of a subscription that has ended. A scheduled cancellation is recorded as executed; any other scheduled change is
 * cancelled.
 */
export async function closeSchedule(
  transaction: Transaction,
  subscription: SubscriptionModel,
  { by }: ScheduleChangeBy,
): Promise<void> {
  const schedule = await SubscriptionScheduleModel.findPending(subscription, subscription.id, transaction);
  if (!schedule) return;
  const execution_result = { subscription_status: subscription.subscription_status };
  if (schedule.schedule_type === 'cancellation') return noteExecuted(transaction, schedule, { by, execution_result });
  const changes = { status: 'cancelled' as const, cancelled_at: by.now.toISOString() };
  await SubscriptionScheduleModel.change(schedule, changes, { by, database: transaction });
}
