/**
 * Which charges belong on an invoice (docs/rules/invoices.md, "What stands on which invoice"). At the start of a period:
 * its advance and one-time charges. At its end: its arrears, fixed and measured, and the advance charges of the next. At a
 * cancellation: the arrears up to the date. A preview: what the end of the period would bring. Behind the end of a subscription
 * nothing is charged but what has come late for periods that are invoiced (late-events.ts).
 *
 * A line item whose billing period differs from the subscription's has its own periods, anchored at its start
 * (docs/rules/periods.md, "Line items with periods of their own"): an advance item belongs on the invoice whose window
 * [start, end) holds the start of the item's period, an item in arrears on the invoice whose window (start, end] holds its
 * end. One rule then serves every item: find its service periods, cut them to where the item and the subscription live, and
 * take those whose start or end lies in the window. An item of the subscription's own period simply has the subscription's
 * periods.
 */
import { Decimal, ZERO } from '../decimal.ts';
import type { Microseconds, Milliseconds } from '../time/instant.ts';
import {
  nextPeriodEnd,
  type Period,
  type PeriodRule,
  periodContaining,
  periodsFrom,
  type RecurringPeriod,
  wholePeriod,
} from '../time/period.ts';
import { type Chain, usageWindowIn as chainedWindow, findChains, type LinkedItem } from './chains/chain.ts';
import { computeShare, type ProrationShare, regularPeriod } from './proration.ts';

export const REFERENCE_POINTS = ['period_start', 'period_end', 'cancel', 'preview', 'late'] as const;
export type ReferencePoint = (typeof REFERENCE_POINTS)[number];

/** What billing needs to know of a subscription. Instants are milliseconds since 1970. */
export type BilledSubscription = PeriodGrid & {
  readonly start_ms: Milliseconds;
  /** The first of end_date and cancel_at: nothing is billed from here on. */
  readonly end_ms: Milliseconds | null;
  /** Where its trial ends, which is a period of its own; nothing without one. */
  readonly trial_end_ms?: Milliseconds | null;
  readonly timezone: string;
  /** Grids in which it was before, the oldest first. */
  readonly earlier?: readonly (PeriodGrid & { readonly until_ms: Milliseconds })[];
};

export type PeriodGrid = {
  readonly billing_anchor_ms: Milliseconds;
  readonly billing_period: RecurringPeriod;
  readonly billing_period_count: number;
};

/** What billing needs to know of a line item to say when it is charged. */
export type BilledItem = LinkedItem & {
  readonly price_type: 'FIXED' | 'USAGE';
  readonly invoice_cadence: 'ARREAR' | 'ADVANCE';
  readonly billing_period: RecurringPeriod | 'ONETIME';
  readonly billing_period_count: number;
  readonly start_ms: Milliseconds;
  readonly end_ms: Milliseconds | null;
  /** Where the periods of its own are anchored, when it follows another line in theirs; at its start when absent. */
  readonly anchor_ms?: Milliseconds | null;
  /** `NEVER`: the meter counts from the start of the subscription on. */
  readonly reset_usage: 'BILLING_PERIOD' | 'NEVER' | null;
};

/** One line to come: the item, the half-open time that it pays for, and the share of the regular period. */
export type DueCharge<Item extends BilledItem = BilledItem> = {
  readonly item: Item;
  readonly service: Period;
  readonly share: ProrationShare;
  /** Where a usage item's events are counted; null for fixed charges. */
  readonly usage_window: Period | null;
  /** The lines with which it is measured and priced (docs/rules/proration.md, "Usage over a change"); absent where it is by itself. */
  readonly chain?: Chain<Item>;
};

export type ChargeInput<Item extends BilledItem> = {
  readonly subscription: BilledSubscription;
  readonly items: readonly Item[];
  /** The subscription's period that the invoice is about; for `cancel` it ends at the effective date. */
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
    servicePeriods(item, { subscription, subscriptionEnd, period, next }).map((found) => ({ item, ...found })),
  );
  const chains = findChains(services);
  return services
    .filter(({ item, service }) => dueTest(item, { period, next, reference })(service))
    .map((one) => buildCharge(one, { chain: chains.get(one), subscription }));
}

