/**
 * Replaces the plan of a subscription: its plan lines end and those of the target plan begin, at one instant (docs/rules/subscriptions.md,
 * "Plan changes"). `planPlanChange` reads and decides but writes nothing, so a preview consists of it alone. If the billing periods change
 * as well, a new period begins at that instant: every line ends there, and continuing lines begin again.
 */

import type { AddonPolicy } from '../../../core/catalog/addon/policy.ts';
import type { Plan } from '../../../core/catalog/plan/record.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { priceReset } from '../../../core/metering/price-reset.ts';
import { hasOwnPeriods, roundUpToPeriodEnd } from '../../../core/rating/charges.ts';
import { buildLineItem } from '../../../core/subscriptions/lines.ts';
import {
  type ChangeType,
  checkPlanChange,
  deriveChangeType,
  type PeriodTerms,
  planPeriodsFromChange,
} from '../../../core/subscriptions/plan-change.ts';
import { toBilledItem } from '../../../core/subscriptions/plan-sync.ts';
import type { PRORATION_BEHAVIORS } from '../../../core/subscriptions/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import type { EarlierPeriods, SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionScheduleModel } from '../../../storage/models/subscriptions/subscription-schedule.ts';
import { type BillableItem, gatherItems, toBilledSubscription } from '../../rating/billable-items.ts';
import { type LineChangePlan, type LineStart, planLineChange } from '../subscriptions/change-lines.ts';
import type { LineChangeEnd } from '../subscriptions/retained-charges.ts';
import { type AddonsOfChange, checkCarried, gatherAddons } from './addons.ts';
import { gatherTarget, type TargetPlan } from './gather-target.ts';

export type PlanChangeRequest = {
  readonly target_plan_id: string;
  readonly proration_behavior: (typeof PRORATION_BEHAVIORS)[number];
  readonly terms: PeriodTerms;
  readonly addons?: AddonPolicy | null;
};

type PlanChangeInput = {
  readonly subscription: SubscriptionModel;
  readonly request: PlanChangeRequest;
  /** The instant of the change: now, or the end of the period. */
  readonly at: Milliseconds;
  /** Id of the schedule that is being executed; absent for a change on request. */
  readonly schedule_id?: string;
  readonly author: Author;
};

export type PlanChangePlan = {
  readonly from: Plan;
  readonly to: Plan;
  readonly change_type: ChangeType;
  readonly lines: LineChangePlan;
  readonly changes: Partial<SubscriptionModel>;
  /**
   * If a new period begins with the change: the subscription as before, for the final invoice of the period that the change shortens.
   * Otherwise null.
   */
  readonly closing: SubscriptionModel | null;
  /** Lines that belong neither to the plan nor to an add-on; they continue. */
  readonly carried: readonly BillableItem[];
  readonly addons: AddonsOfChange;
};

