/**
 * Makes a draft final in the background, without waiting until it has rested: computed once more first, and refused while its
 * period is not over. The caller gets the id of a workflow to ask after (docs/rules/invoices.md, "Invoices computed later").
 */
import { notAllowed } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { bounded } from '../../storage/bounded.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import type { WorkflowRunModel } from '../../storage/models/workflow-run.ts';
import type { Stores } from '../../storage/stores.ts';
import { billingTransaction } from '../billing/transaction.ts';
import { type Attempt, addRun, completeRun, holdRun, type RunPlace, tryRun } from '../workflows/run.ts';
import { computeWithin } from './compute-invoice.ts';
import { finalizeWithin } from './finalize-invoice.ts';

export const FINALIZE_TASK = 'finalize-invoice';

export async function finalizeLater(
  { postgres }: Stores,
  scope: Scope,
  { invoice_id, author }: { invoice_id: string; author: Author },
): Promise<WorkflowRunModel> {
  return postgres.transaction(async (transaction) => {
    const { invoice_status } = await InvoiceModel.fetch(scope, invoice_id, { database: transaction });
    if (invoice_status !== 'DRAFT')
      throw notAllowed(`an invoice that is ${invoice_status} cannot be finalized`, { id: invoice_id });
    return addRun(transaction, scope, {
      job: { task: FINALIZE_TASK },
      workflow_type: 'FinalizeDraftInvoiceWorkflow',
      task_queue: 'invoice',
      entity: 'invoice',
      entity_id: invoice_id,
      author,
    });
  });
}

export function tryFinalization(stores: Stores, place: RunPlace, attempt: Attempt): Promise<'completed' | 'failed'> {
  return tryRun(stores, place, attempt, () => finalizeOnce(stores, place, attempt));
}

async function finalizeOnce(stores: Stores, place: RunPlace, { clock, ...bound }: Attempt) {
  return billingTransaction(stores, (transaction) =>
    bounded({ postgres: stores.postgres, transaction }, bound, async () => {
      const { run, ended } = await holdRun(transaction, place);
      if (ended) return ended;
      const question = { scope: place, invoice_id: run.entity_id, now: clock() };
      const { invoice, skipped } = await computeWithin(stores, transaction, question);
      const final = skipped ? invoice : await finalizeWithin(transaction, place, question);
      const { id: invoice_id, version, total } = final;
      return completeRun(transaction, place, { result: { invoice_id, version, total, skipped }, now: clock() });
    }),
  );
}
