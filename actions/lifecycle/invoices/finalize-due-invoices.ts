/**
 * Finalizes drafts after the configured delay since their last computation. Each is recomputed first, so that it contains late usage, which
 * otherwise would be an adjustment line of the next invoice. A draft waits while its usage is not complete or its seller has no name.
 * Concurrent runs are safe: the second one finds the invoice final.
 */
import { indexById } from '../../../core/foundation/by-id.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { mapBatched } from '../../../storage/concurrency/batched.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { loadFinalizationTerms } from '../../../storage/models/invoicing/finalization-terms.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import {
  type DueEnvironments,
  type DueRecord,
  findDueDrafts,
  listDueDrafts,
} from '../../../storage/queue/due-billing.ts';
import { inSpan } from '../../../tracing/spans.ts';
import { type BatchHandoff, type BatchOutcome, runBatches, type WatchedRun } from '../../foundation/batch-loop.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import type { ClockAdvancePlanCache } from '../../invoicing/billing/clock-advance-plan-cache.ts';
import { findDraftPlanCache } from '../../invoicing/billing/draft-plan-cache.ts';
import { computeLast } from '../../invoicing/invoices/compute-invoice.ts';
import { finalizeReady } from '../../invoicing/invoices/finalize-invoice.ts';
import { lockInvoices } from '../../invoicing/invoices/lock-invoice.ts';
import { activateAfterLowered, activateIfNothingDue } from '../effects.ts';

export type FinalizationReport = {
  finalized: number;
  /**
   * Number of invoices whose total was computed as 0. Such an invoice is skipped: it has no number and is never final.
   */
  skipped: number;
  waiting: string[];
  /** Drafts that wait until their seller has a name. */
  without_seller: string[];
  failed: { id: string; error: unknown }[];
};

type FinalizationInput = {
  readonly now: Date;
  readonly delay_seconds: number;
  /** Environment of a clock advance. */
  readonly only?: Scope | undefined;
  /** Plan cache of a clock advance: its drafts need no second plan. */
  readonly plans?: ClockAdvancePlanCache | undefined;
};

/** Finalizes due drafts one after another, because the draft that has waited longest gets the first number. */
export async function finalizeDueInvoices(
  stores: Stores,
  {
    now,
    delay_seconds,
    only,
    onProgress,
    mayGoOn,
    plans,
  }: FinalizationInput & DueEnvironments & WatchedRun<FinalizationReport>,
): Promise<FinalizationReport> {
  const report: FinalizationReport = { finalized: 0, skipped: 0, waiting: [], without_seller: [], failed: [] };
  const last: LastBatch = { families: new Set() };
  if (!plans) await findDraftPlanCache(stores)?.stay(stores);
  await runBatches({
    next: (left) => listDueDrafts(stores.postgres, { now, delay_seconds, left, only }),
    act: (due) => finalizeOne(stores, due, { now, delay_seconds, report, only, plans }),
    actBatch: (due, handoff) =>
      finalizeBatch(stores, due, { now, delay_seconds, report, only, plans, order: { handoff, last } }),
    workers: 1,
    onProgress: () => onProgress?.(report),
    mayGoOn,
  });
  return report;
}

/** Hierarchies of the drafts in the most recently begun group. */
type LastBatch = { families: ReadonlySet<string> };
type BatchOrder = { readonly handoff: BatchHandoff; readonly last: LastBatch };

/** Finalizes one draft. Resolves to true if the invoice is no draft any more; otherwise the next run tries again. */
async function finalizeOne(
  stores: Stores,
  { id, ...scope }: DueRecord,
  { report, ...how }: FinalizationInput & { report: FinalizationReport },
): Promise<boolean> {
  try {
    const attributes = { ...scope, invoice_id: id };
    const [outcome] = await inSpan('invoice.finalize', { attributes }, () =>
      finalizeAll(stores, scope, { ids: [id], ...how }),
    );
    return recordOutcome(report, id, outcome!);
  } catch (error) {
    if (await isStillDraft(stores, scope, id)) report.failed.push({ id, error });
    return false;
  }
}

async function finalizeBatch(
  stores: Stores,
  due: readonly DueRecord[],
  { report, ...how }: FinalizationInput & { report: FinalizationReport; order: BatchOrder },
): Promise<BatchOutcome> {
  const { tenant_id, environment_id } = due[0]!;
  const ids = due.map(({ id }) => id);
  const attributes = { tenant_id, environment_id, invoices: ids.length };
  const scope = { tenant_id, environment_id };
  const ending = inSpan('invoice.finalize', { attributes }, () => finalizeAll(stores, scope, { ids, ...how }));
  const outcomes = await ending;
  return { left: ids.filter((id, index) => !recordOutcome(report, id, outcomes[index]!)), alone: [] };
}

/** Result for one draft. `not_due` means that it was edited or finalized after it was listed. */
type FinalizationOutcome = 'finalized' | 'skipped' | 'waiting' | 'without_seller' | 'not_due';

/**
 * Counts the outcome in the report. Returns true if the invoice is no draft any more; otherwise the next run tries
 * again.
 */
function recordOutcome(report: FinalizationReport, id: string, outcome: FinalizationOutcome): boolean {
  if (outcome === 'not_due') return false;
  if (outcome === 'waiting' || outcome === 'without_seller') {
    report[outcome].push(id);
    return false;
  }
  report[outcome]++;
  return true;
}

