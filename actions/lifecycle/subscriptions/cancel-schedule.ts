/**
 * Cancels a scheduled change of a subscription (docs/rules/subscriptions.md, "Schedules"). A withdrawn cancellation restores the end of the
 * running period. Advance charges that ended at the cancellation are extended to that end and invoiced at once.
 */

import { invalid, notAllowed, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { planResumptionCredits, planResumptionLines } from '../../../core/rating/change.ts';
import { nextPeriod } from '../../../core/rating/charges.ts';
import type { Subscription } from '../../../core/subscriptions/record.ts';
import { checkPending, type SubscriptionSchedule } from '../../../core/subscriptions/schedule.ts';
import { checkVersion } from '../../../core/subscriptions/version.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { emit } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { filterFinalLines, gatherInvoicedLines } from '../../invoicing/billing/gather-closed-charges.ts';
import { loadChargeTerms, settleChange } from '../../invoicing/invoices/settle-change.ts';
import {
  type BillableItem,
  currentPeriod,
  gatherItems,
  toBilledSubscription,
  toRunningPeriod,
} from '../../rating/billable-items.ts';
import { loadPayer } from '../../subscriptions/load-payer.ts';
import { activateAfterLowered } from '../effects.ts';
import { buildSettlements, withoutCancellation } from './change-lines.ts';
import { lockWithParent } from './lock-with-parent.ts';
import { computeOpenDrafts } from './open-drafts.ts';
import { propagateToChildren } from './propagate-to-children.ts';

type CancelScheduleTarget = {
  readonly schedule_id?: string | null;
  readonly subscription_id?: string | null;
  readonly schedule_type?: SubscriptionSchedule['schedule_type'] | null;
};
/** Request to cancel a schedule. `version` is the subscription's version that the caller has read, if the request names it. */
type CancelScheduleInput = {
  readonly named: CancelScheduleTarget;
  readonly version?: number | null | undefined;
  readonly author: Author;
};

export async function cancelSchedule(
  stores: Stores,
  scope: Scope,
  { named, version, author }: CancelScheduleInput,
): Promise<SubscriptionScheduleModel> {
  return runBillingTransaction(stores, async (transaction) => {
    const { subscription_id } = await loadSchedule(scope, named, transaction);
    const subscription = await lockWithParent(scope, subscription_id, transaction);
    checkVersion(version, subscription);
    // The schedule is read again with the lock held, because it may have been executed since the first read.
    const schedule = await loadSchedule(scope, named, transaction);
    checkPending(schedule);
    if (toInstant(schedule.scheduled_at) <= author.now.getTime())
      throw notAllowed('this is happening now and cannot be undone', { id: schedule.id });
    const by = { by: author, database: transaction };
    if (schedule.schedule_type === 'cancellation') {
      const { resumed: parent, lowered } = await resume(stores, transaction, { subscription, author });
      await propagateToChildren(stores, transaction, { parent, by: author });
      await activateAfterLowered(stores, transaction, { lowered, by: author });
    }
    const changes = { status: 'cancelled' as const, cancelled_at: author.now.toISOString() };
    return SubscriptionScheduleModel.change(schedule, changes, by);
  });
}

async function loadSchedule(
  scope: Scope,
  named: CancelScheduleTarget,
  database: Transaction,
): Promise<SubscriptionScheduleModel> {
  const { schedule_id, subscription_id, schedule_type } = named;
  if (schedule_id) return SubscriptionScheduleModel.fetch(scope, schedule_id, { database });
  if (!subscription_id || !schedule_type)
    throw invalid('schedule_id', 'is required, or subscription_id and schedule_type instead of it');
  const [schedule] = await SubscriptionScheduleModel.in(scope, database)
    .where({ subscription_id, schedule_type })
    .orderByRaw("(status = 'pending') desc")
    .orderBy('created_at', 'desc')
    .limit(1);
  if (!schedule) throw notFound(`a scheduled ${schedule_type} of subscription`, subscription_id);
  return schedule;
}

async function resume(
  stores: Stores,
  transaction: Transaction,
  { subscription, author }: { subscription: SubscriptionModel; author: Author },
): Promise<{ readonly resumed: SubscriptionModel; readonly lowered: readonly InvoiceModel[] }> {
  const ended_ms = toInstant(subscription.cancel_at ?? subscription.current_period_end);
  const running = withoutCancellation(subscription);
  const { start } = currentPeriod(subscription);
  const current = nextPeriod(start, toBilledSubscription(running)) ?? currentPeriod(subscription);
  const changes: Partial<Subscription> = {
    cancel_at: null,
    cancel_at_period_end: false,
    ...(subscription.subscription_status === 'trialing' ? {} : { current_period_end: formatMs(current.end) }),
  };
  const resumed = await SubscriptionModel.change(subscription, changes, { by: author, database: transaction });
  const drafts = { subscription: resumed, now: author.now };
  if (resumed.subscription_type !== 'grouped_invoicing') await computeOpenDrafts(stores, transaction, drafts);
  const lowered = await chargeResumedTime(transaction, { subscription: resumed, ended_ms, author });
  await emit(transaction, 'subscription.updated', { record: resumed, by: author });
  return { resumed, lowered };
}

/**
 * Extends the charges that the withdrawn cancellation had shortened. Lines that ended meanwhile are credited for the
 * time after their end. Returns the open invoices that the credits lowered.
 */
async function chargeResumedTime(
  transaction: Transaction,
  { subscription, ended_ms, author }: { subscription: SubscriptionModel; ended_ms: number; author: Author },
): Promise<readonly InvoiceModel[]> {
  if (subscription.subscription_status === 'trialing') return [];
  const invoiced = await gatherInvoicedLines(transaction, subscription);
  const found = await gatherItems(transaction, subscription, { withRemoved: true });
  const items = found.map((item) => ({ item, billed_lines: filterFinalLines(invoiced, item.id) }));
  const resumed = { ...toRunningPeriod(subscription), currency: subscription.currency, ended_ms };
  const charges = planResumptionLines({ ...resumed, items: items.filter(({ item }) => isThere(item)) });
  const credits = planResumptionCredits({ ...resumed, items });
  const payer_id = await loadPayer(subscription, transaction);
  const paid = { subscription, payer_id, author };
  const terms = charges.length === 0 ? {} : await loadChargeTerms(transaction, paid);
  const settling = { ...paid, key: `resumed/${subscription.version}`, terms };
  const { settlement, refunds } = buildSettlements(settling, { credits, charges, invoiced });
  const lowered: InvoiceModel[] = [];
  for (const one of [settlement ?? [], ...refunds].flat())
    lowered.push(...(await settleChange(transaction, one)).lowered);
  return lowered;
}

/** Whether the line still exists. A change that ends a line at the line's own start deletes it, because it was never active. */
function isThere({ line_item }: BillableItem): boolean {
  return line_item.status === 'published';
}
