/**
 * Checks all alerts of a customer: the spend and the usage-ordered grants of its subscriptions, and the balances of its wallets
 * (docs/rules/alerts.md, "When alerts are checked").
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { listCustomersToAlert } from '../../storage/queue/due-alerts.ts';
import type { DueEnvironments, DueRecord } from '../../storage/queue/due-billing.ts';
import { runBatches, type WatchedRun } from '../foundation/batch-loop.ts';
import { checkGrants } from './grant-alerts.ts';
import { checkSpend } from './spend-alerts.ts';
import { checkWallets } from './wallet-alerts.ts';

/** Returns the number of changed states. */
export async function checkCustomer(
  stores: Stores,
  scope: Scope,
  { customer_id, now }: { customer_id: string; now: Date },
): Promise<number> {
  const subscriptions = await SubscriptionModel.in(scope, stores.postgres)
    .where({ customer_id, status: 'published' })
    .whereIn('subscription_status', ['active', 'trialing'])
    .select('id')
    .orderBy('id');
  let changed = 0;
  for (const { id } of subscriptions) changed += await checkSpend(stores, scope, { subscription_id: id, now });
  changed += await checkGrants(stores, scope, { customer_id, now });
  return changed + (await checkWallets(stores, scope, { customer_id, now }));
}

type AlertCheckReport = { alerted: number; failed: { id: string; error: unknown }[] };

const WORKERS = 2;

/** Checks all customers, and so makes up for alert checks that were lost. */
export async function checkAlerts(
  stores: Stores,
  { now, only, onProgress }: { readonly now: Date } & DueEnvironments & WatchedRun<AlertCheckReport>,
): Promise<AlertCheckReport> {
  const report: AlertCheckReport = { alerted: 0, failed: [] };
  await runBatches({
    next: (left) => listCustomersToAlert(stores.postgres, { left, only }),
    act: async ({ id, ...scope }: DueRecord) => {
      try {
        // The result is awaited before the sum is read: `report.alerted += await …` would lose concurrent additions.
        const changed = await checkCustomer(stores, scope, { customer_id: id, now });
        report.alerted += changed;
      } catch (error) {
        report.failed.push({ id, error });
      }
      // False excludes the customer from the rest of this run, so each customer is checked once.
      return false;
    },
    workers: only ? 1 : WORKERS,
    onProgress: () => onProgress?.(report),
  });
  return report;
}
