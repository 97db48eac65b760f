/**
 * Invoices usage before its period is over, where what is not invoiced of it has reached the threshold of the subscription
 * (docs/rules/invoices.md, "Before the period is over"). The row of the subscription is locked first, so that two that look at once
 * make one invoice; the second finds nothing left that reaches the threshold. The invoice is final at once: what comes later is on
 * the next one.
 */
import type { InvoicePlan } from '../../core/billing/plan-invoice.ts';
import type { Scope } from '../../core/scope.ts';
import type { Period } from '../../core/time/period.ts';
import { type DueEnvironments, type DueRecord, listThresholdSubscriptions } from '../../storage/due-billing.ts';
import { mapBatched } from '../../storage/models/batched.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { addInvoice } from '../invoices/draft-invoice.ts';
import { finalizeWithin } from '../invoices/finalize-invoice.ts';
import { type BatchOutcome, runBatches, type WatchedRun } from './batch-loop.ts';
import { type BillableItem, currentPeriod, toScope } from './billable-items.ts';
import { planThresholdInvoice } from './gather-billing.ts';
import { invoiceParts, invoiceRecord } from './invoice-records.ts';
import { runBillingTransaction } from './transaction.ts';

export type ThresholdReport = { invoiced: number; failed: { id: string; error: unknown }[] };

const WORKERS = 2;

export async function billThresholds(
  stores: Stores,
  now: Date,
  { only, onProgress }: DueEnvironments & WatchedRun<ThresholdReport> = {},
): Promise<ThresholdReport> {
  const report: ThresholdReport = { invoiced: 0, failed: [] };
  await runBatches({
    next: (left) => listThresholdSubscriptions(stores.postgres, { now, left, only }),
    act: async (due) => {
      await billIfReached(stores, due, { now, report, waits: only !== undefined });
      // Each is looked at once in a run.
      return false;
    },
    actBatch: (due) => checkBatch(stores, due, now),
    // By a clock the same must come of the same: numbers are given in the order of what is due.
    workers: only ? 1 : WORKERS,
    onProgress: () => onProgress?.(report),
  });
  return report;
}

async function billIfReached(
  stores: Stores,
  { id, ...scope }: DueRecord,
  { now, report, waits }: { now: Date; report: ThresholdReport; waits: boolean },
): Promise<void> {
  try {
    if (await billThreshold(stores, scope, { subscription_id: id, now, waits })) report.invoiced += 1;
  } catch (error) {
    report.failed.push({ id, error });
  }
}

/** Most have not reached it: who has is invoiced alone. Nothing is locked or written here. */
function checkBatch(stores: Stores, due: readonly DueRecord[], now: Date): Promise<BatchOutcome> {
  const ids = due.map(({ id }) => id);
  return runBillingTransaction(stores, async (transaction) => {
    const running = await listRunningSubscriptions(toScope(due[0]!), ids, transaction);
    const plans = await mapBatched(transaction, running, (subscription) =>
      planIfReached(stores, transaction, { subscription, now }),
    );
    const reached = new Set(running.filter((_, index) => plans[index] !== null).map(({ id }) => id));
    return { left: ids.filter((id) => !reached.has(id)), alone: due.filter(({ id }) => reached.has(id)) };
  });
}

function listRunningSubscriptions(scope: Scope, ids: readonly string[], database: Database) {
  return SubscriptionModel.in(scope, database)
    .whereIn('id', [...ids])
    .where({ status: 'published', subscription_status: 'active' })
    .where('auto_invoice_threshold', '>', 0)
    .whereNull('opens_at')
    .orderBy('id');
}

/**
 * Whether an invoice was made. One that somebody else holds is left to the next look; by the clock of an environment, which does not look again at
 * this instant, it is waited for.
 */
export function billThreshold(
  stores: Stores,
  scope: Scope,
  { subscription_id, now, waits = false }: { subscription_id: string; now: Date; waits?: boolean },
): Promise<boolean> {
  return runBillingTransaction(stores, async (transaction) => {
    const running = listRunningSubscriptions(scope, [subscription_id], transaction).forUpdate();
    const [subscription] = await (waits ? running : running.skipLocked());
    return subscription ? invoiceRunning(stores, transaction, { subscription, now }) : false;
  });
}

type ThresholdCheckInput = { readonly subscription: SubscriptionModel; readonly now: Date };

/** What is to be invoiced; null where it has not reached the threshold. */
async function planIfReached(
  stores: Stores,
  transaction: Transaction,
  { subscription, now }: ThresholdCheckInput,
): Promise<{ plan: InvoicePlan<BillableItem>; period: Period } | null> {
  const current = currentPeriod(subscription);
  const period = { start: current.start, end: now.getTime() };
  // A period that is over has its own invoice.
  if (period.end <= current.start || period.end >= current.end) return null;
  const plan = await planThresholdInvoice(stores, transaction, { subscription, period, now });
  return plan && { plan, period };
}

async function invoiceRunning(stores: Stores, transaction: Transaction, check: ThresholdCheckInput): Promise<boolean> {
  const { subscription, now } = check;
  const reached = await planIfReached(stores, transaction, check);
  if (reached === null) return false;
  const { plan, period } = reached;
  const id = newId('invoice', now.getTime());
  const record = invoiceRecord({ subscription, period, reason: 'THRESHOLD_BILLING', plan }, id, now);
  if (await hasInvoice(subscription, record.idempotency_key ?? '', transaction)) return false;
  const parts = invoiceParts(plan, record, now);
  const invoice = await addInvoice(transaction, subscription, { record, ...parts, now });
  await finalizeWithin(transaction, toScope(subscription), { invoice_id: invoice.id, now });
  return true;
}

/** One in a minute is enough: what has come since is on the next. What was made void says nothing any more. */
async function hasInvoice(subscription: SubscriptionModel, key: string, transaction: Transaction): Promise<boolean> {
  const [same] = await InvoiceModel.in(subscription, transaction)
    .where({ idempotency_key: key, status: 'published' })
    .whereNot('invoice_status', 'VOIDED')
    .select('id')
    .limit(1);
  return same !== undefined;
}
