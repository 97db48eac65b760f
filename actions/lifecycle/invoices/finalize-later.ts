/**
 * Finalizes a draft in the background without waiting for its delay. The draft is recomputed first, and refused while its period is not
 * over.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { RunAttempt, RunReference } from '../../foundation/workflows/run.ts';
import { finalizeWithin } from '../../invoicing/invoices/finalize-invoice.ts';
import { addInvoiceRun, type InvoiceRunInput, tryInvoiceRun } from '../../invoicing/invoices/later.ts';
import { activateAfterLowered } from '../effects.ts';

export const FINALIZE_TASK = 'finalize-invoice';

export function finalizeLater(stores: Stores, scope: Scope, input: InvoiceRunInput): Promise<WorkflowRunModel> {
  const workflow_type = 'FinalizeDraftInvoiceWorkflow';
  return addInvoiceRun(stores, scope, input, { task: FINALIZE_TASK, workflow_type, check: checkDraft });
}

function checkDraft({ id, invoice_status }: InvoiceModel): void {
  if (invoice_status !== 'DRAFT') throw notAllowed(`an invoice that is ${invoice_status} cannot be finalized`, { id });
}

export function tryFinalization(
  stores: Stores,
  place: RunReference,
  attempt: RunAttempt,
): Promise<'completed' | 'failed'> {
  return tryInvoiceRun(stores, place, attempt, async (transaction, computed, run) => {
    if (computed.skipped) return computed.invoice;
    const { invoice, lowered } = await finalizeWithin(transaction, place, run);
    await activateAfterLowered(stores, transaction, { lowered, by: { now: run.now } });
    return invoice;
  });
}
