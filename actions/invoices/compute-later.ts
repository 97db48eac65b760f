/**
 * Computes an invoice in the background: the caller gets the id of a workflow to ask after
 * (docs/rules/invoices.md, "Invoices computed later"). The request leaves a record of the run and a job in one transaction;
 * whoever runs the job writes the computation and its result in one transaction too, so that the work takes effect once
 * however often it is tried.
 */

import type { Scope } from '../../core/scope.ts';
import { createdBy } from '../../core/stamp.ts';
import { isTimeout, mayPass, workflowError } from '../../core/workflow/record.ts';
import { type Bound, bounded } from '../../storage/bounded.ts';
import { addJob } from '../../storage/jobs.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { WorkflowRunModel } from '../../storage/models/workflow-run.ts';
import { newId } from '../../storage/new-id.ts';
import type { Stores } from '../../storage/stores.ts';
import { billingTransaction } from '../billing/transaction.ts';
import { checkComputable, computeWithin } from './compute-invoice.ts';

export const COMPUTE_TASK = 'compute-invoice';
/** The last try begins about half an hour after the first: 2.7, 7.4, 20, 55, 148, 403 and 1,097 seconds lie between them. */
const ATTEMPTS = 8;

/** What the job carries: where the run is. */
export type RunOfInvoice = Scope & { readonly workflow_id: string };

export async function computeLater(
  { postgres }: Stores,
  scope: Scope,
  { invoice_id, author }: { invoice_id: string; author: { user_id: string; now: Date } },
): Promise<WorkflowRunModel> {
  return postgres.transaction(async (transaction) => {
    checkComputable(await InvoiceModel.fetch(scope, invoice_id, { database: transaction }));
    const fields = {
      id: newId('workflow', author.now.getTime()),
      run_id: newId('run', author.now.getTime()),
      workflow_type: 'ComputeInvoiceWorkflow',
      workflow_status: 'Running',
      task_queue: 'invoice',
      entity: 'invoice',
      entity_id: invoice_id,
      start_time: author.now.toISOString(),
      ...createdBy(author),
    };
    const run = await WorkflowRunModel.add(scope, fields, { database: transaction });
    const { tenant_id, environment_id } = scope;
    const payload: RunOfInvoice = { tenant_id, environment_id, workflow_id: run.id };
    // One queue per tenant: whoever has many invoices computed at once does not keep the others waiting.
    const job = { task: COMPUTE_TASK, payload, key: run.run_id, queue: `${COMPUTE_TASK}:${tenant_id}` };
    await addJob(transaction, { ...job, max_attempts: ATTEMPTS });
    return run;
  });
}

export type Attempt = { readonly attempt: number; readonly is_last: boolean; readonly clock: () => Date } & Bound;

/**
 * One try. `failed`: it has ended and need not be tried again. What may pass is thrown, for the queue to try again later.
 */
export async function tryComputation(
  stores: Stores,
  run: RunOfInvoice,
  attempt: Attempt,
): Promise<'completed' | 'failed'> {
  try {
    return await computeOnce(stores, run, attempt);
  } catch (error) {
    const ends = attempt.is_last || !mayPass(error);
    await keepError(stores, run, { ...attempt, error, ends });
    if (mayPass(error)) throw error;
    return 'failed';
  }
}

async function computeOnce(stores: Stores, scope: RunOfInvoice, { attempt, clock, ...bound }: Attempt) {
  const begun = WorkflowRunModel.in(scope, stores.postgres).where({
    id: scope.workflow_id,
    workflow_status: 'Running',
  });
  await begun.patch({ attempt, updated_at: clock().toISOString() });
  return billingTransaction(stores, (transaction) =>
    bounded({ postgres: stores.postgres, transaction }, bound, async () => {
      const run = await WorkflowRunModel.fetch(scope, scope.workflow_id, { database: transaction, lock: true });
      if (run.workflow_status !== 'Running') return run.workflow_status === 'Completed' ? 'completed' : 'failed';
      const question = { scope, invoice_id: run.entity_id, now: clock() };
      const { invoice, skipped } = await computeWithin(stores, transaction, question);
      const result = { invoice_id: invoice.id, version: invoice.version, total: invoice.total, skipped };
      await WorkflowRunModel.in(scope, transaction)
        .where({ id: run.id })
        .patch({ workflow_status: 'Completed', result, error: null, ...closedAt(clock()) });
      return 'completed';
    }),
  );
}

async function keepError(
  { postgres }: Stores,
  scope: RunOfInvoice,
  { error, ends, clock }: Attempt & { error: unknown; ends: boolean },
): Promise<void> {
  const now = clock();
  const how = isTimeout(error) ? 'TimedOut' : 'Failed';
  await WorkflowRunModel.in(scope, postgres)
    .where({ id: scope.workflow_id, workflow_status: 'Running' })
    .patch({
      error: workflowError(error),
      updated_at: now.toISOString(),
      ...(ends ? { workflow_status: how, ...closedAt(now) } : {}),
    });
}

function closedAt(now: Date) {
  return { close_time: now.toISOString(), updated_at: now.toISOString() };
}
