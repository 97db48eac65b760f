/**
 * Selects the charges of an invoice (docs/rules/invoices.md, "What stands on which invoice"). At the start of a period: its advance and
 * one-time charges. At its end: its arrears, fixed and measured, and the advance charges of the next. At a cancellation: the arrears up to
 * the date. A preview: the charges of the end of the period. After the end of a subscription, only late events of invoiced periods are
 * charged (late-events.ts).
 *
 * A line item whose billing period differs from the subscription's has its own periods, anchored at its start (docs/rules/periods.md, "Line
 * items with periods of their own"). An advance item belongs on the invoice whose window [start, end) contains the start of the item's
 * period. An item in arrears belongs on the invoice whose window (start, end] contains its end. One rule serves every item: compute its
 * service periods, cut them to the active intervals of item and subscription, and select those whose start or end lies in the window. An
 * item with the subscription's billing period uses the subscription's periods.
 */
import { Decimal, ZERO } from '../foundation/decimal.ts';
import type { Microseconds, Milliseconds } from '../foundation/time/instant.ts';
import {
  nextPeriodEnd,
  type Period,
  type PeriodRule,
  periodContaining,
  periodsFrom,
  type RecurringPeriod,
  wholePeriod,
} from '../foundation/time/period.ts';
import { type Chain, computeChainUsageWindow, findChains, type LinkedItem } from './chains/chain.ts';
import { computeShare, type ProrationShare, regularPeriod } from './proration.ts';

export const REFERENCE_POINTS = ['period_start', 'period_end', 'cancel', 'preview', 'late'] as const;
export type ReferencePoint = (typeof REFERENCE_POINTS)[number];

/** Subscription fields that billing needs. Instants are milliseconds since 1970. */
export type BilledSubscription = PeriodGrid & {
  readonly start_ms: Milliseconds;
  /** The earlier of end_date and cancel_at: nothing is billed from here on. */
  readonly end_ms: Milliseconds | null;
  /** End of the trial, which is a period by itself; absent or null without a trial. */
  readonly trial_end_ms?: Milliseconds | null;
  readonly timezone: string;
  /** Former period grids, oldest first. */
  readonly earlier?: readonly (PeriodGrid & { readonly until_ms: Milliseconds })[];
};

export type PeriodGrid = {
  readonly billing_anchor_ms: Milliseconds;
  readonly billing_period: RecurringPeriod;
  readonly billing_period_count: number;
};

/** Line item fields that decide when the item is charged. */
export type BilledItem = LinkedItem & {
  readonly price_type: 'FIXED' | 'USAGE';
  readonly invoice_cadence: 'ARREAR' | 'ADVANCE';
  readonly billing_period: RecurringPeriod | 'ONETIME';
  readonly billing_period_count: number;
  readonly start_ms: Milliseconds;
  readonly end_ms: Milliseconds | null;
  /** Anchor of the item's own periods, if it continues those of another line; its start if absent. */
  readonly anchor_ms?: Milliseconds | null;
  /** Whether usage resets each billing period. With `NEVER` the meter counts from the start of the subscription on. */
  readonly reset_usage: 'BILLING_PERIOD' | 'NEVER' | null;
};

/** One future invoice line: the item, the half-open interval that it pays for, and the share of the regular period. */
export type DueCharge<Item extends BilledItem = BilledItem> = {
  readonly item: Item;
  readonly service: Period;
  readonly share: ProrationShare;
  /** Interval in which a usage item's events are counted; null for fixed charges. */
  readonly usage_window: Period | null;
  /**
   * Chain with which the line is measured and priced (docs/rules/proration.md, "Usage over a change"); absent if it is charged by itself.
   */
  readonly chain?: Chain<Item>;
};

export type ChargeInput<Item extends BilledItem> = {
  readonly subscription: BilledSubscription;
  readonly items: readonly Item[];
  /** The subscription's period that the invoice covers; for `cancel` it ends at the effective date. */
  readonly period: Period;
  readonly reference: ReferencePoint;
};

/** Every charge that falls due at this reference point, in the order of the items. */
export function planDueCharges<Item extends BilledItem>(input: ChargeInput<Item>): DueCharge<Item>[] {
  const { subscription, items, period, reference } = input;
  if (reference === 'late') return [];
  const subscriptionEnd = reference === 'cancel' ? period.end : subscription.end_ms;
  const next = reference === 'cancel' ? null : nextPeriod(period.end, subscription);
  const services = items.flatMap((item) =>
    listServicePeriods(item, { subscription, subscriptionEnd, period, next }).map((found) => ({ item, ...found })),
  );
  const chains = findChains(services);
  return services
    .filter(({ item, service }) => buildDueTest(item, { period, next, reference })(service))
    .map((one) => buildCharge(one, { chain: chains.get(one), subscription }));
}

