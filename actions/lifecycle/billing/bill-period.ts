/**
 * Bills every period that is over, with one transaction per subscription and period. It locks the subscription, drafts the invoice of the
 * closed period and advances the current period. It repeats this while a period is due. A subscription locked by another worker is skipped.
 * Any number of schedulers may run this at once, and a crash leaves no partial state. A period is invoiced only if its usage is complete:
 * all events sent before its end have passed the pipeline. Until then the subscription is skipped and listed in the report.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { mapBatched } from '../../../storage/concurrency/batched.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { enqueuePeriodAlertChecks } from '../../../storage/progress/alert-arrivals.ts';
import {
  type DueEnvironments,
  type DueRecord,
  listDueSubscriptions,
  MOVED_BY_PARENT,
} from '../../../storage/queue/due-billing.ts';
import { inSpan } from '../../../tracing/spans.ts';
import { type BatchOutcome, runBatches, type WatchedRun } from '../../foundation/batch-loop.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import type { ClockAdvancePlanCache, PlannedDraft } from '../../invoicing/billing/clock-advance-plan-cache.ts';
import { type DraftPlanning, findDraftPlanCache } from '../../invoicing/billing/draft-plan-cache.ts';
import { toScope } from '../../rating/billable-items.ts';
import { noteTry, ScheduleNotDone } from '../../subscriptions/schedules.ts';
import { endTrial } from '../subscriptions/end-trial.ts';
import { leaveHierarchyIfDue } from '../subscriptions/leave-hierarchy.ts';
import { openDue } from '../subscriptions/open-due.ts';
import { propagateToChildren } from '../subscriptions/propagate-to-children.ts';
import { type ClosePeriodInput, closePeriod } from './close-period.ts';

/**
 * Result of billing one subscription: `billed` if its period was invoiced and the next one is current, `waiting` if its
 * usage is not complete yet, `idle` if nothing is due or another worker holds the lock.
 */
type BillingOutcome = 'billed' | 'waiting' | 'idle';

export type BillingReport = {
  billed: number;
  /** Ids of subscriptions that this run did not bill because their usage is not complete. */
  waiting: string[];
  failed: { id: string; error: unknown }[];
  /** Billed subscriptions whose alert checks could not be enqueued; the hourly sweep will run the checks. */
  without_alert_checks: UnqueuedAlertChecks[];
};

export type UnqueuedAlertChecks = { readonly ids: readonly string[]; readonly error: unknown };

/** Number of subscriptions that are billed concurrently: most of the time is spent waiting for the stores. */
const WORKERS = 4;

/** Plan cache of a clock advance; absent in a run of the scheduler. */
type PlanCacheOption = { readonly plans?: ClockAdvancePlanCache | undefined };

/**
 * Bills one period of each subscription per round, the oldest first, until nothing is due. A subscription with years of open periods does
 * not delay one with a single period. A subscription that cannot be billed does not block the others. Environments with a test clock are
 * excluded, unless `only` names one (docs/rules/clock.md).
 */
export async function billDuePeriods(
  stores: Stores,
  now: Date,
  { only, onProgress, mayGoOn, plans }: DueEnvironments & WatchedRun<BillingReport> & PlanCacheOption = {},
): Promise<BillingReport> {
  const report: BillingReport = { billed: 0, waiting: [], failed: [], without_alert_checks: [] };
  await runBatches({
    next: (left) => listDueSubscriptions(stores.postgres, { now, left, only }),
    act: (due) => {
      // This subscription may need more than a plain period end, which can change the inputs of cached plans.
      plans?.forget();
      return billOne(stores, due, { now, report });
    },
    actBatch: (due) => billBatch(stores, due, { now, report, plans }),
    // A clock advance must be deterministic: invoice numbers follow the order of the due records.
    workers: only ? 1 : WORKERS,
    onProgress: () => onProgress?.(report),
    mayGoOn,
  });
  return report;
}

