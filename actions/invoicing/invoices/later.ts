/**
 * Background work on an invoice: the caller gets the id of a workflow to poll (docs/rules/invoices.md, "Invoices computed later"). The work
 * and its result are written in one transaction, so that repeated attempts take effect once (actions/foundation/workflows/run.ts).
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { runBounded } from '../../../storage/postgres/pool/bounded.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import {
  addRun,
  completeRun,
  lockRun,
  type RunAttempt,
  type RunReference,
  tryRun,
} from '../../foundation/workflows/run.ts';
import { computeWithin } from './compute-invoice.ts';

export type InvoiceRunInput = { readonly invoice_id: string; readonly author: Author };

/** Adds a run. `check` throws if the work would fail anyway, so that the caller gets the error at once. */
export function addInvoiceRun(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { invoice_id, author }: InvoiceRunInput,
  { task, workflow_type, check }: { task: string; workflow_type: string; check: (invoice: InvoiceModel) => void },
): Promise<WorkflowRunModel> {
  return postgres.transaction(async (transaction) => {
    check(await InvoiceModel.fetch(scope, invoice_id, { database: transaction }));
    return addRun(transaction, scope, {
      job: { task },
      workflow_type,
      task_queue: 'invoice',
      entity: 'invoice',
      entity_id: invoice_id,
      author,
    });
  });
}

type RecomputedInvoice = Awaited<ReturnType<typeof computeWithin>>;
type InvoiceRunResult = { readonly id: string; readonly version: number; readonly total: string };
type InvoiceRunContext = { readonly scope: Scope; readonly invoice_id: string; readonly now: Date };

/** Computes the invoice and runs `finish` in the same transaction. */
export function tryInvoiceRun(
  stores: Stores,
  place: RunReference,
  attempt: RunAttempt,
  finish: (
    transaction: Transaction,
    computed: RecomputedInvoice,
    context: InvoiceRunContext,
  ) => Promise<InvoiceRunResult>,
): Promise<'completed' | 'failed'> {
  return tryRun(stores, place, attempt, () => runOnce(stores, place, attempt, finish));
}

function runOnce(
  stores: Stores,
  place: RunReference,
  { clock, ...bound }: RunAttempt,
  finish: Parameters<typeof tryInvoiceRun>[3],
) {
  return runBillingTransaction(stores, (transaction) =>
    runBounded({ postgres: stores.postgres, transaction }, bound, async () => {
      const { run, ended } = await lockRun(transaction, place);
      if (ended) return ended;
      const context = { scope: place, invoice_id: run.entity_id, now: clock() };
      const computed = await computeWithin(stores, transaction, context);
      const { id: invoice_id, version, total } = await finish(transaction, computed, context);
      const result = { invoice_id, version, total, skipped: computed.skipped };
      return completeRun(transaction, place, { result, now: clock() });
    }),
  );
}
