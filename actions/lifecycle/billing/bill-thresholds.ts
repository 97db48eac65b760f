/**
 * Invoices usage before its period is over, if the part not yet invoiced has reached the subscription's threshold (docs/rules/invoices.md,
 * "Before the period is over"). The lock on the subscription's row makes two concurrent checks create one invoice: the second finds an
 * uninvoiced amount below the threshold. The invoice is final at once; later usage is on the next one.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { InvoicePlan } from '../../../core/rating/plan-invoice.ts';
import { mapBatched } from '../../../storage/concurrency/batched.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { loadFinalizationTerms } from '../../../storage/models/invoicing/finalization-terms.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import {
  type DueEnvironments,
  type DueRecord,
  listThresholdSubscriptions,
} from '../../../storage/queue/due-billing.ts';
import { type BatchOutcome, runBatches, type WatchedRun } from '../../foundation/batch-loop.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { planThresholdInvoice } from '../../invoicing/billing/plan-invoices.ts';
import { addInvoice } from '../../invoicing/invoices/draft-invoice.ts';
import { finalizeWithin } from '../../invoicing/invoices/finalize-invoice.ts';
import { toInvoiceParts, toInvoiceRecord } from '../../invoicing/records/invoice-records.ts';
import { type BillableItem, currentPeriod, toScope } from '../../rating/billable-items.ts';

type ThresholdReport = {
  invoiced: number;
  /** Subscriptions that have reached their threshold and wait until their seller has a name. */
  without_seller: string[];
  failed: { id: string; error: unknown }[];
};

const WORKERS = 2;

export async function billThresholds(
  stores: Stores,
  now: Date,
  { only, onProgress }: DueEnvironments & WatchedRun<ThresholdReport> = {},
): Promise<ThresholdReport> {
  const report: ThresholdReport = { invoiced: 0, without_seller: [], failed: [] };
  await runBatches({
    next: (left) => listThresholdSubscriptions(stores.postgres, { now, left, only }),
    act: async (due) => {
      await billIfReached(stores, due, { now, report, waits: only !== undefined });
      // Returning false excludes the record from the rest of this run, so that each subscription is checked once.
      return false;
    },
    actBatch: (due) => checkBatch(stores, due, now),
    // A clock advance must be deterministic: invoice numbers follow the order of the due records.
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
    const outcome = await billThreshold(stores, scope, { subscription_id: id, now, waits });
    if (outcome === 'invoiced') report.invoiced += 1;
    if (outcome === 'without_seller') report.without_seller.push(id);
  } catch (error) {
    report.failed.push({ id, error });
  }
}

/**
 * Finds the subscriptions that reach their threshold. Most do not; one that does is invoiced alone. This check locks and writes nothing.
 */
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

/** `without_seller`: the threshold is reached, and the invoice waits until its seller has a name; later checks try again. */
type ThresholdOutcome = 'invoiced' | 'without_seller' | 'idle';

/**
 * Bills one subscription if its threshold is reached. A subscription that another worker has locked is skipped until
 * the next check. A clock advance does not return to this instant, so it waits for the lock (`waits`).
 */
export function billThreshold(
  stores: Stores,
  scope: Scope,
  { subscription_id, now, waits = false }: { subscription_id: string; now: Date; waits?: boolean },
): Promise<ThresholdOutcome> {
  return runBillingTransaction(stores, async (transaction) => {
    const running = listRunningSubscriptions(scope, [subscription_id], transaction).forUpdate();
    const [subscription] = await (waits ? running : running.skipLocked());
    return subscription ? invoiceRunning(stores, transaction, { subscription, now }) : 'idle';
  });
}

type ThresholdCheckInput = { readonly subscription: SubscriptionModel; readonly now: Date };

/** Returns the plan of the threshold invoice; null below the threshold. */
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

async function invoiceRunning(
  stores: Stores,
  transaction: Transaction,
  check: ThresholdCheckInput,
): Promise<ThresholdOutcome> {
  const { subscription, now } = check;
  const scope = toScope(subscription);
  const reached = await planIfReached(stores, transaction, check);
  if (reached === null) return 'idle';
  const terms = await loadFinalizationTerms(scope, transaction);
  if (terms.is_seller_unknown) return 'without_seller';
  const { plan, period } = reached;
  const id = newId('invoice', now.getTime());
  const record = toInvoiceRecord({ subscription, period, reason: 'THRESHOLD_BILLING', plan }, id, now);
  if (await hasInvoice(subscription, record.idempotency_key ?? '', transaction)) return 'idle';
  const parts = toInvoiceParts(plan, record, now);
  const invoice = await addInvoice(transaction, subscription, { record, ...parts, now });
  await finalizeWithin(transaction, scope, { invoice_id: invoice.id, now, terms });
  return 'invoiced';
}

/** Whether an invoice that is not void has this key. The key contains the minute, so later usage of this minute is on the next invoice. */
async function hasInvoice(subscription: SubscriptionModel, key: string, transaction: Transaction): Promise<boolean> {
  const [same] = await InvoiceModel.in(subscription, transaction)
    .where({ idempotency_key: key, status: 'published' })
    .whereNot('invoice_status', 'VOIDED')
    .select('id')
    .limit(1);
  return same !== undefined;
}
