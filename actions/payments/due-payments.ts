/** What the clock does with payments: each that is to be tried, or asked after, side by side and outside of transactions. */
import type { Scope } from '../../core/scope.ts';
import type { DueEnvironments, DueRecord } from '../../storage/due-billing.ts';
import { listDuePayments } from '../../storage/due-payments.ts';
import { PaymentModel } from '../../storage/models/payment.ts';
import type { Stores } from '../../storage/stores.ts';
import { type Interruptible, runBatches } from '../billing/batch-loop.ts';
import { resumePayment } from './process-payment.ts';

export type DuePaymentsReport = { processed: number; failed: { id: string; error: unknown }[] };

const AT_ONCE = 4;

export async function processDuePayments(
  stores: Stores,
  { now, only, mayGoOn }: { now: Date } & DueEnvironments & Interruptible,
): Promise<DuePaymentsReport> {
  const report: DuePaymentsReport = { processed: 0, failed: [] };
  const act = async ({ id, ...scope }: DueRecord) => {
    try {
      await resumePayment(stores, scope, { id, by: { now } });
      // What is still due then is left for the next run, or the provider would be asked without end.
      const isDone = !(await isStillDue(stores, scope, { id, now }));
      if (isDone) report.processed += 1;
      return isDone;
    } catch (error) {
      report.failed.push({ id, error });
      return false;
    }
  };
  await runBatches({
    next: (left) => listDuePayments(stores.postgres, { now, left, only }),
    act,
    workers: AT_ONCE,
    mayGoOn,
  });
  return report;
}

async function isStillDue({ postgres }: Stores, scope: Scope, { id, now }: { id: string; now: Date }) {
  const [due] = await PaymentModel.in(scope, postgres)
    .where({ id, status: 'published' })
    .where('next_attempt_at', '<=', now.toISOString())
    .select('id');
  return due !== undefined;
}
