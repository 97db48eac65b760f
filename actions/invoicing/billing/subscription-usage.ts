/**
 * Usage and charges of a subscription for a period (docs/rules/usage.md, "One number"). Every usage line item is measured by the one usage
 * reader and priced by the one rating function, as on the invoice. Default: the running period; for an item with a period of its own, that
 * period.
 */

import { type Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Microseconds, type Milliseconds, toInstant, toMs, toUs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { planServedLines, type ServedLine } from '../../../core/rating/chains/chains-within.ts';
import { usageToRead } from '../../../core/rating/chains/charge-chains.ts';
import { type BilledSubscription, computeServicesWithin, runningPeriod } from '../../../core/rating/charges.ts';
import {
  computeAmountIn,
  computePool,
  computeTrueUp,
  deriveServiceTerm,
  endsWith,
  type PoolFacts,
  type SubscriptionCommitment,
  shareOut,
} from '../../../core/rating/commitments/subscription.ts';
import { splitByCommitment } from '../../../core/rating/committed-lines.ts';
import type { LineAmount, MeasuredUsage } from '../../../core/rating/line-amount.ts';
import { chargeKey } from '../../../core/rating/plan-invoice.ts';
import { priceServedLines } from '../../../core/rating/served-lines.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { loadAll } from '../../../storage/concurrency/batched.ts';
import type { PositionedRawEvent } from '../../../storage/events/raw-events.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import {
  type BillableItem,
  CHARGES_AT_ONCE,
  currentPeriod,
  gatherItems,
  toBilledSubscription,
} from '../../rating/billable-items.ts';
import { createUsageReader } from '../../rating/measure-usage.ts';
import { loadOwnMembers } from '../../rating/members.ts';
import { gatherInvoicedLines, type InvoicedLine, isCorrection } from './gather-closed-charges.ts';
import { recordedUsage, subscriptionCommitment } from './gather-commitments.ts';

type UsageRequest = {
  subscription_id: string;
  start_time?: string | null;
  end_time?: string | null;
  lifetime_usage?: boolean | null;
};

export type SubscriptionUsageCharge = LineAmount & {
  item: BillableItem;
  service: Period;
  display_name: string;
  is_overage?: boolean;
};
export type SubscriptionUsage = {
  subscription: SubscriptionModel;
  period: Period;
  charges: SubscriptionUsageCharge[];
  amount: Decimal;
  /** Commitment of the subscription as a whole; null without one. */
  commitment: SubscriptionCommitment | null;
  /** Shortfall at the end of the period; null if it is not charged. */
  true_up: Decimal | null;
};

export async function loadSubscriptionUsage(
  stores: Stores,
  scope: Scope,
  request: UsageRequest,
  now: Date,
): Promise<SubscriptionUsage> {
  const database = stores.postgres;
  const subscription = await SubscriptionModel.fetch(scope, request.subscription_id, { database });
  const requested = deriveRequestedPeriod(subscription, request, now);
  return priceUsage(stores, await gatherUsage(stores.postgres, { subscription, requested, now }));
}

/** Usage and charges of the periods that contain an event, without the event and with it. */
type UsageAroundEvent = { readonly before: SubscriptionUsage; readonly after: SubscriptionUsage };

/** Loads the usage of the period of each item in which the event lies, twice: as if it had not been sent, and as it is. */
export async function loadUsageAroundEvent(
  stores: Stores,
  subscription: SubscriptionModel,
  { event, now }: { readonly event: PositionedRawEvent; readonly now: Date },
): Promise<UsageAroundEvent> {
  const gathered = await gatherUsage(stores.postgres, {
    subscription,
    requested: null,
    now,
    at_us: event.timestamp_us,
  });
  const [before, after] = await Promise.all([priceUsage(stores, gathered, event), priceUsage(stores, gathered)]);
  return { before, after };
}

type UsageSubject = {
  readonly subscription: SubscriptionModel;
  readonly requested: Period | null;
  readonly now: Date;
  /** Instant whose periods are wanted instead of the running ones. */
  readonly at_us?: Microseconds;
};
type GatheredUsage = Awaited<ReturnType<typeof gatherUsage>>;

/** Gathers the records of the measured items, and the intervals in which they are measured. */
async function gatherUsage(database: Database, { subscription, requested, now, at_us }: UsageSubject) {
  const billed = toBilledSubscription(subscription);
  const current = currentPeriod(subscription);
  // An event of an earlier period has the free units in force at its instant.
  const isEarlier = at_us !== undefined && toMs(at_us) < current.start;
  const at = new Date(Math.min(now.getTime(), isEarlier ? toMs(at_us) : (requested ?? current).end - 1));
  const [members, items] = await loadAll(database, [
    (connected) => loadOwnMembers(connected, subscription),
    (connected) => gatherItems(connected, subscription, { at }),
  ]);
  const commitment = subscriptionCommitment(subscription);
  const isPooled = commitment !== null || items.some((item) => item.commitment?.duration);
  const running = { subscription: billed, current, now: now.getTime() };
  const invoiced = isPooled || at_us !== undefined ? await gatherInvoicedLines(database, subscription) : null;
  const chooseRunning = (item: BillableItem) => requested ?? runningPeriod(item, running) ?? null;
  const choosePeriod = (item: BillableItem) =>
    at_us === undefined
      ? chooseRunning(item)
      : findPeriodAt(toMs(at_us), item, { running: chooseRunning(item), invoiced: invoiced!, billed });
  const queried = items.flatMap((item) => {
    const period = choosePeriod(item);
    return period ? [{ item, period }] : [];
  });
  const served = planServedLines(queried, billed);
  const isOver = ({ service }: ServedLine<BillableItem>) =>
    requested === null && at_us === undefined && service.end <= current.start;
  const lines = invoiced ?? (served.some(isOver) ? await gatherInvoicedLines(database, subscription) : []);
  // A line may have ended at the start of the running period while its own billing period continues. Such a line is excluded if its usage
  // was invoiced.
  const keys = new Set(lines.map(({ key }) => key));
  const open = served.filter((one) => !isOver(one) || !keys.has(chargeKey(one.item.id, one.service)));
  const period = requested ?? (at_us === undefined ? null : queried[0]?.period) ?? current;
  return { subscription, period, members, commitment, open, recorded: isPooled ? recordedUsage(lines) : [], now };
}