export async function planPlanChange(database: Database, input: PlanChangeInput): Promise<PlanChangePlan> {
  const { subscription, request, at, author } = input;
  const pending = await SubscriptionScheduleModel.findPending(subscription, subscription.id, database);
  checkPlanChange(subscription, {
    target_plan_id: request.target_plan_id,
    pending: pending && pending.id !== input.schedule_id ? pending.schedule_type : null,
  });
  const from = await PlanModel.fetch(subscription, subscription.plan_id, { database });
  const target = await gatherTarget(database, { subscription, plan_id: request.target_plan_id, at });
  const items = await gatherItems(database, subscription);
  const periods = planPeriodsFromChange(subscription, request.terms, at);
  const { billing_period, billing_period_count } = { ...subscription, ...periods };
  const length = { billing_period, billing_period_count };
  const isScheduled = input.schedule_id !== undefined;
  const addons = await gatherAddons(database, { subscription, policy: request.addons, at, isScheduled });
  await checkCarried(database, { subscription, carried: addons.carried, target_plan_id: target.plan.id, length });
  const dropped = new Set<string | null | undefined>(addons.dropped.map(({ id }) => id));
  const leaves = (item: BillableItem) =>
    isOfPlan(item, subscription) || dropped.has(item.line_item.addon_association_id);
  const leaving = { subscription, items, at, leaves, restarts: periods !== null };
  const changing = { ...leaving, target, length, standing: computeHaltedUntil(leaving) };
  const ends = planLineEnds(changing);
  const { proration_behavior } = request;
  const begins = [...planLineStarts(changing), ...(periods ? planStayingLines(changing) : [])];
  const earlier_periods = earlierPeriods(subscription, at);
  const restarted = periods && { ...periods, earlier_periods };
  const after = restarted ? Object.assign(subscription.$clone(), restarted) : undefined;
  const ended = after ? items.filter((item) => !ends.some((end) => end.item.id === item.id)) : [];
  const change = { subscription, after, ended, ends, begins, proration_behavior, author };
  const isAtPeriodEnd = at === toInstant(subscription.current_period_end);
  const atPeriodEnd = isScheduled ? 'done' : isAtPeriodEnd ? 'previewed' : undefined;
  const lines = await planLineChange(database, { ...change, atPeriodEnd });
  const { synced_price_sequence } = target;
  return {
    from,
    to: target.plan,
    change_type: deriveChangeType(
      ends.map(({ item }) => item).filter((item) => isOfPlan(item, subscription)),
      lines.begins.filter(({ line_item }) => line_item.entity_id === target.plan.id),
    ),
    lines,
    changes: { plan_id: target.plan.id, synced_price_sequence, ...restarted },
    closing: restarted ? Object.assign(subscription.$clone(), { earlier_periods }) : null,
    carried: items.filter((item) => isLive(item, at) && !leaves(item) && !item.line_item.addon_association_id),
    addons,
  };
}

/** Lists the former period grids of the subscription, including the one that ends with this change. */
function earlierPeriods(subscription: SubscriptionModel, at: Milliseconds): EarlierPeriods[] {
  const { billing_anchor, billing_period, billing_period_count, earlier_periods } = subscription;
  return [...(earlier_periods ?? []), { until: formatMs(at), billing_anchor, billing_period, billing_period_count }];
}

type LeavingLines = {
  subscription: SubscriptionModel;
  items: readonly BillableItem[];
  at: Milliseconds;
  /** Whether the change ends the line, because it belongs to the plan or to a dropped add-on. */
  leaves(item: BillableItem): boolean;
  restarts: boolean;
};

type ChangingLines = LeavingLines & {
  target: TargetPlan;
  /** Length of the periods after the change. */
  length: Pick<SubscriptionModel, 'billing_period' | 'billing_period_count'>;
  standing: HaltedUntilByMeter;
};

/** Whether the line belongs to the plan, even with an overridden price. */
function isOfPlan({ line_item }: BillableItem, { plan_id }: SubscriptionModel): boolean {
  return line_item.entity_type === 'plan' && line_item.entity_id === plan_id;
}

function isLive({ line_item }: BillableItem, at: Milliseconds): boolean {
  return line_item.end_date === null || line_item.end_date === undefined || toInstant(line_item.end_date) > at;
}

function hasBegun({ line_item }: BillableItem, at: Milliseconds): boolean {
  return toInstant(line_item.start_date) <= at;
}

/**
 * Whether a one-time charge began before the change or with it. It is on an invoice already, or will be on that of the arrears of its
 * period.
 */
function wasOnce({ billing_period, start_ms }: BillableItem, at: Milliseconds): boolean {
  return billing_period === 'ONETIME' && start_ms <= at;
}

/** Plans the ends of lines. A line that would start after the change ends at its own start, so that it is never active. */
function planLineEnds(changing: ChangingLines): LineChangeEnd[] {
  const { items, at, leaves, restarts } = changing;
  const ending = items.filter((item) => isLive(item, at) && (leaves(item) || (restarts && !wasOnce(item, at))));
  return ending.flatMap((item) => {
    const last = Math.max(computeLineEnd(item, changing), toInstant(item.line_item.start_date));
    return isLive(item, last) ? [{ item, at: last }] : [];
  });
}