/** Bills one period of the subscription. Resolves to false if the next run has to bill it. */
async function billOne(
  stores: Stores,
  { id, ...scope }: DueRecord,
  { now, report }: { now: Date; report: BillingReport },
): Promise<boolean> {
  try {
    const attributes = { ...scope, subscription_id: id };
    const outcome = await inSpan('subscription.bill', { attributes }, () =>
      billPeriod(stores, scope, { subscription_id: id, now }),
    );
    if (outcome === 'billed') await recordBilled(stores, scope, { ids: [id], report });
    if (outcome === 'waiting') report.waiting.push(id);
    return outcome === 'billed';
  } catch (error) {
    report.failed.push({ id, error });
    // If recording the failed attempt fails, too, the error is only reported, and the next run tries again.
    if (error instanceof ScheduleNotDone)
      await noteTry(stores, error, now).catch((error) => report.failed.push({ id, error }));
    return false;
  }
}

/**
 * Adds the billed subscriptions to the report and enqueues their alert checks. A failure to enqueue is only reported, because the periods
 * are committed already.
 */
async function recordBilled(
  { postgres }: Stores,
  scope: Scope,
  { ids, report }: { ids: readonly string[]; report: BillingReport },
): Promise<void> {
  report.billed += ids.length;
  await enqueuePeriodAlertChecks(postgres, scope, ids).catch((error: unknown) =>
    report.without_alert_checks.push({ ids, error }),
  );
}

/**
 * Bills one period of each of these subscriptions of one environment, in one transaction. Subscriptions that need more than a plain period
 * end are billed alone.
 */
async function billBatch(
  stores: Stores,
  due: readonly DueRecord[],
  { now, report, plans }: { now: Date; report: BillingReport } & PlanCacheOption,
): Promise<BatchOutcome> {
  const { tenant_id, environment_id } = due[0]!;
  const attributes = { tenant_id, environment_id, subscriptions: due.length };
  const hand = plans && { plans, counted: await plans.counted(stores) };
  const planning = hand ? undefined : findDraftPlanCache(stores)?.planning(stores);
  const billing = inSpan('subscription.bill', { attributes }, () => billPlain(stores, due, { now, hand, planning }));
  // Plans of a rolled-back transaction are not cached.
  billing.catch(() => planning?.end([]));
  const { outcomes, others, drafted } = await billing;
  if (hand) hand.plans.keep(drafted, hand.counted);
  planning?.end(drafted);
  const withOutcome = (wanted: BillingOutcome) => due.flatMap(({ id }) => (outcomes.get(id) === wanted ? [id] : []));
  const waiting = withOutcome('waiting');
  const billed = withOutcome('billed');
  await recordBilled(stores, { tenant_id, environment_id }, { ids: billed, report });
  report.waiting.push(...waiting);
  const idle = due.flatMap(({ id }) => (others.has(id) || outcomes.has(id) ? [] : [id]));
  return { left: [...waiting, ...withOutcome('idle'), ...idle], alone: due.filter(({ id }) => others.has(id)) };
}

/** Use of the draft-plan cache; absent in a clock advance, which has its own cache. */
type DraftPlanningOption = { readonly planning: DraftPlanning | undefined };

type BilledPlainPeriods = {
  readonly outcomes: Map<string, BillingOutcome>;
  readonly others: Set<string>;
  readonly drafted: readonly PlannedDraft[];
};

/**
 * Bills plain period ends in one batch. `others` need more than a plain period end, or their invoice may become final
 * at once; they are billed one by one, in due order.
 */
function billPlain(
  stores: Stores,
  due: readonly DueRecord[],
  {
    now,
    hand,
    planning,
  }: { now: Date; hand: { plans: ClockAdvancePlanCache; counted: string } | undefined } & DraftPlanningOption,
): Promise<BilledPlainPeriods> {
  const scope = toScope(due[0]!);
  const ids = due.map(({ id }) => id);
  return runBillingTransaction(stores, async (transaction) => {
    await planning?.begin(transaction);
    const isSettled = await hand?.plans.settledWithin(transaction, hand.counted);
    const locked = await lockDueSubscriptions(scope, ids, transaction);
    const changing = await SubscriptionScheduleModel.in(scope, transaction)
      .whereIn('subscription_id', ids)
      .where('status', 'pending')
      .select('subscription_id');
    const isChanging = new Set(changing.map(({ subscription_id }) => subscription_id));
    const isPlain = ({ id, opens_at, subscription_status, subscription_type }: SubscriptionModel) =>
      !isChanging.has(id) && !opens_at && subscription_status === 'active' && subscription_type !== 'PARENT';
    const plain = locked.filter(isPlain);
    const drafted: PlannedDraft[] = [];
    const onDrafted = (draft: PlannedDraft) => void drafted.push(draft);
    const outcomes = await mapBatched(transaction, plain, (subscription) => {
      const subject = { subscription, now, onDrafted, is_settled: isSettled?.(subscription) ?? false };
      const bill = () => billLocked(stores, transaction, subject);
      return planning ? planning.of(subscription.id, bill) : bill();
    });
    const children = await listDueChildren(scope, notIn(locked, ids), transaction);
    return {
      outcomes: new Map(plain.map(({ id }, index) => [id, outcomes[index]!])),
      others: new Set([...locked.filter((one) => !isPlain(one)), ...children].map(({ id }) => id)),
      drafted,
    };
  });
}

