/**
 * A subscription that still waits for its first payment when its end comes is over then; nothing more of it is invoiced
 * (docs/rules/subscriptions.md, "States").
 */
import type { Scope } from '../../core/scope.ts';
import { formatMs, toInstant } from '../../core/time/instant.ts';
import { type Due, dueUnpaid, type OfWhom } from '../../storage/due-billing.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores } from '../../storage/stores.ts';
import { billedSubscription } from '../billing/billable-items.ts';
import { type Interruptible, inRounds } from '../billing/rounds.ts';
import { billingTransaction } from '../billing/transaction.ts';
import { settleOverbilled } from '../invoices/draft-invoice.ts';
import { payerOf } from '../invoices/settle-change.ts';
import { endAt } from './end-trial.ts';
import { familyFollows } from './follow-parent.ts';

type Ended = { ended: number; failed: { id: string; error: unknown }[] };

export async function endUnpaid(
  stores: Stores,
  { now, only, mayGoOn }: { readonly now: Date } & OfWhom & Interruptible,
): Promise<Ended> {
  const report: Ended = { ended: 0, failed: [] };
  const act = async ({ id, ...scope }: Due) => {
    try {
      const isOver = await endOne(stores, scope, { id, now });
      if (isOver) report.ended += 1;
      return isOver;
    } catch (error) {
      report.failed.push({ id, error });
      return false;
    }
  };
  await inRounds({ next: (left) => dueUnpaid(stores.postgres, { now, left, only }), act, workers: 1, mayGoOn });
  return report;
}

/** Whether it was this one who ended it: it may have been paid meanwhile, or another has it. */
function endOne(stores: Stores, scope: Scope, { id, now }: { id: string; now: Date }): Promise<boolean> {
  return billingTransaction(stores, async (transaction) => {
    const [subscription] = await SubscriptionModel.in(scope, transaction)
      .where({ id, status: 'published', subscription_status: 'incomplete' })
      .forUpdate()
      .skipLocked();
    const end = subscription ? billedSubscription(subscription).end_ms : null;
    if (!subscription || end === null || end > now.getTime()) return false;
    const at = Math.max(end, toInstant(subscription.current_period_start));
    const last = { subscription, effective_date: formatMs(at), payer_id: await payerOf(subscription, transaction) };
    await settleOverbilled(stores, transaction, { ...last, now });
    const parent = await endAt(transaction, { subscription, at, by: { now } });
    await familyFollows(stores, transaction, { parent, by: { now } });
    return true;
  });
}
