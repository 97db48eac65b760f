/**
 * Bills every period that is over. One transaction per subscription and period: take the subscription's lock (or leave it
 * to the worker that has it), draft the invoice of the closed period, move the current period on; repeat while due. Any
 * number of schedulers may run this at once, and a crash between two steps leaves nothing half.
 *
 * A period is invoiced only when its usage is complete: what was sent before its end must have come through the pipeline.
 * Until then the subscription is left for the next run, and the report says so.
 */
import type { Scope } from '../../core/scope.ts';
import { type Due, dueSubscriptions, MOVED_BY_PARENT, type OfWhom } from '../../storage/due-billing.ts';
import { sideBySide } from '../../storage/models/side-by-side.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionScheduleModel } from '../../storage/models/subscription-schedule.ts';
import { askForAlertsOfPeriods } from '../../storage/progress/alert-arrivals.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';
import { endTrial } from '../subscriptions/end-trial.ts';
import { familyFollows } from '../subscriptions/follow-parent.ts';
import { leaveFamilyIfDue } from '../subscriptions/leave-family.ts';
import { openDue } from '../subscriptions/open-due.ts';
import { noteTry, ScheduleNotDone } from '../subscriptions/schedules.ts';
import { scopeOf } from './billable-items.ts';
import { type Closing, closePeriod } from './close-period.ts';
import type { Drafted, PlansInHand } from './plans-in-hand.ts';
import { type Planning, restingPlans } from './resting-plans.ts';
import { type Ended, inRounds, type Watched } from './rounds.ts';
import { billingTransaction } from './transaction.ts';

/** `billed`: moved on by a period. `waiting`: usage is not complete yet. `idle`: nothing is due, or another worker has it. */
export type Outcome = 'billed' | 'waiting' | 'idle';

export type BillingReport = {
  billed: number;
  /** Subscriptions left for the next run because their usage is not complete. */
  waiting: string[];
  failed: { id: string; error: unknown }[];
  /** Billed, too; but the look at their alerts could not be asked for, so that they wait for that of the hour. */
  unasked: Unasked[];
};

export type Unasked = { readonly ids: readonly string[]; readonly error: unknown };

/** So many subscriptions at once: most of a billing is waiting for the stores. */
const WORKERS = 4;

/** Of an advance of a clock. */
export type InHand = { readonly plans?: PlansInHand | undefined };

/**
 * One period of each in a round, the oldest first, until nothing is due: who has years of periods to be billed waits behind
 * whoever has one. One subscription that cannot be billed does not keep the others from it. Environments with a clock of their own
 * are left out, unless one of them is named (docs/rules/clock.md).
 */
