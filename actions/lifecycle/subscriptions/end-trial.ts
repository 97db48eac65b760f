/**
 * Turns a trial into a paid subscription at its end (docs/rules/subscriptions.md, "Trials"). The first paid period begins there, opened by
 * an invoice of its advance charges. The payment behaviour decides if that invoice must be paid first. Usage during the trial is never
 * billed.
 */

import { formatMs, type Milliseconds } from '../../../core/foundation/time/instant.ts';
import { duePeriod } from '../../../core/rating/due.ts';
import { requireStateAfter } from '../../../core/subscriptions/moves.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { emit } from '../../foundation/emit.ts';
import { finalizeOpening } from '../../invoicing/invoices/draft-invoice.ts';
import { currentPeriod, toBilledSubscription, toScope } from '../../rating/billable-items.ts';
import { closeSchedule } from '../../subscriptions/schedules.ts';
import { activateIfPaid, type OpenedSubscription } from '../invoices/open-and-activate.ts';

/** Reason of the invoice that opens the first paid period. */
export const TRIAL_END = 'SUBSCRIPTION_TRIAL_END';

/**
 * Ends the trial; returns the subscription with its newest invoice, or null while the trial lasts. `transaction` holds the lock on the
 * subscription's row.
 */
export async function endTrial(
  stores: Stores,
  transaction: Transaction,
  { subscription, by }: { subscription: SubscriptionModel; by: ChangeAuthor },
): Promise<OpenedSubscription | null> {
  const due = duePeriod(toBilledSubscription(subscription), currentPeriod(subscription), by.now.getTime());
  if (due === null) return null;
  const { closed, next: period } = due;
  if (period === null) {
    const over = await endAt(transaction, { subscription, at: closed.end, by });
    return { subscription: over, latest_invoice: null };
  }
  const changes = {
    subscription_status: requireStateAfter('end_trial', subscription.subscription_status),
    current_period_start: formatMs(period.start),
    current_period_end: formatMs(period.end),
  };
  const paying = await SubscriptionModel.change(subscription, changes, { by, database: transaction });
  await finalizeOpening(stores, transaction, { subscription: paying, period, reason: TRIAL_END, now: by.now });
  // No caller waits for this result. So `error_if_incomplete` cannot fail a request, and the subscription waits for its
  // payment.
  const settled = await activateIfPaid(transaction, { subscription: paying, by: { now: by.now } });
  const { subscription_status } = settled.subscription;
  const name = subscription_status === 'active' ? 'subscription.activated' : 'subscription.updated';
  await emit(transaction, name, { record: settled.subscription, by });
  return settled;
}

/** Ends the subscription at its end date; no period follows. */
export async function endAt(
  transaction: Transaction,
  { subscription, at, by }: { subscription: SubscriptionModel; at: Milliseconds; by: ChangeAuthor },
): Promise<SubscriptionModel> {
  const changes = {
    subscription_status: requireStateAfter('cancel', subscription.subscription_status),
    cancelled_at: formatMs(at),
    current_period_end: formatMs(at),
    end_date: formatMs(at),
  };
  const over = await SubscriptionModel.change(subscription, changes, { by, database: transaction });
  const lines = { subscription_id: over.id, at: formatMs(at), by };
  await SubscriptionLineItemModel.endAll(toScope(over), lines, transaction);
  await closeSchedule(transaction, over, { by });
  await emit(transaction, 'subscription.cancelled', { record: over, by });
  return over;
}
