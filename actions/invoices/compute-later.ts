/**
 * Computes an invoice in the background: the caller gets the id of a workflow to ask after
 * (docs/rules/invoices.md, "Invoices computed later"). The computation and its result are written in one transaction, so
 * that the work takes effect once however often it is tried (actions/workflows/run.ts).
 */

import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { bounded } from '../../storage/bounded.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import type { WorkflowRunModel } from '../../storage/models/workflow-run.ts';
import type { Stores } from '../../storage/stores.ts';
import { billingTransaction } from '../billing/transaction.ts';
import { type Attempt, addRun, completeRun, holdRun, type RunPlace, tryRun } from '../workflows/run.ts';
import { checkComputable, computeWithin } from './compute-invoice.ts';

export const COMPUTE_TASK = 'compute-invoice';

export async function computeLater(
  { postgres }: Stores,
  scope: Scope,
  { invoice_id, author }: { invoice_id: string; author: Author },
): Promise<WorkflowRunModel> {
  return postgres.transaction(async (transaction) => {
    checkComputable(await InvoiceModel.fetch(scope, invoice_id, { database: transaction }));
    return addRun(transaction, scope, {
      job: { task: COMPUTE_TASK },
      workflow_type: 'ComputeInvoiceWorkflow',
      task_queue: 'invoice',
      entity: 'invoice',
      entity_id: invoice_id,
      author,
    });
  });
}

export function tryComputation(stores: Stores, place: RunPlace, attempt: Attempt): Promise<'completed' | 'failed'> {
  return tryRun(stores, place, attempt, () => computeOnce(stores, place, attempt));
}

async function computeOnce(stores: Stores, place: RunPlace, { clock, ...bound }: Attempt) {
  return billingTransaction(stores, (transaction) =>
    bounded({ postgres: stores.postgres, transaction }, bound, async () => {
      const { run, ended } = await holdRun(transaction, place);
      if (ended) return ended;
      const question = { scope: place, invoice_id: run.entity_id, now: clock() };
      const { invoice, skipped } = await computeWithin(stores, transaction, question);
      const result = { invoice_id: invoice.id, version: invoice.version, total: invoice.total, skipped };
      return completeRun(transaction, place, { result, now: clock() });
    }),
  );
}