export async function billDuePeriods(
  stores: Stores,
  now: Date,
  { only, onProgress, mayGoOn, plans }: OfWhom & Watched<BillingReport> & InHand = {},
): Promise<BillingReport> {
  const report: BillingReport = { billed: 0, waiting: [], failed: [], unasked: [] };
  await inRounds({
    next: (left) => dueSubscriptions(stores.postgres, { now, left, only }),
    act: (due) => {
      // More than a plain period may end.
      plans?.forget();
      return billOne(stores, due, { now, report });
    },
    actTogether: (due) => billTogether(stores, due, { now, report, plans }),
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
  { id, ...scope }: Due,
  { now, report }: { now: Date; report: BillingReport },
): Promise<boolean> {
  try {
    const attributes = { ...scope, subscription_id: id };
    const outcome = await inSpan('subscription.bill', { attributes }, () =>
      billPeriod(stores, scope, { subscription_id: id, now }),
    );
    if (outcome === 'billed') await noteBilled(stores, scope, { ids: [id], report });
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
async function noteBilled(
  { postgres }: Stores,
  scope: Scope,
  { ids, report }: { ids: readonly string[]; report: BillingReport },
): Promise<void> {
  report.billed += ids.length;
  await askForAlertsOfPeriods(postgres, scope, ids).catch((error: unknown) => report.unasked.push({ ids, error }));
}

/** One period of each of these subscriptions of one environment, in one transaction; those that do more than end a period do it alone. */
async function billTogether(
  stores: Stores,
  due: readonly Due[],
  { now, report, plans }: { now: Date; report: BillingReport } & InHand,
): Promise<Ended> {
  const { tenant_id, environment_id } = due[0]!;
  const attributes = { tenant_id, environment_id, subscriptions: due.length };
  const hand = plans && { plans, counted: await plans.counted(stores) };
  const planning = hand ? undefined : restingPlans(stores)?.planning(stores);
  const billing = inSpan('subscription.bill', { attributes }, () => billPlain(stores, due, { now, hand, planning }));
  // What was undone leaves nothing to rest.
  billing.catch(() => planning?.end([]));
  const { outcomes, others, drafted } = await billing;
  if (hand) hand.plans.keep(drafted, hand.counted);
  planning?.end(drafted);
  const withOutcome = (wanted: Outcome) => due.flatMap(({ id }) => (outcomes.get(id) === wanted ? [id] : []));
  const waiting = withOutcome('waiting');
  const billed = withOutcome('billed');
  await noteBilled(stores, { tenant_id, environment_id }, { ids: billed, report });
  report.waiting.push(...waiting);
  const idle = due.flatMap(({ id }) => (others.has(id) || outcomes.has(id) ? [] : [id]));
  return { left: [...waiting, ...withOutcome('idle'), ...idle], alone: due.filter(({ id }) => others.has(id)) };
}

/** Elsewhere than in an advance. */
type Resting = { readonly planning: Planning | undefined };

type Billed = {
  readonly outcomes: Map<string, Outcome>;
  readonly others: Set<string>;
  readonly drafted: readonly Drafted[];
};

/** `others`: whose turn is no mere end of a period, or which may give a number to an invoice, which is done in the order of what is due. */
function billPlain(
  stores: Stores,
  due: readonly Due[],
  { now, hand, planning }: { now: Date; hand: { plans: PlansInHand; counted: string } | undefined } & Resting,
): Promise<Billed> {
  const scope = scopeOf(due[0]!);
  const ids = due.map(({ id }) => id);
  return billingTransaction(stores, async (transaction) => {
    await planning?.begin(transaction);
    const isSettled = await hand?.plans.settledWithin(transaction, hand.counted);
    const held = await dueOf(scope, ids, transaction);
    const changing = await SubscriptionScheduleModel.in(scope, transaction)
      .whereIn('subscription_id', ids)
      .where('status', 'pending')
      .select('subscription_id');
    const isChanging = new Set(changing.map(({ subscription_id }) => subscription_id));
    const isPlain = ({ id, opens_at, subscription_status, subscription_type }: SubscriptionModel) =>
      !isChanging.has(id) && !opens_at && subscription_status === 'active' && subscription_type !== 'PARENT';
    const plain = held.filter(isPlain);
    const drafted: Drafted[] = [];
    const onDrafted = (draft: Drafted) => void drafted.push(draft);
    const outcomes = await sideBySide(transaction, plain, (subscription) => {
      const subject = { subscription, now, onDrafted, is_settled: isSettled?.(subscription) ?? false };
      const bill = () => billHeld(stores, transaction, subject);
      return planning ? planning.of(subscription.id, bill) : bill();
    });
    const children = await childrenAmong(scope, notIn(held, ids), transaction);
    return {
      outcomes: new Map(plain.map(({ id }, index) => [id, outcomes[index]!])),
      others: new Set([...held.filter((one) => !isPlain(one)), ...children].map(({ id }) => id)),
      drafted,
    };
  });
}

function notIn(held: readonly SubscriptionModel[], ids: readonly string[]): string[] {
  const found = new Set(held.map(({ id }) => id));
  return ids.filter((id) => !found.has(id));
}

/** Whose own end has come: their parent is held before them, which each does alone. */
async function childrenAmong(
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
function dueOf(scope: Scope, ids: readonly string[], transaction: Transaction): Promise<SubscriptionModel[]> {
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
): Promise<Outcome> {
  const bill = async (transaction: Transaction): Promise<Outcome> => {
    const [subscription] = await dueOf(scope, [subscription_id], transaction);
    if (subscription) return billHeld(stores, transaction, { subscription, now });
    return (await leaveFamilyIfDue(scope, { subscription_id, now }, transaction)) ? 'billed' : 'idle';
  };
  // What is not invoiced yet has not happened yet: a plan change at the end of the period waits with it.
  return billingTransaction(stores, bill, (outcome) => outcome !== 'waiting');
}

async function billHeld(stores: Stores, transaction: Transaction, subject: Subject): Promise<Outcome> {
  const { now } = subject;
  const moved = await moveOn(stores, transaction, subject);
  if (moved === 'waiting' || moved === null) return moved ?? 'idle';
  await familyFollows(stores, transaction, { parent: moved, by: { now } });
  return 'billed';
}

type Subject = Pick<Closing, 'subscription' | 'now' | 'onDrafted' | 'is_settled'>;

/** As it is then; null where nothing is due. */
async function moveOn(
  stores: Stores,
  transaction: Transaction,
  { subscription, now, ...drafting }: Subject,
): Promise<SubscriptionModel | 'waiting' | null> {
  if (subscription.opens_at) return openDue(stores, transaction, { subscription, now });
  if (subscription.subscription_status === 'trialing')
    return (await endTrial(stores, transaction, { subscription, by: { now } }))?.subscription ?? null;
  return closePeriod(stores, transaction, { subscription, now, untilComplete: true, ...drafting });
}
