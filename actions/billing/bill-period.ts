/**
 * Bills every period that is over. One transaction per subscription and period: take the subscription's lock (or leave it
 * to the worker that has it), draft the invoice of the closed period, move the current period on; repeat while due. Any
 * number of schedulers may run this at once, and a crash between two steps leaves nothing half.
 *
 * A period is invoiced only when its usage is complete: what was sent before its end must have come through the pipeline.
 * Until then the subscription is left for the next run, and the report says so.
 */
import { duePeriod } from '../../core/billing/due.ts';
import type { Scope } from '../../core/scope.ts';
import { formatMs, type Milliseconds } from '../../core/time/instant.ts';
import { type Due, dueSubscriptions } from '../../storage/due-billing.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';
import { draftAndFinalize, draftInvoice } from '../invoices/draft-invoice.ts';
import { emit } from '../system-events/emit.ts';
import { billedSubscription, currentPeriod } from './billable-items.ts';
import { billingTransaction } from './transaction.ts';

/** `billed`: moved on by a period. `waiting`: usage is not complete yet. `idle`: nothing is due, or another worker has it. */
export type Outcome = 'billed' | 'waiting' | 'idle';

export type BillingReport = {
  billed: number;
  /** Subscriptions left for the next run because their usage is not complete. */
  waiting: string[];
  failed: { id: string; error: unknown }[];
};

/** So many subscriptions at once: most of a billing is waiting for the stores. */
const WORKERS = 4;

/**
 * One period of each in a round, the oldest first, until nothing is due: who has years of periods to be billed waits behind
 * whoever has one. One subscription that cannot be billed does not keep the others from it.
 */
export async function billDuePeriods(stores: Stores, now: Date): Promise<BillingReport> {
  const report: BillingReport = { billed: 0, waiting: [], failed: [] };
  const left: string[] = [];
  for (;;) {
    const due = await dueSubscriptions(stores.postgres, { now, left });
    if (due.length === 0) return report;
    const next = due.values();
    const worker = async () => {
      for (const one of next) if (!(await billOne(stores, one, { now, report }))) left.push(one.id);
    };
    await Promise.all(Array.from({ length: WORKERS }, worker));
  }
}

/** Whether it was moved on by a period; else it is left for the next run. */
async function billOne(
  stores: Stores,
  { id, ...scope }: Due,
  { now, report }: { now: Date; report: BillingReport },
): Promise<boolean> {
  try {
    const attributes = { ...scope, subscription_id: id };
    const outcome = await inSpan('subscription.bill', { attributes }, () =>
      billPeriod(stores, scope, { subscription_id: id, now }),
    );
    if (outcome === 'billed') report.billed += 1;
    if (outcome === 'waiting') report.waiting.push(id);
    return outcome === 'billed';
  } catch (error) {
    report.failed.push({ id, error });
    return false;
  }
}

/** The oldest due period of one subscription, in one transaction. */
export async function billPeriod(
  stores: Stores,
  scope: Scope,
  { subscription_id, now }: { subscription_id: string; now: Date },
): Promise<Outcome> {
  return billingTransaction(stores, async (transaction) => {
    const [subscription] = await SubscriptionModel.in(scope, transaction)
      .where({ id: subscription_id, status: 'published' })
      .whereIn('subscription_status', ['active', 'trialing'])
      .forUpdate()
      .skipLocked();
    if (!subscription) return 'idle';
    return subscription.subscription_status === 'trialing'
      ? endTrial(stores, transaction, { subscription, now })
      : closePeriod(stores, transaction, { subscription, now });
  });
}

type Subject = { subscription: SubscriptionModel; now: Date };

async function closePeriod(stores: Stores, transaction: Transaction, { subscription, now }: Subject): Promise<Outcome> {
  const due = duePeriod(billedSubscription(subscription), currentPeriod(subscription), now.getTime());
  if (due === null) return 'idle';
  if (due.closed.end > due.closed.start) {
    const invoice = await draftInvoice(stores, transaction, {
      subscription,
      period: due.closed,
      reference: 'period_end',
      reason: 'SUBSCRIPTION_CYCLE',
      untilComplete: true,
      now,
    });
    if (invoice === 'waiting') return 'waiting';
  }
  const changes =
    due.next === null
      ? ended(due.closed.end)
      : { current_period_start: formatMs(due.next.start), current_period_end: formatMs(due.next.end) };
  const moved = await SubscriptionModel.change(subscription, changes, { by: { now }, database: transaction });
  const name = due.next === null ? 'subscription.cancelled' : 'subscription.updated';
  await emit(transaction, name, { record: moved, by: { now } });
  return 'billed';
}

/**
 * At its end a trial becomes a paid subscription: the anchor is the end of the trial, the first paid period begins there,
 * and an invoice of its advance charges opens it. Usage during the trial is never billed.
 */
async function endTrial(stores: Stores, transaction: Transaction, { subscription, now }: Subject): Promise<Outcome> {
  const due = duePeriod(billedSubscription(subscription), currentPeriod(subscription), now.getTime());
  if (due === null) return 'idle';
  if (due.next === null) {
    const by = { by: { now }, database: transaction };
    const over = await SubscriptionModel.change(subscription, ended(due.closed.end), by);
    await emit(transaction, 'subscription.cancelled', { record: over, by: { now } });
    return 'billed';
  }
  const changes: Partial<SubscriptionModel> = {
    subscription_status: 'active',
    billing_anchor: formatMs(due.next.start),
    current_period_start: formatMs(due.next.start),
    current_period_end: formatMs(due.next.end),
  };
  const active = await SubscriptionModel.change(subscription, changes, { by: { now }, database: transaction });
  await emit(transaction, 'subscription.activated', { record: active, by: { now } });
  const invoice = {
    subscription: active,
    period: due.next,
    reference: 'period_start',
    reason: 'SUBSCRIPTION_TRIAL_END',
  };
  await draftAndFinalize(stores, transaction, { ...invoice, now } as Parameters<typeof draftAndFinalize>[2]);
  return 'billed';
}

function ended(at: Milliseconds): Partial<SubscriptionModel> {
  return {
    subscription_status: 'cancelled',
    cancelled_at: formatMs(at),
    current_period_end: formatMs(at),
  };
}