type ChargeContext<Item extends BilledItem> = { chain: Chain<Item> | undefined; subscription: BilledSubscription };

function buildCharge<Item extends BilledItem>(
  { item, service, share }: ServicePeriod & { item: Item },
  { chain, subscription }: ChargeContext<Item>,
): DueCharge<Item> {
  if (!chain) return { item, service, share, usage_window: computeUsageWindow(item, service, subscription) };
  return { item, service, share, usage_window: computeChainUsageWindow(chain, service), chain };
}

/** The period after this one; null if the subscription has ended by then. */
export function nextPeriod(period_start: Milliseconds, subscription: BilledSubscription): Period | null {
  if (subscription.end_ms !== null && subscription.end_ms <= period_start) return null;
  return { start: period_start, end: nextPeriodEnd({ ...periodRule(subscription), period_start }) };
}

/** Period rule of the subscription. The last period ends with the subscription. */
export function periodRule(subscription: BilledSubscription): PeriodRule {
  return {
    billing_anchor: subscription.billing_anchor_ms,
    billing_period: subscription.billing_period,
    billing_period_count: subscription.billing_period_count,
    timezone: subscription.timezone,
    subscription_end: subscription.end_ms,
  };
}

type InvoiceWindows = { period: Period; next: Period | null; reference: ReferencePoint };

function buildDueTest(item: BilledItem, { period, next, reference }: InvoiceWindows): (service: Period) => boolean {
  if (item.invoice_cadence === 'ARREAR') {
    if (reference === 'period_start') return () => false;
    // A line that ended exactly at the start of the period is due now if the previous invoice lacks it. `listOpenCharges` drops invoiced
    // charges.
    const isCut = (service: Period) => service.end === item.end_ms && service.end === period.start;
    return (service) => (service.end > period.start || isCut(service)) && service.end <= period.end;
  }
  if (reference === 'cancel') return () => false;
  if (reference === 'period_start') return (service) => service.start >= period.start && service.start < period.end;
  // An advance charge that began inside the closing period is not on the invoice that opened the period. It is due now, unless it was
  // invoiced already.
  const until = next?.end ?? period.end;
  return (service) => service.start > period.start && service.start < until;
}

type ServicePeriodInput = {
  subscription: BilledSubscription;
  subscriptionEnd: number | null;
  period: Period;
  next: Period | null;
};
/** A charged interval. `begins` is the start of the billing period, in which the item may be active only partly. */
type ServicePeriod = {
  service: Period;
  share: ProrationShare;
  whole: Period;
  begins: Milliseconds;
  level_since: Milliseconds;
};

/**
 * Lists the service periods of the item in the invoiced period and the next one, each limited to the time in which item and subscription
 * are active.
 */
function listServicePeriods(item: BilledItem, input: ServicePeriodInput): ServicePeriod[] {
  if (item.billing_period === 'ONETIME') return listOneTimeCharge(item, input.subscriptionEnd);
  const rule = itemRule(item, input.subscription);
  const services: ServicePeriod[] = [];
  for (const period of buildItemPeriods(item, input, rule)) {
    const service = serviceIn(period, item, input.subscriptionEnd);
    if (service === null) continue;
    const { whole, ...begin } = levelPeriod(period, item, input.subscription);
    services.push({ service, share: computeShare(service, whole, serviceStart(input.subscription)), whole, ...begin });
  }
  return services;
}

/**
 * Regular period of an item, the start of its billing in that period, and the instant from which events count for a level (WEIGHTED_SUM).
 */
export function levelPeriod(
  period: Period,
  item: BilledItem,
  subscription: BilledSubscription,
): Pick<ServicePeriod, 'whole' | 'begins' | 'level_since'> {
  const whole = regularPeriod(period, itemRule(item, subscription));
  // A line with its own periods is billed from the beginning of such a period, even if it replaces another line within
  // the period.
  const start = hasOwnPeriods(item, subscription) ? whole.start : period.start;
  const begins = Math.max(start, serviceStart(subscription));
  return { whole, begins, level_since: countingStart(item.reset_usage, begins, subscription.start_ms) };
}

/** Start of the billable service: the end of the trial, or the start of the subscription. The part of a period before it is not charged. */
export function serviceStart({ start_ms, trial_end_ms }: BilledSubscription): Milliseconds {
  return Math.max(start_ms, trial_end_ms ?? start_ms);
}

