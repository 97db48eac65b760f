/**
 * The thread of an event: its customer, the meters with their usage without the event and with it, the charges of that usage, and the
 * invoice (docs/rules/events.md, "The thread of an event"). Every number is read and priced as for an invoice.
 */
import type { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant, toMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { windowAt } from '../../../core/foundation/time/window.ts';
import { compareCharges, type EventCost } from '../../../core/rating/event-cost.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { FoundEvent } from '../../../storage/events/find-events.ts';
import { listEventOutcomes, type OutcomeRow } from '../../../storage/events/outcomes.ts';
import type { PositionedRawEvent } from '../../../storage/events/raw-events.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import type { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { type Correction, listCorrections } from '../../../storage/progress/corrections.ts';
import { readUsage } from '../../../storage/usage/usage.ts';
import { loadUsageAroundEvent, type SubscriptionUsageCharge } from '../../invoicing/billing/subscription-usage.ts';
import { findNearestName } from '../../metering/events/nearest-name.ts';
import { readUncorrected } from '../../metering/events/uncorrected-read.ts';
import { currentPeriod } from '../../rating/billable-items.ts';
import { findEvent, type LocatedEvent, toMeteredEvent } from './find-event.ts';
import { loadThreadInvoices, type ThreadInvoices } from './thread-invoices.ts';
import { type EventTrace, traceEvent } from './trace-event.ts';

export const THREAD_STATUSES = ['processing', 'counted', 'corrected', 'voided', 'not_counted'] as const;
type ThreadStatus = (typeof THREAD_STATUSES)[number];

export const THREAD_REASONS = [
  'dead_letter',
  'conflict',
  'unusable',
  'unmatched',
  'no_customer',
  'no_price',
  'no_subscription',
] as const;
type ThreadReason = (typeof THREAD_REASONS)[number];

/** Why an event is not counted, or is counted and not charged. */
type ThreadFault = { readonly reason: ThreadReason; readonly detail: string };

type ThreadMeter = {
  readonly meter: MeterModel;
  /** Contribution of the event. */
  readonly value: string;
  readonly before: Decimal;
  readonly after: Decimal;
  readonly period: Period;
  readonly is_priced: boolean;
};

type ThreadCharge = EventCost<SubscriptionUsageCharge> & { readonly subscription: SubscriptionModel };

export type EventThread = {
  readonly event: FoundEvent | null;
  readonly status: ThreadStatus;
  readonly fault: ThreadFault | null;
  readonly nearest_event_name: string | null;
  readonly customer: CustomerModel | null;
  readonly meters: readonly ThreadMeter[];
  readonly charges: readonly ThreadCharge[];
} & ThreadInvoices;

const NOTHING = {
  nearest_event_name: null,
  customer: null,
  meters: [],
  charges: [],
  invoice: null,
  next_invoice: null,
};

/** Follows an event; null if there is none with this id. */
export async function followEvent(
  stores: Stores,
  scope: Scope,
  { id, now }: { readonly id: string; readonly now: Date },
): Promise<EventThread | null> {
  const corrections = await listCorrections(stores.postgres, scope, id);
  const subject = { event_id: id, corrections };
  return readUncorrected(stores, scope, subject, () => readThread(stores, scope, { id, corrections, now }));
}

async function readThread(
  stores: Stores,
  scope: Scope,
  { id, corrections, now }: { readonly id: string; readonly corrections: readonly Correction[]; readonly now: Date },
): Promise<EventThread | null> {
  const [located, outcomes] = await Promise.all([
    findEvent(stores, scope, { id, is_corrected: corrections.length > 0 }),
    listEventOutcomes(stores.clickhouse, scope, id),
  ]);
  if (!located) {
    const fault = deriveInputFault(outcomes);
    return fault && { ...NOTHING, event: null, status: 'not_counted', fault };
  }
  const event = toMeteredEvent(located.event);
  const trace = await traceEvent(stores.postgres, scope, event);
  const isReplaced = corrections.some(({ action, state }) => action === 'replace' && state === 'applied');
  const status = deriveStatus(located, trace, isReplaced);
  const thread = { ...NOTHING, event: located.event, status, customer: trace.customer };
  if (status === 'processing' || status === 'voided') return { ...thread, fault: null };
  const fault = deriveFault(event, trace);
  if (status === 'not_counted')
    return { ...thread, fault, nearest_event_name: await loadNearestName(stores, scope, event) };
  const charges = await loadCharges(stores, scope, { event, trace, now });
  const [meters, invoices] = await Promise.all([
    loadMeters(stores, scope, { event, trace, charges, now }),
    loadThreadInvoices(stores, scope, { event, charge: charges[0] ?? null, corrections, now }),
  ]);
  return { ...thread, fault, meters, charges, ...invoices };
}

function deriveStatus(
  { in_effect, is_void }: LocatedEvent,
  { matched }: EventTrace,
  isReplaced: boolean,
): ThreadStatus {
  if (!in_effect) return 'processing';
  if (is_void) return 'voided';
  if (matched.length === 0) return 'not_counted';
  return isReplaced ? 'corrected' : 'counted';
}

/** The fault of input that is no event. Repeats of an event have the outcome of the event itself. */
function deriveInputFault(outcomes: readonly OutcomeRow[]): ThreadFault | null {
  const last = outcomes.findLast(({ outcome }) => outcome === 'dead_letter' || outcome === 'conflict');
  return last ? { reason: last.outcome as 'dead_letter' | 'conflict', detail: last.reason } : null;
}

function deriveFault(event: PositionedRawEvent, trace: EventTrace): ThreadFault | null {
  const { customer, matched, unusable, refused, prices, fed } = trace;
  const [unused] = unusable;
  const [refusal] = refused;
  if (matched.length === 0 && unused)
    return { reason: 'unusable', detail: `meter ${unused.meter.name}: ${unused.reason}` };
  if (matched.length === 0 && refusal)
    return {
      reason: 'unmatched',
      detail: `meter ${refusal.meter.name} does not accept it: property "${refusal.key}" is ${refusal.why}`,
    };
  if (matched.length === 0) return { reason: 'unmatched', detail: `no meter has the event name ${event.event_name}` };
  if (customer === null)
    return { reason: 'no_customer', detail: `no customer has the external id ${event.external_customer_id}` };
  if (prices.length === 0) return { reason: 'no_price', detail: 'no price uses the meters that count it' };
  if (fed.length === 0)
    return {
      reason: 'no_subscription',
      detail: 'the customer has no subscription to these prices at the time of the event',
    };
  return null;
}

async function loadNearestName({ postgres }: Stores, scope: Scope, { event_name }: PositionedRawEvent) {
  const meters = await MeterModel.in(scope, postgres).where({ status: 'published' }).select('event_name');
  return findNearestName(event_name, new Set(meters.map((meter) => meter.event_name)));
}

type ThreadSubject = { readonly event: PositionedRawEvent; readonly trace: EventTrace; readonly now: Date };

/** Number of subscriptions that are measured at once. A customer seldom has more. */
const SUBSCRIPTIONS_AT_ONCE = 4;

/** The charges that bill the event, and those whose cost or quantity it changes. */
async function loadCharges(
  stores: Stores,
  scope: Scope,
  { event, trace, now }: ThreadSubject,
): Promise<ThreadCharge[]> {
  const fed = new Set(trace.fed.map(({ record }) => record.id));
  const ids = [...new Set(trace.fed.map(({ record }) => record.subscription_id))];
  const subscriptions = await SubscriptionModel.byId(scope, ids, stores.postgres);
  const charges: ThreadCharge[] = [];
  await mapConcurrently(SUBSCRIPTIONS_AT_ONCE, [...subscriptions.values()], async (subscription) => {
    const { before, after } = await loadUsageAroundEvent(stores, subscription, { event, now });
    for (const difference of compareCharges(before.charges, after.charges)) {
      const { charge, amount, quantity_before, quantity_after } = difference;
      if (fed.has(charge.item.id) || !amount.isZero() || !quantity_before.eq(quantity_after))
        charges.push({ ...difference, subscription });
    }
  });
  return charges.sort((a, b) => ids.indexOf(a.subscription.id) - ids.indexOf(b.subscription.id));
}

type ChargedSubject = ThreadSubject & { readonly charges: readonly ThreadCharge[] };

/** The usage of the customer in the period of the charge; without a charge, in the customer's billing period or the month. */
async function loadMeters(
  stores: Stores,
  scope: Scope,
  { event, trace, charges, now }: ChargedSubject,
): Promise<ThreadMeter[]> {
  const other = await findBillingPeriod(stores.postgres, { event, customer: trace.customer });
  return mapConcurrently(SUBSCRIPTIONS_AT_ONCE, trace.matched, async ({ meter, quantity: value }) => {
    const charge = charges.find(({ charge: { item } }) => item.meter_id === meter.id);
    const { period, timezone, billing_anchor } = charge ? toChargedPeriod(charge) : other;
    const query = {
      meter,
      external_customer_ids: [event.external_customer_id],
      start_ms: period.start,
      end_ms: period.end,
      now_ms: now.getTime(),
      timezone,
      ...(billing_anchor === null ? {} : { billing_anchor_ms: toInstant(billing_anchor) }),
    };
    const [before, after] = await Promise.all([
      readUsage(stores, scope, { ...query, without: event }),
      readUsage(stores, scope, query),
    ]);
    const is_priced = trace.prices.some(({ meter_id, status }) => meter_id === meter.id && status === 'published');
    return { meter, value, before: before.quantity, after: after.quantity, period, is_priced };
  });
}

type MeteredPeriod = {
  readonly period: Period;
  readonly timezone: string;
  readonly billing_anchor: string | null;
};

function toChargedPeriod({ charge, subscription }: ThreadCharge): MeteredPeriod {
  const { window_start, window_end } = charge.computed_from;
  const { timezone, billing_anchor } = subscription;
  const period = { start: toInstant(window_start ?? ''), end: toInstant(window_end ?? '') };
  return { period, timezone, billing_anchor };
}

async function findBillingPeriod(
  database: Database,
  { event, customer }: { readonly event: PositionedRawEvent; readonly customer: CustomerModel | null },
): Promise<MeteredPeriod> {
  const at_ms = toMs(event.timestamp_us);
  const subscriptions = customer
    ? await SubscriptionModel.in(customer, database)
        .where({ customer_id: customer.id, status: 'published' })
        .orderBy('id')
    : [];
  const running = subscriptions.find((subscription) => {
    const { start, end } = currentPeriod(subscription);
    return at_ms >= start && at_ms < end;
  });
  if (!running) return { period: windowAt(at_ms, 'MONTH', { timezone: 'UTC' }), timezone: 'UTC', billing_anchor: null };
  const { timezone, billing_anchor } = running;
  return { period: currentPeriod(running), timezone, billing_anchor };
}