/**
 * Computes the end of a line. A line of a meter that never resets ends with its period, because the value of the meter is charged once per
 * period.
 */
function computeLineEnd(item: BillableItem, { subscription, at, restarts, standing }: ChangingLines): Milliseconds {
  if (restarts || !isOfWholePeriods(item) || !hasBegun(item, at)) return at;
  const since = isOfAPlan(item) ? (standing.get(item.line_item.meter_id ?? null) ?? at) : at;
  return roundUpToPeriodEnd(since, item, toBilledSubscription(subscription));
}

function isOfWholePeriods({ meter }: BillableItem): boolean {
  return meter !== null && priceReset(meter) === 'NEVER';
}

type HaltedUntilByMeter = ReadonlyMap<string | null, Milliseconds>;

/**
 * Computes, per meter that never resets, the end of the last period that a line of a plan charges. Ending lines continue until then,
 * because such a meter is charged in whole periods, and new lines begin after it. Empty if new periods begin at the change.
 */
function computeHaltedUntil({ subscription, items, at, leaves, restarts }: LeavingLines): HaltedUntilByMeter {
  const billed = toBilledSubscription(subscription);
  const standing = new Map<string | null, Milliseconds>();
  for (const item of restarts ? [] : items) {
    if (!isOfWholePeriods(item) || !isOfAPlan(item) || !hasBegun(item, at) || !isLive(item, at)) continue;
    const end = roundUpToPeriodEnd(leaves(item) ? at : (item.end_ms ?? at), item, billed);
    const meter_id = item.line_item.meter_id ?? null;
    standing.set(meter_id, Math.max(end, standing.get(meter_id) ?? at));
  }
  return standing;
}

function isOfAPlan({ line_item }: BillableItem): boolean {
  return line_item.entity_type === 'plan';
}

/**
 * Computes the latest end of the ending plan lines for each meter that never resets, because the periods of lines may end at different
 * times.
 */
function computeHaltedEnds(changing: ChangingLines): HaltedUntilByMeter {
  const { standing } = changing;
  const behind = new Map(standing);
  for (const item of changing.items) {
    const meter_id = item.line_item.meter_id ?? null;
    const until = standing.get(meter_id);
    if (until === undefined || !changing.leaves(item) || !isOfAPlan(item) || !isLive(item, until)) continue;
    behind.set(meter_id, Math.max(computeLineEnd(item, changing), behind.get(meter_id)!));
  }
  return behind;
}

function planLineStarts(changing: ChangingLines): LineStart[] {
  const { subscription, target, at, length, restarts } = changing;
  const { plan, prices, meters } = target;
  const behind = computeHaltedEnds(changing);
  const billed = toBilledSubscription(subscription);
  return prices.map((price) => {
    const meter = price.meter_id ? (meters.get(price.meter_id) ?? null) : null;
    const waits = !restarts && meter !== null && priceReset(meter) === 'NEVER';
    const from = waits ? (behind.get(meter.id) ?? roundUpToPeriodEnd(at, toBilledItem(price, at), billed)) : at;
    const terms = buildLineItem({
      price,
      subscription: { ...length, start_date: formatMs(from), end_date: subscription.end_date },
      now: from,
      entity: { entity_id: plan.id, entity_type: 'plan', name: plan.name },
      meter_name: meter?.name ?? null,
    });
    return { terms, price, meter };
  });
}

/** Plans the lines that do not end with the plan. They begin again, because new billing periods begin with the change. */
function planStayingLines({ subscription, items, at, leaves }: ChangingLines): LineStart[] {
  const billed = toBilledSubscription(subscription);
  const staying = items.filter((item) => isLive(item, at) && !leaves(item) && !wasOnce(item, at));
  return staying.map((item) => ({
    terms: { ...item.line_item, start_date: formatMs(Math.max(at, toInstant(item.line_item.start_date))) },
    price: item.price,
    meter: item.meter,
    continues: item,
    ...(hasOwnPeriods(item, billed) ? { follows: item } : {}),
  }));
}