/**
 * Finalizes a batch of drafts in one transaction; their order decides the invoice numbers. A draft with incomplete usage stays unchanged.
 * The next batch is computed while this one is being written, but finalized only after it. Two such batches cannot deadlock: until this one
 * ends, the next one locks no wallet, counter or shared hierarchy, and after `allowNext` this one locks nothing else. All subscriptions and
 * drafts are locked before the first wallet and the counter, because a manual finalization has locked its subscription when it waits for
 * the counter. Only `activateAfterLowered` may lock another subscription, of a former parent. If the next batch has locked it, that batch
 * is rolled back and repeated.
 */
async function finalizeAll(
  stores: Stores,
  scope: Scope,
  { ids, now, delay_seconds, only, order, plans }: FinalizationInput & { ids: readonly string[]; order?: BatchOrder },
): Promise<FinalizationOutcome[]> {
  const terms = await loadFinalizationTerms(scope, stores.postgres);
  // Drafts wait for the seller's name without locks and computations, which delay other tenants. A clock advance fails and shows the reason.
  if (!only && terms.is_seller_unknown) return ids.map(() => 'without_seller');
  return runBillingTransaction(stores, async (transaction) => {
    const ended = new Map<string, FinalizationOutcome>();
    const isPlanCurrent = plans
      ? await plans.within(stores, transaction)
      : findDraftPlanCache(stores)?.within(stores, transaction);
    const seen = await loadHierarchyDrafts(transaction, scope, ids);
    if (order) await waitForSharedHierarchies(seen, order);
    await lockInvoices(transaction, scope, seen);
    const rested = await findDueDrafts(transaction, scope, { ids, now, delay_seconds });
    const parts = splitByHierarchy(seen.filter(({ invoice_id }) => rested.has(invoice_id)));
    for (const some of parts) {
      const computed = await mapBatched(transaction, some, (draft) =>
        computeLast(stores, transaction, { scope, now, isPlanCurrent, ...draft }),
      );
      const ready = computed.filter((one) => typeof one !== 'string');
      await order?.handoff.waitForPrevious();
      if (some === parts.at(-1)) order?.handoff.allowNext();
      const { lowered } = await finalizeReady(transaction, scope, { ready, now, terms });
      await activateAfterLowered(stores, transaction, { lowered, by: { now } });
      for (const { invoice_id } of some.filter(({ is_awaited }) => is_awaited))
        await activateIfNothingDue(stores, transaction, { scope, invoice_id, by: { now } });
      for (const [index, { invoice_id }] of some.entries()) {
        const one = computed[index]!;
        ended.set(invoice_id, typeof one === 'string' ? one : 'finalized');
      }
    }
    return ids.map((id) => ended.get(id) ?? 'not_due');
  });
}

/** Waits for the previous group if both groups have drafts of one hierarchy, because a later draft depends on the earlier one. */
async function waitForSharedHierarchies(
  drafts: readonly HierarchyDraft[],
  { handoff, last }: BatchOrder,
): Promise<void> {
  const before = last.families;
  last.families = new Set(drafts.map(({ family }) => family));
  if (drafts.some(({ family }) => before.has(family))) await handoff.waitForPrevious();
}

type DraftToFinalize = { readonly invoice_id: string; readonly subscription_id: string | null };

/**
 * A draft with the hierarchy of its subscription. `is_awaited` is true if the subscription may wait for payment of this
 * invoice before it becomes active.
 */
type HierarchyDraft = DraftToFinalize & { readonly family: string; readonly is_awaited: boolean };

async function loadHierarchyDrafts(
  transaction: Transaction,
  scope: Scope,
  ids: readonly string[],
): Promise<HierarchyDraft[]> {
  const invoices = indexById(
    await InvoiceModel.in(scope, transaction)
      .whereIn('id', [...ids])
      .select('id', 'subscription_id'),
  );
  const subscriptionIds = Array.from(invoices.values(), ({ subscription_id }) => subscription_id ?? '');
  const subscriptions = indexById(
    await SubscriptionModel.in(scope, transaction)
      .whereIn('id', subscriptionIds)
      .select('id', 'parent_subscription_id', 'subscription_status'),
  );
  return ids.map((invoice_id) => {
    const subscription_id = invoices.get(invoice_id)?.subscription_id ?? null;
    const { parent_subscription_id: parent, subscription_status } = subscriptions.get(subscription_id ?? '') ?? {};
    const family = parent ?? subscription_id ?? invoice_id;
    return { invoice_id, subscription_id, family, is_awaited: subscription_status === 'incomplete' };
  });
}

/**
 * Splits the drafts, in their order, into parts in which no two drafts belong to one hierarchy. Late usage is on the first draft of a
 * hierarchy, and the next draft must see that it is invoiced.
 */
function splitByHierarchy<One extends { readonly family: string }>(drafts: readonly One[]): One[][] {
  const parts: One[][] = [];
  let met = new Set<string>();
  for (const draft of drafts) {
    if (parts.length === 0 || met.has(draft.family)) {
      parts.push([]);
      met = new Set();
    }
    parts.at(-1)!.push(draft);
    met.add(draft.family);
  }
  return parts;
}

/** Whether the draft is still open. If another scheduler or a user has finalized it meanwhile, the error is not a failure. */
async function isStillDraft(stores: Stores, scope: Scope, id: string): Promise<boolean> {
  const invoice = await InvoiceModel.fetch(scope, id, { database: stores.postgres });
  return invoice.invoice_status === 'DRAFT';
}