type ChargeContext<Item extends BilledItem> = { chain: Chain<Item> | undefined; subscription: BilledSubscription };

function buildCharge<Item extends BilledItem>(
  { item, service, share }: ServicePeriod & { item: Item },
  { chain, subscription }: ChargeContext<Item>,
): DueCharge<Item> {
  if (!chain) return { item, service, share, usage_window: computeUsageWindow(item, service, subscription) };
  return { item, service, share, usage_window: chainedWindow(chain, service), chain };
}

/** The period after this one; null where the subscription has ended by then. */
export function nextPeriod(period_start: Milliseconds, subscription: BilledSubscription): Period | null {
  if (subscription.end_ms !== null && subscription.end_ms <= period_start) return null;
  return { start: period_start, end: nextPeriodEnd({ ...periodRule(subscription), period_start }) };
}

/** The subscription's own rule of periods, cut at its end. */
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

function dueTest(item: BilledItem, { period, next, reference }: InvoiceWindows): (service: Period) => boolean {
  if (item.invoice_cadence === 'ARREAR') {
    if (reference === 'period_start') return () => false;
    // One that was ended just where the period begins was on no invoice yet.
    const isCut = (service: Period) => service.end === item.end_ms && service.end === period.start;
    return (service) => (service.end > period.start || isCut(service)) && service.end <= period.end;
  }
  if (reference === 'cancel') return () => false;
  if (reference === 'period_start') return (service) => service.start >= period.start && service.start < period.end;
  // What began inside the period that ends now came after its opening invoice: it is charged here unless it was already.
  const until = next?.end ?? period.end;
  return (service) => service.start > period.start && service.start < until;
}

type ServicePeriodInput = {
  subscription: BilledSubscription;
  subscriptionEnd: number | null;
  period: Period;
  next: Period | null;
};
/** `begins`: where the billing period does, of which the item may serve a part. */
type ServicePeriod = {
  service: Period;
  share: ProrationShare;
  whole: Period;
  begins: Milliseconds;
  level_since: Milliseconds;
};