type PeriodChoice = {
  readonly running: Period | null;
  readonly invoiced: readonly InvoicedLine[];
  readonly billed: BilledSubscription;
};

/** Finds the period of an item that contains an instant: the running one, that of an invoiced charge, or a regular one. */
function findPeriodAt(at_ms: Milliseconds, item: BillableItem, { running, invoiced, billed }: PeriodChoice) {
  const contains = ({ start, end }: Period) => at_ms >= start && at_ms < end;
  if (running && contains(running)) return running;
  const charged = invoiced.find(
    (one) => one.line.subscription_line_item_id === item.id && !isCorrection(one) && contains(one.service),
  );
  return charged?.service ?? computeServicesWithin({ start: at_ms, end: at_ms + 1 }, item, billed)[0] ?? null;
}

/** Measures and prices the gathered lines; `without` is left out. */
async function priceUsage(
  stores: Stores,
  { subscription, period, members, commitment, open, recorded, now }: GatheredUsage,
  without?: PositionedRawEvent,
): Promise<SubscriptionUsage> {
  const measure = createUsageReader(stores, stores.postgres, { subscription, members, now, without });
  const usage = new Map<string, MeasuredUsage>();
  await mapConcurrently(CHARGES_AT_ONCE, usageToRead(open), async ({ item, window, service, chain, keys: of }) => {
    const measured = await measure(item, window, { service, chain });
    for (const key of of) usage.set(key, measured);
  });
  const { currency } = subscription;
  const billed = toBilledSubscription(subscription);
  const amounts = priceServedLines(open, { usage, subscription: billed, currency, recorded });
  const lines = open.map(({ item, service }, index): SubscriptionUsageCharge => {
    return { item, service, display_name: item.display_name, ...amounts[index]! };
  });
  const { charges, true_up } =
    commitment === null
      ? { charges: lines, true_up: null }
      : drawCommitment(lines, {
          period: derivePaidPeriod(period, subscription),
          commitment,
          recorded,
          subscription: billed,
          currency,
        });
  const amount = sumDecimals([...charges.map((charge) => charge.amount), true_up ?? ZERO]);
  return { subscription, period, charges, amount, commitment, true_up };
}

/** Returns the part of the period in which a shortfall is charged: a trial, a draft and the time before the start have none. */
function derivePaidPeriod(
  { start, end }: Period,
  { trial_end, opens_at, subscription_status }: SubscriptionModel,
): Period {
  if (subscription_status === 'draft' || opens_at) return { start: end, end };
  return { start: Math.min(end, Math.max(start, trial_end ? toInstant(trial_end) : start)), end };
}

type DrawnUsageInput = Omit<PoolFacts, 'true_ups'> & { period: Period; currency: string };

/** Draws from the commitment like the invoice of the period does. For any other interval, the commitment is prorated to its length. */
function drawCommitment(lines: readonly SubscriptionUsageCharge[], { period, currency, ...facts }: DrawnUsageInput) {
  const { commitment, subscription } = facts;
  const recorded = facts.recorded.filter(({ service }) => service.end <= period.start);
  const term = deriveServiceTerm(period, facts);
  const pool = {
    ...computePool(term, { ...facts, recorded, true_ups: [] }),
    ...(commitment.duration === null ? { amount: computeAmountIn(period, subscription, commitment) } : {}),
  };
  const amounts = lines.map(({ amount }) => amount);
  const { shares, left } = shareOut(amounts, pool, { currency, in_order: commitment.duration === null });
  const isEnd = commitment.duration === null || endsWith(term, period, [subscription.end_ms]);
  return {
    charges: lines.flatMap((line, index) => splitByCommitment(line, shares[index]!, commitment)),
    true_up: isEnd ? computeTrueUp(left, commitment, currency) : null,
  };
}

/** Returns the requested dates; null if each item uses its own period. */
function deriveRequestedPeriod(subscription: SubscriptionModel, request: UsageRequest, now: Date): Period | null {
  const { start_time, end_time, lifetime_usage } = request;
  if (!start_time && !end_time && !lifetime_usage) return null;
  const current = currentPeriod(subscription);
  const start = lifetime_usage
    ? toInstant(subscription.start_date)
    : start_time
      ? toInstant(start_time)
      : current.start;
  const end = end_time ? toInstant(end_time) : lifetime_usage ? now.getTime() : current.end;
  checkRange({ start_us: toUs(start), end_us: toUs(end) });
  return { start, end };
}
