/**
 * Ends subscriptions whose invoices have been unpaid longer than the environment's setting allows
 * (docs/rules/payments.md, "After the grace period").
 */

import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { DueEnvironments, DueRecord } from '../../../storage/queue/due-billing.ts';
import { isPastGracePeriod, listInvoicesPastGracePeriod } from '../../../storage/queue/due-payments.ts';
import { type Interruptible, runBatches } from '../../foundation/batch-loop.ts';
import { cancelUnpaid } from './retries-exhausted.ts';

type EndOverdueReport = { ended: number; failed: { id: string; error: unknown }[] };

export async function cancelOverdue(
  stores: Stores,
  { now, only, mayGoOn }: { now: Date } & DueEnvironments & Interruptible,
): Promise<EndOverdueReport> {
  const report: EndOverdueReport = { ended: 0, failed: [] };
  const act = async ({ id: invoice_id, ...scope }: DueRecord) => {
    try {
      const isDue = (transaction: Transaction) => isPastGracePeriod(transaction, scope, { invoice_id, now });
      const isEnded = await cancelUnpaid(stores, scope, { invoice_id, by: { now }, isDue });
      if (isEnded) report.ended += 1;
      return isEnded;
    } catch (error) {
      report.failed.push({ id: invoice_id, error });
      return false;
    }
  };
  await runBatches({
    next: (left) => listInvoicesPastGracePeriod(stores.postgres, { now, left, only }),
    act,
    workers: 1,
    mayGoOn,
  });
  return report;
}
