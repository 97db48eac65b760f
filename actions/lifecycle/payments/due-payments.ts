/** Processes due payments: attempts and status checks, concurrently and outside transactions. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import type { DueEnvironments, DueRecord } from '../../../storage/queue/due-billing.ts';
import { listDuePayments } from '../../../storage/queue/due-payments.ts';
import { type Interruptible, runBatches } from '../../foundation/batch-loop.ts';
import { resumePayment } from './process-payment.ts';

type DuePaymentsReport = { processed: number; failed: { id: string; error: unknown }[] };

const AT_ONCE = 4;

export async function processDuePayments(
  stores: Stores,
  { now, only, mayGoOn }: { now: Date } & DueEnvironments & Interruptible,
): Promise<DuePaymentsReport> {
  const report: DuePaymentsReport = { processed: 0, failed: [] };
  const act = async ({ id, ...scope }: DueRecord) => {
    try {
      await resumePayment(stores, scope, { id, by: { now } });
      // A payment that is still due is left for the next run, so the provider is not called in a loop.
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
