/**
 * Finalizes the drafts that have rested for the configured delay since their last computation. Each is computed once more
 * first, so that what came in the meantime is on it and not on an adjustment line of the next invoice; it waits on while
 * its usage is not complete. Safe to run twice at once: the loser finds the invoice final.
 */
import type { Scope } from '../../core/scope.ts';
import { type Due, dueDrafts, type OfWhom } from '../../storage/due-billing.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import type { Stores } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';
import { inRounds } from '../billing/rounds.ts';
import { billingTransaction } from '../billing/transaction.ts';
import { computeWithin } from './compute-invoice.ts';
import { finalizeWithin } from './finalize-invoice.ts';

export type FinalizationReport = {
  finalized: number;
  /** Computed to nothing: without a number, and never final. */
  skipped: number;
  waiting: string[];
  failed: { id: string; error: unknown }[];
};

/** One after the other: numbers are given in the order of what has rested longest. */
export async function finalizeDueInvoices(
  stores: Stores,
  { now, delay_seconds, only }: { now: Date; delay_seconds: number } & OfWhom,
): Promise<FinalizationReport> {
  const report: FinalizationReport = { finalized: 0, skipped: 0, waiting: [], failed: [] };
  const computedBefore = new Date(now.getTime() - delay_seconds * 1000);
  await inRounds({
    next: (left) => dueDrafts(stores.postgres, { computedBefore, left, only }),
    act: (due) => finalizeOne(stores, due, { now, report }),
    workers: 1,
  });
  return report;
}

/** Whether it is a draft no more; else it is left for the next run. */
async function finalizeOne(
  stores: Stores,
  { id, ...scope }: Due,
  { now, report }: { now: Date; report: FinalizationReport },
): Promise<boolean> {
  try {
    const attributes = { ...scope, invoice_id: id };
    const outcome = await inSpan('invoice.finalize', { attributes }, () => finalizeDue(stores, scope, { id, now }));
    report[outcome]++;
    return true;
  } catch (error) {
    if (error instanceof UsageIncomplete) report.waiting.push(id);
    else if (await isStillDraft(stores, scope, id)) report.failed.push({ id, error });
    return false;
  }
}

/** In one transaction: a draft whose usage is not complete stays as it was, with the rest that it has had. */
async function finalizeDue(
  stores: Stores,
  scope: Scope,
  { id, now }: { id: string; now: Date },
): Promise<'finalized' | 'skipped'> {
  return billingTransaction(stores, async (transaction) => {
    const { skipped, complete } = await computeWithin(stores, transaction, { scope, invoice_id: id, now });
    if (!complete) throw new UsageIncomplete();
    if (skipped) return 'skipped';
    await finalizeWithin(transaction, scope, { invoice_id: id, now });
    return 'finalized';
  });
}

/** Rolls back; never leaves this file. */
class UsageIncomplete extends Error {}

/** Another scheduler, or a person, may have been quicker: then there was nothing to fail at. */
async function isStillDraft(stores: Stores, scope: Scope, id: string): Promise<boolean> {
  const invoice = await InvoiceModel.fetch(scope, id, { database: stores.postgres });
  return invoice.invoice_status === 'DRAFT';
}
