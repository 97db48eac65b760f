/**
 * Changes the plan of a subscription, now or at the end of its period (docs/rules/subscriptions.md, "Plan changes"). A preview plans the
 * change with the same function. If a new period begins now, the arrears of the shortened period are invoiced, as in a cancellation.
 */
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import type { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { beginPlanGrants } from '../../credits/grants/give-grants.ts';
import { emit } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { draftFinalInvoice } from '../../invoicing/invoices/draft-invoice.ts';
import { addSchedule } from '../../subscriptions/schedules.ts';
import { checkSharedMeters, checkSharedMetersAhead, describeSharedMeters } from '../../subscriptions/shared-meters.ts';
import { detachDropped } from '../plan-change/addons.ts';
import { type PlanChangePlan, type PlanChangeRequest, planPlanChange } from '../plan-change/plan-change.ts';
import { type AppliedLines, applyLineChange } from './apply-line-change.ts';
import { lockUpToDate, readUpToDate } from './lock-with-parent.ts';

type PlanChange = {
  readonly id: string;
  readonly request: PlanChangeRequest;
  readonly change_at: 'immediate' | 'end_of_period';
  readonly metadata: Record<string, string> | null;
  readonly author: Author;
};

export type PreviewedPlanChange = {
  readonly before: SubscriptionModel;
  readonly plan: PlanChangePlan;
  readonly at: Milliseconds;
  /** Warnings about meters that other subscriptions of the customer charge, too. */
  readonly shared_meters: readonly string[];
};
export type ChangedPlan = PreviewedPlanChange & {
  readonly subscription: SubscriptionModel;
  readonly applied: AppliedLines | null;
  /** Set if the change happens at the end of the period. */
  readonly schedule: SubscriptionScheduleModel | null;
};

export async function previewPlanChange(
  stores: Stores,
  scope: Scope,
  { id, request, change_at, author }: PlanChange,
): Promise<PreviewedPlanChange> {
  return readUpToDate(stores, id, { scope, now: author.now }, async (database, before) => {
    const at = deriveChangeInstant(before, change_at, author.now);
    const plan = await planPlanChange(database, { subscription: before, request, at, author });
    await checkSharedMetersAhead(database, before, listBegunRecords(plan));
    return { before, at, plan, shared_meters: await loadSharedMeterMessages(database, before, plan) };
  });
}

export async function executePlanChange(stores: Stores, scope: Scope, change: PlanChange): Promise<ChangedPlan> {
  const { id, request, change_at, author } = change;
  const { now } = author;
  return runBillingTransaction(stores, async (transaction) => {
    const before = await lockUpToDate(stores, id, { scope, database: transaction, now });
    const at = deriveChangeInstant(before, change_at, now);
    const plan = await planPlanChange(transaction, { subscription: before, request, at, author });
    await checkSharedMeters(transaction, before, listBegunRecords(plan));
    const planned = { before, plan, at, shared_meters: await loadSharedMeterMessages(transaction, before, plan) };
    if (change_at === 'end_of_period') return schedule(transaction, planned, change);
    return apply(stores, transaction, planned, author);
  });
}

function listBegunRecords({ lines }: PlanChangePlan): SubscriptionLineItemModel[] {
  return lines.begins.map(({ line_item }) => line_item);
}

async function loadSharedMeterMessages(
  database: Database,
  before: SubscriptionModel,
  plan: PlanChangePlan,
): Promise<string[]> {
  return (await describeSharedMeters(database, before, listBegunRecords(plan))).map(({ message }) => message);
}

function deriveChangeInstant(before: SubscriptionModel, change_at: PlanChange['change_at'], now: Date): Milliseconds {
  // If the subscription has not begun, the change takes effect at its start.
  if (change_at === 'immediate') return Math.max(now.getTime(), toInstant(before.start_date));
  if (before.subscription_status !== 'active')
    throw invalid('change_at', 'end_of_period is for an active subscription', {
      subscription_status: before.subscription_status,
    });
  return toInstant(before.current_period_end);
}

async function schedule(
  transaction: Transaction,
  planned: PreviewedPlanChange,
  { request, metadata, author }: PlanChange,
): Promise<ChangedPlan> {
  const noted = await addSchedule(transaction, planned.before, {
    schedule_type: 'plan_change',
    scheduled_at: formatMs(planned.at),
    configuration: { ...request },
    metadata,
    author,
  });
  await emit(transaction, 'subscription.updated', { record: planned.before, by: author });
  return { ...planned, subscription: planned.before, applied: null, schedule: noted };
}

async function apply(
  stores: Stores,
  transaction: Transaction,
  planned: PreviewedPlanChange,
  author: Author,
): Promise<ChangedPlan> {
  const { before, plan, at } = planned;
  if (plan.closing) {
    const final = { subscription: plan.closing, effective_date: formatMs(at), now: author.now };
    await draftFinalInvoice(stores, transaction, final);
  }
  const applied = await applyLineChange(stores, transaction, plan.lines);
  await detachDropped(transaction, { ...plan.addons, at, author });
  const by = { by: author, database: transaction };
  const subscription = await SubscriptionModel.change(before, plan.changes, by);
  await beginPlanGrants(transaction, { subscription, at, by: author });
  await emit(transaction, 'subscription.updated', { record: subscription, by: author });
  await emit(transaction, 'subscription.plan_changed', { record: subscription, by: author });
  return { ...planned, subscription, applied, schedule: null };
}
