/**
 * Ends a subscription that still waits for its first payment at its end; nothing more of it is invoiced (docs/rules/subscriptions.md,
 * "States").
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import {
  type DueEnvironments,
  type DueRecord,
  listDueUnpaidSubscriptions,
} from '../../../storage/queue/due-billing.ts';
import { type Interruptible, runBatches } from '../../foundation/batch-loop.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { creditOverbilled } from '../../invoicing/invoices/draft-invoice.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';
import { loadPayer } from '../../subscriptions/load-payer.ts';
import { activateAfterLowered } from '../effects.ts';
import { endAt } from './end-trial.ts';
import { propagateToChildren } from './propagate-to-children.ts';

type EndUnpaidReport = { ended: number; failed: { id: string; error: unknown }[] };

export async function endUnpaid(
  stores: Stores,
  { now, only, mayGoOn }: { readonly now: Date } & DueEnvironments & Interruptible,
): Promise<EndUnpaidReport> {
  const report: EndUnpaidReport = { ended: 0, failed: [] };
  const act = async ({ id, ...scope }: DueRecord) => {
    try {
      const isOver = await endOne(stores, scope, { id, now });
      if (isOver) report.ended += 1;
      return isOver;
    } catch (error) {
      report.failed.push({ id, error });
      return false;
    }
  };
  await runBatches({
    next: (left) => listDueUnpaidSubscriptions(stores.postgres, { now, left, only }),
    act,
    workers: 1,
    mayGoOn,
  });
  return report;
}

/** Ends one subscription. Resolves to false if it was paid meanwhile, or if another worker holds its lock. */
function endOne(stores: Stores, scope: Scope, { id, now }: { id: string; now: Date }): Promise<boolean> {
  return runBillingTransaction(stores, async (transaction) => {
    const [subscription] = await SubscriptionModel.in(scope, transaction)
      .where({ id, status: 'published', subscription_status: 'incomplete' })
      .forUpdate()
      .skipLocked();
    const end = subscription ? toBilledSubscription(subscription).end_ms : null;
    if (!subscription || end === null || end > now.getTime()) return false;
    const at = Math.max(end, toInstant(subscription.current_period_start));
    const last = { subscription, effective_date: formatMs(at), payer_id: await loadPayer(subscription, transaction) };
    const lowered = await creditOverbilled(stores, transaction, { ...last, now });
    const parent = await endAt(transaction, { subscription, at, by: { now } });
    await propagateToChildren(stores, transaction, { parent, by: { now } });
    await activateAfterLowered(stores, transaction, { lowered, by: { now } });
    return true;
  });
}
