/**
 * At its end a trial becomes a paid subscription: the first paid period begins there, and an invoice of its advance charges
 * opens it, which has to be paid where the payment behaviour says so. Usage during the trial is never billed
 * (docs/rules/subscriptions.md, "Trials").
 */
import { duePeriod } from '../../core/billing/due.ts';
import { requireStateAfter } from '../../core/subscription/moves.ts';
import { formatMs, type Milliseconds } from '../../core/time/instant.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { billedSubscription, currentPeriod, toScope } from '../billing/billable-items.ts';
import { draftAndFinalize } from '../invoices/draft-invoice.ts';
import { activateIfPaid, type ChangeAuthor, type OpenedSubscription } from '../invoices/open-and-activate.ts';
import { emit } from '../system-events/emit.ts';
import { closeSchedule } from './schedules.ts';

/** The invoice with which what is paid for begins. */
export const TRIAL_END = { reference: 'period_start', reason: 'SUBSCRIPTION_TRIAL_END' } as const;

/** As it is then with its newest invoice, or null while the trial lasts. `transaction` holds the subscription's row. */
export async function endTrial(
  stores: Stores,
  transaction: Transaction,
  { subscription, by }: { subscription: SubscriptionModel; by: ChangeAuthor },
): Promise<OpenedSubscription | null> {
  const due = duePeriod(billedSubscription(subscription), currentPeriod(subscription), by.now.getTime());
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
  await draftAndFinalize(stores, transaction, { subscription: paying, period, ...TRIAL_END, now: by.now });
  // The trial is over, and nobody is there to be refused: error_if_incomplete waits as the others do.
  const settled = await activateIfPaid(transaction, { subscription: paying, by: { now: by.now } });
  const { subscription_status } = settled.subscription;
  const name = subscription_status === 'active' ? 'subscription.activated' : 'subscription.updated';
  await emit(transaction, name, { record: settled.subscription, by });
  return settled;
}

/** Its end has come: nothing follows. */
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
