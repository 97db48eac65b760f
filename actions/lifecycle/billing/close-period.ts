/**
 * Closes the oldest period of a subscription that is over. It applies the plan change scheduled for the period's end, drafts the invoice,
 * and advances the subscription to its next period or ends it.
 */

import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { duePeriod } from '../../../core/rating/due.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { MOVED_BY_PARENT } from '../../../storage/queue/due-billing.ts';
import { emit } from '../../foundation/emit.ts';
import type { PlannedDraft } from '../../invoicing/billing/clock-advance-plan-cache.ts';
import { draftPeriodInvoice } from '../../invoicing/invoices/draft-invoice.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { changePlanIfDue } from '../plan-change/scheduled.ts';
import { endWithCredits } from '../subscriptions/end-with-credits.ts';
import { propagateToChildren } from '../subscriptions/propagate-to-children.ts';

export type ClosePeriodInput = {
  readonly subscription: SubscriptionModel;
  readonly now: Date;
  /** If true, nothing is invoiced while events from before the period's end are in the pipeline. */
  readonly untilComplete: boolean;
  /** Receives a draft that may be cached: it depends only on its plan, and the subscription continues unchanged. */
  readonly onDrafted?: ((drafted: PlannedDraft) => void) | undefined;
  readonly is_settled?: boolean;
};

/**
 * Closes a period and returns the subscription; null if no period is over, 'waiting' if its usage is not completely counted yet.
 * `transaction` holds the lock on its row.
 */
export async function closePeriod(
  stores: Stores,
  transaction: Transaction,
  { subscription: stored, now, untilComplete, onDrafted, is_settled = false }: ClosePeriodInput,
): Promise<SubscriptionModel | 'waiting' | null> {
  const over = duePeriod(toBilledSubscription(stored), currentPeriod(stored), now.getTime());
  if (over === null) return null;
  const at = over.closed.end;
  const { subscription } = over.next
    ? await changePlanIfDue(stores, transaction, { subscription: stored, at, now })
    : { subscription: stored };
  const due = duePeriod(toBilledSubscription(subscription), currentPeriod(subscription), now.getTime()) ?? over;
  let drafted: Omit<PlannedDraft, 'subscription'> | null = null;
  if (at > due.closed.start) {
    const over = { subscription, period: due.closed, now };
    const draft = await draftPeriodInvoice(stores, transaction, { ...over, until_complete: untilComplete, is_settled });
    if (draft === 'waiting') return 'waiting';
    if (draft?.planned) drafted = { invoice: draft.invoice, is_settled: draft.planned.is_settled };
  }
  const by = { now };
  if (due.next === null) return endWithCredits(transaction, { subscription, at, by });
  const changes = { current_period_start: formatMs(due.next.start), current_period_end: formatMs(due.next.end) };
  const moved = await SubscriptionModel.change(subscription, changes, { by, database: transaction });
  await emit(transaction, 'subscription.updated', { record: moved, by });
  if (moved.plan_id !== stored.plan_id) await emit(transaction, 'subscription.plan_changed', { record: moved, by });
  // `cancel_at_period_end` now ends the subscription with the next period, so its plan is not cached.
  if (drafted && subscription === stored && !moved.cancel_at_period_end)
    onDrafted?.({ ...drafted, subscription: moved });
  return moved;
}

/**
 * Closes the periods that are over and that the scheduler has not closed yet, before the subscription is changed. Each
 * draft becomes final after the usual delay and then includes late events. For a backdated change, only periods that
 * end before the instant `before` are closed.
 */
export async function closeDuePeriods(
  stores: Stores,
  transaction: Transaction,
  {
    subscription,
    now,
    before,
  }: Omit<ClosePeriodInput, 'untilComplete'> & { readonly before?: Milliseconds | undefined },
): Promise<SubscriptionModel> {
  let reached = subscription;
  // The parent's invoices contain the charges of a subscription whose periods the parent advances.
  while (reached.subscription_status === 'active' && !MOVED_BY_PARENT.includes(reached.subscription_type)) {
    if (before !== undefined && toInstant(reached.current_period_end) >= before) break;
    const moved = await closePeriod(stores, transaction, { subscription: reached, now, untilComplete: false });
    if (moved === null || moved === 'waiting') break;
    await propagateToChildren(stores, transaction, { parent: moved, by: { now } });
    reached = moved;
  }
  return reached;
}