/** Part of a period in which item and subscription are both active; null if there is none. */
function serviceIn(period: Period, item: BilledItem, subscriptionEnd: number | null): Period | null {
  const start = Math.max(period.start, item.start_ms);
  const end = Math.min(period.end, item.end_ms ?? Infinity, subscriptionEnd ?? Infinity);
  return start < end ? { start, end } : null;
}

/**
 * A one-time charge is charged in full and never prorated, on the invoice whose window contains the start of the line item
 * (docs/rules/proration.md, "One-time charges are not prorated").
 */
function listOneTimeCharge(item: BilledItem, subscriptionEnd: number | null): ServicePeriod[] {
  const at = item.start_ms;
  if (subscriptionEnd !== null && at > subscriptionEnd) return [];
  // The item ended in the trial, before it was charged.
  if (item.end_ms !== null && item.end_ms <= at) return [];
  const service = { start: at, end: at };
  return [{ service, share: { part_ms: 1, whole_ms: 1 }, whole: service, begins: at, level_since: at }];
}

export function itemRule(item: BilledItem, subscription: BilledSubscription): PeriodRule {
  if (hasOwnPeriods(item, subscription))
    return {
      billing_anchor: item.anchor_ms ?? item.start_ms,
      billing_period: item.billing_period as RecurringPeriod,
      billing_period_count: item.billing_period_count,
      timezone: subscription.timezone,
    };
  return { ...periodRule(subscription), subscription_end: null };
}

function buildItemPeriods(
  item: BilledItem,
  { subscription, period, next }: ServicePeriodInput,
  rule: PeriodRule,
): Period[] {
  if (!hasOwnPeriods(item, subscription)) return next === null ? [period] : [period, next];
  const until = next?.end ?? period.end;
  const periods: Period[] = [];
  for (const own of periodsFrom(item.start_ms, rule)) {
    if (own.start >= until) break;
    if (own.end > period.start) periods.push(own);
  }
  return periods;
}

/**
 * Whether the item's periods have another length or anchor than the subscription's. An item that was charged before the
 * subscription's periods were re-anchored retains its own.
 */
export function hasOwnPeriods(item: BilledItem, subscription: BilledSubscription): boolean {
  return (
    item.billing_period !== subscription.billing_period ||
    item.billing_period_count !== subscription.billing_period_count ||
    (typeof item.anchor_ms === 'number' && item.anchor_ms !== subscription.billing_anchor_ms)
  );
}

function computeUsageWindow(item: BilledItem, service: Period, subscription: BilledSubscription): Period | null {
  if (item.price_type !== 'USAGE') return null;
  return { start: countingStart(item.reset_usage, service.start, subscription.start_ms), end: service.end };
}

/**
 * Instant from which the events of a usage item count for a service that begins at `service_start`. A meter that never resets counts from
 * the start of the subscription (docs/rules/metering.md, "Meters that never reset"), also before the line began: standing usage (seats,
 * storage) is paid for in every period. Any other meter counts from the start of the service. Both instants and the result have one unit.
 */
export function countingStart<Instant extends Milliseconds | Microseconds>(
  reset_usage: BilledItem['reset_usage'],
  service_start: Instant,
  subscription_start: Instant,
): Instant {
  return reset_usage === 'NEVER' ? subscription_start : service_start;
}

/**
 * Interval in which the usage of an item is counted for a queried interval: the window that an invoice for exactly this interval would use.
 * Null for an item that is not measured or is not active in the interval.
 */
export function usageWindowIn(interval: Period, item: BilledItem, subscription: BilledSubscription): Period | null {
  const service = serviceIn(interval, item, subscription.end_ms);
  return service && computeUsageWindow(item, service, subscription);
}

/**
 * Lists the service periods of a measured item that intersect an interval, at their full length. They equal those that `planDueCharges`
 * finds for the single invoices.
 */
export function computeServicesWithin(interval: Period, item: BilledItem, subscription: BilledSubscription): Period[] {
  const first = hasOwnPeriods(item, subscription) ? item.start_ms : subscription.start_ms;
  const services: Period[] = [];
  for (const period of periodsFrom(first, itemRule(item, subscription))) {
    if (period.start >= interval.end) break;
    const service = period.end > interval.start ? serviceIn(period, item, subscription.end_ms) : null;
    if (service !== null && service.start < interval.end && service.end > interval.start) services.push(service);
  }
  return services;
}