function notIn(locked: readonly SubscriptionModel[], ids: readonly string[]): string[] {
  const found = new Set(locked.map(({ id }) => id));
  return ids.filter((id) => !found.has(id));
}

/** Lists the children that may have reached their own end. Each is billed alone, because its parent is locked first. */
async function listDueChildren(
  scope: Scope,
  ids: readonly string[],
  transaction: Transaction,
): Promise<readonly Pick<SubscriptionModel, 'id'>[]> {
  if (ids.length === 0) return [];
  return SubscriptionModel.in(scope, transaction)
    .select('id')
    .whereIn('id', [...ids])
    .whereIn('subscription_type', MOVED_BY_PARENT);
}

/** Reads the current rows and locks them; rows locked by another worker are skipped. */
function lockDueSubscriptions(
  scope: Scope,
  ids: readonly string[],
  transaction: Transaction,
): Promise<SubscriptionModel[]> {
  return SubscriptionModel.in(scope, transaction)
    .whereIn('id', [...ids])
    .where('status', 'published')
    .whereIn('subscription_status', ['active', 'trialing'])
    .whereNotIn('subscription_type', MOVED_BY_PARENT)
    .orderBy('id')
    .forUpdate()
    .skipLocked() as unknown as Promise<SubscriptionModel[]>;
}

/** Bills the oldest due period of one subscription, in one transaction. */
export async function billPeriod(
  stores: Stores,
  scope: Scope,
  { subscription_id, now }: { subscription_id: string; now: Date },
): Promise<BillingOutcome> {
  const bill = async (transaction: Transaction): Promise<BillingOutcome> => {
    const [subscription] = await lockDueSubscriptions(scope, [subscription_id], transaction);
    if (subscription) return billLocked(stores, transaction, { subscription, now });
    return (await leaveHierarchyIfDue(scope, { subscription_id, now }, transaction)) ? 'billed' : 'idle';
  };
  // If the period waits for usage, the transaction is rolled back, including a plan change at the end of the period.
  return runBillingTransaction(stores, bill, (outcome) => outcome !== 'waiting');
}

async function billLocked(
  stores: Stores,
  transaction: Transaction,
  input: PeriodBillingInput,
): Promise<BillingOutcome> {
  const { now } = input;
  const moved = await moveOn(stores, transaction, input);
  if (moved === 'waiting' || moved === null) return moved ?? 'idle';
  await propagateToChildren(stores, transaction, { parent: moved, by: { now } });
  return 'billed';
}

type PeriodBillingInput = Pick<ClosePeriodInput, 'subscription' | 'now' | 'onDrafted' | 'is_settled'>;

/**
 * Does the next due step of the subscription: its opening, the end of its trial, or the oldest period that is over.
 * Returns the subscription; null if nothing is due.
 */
async function moveOn(
  stores: Stores,
  transaction: Transaction,
  { subscription, now, ...drafting }: PeriodBillingInput,
): Promise<SubscriptionModel | 'waiting' | null> {
  if (subscription.opens_at) return openDue(stores, transaction, { subscription, now });
  if (subscription.subscription_status === 'trialing')
    return (await endTrial(stores, transaction, { subscription, by: { now } }))?.subscription ?? null;
  return closePeriod(stores, transaction, { subscription, now, untilComplete: true, ...drafting });
}
