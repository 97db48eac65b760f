/** Emits one event for each invoice that is unpaid after its due date (docs/rules/payments.md, "Overdue"). */
import type { Scope } from '../../core/foundation/scope.ts';
import { mapBatched } from '../../storage/concurrency/batched.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../storage/models/invoicing/invoice.ts';
import { type DueEnvironments, type DueRecord } from '../../storage/queue/due-billing.ts';
import { listOverdueInvoices, markOverduePublished } from '../../storage/queue/due-payments.ts';
import { type BatchOutcome, type Interruptible, runBatches } from '../foundation/batch-loop.ts';
import { emit } from '../foundation/emit.ts';

type OverdueReport = { emitted: number; failed: { id: string; error: unknown }[] };

export async function emitOverdue(
  stores: Stores,
  { now, only, mayGoOn }: { now: Date } & DueEnvironments & Interruptible,
): Promise<OverdueReport> {
  const report: OverdueReport = { emitted: 0, failed: [] };
  const emitBatch = async (due: readonly DueRecord[]): Promise<BatchOutcome> => {
    const emitted = await emitScopeOverdue(stores, due, now);
    report.emitted += emitted.size;
    return { left: due.flatMap(({ id }) => (emitted.has(id) ? [] : [id])), alone: [] };
  };
  const act = async (due: DueRecord) => {
    try {
      return (await emitBatch([due])).left.length === 0;
    } catch (error) {
      report.failed.push({ id: due.id, error });
      return false;
    }
  };
  const next = (left: readonly string[]) => listOverdueInvoices(stores.postgres, { now, left, only });
  await runBatches({ next, act, actBatch: emitBatch, workers: 1, mayGoOn });
  return report;
}

/**
 * Handles one environment in one transaction. Returns the ids of the invoices with a new event. An invoice that was
 * paid or got its event meanwhile is skipped.
 */
function emitScopeOverdue(stores: Stores, due: readonly DueRecord[], now: Date): Promise<Set<string>> {
  const { tenant_id, environment_id }: Scope = due[0]!;
  const scope = { tenant_id, environment_id };
  return stores.postgres.transaction(async (transaction) => {
    const emitted = await mapBatched(transaction, due, async ({ id }) => {
      const invoice = await InvoiceModel.fetch(scope, id, { database: transaction, lock: true });
      if (!(await markOverduePublished(transaction, scope, { id, now }))) return [];
      await emit(transaction, 'invoice.payment.overdue', { record: invoice, by: { now } });
      return [id];
    });
    return new Set(emitted.flat());
  });
}
