/**
 * Applies due credit grants: all of a subscription in one transaction, each application once. A failure is stored and retried later, and
 * does not block other grants (docs/rules/credits.md, "Applications").
 */
import { deferApplication } from '../../../core/credits/grants/application.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CreditGrantApplicationModel } from '../../../storage/models/credits/credit-grant-application.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { DueEnvironments, DueRecord } from '../../../storage/queue/due-billing.ts';
import { listDueGrants } from '../../../storage/queue/due-grants.ts';
import { runBatches, type WatchedRun } from '../../foundation/batch-loop.ts';
import { applyDueGrants } from './give-grants.ts';

type GrantReport = { granted: number; failed: { id: string; error: unknown }[] };

const WORKERS = 2;

export async function applyAllDueGrants(
  stores: Stores,
  { now, only, onProgress, mayGoOn }: { readonly now: Date } & DueEnvironments & WatchedRun<GrantReport>,
): Promise<GrantReport> {
  const report: GrantReport = { granted: 0, failed: [] };
  const act = async ({ id, ...scope }: DueRecord) => {
    try {
      const granted = await applyOne(stores, scope, { id, now });
      report.granted += granted ?? 0;
      return granted !== null;
    } catch (error) {
      report.failed.push({ id, error });
      await noteFailure(stores, scope, { id, error, now });
      return false;
    }
  };
  await runBatches({
    next: (left) => listDueGrants(stores.postgres, { now, left, only }),
    act,
    // With a test clock the result must be repeatable: wallets and transactions are created in the order of the due grants.
    workers: only ? 1 : WORKERS,
    onProgress: () => onProgress?.(report),
    mayGoOn,
  });
  return report;
}

/** Number of processed applications; a concurrent run may have done them. Null while another transaction locks the subscription. */
function applyOne(stores: Stores, scope: Scope, { id, now }: { id: string; now: Date }): Promise<number | null> {
  return stores.postgres.transaction(async (transaction) => {
    const { subscription_id } = await CreditGrantApplicationModel.fetch(scope, id, { database: transaction });
    // Locks the subscription before its records, as every change of a subscription does.
    const [subscription] = await SubscriptionModel.in(scope, transaction)
      .where('id', subscription_id)
      .forUpdate()
      .skipLocked();
    if (!subscription) return null;
    return applyDueGrants(transaction, { subscription, by: { now } });
  });
}

/** Stores the failure and the time of the next attempt, unless another run has applied or deferred the application meanwhile. */
async function noteFailure(
  { postgres }: Stores,
  scope: Scope,
  { id, error, now }: { id: string; error: unknown; now: Date },
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    const [due] = await CreditGrantApplicationModel.open(scope, transaction)
      .where('id', id)
      .where('scheduled_for', '<=', now.toISOString())
      .forUpdate();
    if (!due) return;
    const failure_reason = error instanceof Error ? error.message : String(error);
    const changes = { application_status: 'failed' as const, failure_reason, ...deferApplication(due, now.getTime()) };
    await CreditGrantApplicationModel.change(due, changes, { by: { now }, database: transaction });
  });
}
