/**
 * Bills every period that is over. One transaction per subscription and period: take the subscription's lock (or leave it
 * to the worker that has it), draft the invoice of the closed period, move the current period on; repeat while due. Any
 * number of schedulers may run this at once, and a crash between two steps leaves nothing half.
 *
 * A period is invoiced only when its usage is complete: what was sent before its end must have come through the pipeline.
 * Until then the subscription is left for the next run, and the report says so.
 */
import type { Scope } from '../../core/scope.ts';
import {
  type DueEnvironments,
  type DueRecord,
  listDueSubscriptions,
  MOVED_BY_PARENT,
} from '../../storage/due-billing.ts';
import { mapBatched } from '../../storage/models/batched.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscription-schedule.ts';
import { enqueuePeriodAlertChecks } from '../../storage/progress/alert-arrivals.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';
import { endTrial } from '../subscriptions/end-trial.ts';
import { leaveHierarchyIfDue } from '../subscriptions/leave-hierarchy.ts';
import { openDue } from '../subscriptions/open-due.ts';
import { propagateToChildren } from '../subscriptions/propagate-to-children.ts';
import { noteTry, ScheduleNotDone } from '../subscriptions/schedules.ts';
import { type BatchOutcome, runBatches, type WatchedRun } from './batch-loop.ts';
import { toScope } from './billable-items.ts';
import type { ClockAdvancePlanCache, PlannedDraft } from './clock-advance-plan-cache.ts';
import { type ClosePeriodInput, closePeriod } from './close-period.ts';
import { type DraftPlanning, findDraftPlanCache } from './draft-plan-cache.ts';
import { runBillingTransaction } from './transaction.ts';

/** `billed`: moved on by a period. `waiting`: usage is not complete yet. `idle`: nothing is due, or another worker has it. */
export type BillingOutcome = 'billed' | 'waiting' | 'idle';

export type BillingReport = {
  billed: number;
  /** Subscriptions left for the next run because their usage is not complete. */
  waiting: string[];
  failed: { id: string; error: unknown }[];
  /** Billed, too; but the look at their alerts could not be asked for, so that they wait for that of the hour. */
  without_alert_checks: UnqueuedAlertChecks[];
};

export type UnqueuedAlertChecks = { readonly ids: readonly string[]; readonly error: unknown };

/** So many subscriptions at once: most of a billing is waiting for the stores. */
const WORKERS = 4;

/** Of an advance of a clock. */
export type PlanCacheOption = { readonly plans?: ClockAdvancePlanCache | undefined };

/**
 * One period of each in a round, the oldest first, until nothing is due: who has years of periods to be billed waits behind
 * whoever has one. One subscription that cannot be billed does not keep the others from it. Environments with a clock of their own
 * are left out, unless one of them is named (docs/rules/clock.md).
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
      // More than a plain period may end.
      plans?.forget();
      return billOne(stores, due, { now, report });
    },
    actBatch: (due) => billBatch(stores, due, { now, report, plans }),
    // By a clock the same must come of the same: numbers are given in the order of what is due.
    workers: only ? 1 : WORKERS,
    onProgress: () => onProgress?.(report),
    mayGoOn,
  });
  return report;
}

/** Whether it was moved on by a period; else it is left for the next run. */
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
    // What cannot be noted is tried again without.
    if (error instanceof ScheduleNotDone)
      await noteTry(stores, error, now).catch((error) => report.failed.push({ id, error }));
    return false;
  }
}

/** It is committed: what fails from here on leaves it billed. */
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

/** One period of each of these subscriptions of one environment, in one transaction; those that do more than end a period do it alone. */
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
  // What was undone leaves nothing to rest.
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

/** Elsewhere than in an advance. */
type DraftPlanningOption = { readonly planning: DraftPlanning | undefined };

type BilledPlainPeriods = {
  readonly outcomes: Map<string, BillingOutcome>;
  readonly others: Set<string>;
  readonly drafted: readonly PlannedDraft[];
};

/** `others`: whose turn is no mere end of a period, or which may give a number to an invoice, which is done in the order of what is due. */
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

/** Whose own end has come: their parent is held before them, which each does alone. */
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

/** As they are now, with their rows; but for those that another worker has. */
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

/** The oldest due period of one subscription, in one transaction. */
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
  // What is not invoiced yet has not happened yet: a plan change at the end of the period waits with it.
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

/** As it is then; null where nothing is due. */
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
