/**
 * Ends a subscription at its end. A scheduled cancellation with credits credits the charges for the time after it (docs/rules/proration.md,
 * "Credits of a cancellation").
 */

import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import { creditsUnusedTime } from '../../../core/subscriptions/schedule.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { creditUnused } from './credit-unused.ts';
import { endAt } from './end-trial.ts';

/** Ends the subscription with its credits. `transaction` holds the lock on the subscription's row. */
export async function endWithCredits(
  transaction: Transaction,
  { subscription, at, by }: { subscription: SubscriptionModel; at: Milliseconds; by: ChangeAuthor },
): Promise<SubscriptionModel> {
  const schedule = await SubscriptionScheduleModel.findPending(subscription, subscription.id, transaction);
  // A trial was not charged, so nothing of it is credited.
  if (schedule && creditsUnusedTime(schedule) && subscription.subscription_status !== 'trialing') {
    const author = { user_id: schedule.created_by, now: by.now };
    await creditUnused(transaction, { subscription, at, author });
  }
  return endAt(transaction, { subscription, at, by });
}
