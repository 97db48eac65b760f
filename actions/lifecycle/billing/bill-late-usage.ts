/**
 * Invoices usage that arrives after a subscription has ended (docs/rules/invoices.md, "Late events"), on a draft of its own. The draft
 * becomes final after the usual delay. No draft is made if an open draft will include the late usage, or if the late usage costs nothing.
 * The lock on the subscription's row makes two concurrent runs create one invoice. Late-usage notices are taken first and finished with the
 * draft; after a crash in between, the next run processes them.
 */

import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { latePeriod } from '../../../core/rating/after-end.ts';
import { deriveEndInstant } from '../../../core/subscriptions/propagation.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { BILL_DELAY_SECONDS, finishLateUsage, takeLateUsage } from '../../../storage/progress/late-usage.ts';
import type { DueEnvironments, DueRecord } from '../../../storage/queue/due-billing.ts';
import { listDueLateUsage } from '../../../storage/queue/due-late-usage.ts';
import { runBatches, type WatchedRun } from '../../foundation/batch-loop.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { draftLateInvoice } from '../../invoicing/invoices/draft-invoice.ts';
import { toBilledSubscription, toScope } from '../../rating/billable-items.ts';
import { loadPayer } from '../../subscriptions/load-payer.ts';
import { lockWithParent } from '../subscriptions/lock-with-parent.ts';

type LateReport = { drafted: number; looked: number; failed: { id: string; error: unknown }[] };

const WORKERS = 2;

export async function billLateUsage(
  stores: Stores,
  now: Date,
  { only, onProgress }: DueEnvironments & WatchedRun<LateReport> = {},
): Promise<LateReport> {
  const report: LateReport = { drafted: 0, looked: 0, failed: [] };
  await runBatches({
    next: (left) => listDueLateUsage(stores.postgres, { now, left, only }),
    act: async ({ id, ...scope }) => {
      try {
        if (await billLate(stores, scope, { subscription_id: id, now })) report.drafted += 1;
        report.looked += 1;
      } catch (error) {
        report.failed.push({ id, error });
      }
      // Returning false excludes the record from the rest of this run, so that each subscription is checked once.
      return false;
    },
    // A clock advance must be deterministic: invoice numbers follow the order of the due records.
    workers: only ? 1 : WORKERS,
    onProgress: () => onProgress?.(report),
  });
  return report;
}

async function billLate(
  stores: Stores,
  scope: Omit<DueRecord, 'id'>,
  { subscription_id, now }: { subscription_id: string; now: Date },
): Promise<boolean> {
  const ids = await takeLateUsage(stores.postgres, { ...scope, subscription_id });
  return runBillingTransaction(stores, async (transaction) => {
    const subscription = await lockWithParent(scope, subscription_id, transaction);
    const retry_at = await findWaitUntil(transaction, { subscription, now });
    const isDrafted = retry_at === null && (await draftLate(stores, transaction, { subscription, now }));
    await finishLateUsage(transaction, scope, { ids, again_at: retry_at });
    return isDrafted;
  });
}

type LateUsageCheck = { readonly subscription: SubscriptionModel; readonly now: Date };

/**
 * Returns the time of the next check; null if billing need not wait. It waits while the subscription or its parent has a draft, and until
 * the parent has invoiced the period in which the subscription ended.
 */
async function findWaitUntil(transaction: Transaction, { subscription, now }: LateUsageCheck): Promise<Date | null> {
  const { id, parent_subscription_id } = subscription;
  const ids = parent_subscription_id ? [id, parent_subscription_id] : [id];
  const [draft] = await InvoiceModel.in(subscription, transaction)
    .whereIn('subscription_id', ids)
    .where({ invoice_status: 'DRAFT', status: 'published' })
    .select('id')
    .limit(1);
  // The finalization of the draft triggers the next check (storage/queue/due-late-usage.ts).
  if (draft) return now;
  if (subscription.subscription_type !== 'grouped_invoicing' || !parent_subscription_id) return null;
  const parent = await SubscriptionModel.fetch(toScope(subscription), parent_subscription_id, {
    database: transaction,
  });
  const isToBeInvoiced =
    parent.subscription_status !== 'cancelled' &&
    deriveEndInstant(subscription) > toInstant(parent.current_period_start);
  if (!isToBeInvoiced) return null;
  return new Date(Math.max(toInstant(parent.current_period_end), now.getTime() + BILL_DELAY_SECONDS * 1000));
}

async function draftLate(
  stores: Stores,
  transaction: Transaction,
  { subscription, now }: LateUsageCheck,
): Promise<boolean> {
  const period = await findLatePeriod(transaction, { subscription, now });
  if (period === null || subscription.subscription_status !== 'cancelled') return false;
  const payer_id = await loadPayer(subscription, transaction);
  return (await draftLateInvoice(stores, transaction, { subscription, period, payer_id, now })) !== null;
}

/** Finds the period of an invoice of usage that arrives after the end of the subscription. */
export async function findLatePeriod(
  database: Database,
  { subscription, now }: LateUsageCheck,
): Promise<Period | null> {
  const { end_ms } = toBilledSubscription(subscription);
  const ends = await listPeriodEnds(subscription, database);
  return latePeriod(ends, { end_ms, now: now.getTime() });
}

/** Lists the period ends of the subscription's cycle invoices that are not void. */
async function listPeriodEnds(subscription: SubscriptionModel, database: Database): Promise<Milliseconds[]> {
  const invoices = await InvoiceModel.in(subscription, database)
    .where({ subscription_id: subscription.id, status: 'published', billing_reason: 'SUBSCRIPTION_CYCLE' })
    .whereNot('invoice_status', 'VOIDED')
    .whereNotNull('period_end')
    .select('period_end');
  return invoices.map(({ period_end }) => toInstant(period_end!));
}
