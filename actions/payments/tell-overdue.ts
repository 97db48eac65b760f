/** Tells of each invoice, once, that its due date has passed without its money (docs/rules/payments.md, "Overdue"). */
import type { Scope } from '../../core/scope.ts';
import { type Due, type OfWhom } from '../../storage/due-billing.ts';
import { markToldOverdue, overdueInvoices } from '../../storage/due-payments.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import type { Stores } from '../../storage/stores.ts';
import { inRounds } from '../billing/rounds.ts';
import { emit } from '../system-events/emit.ts';

type Report = { told: number; failed: { id: string; error: unknown }[] };

export async function tellOverdue(stores: Stores, { now, only }: { now: Date } & OfWhom): Promise<Report> {
  const report: Report = { told: 0, failed: [] };
  const act = async ({ id, ...scope }: Due) => {
    try {
      const isTold = await tellOne(stores, scope, { id, now });
      if (isTold) report.told += 1;
      return isTold;
    } catch (error) {
      report.failed.push({ id, error });
      return false;
    }
  };
  await inRounds({ next: (left) => overdueInvoices(stores.postgres, { now, left, only }), act, workers: 1 });
  return report;
}

/** Whether it was this one who told it: it may have been paid meanwhile, or told by another. */
function tellOne(stores: Stores, scope: Scope, { id, now }: { id: string; now: Date }): Promise<boolean> {
  return stores.postgres.transaction(async (transaction) => {
    const invoice = await InvoiceModel.fetch(scope, id, { database: transaction, lock: true });
    if (!(await markToldOverdue(transaction, scope, { id, now }))) return false;
    await emit(transaction, 'invoice.payment.overdue', { record: invoice, by: { now } });
    return true;
  });
}