/** The item's service periods around the window, each cut to where the item and the subscription live. */
function servicePeriods(item: BilledItem, input: ServicePeriodInput): ServicePeriod[] {
  if (item.billing_period === 'ONETIME') return oneTimeCharge(item, input.subscriptionEnd);
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

/** The regular period of an item, where its billing begins in it, and since when values make the level that stands in it. */
export function levelPeriod(
  period: Period,
  item: BilledItem,
  subscription: BilledSubscription,
): Pick<ServicePeriod, 'whole' | 'begins' | 'level_since'> {
  const whole = regularPeriod(period, itemRule(item, subscription));
  // A line of its own periods has what stands since they began, also where it follows another in them.
  const start = hasOwnPeriods(item, subscription) ? whole.start : period.start;
  const begins = Math.max(start, serviceStart(subscription));
  return { whole, begins, level_since: countingStart(item.reset_usage, begins, subscription.start_ms) };
}

/** Nothing of a period that it cuts was ever served before. */
export function serviceStart({ start_ms, trial_end_ms }: BilledSubscription): Milliseconds {
  return Math.max(start_ms, trial_end_ms ?? start_ms);
}

/** The part of a period in which both the item and the subscription live; null where there is none. */
function serviceIn(period: Period, item: BilledItem, subscriptionEnd: number | null): Period | null {
  const start = Math.max(period.start, item.start_ms);
  const end = Math.min(period.end, item.end_ms ?? Infinity, subscriptionEnd ?? Infinity);
  return start < end ? { start, end } : null;
}

/**
 * In full and never prorated, on the invoice in whose window the line item starts
 * (docs/rules/proration.md, "One-time charges are not prorated").
 */
function oneTimeCharge(item: BilledItem, subscriptionEnd: number | null): ServicePeriod[] {
  const at = item.start_ms;
  if (subscriptionEnd !== null && at > subscriptionEnd) return [];
  // It ended before it began to be charged: in a trial.
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

/** Of another length, or anchored elsewhere: what was charged before the subscription's periods began anew keeps its own. */
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
 * From when on the events of a usage item count for a service that begins at `service_start`. What never resets counts from
 * the start of the subscription (docs/rules/metering.md, "Meters that never reset"), also before the line itself began:
 * what still stands (seats, storage) is paid for in every period. Any other meter counts what lies in the service. Both
 * instants are of one unit, which is that of the answer.
 */
export function countingStart<Instant extends Milliseconds | Microseconds>(
  reset_usage: BilledItem['reset_usage'],
  service_start: Instant,
  subscription_start: Instant,
): Instant {
  return reset_usage === 'NEVER' ? subscription_start : service_start;
}

/**
 * Where the usage of an item is counted when somebody asks about a stretch of time: what an invoice for just this stretch would
 * count. Null for what is not measured, and where the item does not live in it.
 */
export function usageWindowIn(interval: Period, item: BilledItem, subscription: BilledSubscription): Period | null {
  const service = serviceIn(interval, item, subscription.end_ms);
  return service && computeUsageWindow(item, service, subscription);
}

/**
 * Every service period of a measured item that shares an instant with a stretch of time, whole, as the invoices of these periods
 * know it: what `chargesDue` finds one invoice after the other.
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

/**
 * How many of the item's periods a stretch of time is: 1 for a whole one, the share that an advance charge would have for less,
 * the sum for several.
 */
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
 * What an item and those beside it, which have its periods, serve in that of them which holds the instant, each for itself; and how much of
 * a whole one they serve in all.
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

/** Of periods of one unit the one that holds an instant is found without those before it. */
function startBefore(at: Milliseconds, first: Milliseconds, rule: PeriodRule): Milliseconds {
  return rule.billing_period_count === 1 ? Math.max(first, wholePeriod({ ...rule, period_start: at }).start) : first;
}

/** The instant, or the end of the item's period inside which it lies. */
export function roundUpToPeriodEnd(at: Milliseconds, item: BilledItem, subscription: BilledSubscription): Milliseconds {
  const first = hasOwnPeriods(item, subscription) ? item.start_ms : subscription.start_ms;
  const period = periodContaining(at, first, itemRule(item, subscription));
  return period === undefined || period.start === at ? at : period.end;
}

/** The period in which an item is at this instant: the subscription's `current` one, unless it has periods of its own. */
export function runningPeriod(
  item: BilledItem,
  { subscription, current, now }: { subscription: BilledSubscription; current: Period; now: Milliseconds },
): Period | undefined {
  if (item.billing_period === 'ONETIME' || !hasOwnPeriods(item, subscription)) return current;
  return periodContaining(Math.max(now, current.start), item.start_ms, itemRule(item, subscription));
}

/**
 * The periods that an item is charged for in advance by the invoices up to the `current` period, those that are over at `from` left
 * out: the subscription's `current` one, or every period of its own that begins before that ends, which may be several.
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

/** What an item serves in a period of its own, and which share of the whole that is; null where it does not live in it. */
export function computeCharge<Item extends BilledItem>(
  item: Item,
  period: Period,
  subscription: BilledSubscription,
): DueCharge<Item> | null {
  if (item.billing_period === 'ONETIME') {
    const [once] = oneTimeCharge(item, subscription.end_ms);
    return once === undefined ? null : { item, service: once.service, share: once.share, usage_window: null };
  }
  const service = serviceIn(period, item, subscription.end_ms);
  if (service === null) return null;
  const regular = regularPeriod(period, itemRule(item, subscription));
  const share = computeShare(service, regular, serviceStart(subscription));
  return { item, service, share, usage_window: computeUsageWindow(item, service, subscription) };
}