/** Number of the item's periods in an interval: 1 for a whole period, the proration share for a part, the sum for several. */
export function computeSharesWithin(interval: Period, item: BilledItem, subscription: BilledSubscription): Decimal {
  if (item.billing_period === 'ONETIME') return new Decimal(1);
  const rule = itemRule(item, subscription);
  const first = hasOwnPeriods(item, subscription) ? item.start_ms : subscription.start_ms;
  let shares = ZERO;
  for (const period of periodsFrom(startBefore(interval.start, first, rule), rule)) {
    if (period.start >= interval.end) break;
    const service = period.end > interval.start ? serviceIn(period, item, subscription.end_ms) : null;
    if (service === null) continue;
    const part = Math.min(service.end, interval.end) - Math.max(service.start, interval.start);
    const { start, end } = regularPeriod(period, rule);
    if (part > 0) shares = shares.plus(new Decimal(part).dividedBy(end - start));
  }
  return shares;
}

type ActiveInterval = Pick<BilledItem, 'start_ms' | 'end_ms'>;

/**
 * Service intervals of an item, and of the lines that share its commitment, in the period that contains `at`. Also returns their total
 * share of a whole period. All these lines have the periods of the item.
 */
export function computeSharedService(
  at: Milliseconds,
  {
    item,
    siblings,
    subscription,
  }: { item: BilledItem; siblings: readonly ActiveInterval[]; subscription: BilledSubscription },
): { readonly services: readonly Period[]; readonly share: Decimal } {
  const rule = itemRule(item, subscription);
  const first = hasOwnPeriods(item, subscription)
    ? Math.min(...siblings.map(({ start_ms }) => start_ms))
    : subscription.start_ms;
  const period = periodContaining(at, startBefore(at, first, rule), rule);
  if (period === undefined) return { services: [], share: ZERO };
  const services = siblings.flatMap((active) => serviceIn(period, { ...item, ...active }, subscription.end_ms) ?? []);
  const served = services.reduce((sum, { start, end }) => sum + end - start, 0);
  const { start, end } = regularPeriod(period, rule);
  return { services, share: new Decimal(served).dividedBy(end - start) };
}

/**
 * Returns the start of the first period from which to iterate. If periods are one unit long, it is the period that contains `at`, so that
 * no earlier period is visited.
 */
function startBefore(at: Milliseconds, first: Milliseconds, rule: PeriodRule): Milliseconds {
  return rule.billing_period_count === 1 ? Math.max(first, wholePeriod({ ...rule, period_start: at }).start) : first;
}

/** Returns `at` if a period of the item starts there, otherwise the end of the period that contains it. */
export function roundUpToPeriodEnd(at: Milliseconds, item: BilledItem, subscription: BilledSubscription): Milliseconds {
  const first = hasOwnPeriods(item, subscription) ? item.start_ms : subscription.start_ms;
  const period = periodContaining(at, first, itemRule(item, subscription));
  return period === undefined || period.start === at ? at : period.end;
}

/** The item's period at this instant: the subscription's `current` one, unless the item has its own periods. */
export function runningPeriod(
  item: BilledItem,
  { subscription, current, now }: { subscription: BilledSubscription; current: Period; now: Milliseconds },
): Period | undefined {
  if (item.billing_period === 'ONETIME' || !hasOwnPeriods(item, subscription)) return current;
  return periodContaining(Math.max(now, current.start), item.start_ms, itemRule(item, subscription));
}

/**
 * Lists the periods ending after `from` that the invoice of the `current` period, or an earlier invoice, charges for an item in advance.
 * These are all periods of the item that overlap `current`; an item without periods of its own has only `current`.
 */
export function listChargedPeriods(
  item: BilledItem,
  { subscription, current, from }: { subscription: BilledSubscription; current: Period; from: Milliseconds },
): Period[] {
  if (item.billing_period === 'ONETIME' || !hasOwnPeriods(item, subscription))
    return from < current.end ? [current] : [];
  const since = Math.max(from, current.start);
  const periods: Period[] = [];
  for (const period of periodsFrom(item.start_ms, itemRule(item, subscription))) {
    if (period.start >= current.end) break;
    if (period.end > since) periods.push(period);
  }
  return periods;
}

/**
 * Computes the interval that the item bills in `period`, and its share of the regular period. Null if the item is not active in `period`. A
 * one-time item ignores `period`.
 */
export function computeCharge<Item extends BilledItem>(
  item: Item,
  period: Period,
  subscription: BilledSubscription,
): DueCharge<Item> | null {
  if (item.billing_period === 'ONETIME') {
    const [once] = listOneTimeCharge(item, subscription.end_ms);
    return once === undefined ? null : { item, service: once.service, share: once.share, usage_window: null };
  }
  const service = serviceIn(period, item, subscription.end_ms);
  if (service === null) return null;
  const regular = regularPeriod(period, itemRule(item, subscription));
  const share = computeShare(service, regular, serviceStart(subscription));
  return { item, service, share, usage_window: computeUsageWindow(item, service, subscription) };
}
