/** Computes an invoice in the background. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import type { RunAttempt, RunReference } from '../../foundation/workflows/run.ts';
import { checkComputable } from './compute-invoice.ts';
import { addInvoiceRun, type InvoiceRunInput, tryInvoiceRun } from './later.ts';

export const COMPUTE_TASK = 'compute-invoice';

export function computeLater(stores: Stores, scope: Scope, input: InvoiceRunInput): Promise<WorkflowRunModel> {
  const workflow_type = 'ComputeInvoiceWorkflow';
  return addInvoiceRun(stores, scope, input, { task: COMPUTE_TASK, workflow_type, check: checkComputable });
}

export function tryComputation(
  stores: Stores,
  place: RunReference,
  attempt: RunAttempt,
): Promise<'completed' | 'failed'> {
  return tryInvoiceRun(stores, place, attempt, async (_transaction, { invoice }) => invoice);
}
