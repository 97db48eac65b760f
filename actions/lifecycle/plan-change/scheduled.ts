/**
 * Executes a scheduled plan change at the end of its period, before the period is invoiced
 * (docs/rules/subscriptions.md, "Plan changes"). A change that has become impossible is recorded as failed in the
 * schedule, because no caller can get the error; the subscription continues unchanged. Any other error rolls everything
 * back, and the billing run records the attempt.
 */
import { FarthingError } from '../../../core/foundation/error.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { beginPlanGrants } from '../../credits/grants/give-grants.ts';
import type { SettledChange, Settlement } from '../../invoicing/invoices/settle-change.ts';
import { noteExecuted, noteFailed, ScheduleNotDone } from '../../subscriptions/schedules.ts';
import { applyLineChange } from '../subscriptions/apply-line-change.ts';
import { detachDropped } from './addons.ts';
import { type PlanChangePlan, type PlanChangeRequest, planPlanChange } from './plan-change.ts';

type DuePlanChange = { readonly subscription: SubscriptionModel; readonly at: Milliseconds; readonly now: Date };

/** The subscription after the change, and the credits and charges that were settled at once. */
type ExecutedPlanChange = { readonly subscription: SubscriptionModel; readonly settled: SettledChangeLines | null };
export type SettledChangeLines = Pick<Settlement, 'lines'> & Pick<SettledChange, 'invoice'>;

/** Changes the plan if due. `transaction` holds the lock on the subscription's row. */
export async function changePlanIfDue(
  stores: Stores,
  transaction: Transaction,
  due: DuePlanChange,
): Promise<ExecutedPlanChange> {
  const { subscription, at, now } = due;
  const unchanged = { subscription, settled: null };
  const schedule = await SubscriptionScheduleModel.findPending(subscription, subscription.id, transaction);
  if (schedule?.schedule_type !== 'plan_change' || toInstant(schedule.scheduled_at) > at) return unchanged;
  const plan = await planScheduledChange(transaction, schedule, due);
  if (plan instanceof FarthingError) {
    await noteFailed(transaction, schedule, { subscription, error: plan, by: { now } });
    return unchanged;
  }
  return applyScheduledChange(stores, transaction, { schedule, plan, ...due }).catch((error) => {
    throw new ScheduleNotDone(schedule, error);
  });
}

type ApplyPlanChangeInput = DuePlanChange & {
  readonly schedule: SubscriptionScheduleModel;
  readonly plan: PlanChangePlan;
};

async function applyScheduledChange(
  stores: Stores,
  transaction: Transaction,
  { schedule, plan, subscription, at, now }: ApplyPlanChangeInput,
): Promise<ExecutedPlanChange> {
  const by = { by: { now }, database: transaction };
  const { settled } = await applyLineChange(stores, transaction, plan.lines);
  await detachDropped(transaction, { ...plan.addons, at, author: { user_id: schedule.created_by, now } });
  // The period is not changed here: the caller closes the ending period afterwards, and then advances to the next.
  const { current_period_start: _start, current_period_end: _end, ...terms } = plan.changes;
  const changed = await SubscriptionModel.change(subscription, terms, by);
  await beginPlanGrants(transaction, { subscription: changed, at, by: { now } });
  const execution_result = { from_plan_id: plan.from.id, to_plan_id: plan.to.id, change_type: plan.change_type };
  await noteExecuted(transaction, schedule, { by: { now }, execution_result });
  const { lines } = plan.lines.settlement ?? {};
  return { subscription: changed, settled: settled && lines ? { invoice: settled.invoice, lines } : null };
}

async function planScheduledChange(
  transaction: Transaction,
  schedule: SubscriptionScheduleModel,
  { subscription, at, now }: DuePlanChange,
): Promise<PlanChangePlan | FarthingError> {
  const author = { user_id: schedule.created_by, now };
  // The request was stored in this form when the change was scheduled.
  const request = schedule.configuration as unknown as PlanChangeRequest;
  try {
    return await planPlanChange(transaction, { subscription, request, at, schedule_id: schedule.id, author });
  } catch (error) {
    if (error instanceof FarthingError && error.http_status_code < 500) return error;
    throw new ScheduleNotDone(schedule, error);
  }
}
