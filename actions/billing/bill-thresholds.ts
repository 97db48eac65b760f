/**
 * Invoices usage before its period is over, where what is not invoiced of it has reached the threshold of the subscription
 * (docs/rules/invoices.md, "Before the period is over"). The row of the subscription is locked first, so that two that look at once
 * make one invoice; the second finds nothing left that reaches the threshold. The invoice is final at once: what comes later is on
 * the next one.
 */
import { reaches } from '../../core/billing/threshold.ts';
import type { Scope } from '../../core/scope.ts';
import { type Due, type OfWhom, thresholdSubscriptions } from '../../storage/due-billing.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { newId } from '../../storage/new-id.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { addInvoice } from '../invoices/draft-invoice.ts';
import { finalizeWithin } from '../invoices/finalize-invoice.ts';
import { currentPeriod } from './billable-items.ts';
import { thresholdFromStores } from './gather-billing.ts';
import { invoiceParts, invoiceRecord } from './invoice-records.ts';
import { inRounds } from './rounds.ts';
import { billingTransaction } from './transaction.ts';

export type ThresholdReport = { invoiced: number; failed: { id: string; error: unknown }[] };

const WORKERS = 2;

export async function billThresholds(stores: Stores, now: Date, { only }: OfWhom = {}): Promise<ThresholdReport> {
  const report: ThresholdReport = { invoiced: 0, failed: [] };
  await inRounds({
    next: (left) => thresholdSubscriptions(stores.postgres, { now, left, only }),
    act: async (due) => {
      await lookAt(stores, due, { now, report });
      // Each is looked at once in a run.
      return false;
    },
    // By a clock the same must come of the same: numbers are given in the order of what is due.
    workers: only ? 1 : WORKERS,
  });
  return report;
}

async function lookAt(
  stores: Stores,
  { id, ...scope }: Due,
  { now, report }: { now: Date; report: ThresholdReport },
): Promise<void> {
  try {
    if (await billThreshold(stores, scope, { subscription_id: id, now })) report.invoiced += 1;
  } catch (error) {
    report.failed.push({ id, error });
  }
}

/** Whether an invoice was made. */
export function billThreshold(
  stores: Stores,
  scope: Scope,
  { subscription_id, now }: { subscription_id: string; now: Date },
): Promise<boolean> {
  return billingTransaction(stores, async (transaction) => {
    const [subscription] = await SubscriptionModel.in(scope, transaction)
      .where({ id: subscription_id, status: 'published', subscription_status: 'active' })
      .where('auto_invoice_threshold', '>', 0)
      .forUpdate()
      .skipLocked();
    if (!subscription || subscription.opens_at) return false;
    return invoiceRunning(stores, transaction, { subscription, now });
  });
}

async function invoiceRunning(
  stores: Stores,
  transaction: Transaction,
  { subscription, now }: { subscription: SubscriptionModel; now: Date },
): Promise<boolean> {
  const current = currentPeriod(subscription);
  const period = { start: current.start, end: now.getTime() };
  // A period that is over has its own invoice.
  if (period.end <= current.start || period.end >= current.end) return false;
  const { plan } = await thresholdFromStores(stores, transaction, { subscription, period, now });
  if (!reaches(subscription.auto_invoice_threshold ?? null, plan.subtotal)) return false;
  const id = newId('invoice', now.getTime());
  const record = invoiceRecord({ subscription, period, reason: 'THRESHOLD_BILLING', plan }, id, now);
  if (await isThere(subscription, record.idempotency_key ?? '', transaction)) return false;
  const parts = invoiceParts(plan, record, now);
  const invoice = await addInvoice(transaction, subscription, { record, ...parts, now });
  await finalizeWithin(transaction, scope(subscription), { invoice_id: invoice.id, now });
  return true;
}

/** One in a minute is enough: what has come since is on the next. */
async function isThere(subscription: SubscriptionModel, key: string, transaction: Transaction): Promise<boolean> {
  const [same] = await InvoiceModel.in(subscription, transaction).where('idempotency_key', key).select('id').limit(1);
  return same !== undefined;
}

const scope = ({ tenant_id, environment_id }: Scope): Scope => ({ tenant_id, environment_id });
