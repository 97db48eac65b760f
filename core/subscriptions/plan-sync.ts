/**
 * Updates a subscription to the changed prices of its plan (docs/rules/subscriptions.md, "Prices that the plan gets
 * later"). Lines of ended prices end, and new prices get lines. A price that the subscription overrides stays. Billed
 * time does not change: nothing begins or ends in paid or invoiced time.
 */

import type { Price } from '../catalog/price/record.ts';
import { Decimal } from '../foundation/decimal.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { type Period, periodContaining } from '../foundation/time/period.ts';
import {
  type BilledItem,
  type BilledSubscription,
  hasOwnPeriods,
  periodRule,
  runningPeriod,
} from '../rating/charges.ts';
import type { StoredCommitment } from '../rating/commitments/line-item-commitment.ts';
import type { Subscription, SubscriptionLineItem } from './record.ts';

type PlanSyncInput = {
  readonly subscription: Pick<Subscription, 'currency' | 'subscription_status'> & {
    /** Start and first charge of a subscription that starts in the future. */
    readonly opens_at?: string | null;
  };
  readonly billed: BilledSubscription;
  readonly current: Period;
  /** All prices of the plan, including ended ones, in order of creation. */
  readonly plan_prices: readonly Price[];
  readonly lines: readonly SyncedLine[];
  /** Ids of the lines that are on an invoice. */
  readonly invoiced: ReadonlySet<string>;
  /** Root ids of plan prices that the subscription pays on its own terms. */
  readonly overridden: ReadonlySet<string>;
  readonly reset_usage: ReadonlyMap<string, BilledItem['reset_usage']>;
  readonly now: Milliseconds;
};

/**
 * A line of the subscription. `ends_with_price` is true if the price ends the line, false if the line's own date does,
 * null if that is not recorded.
 */
export type SyncedLine = SubscriptionLineItem & {
  readonly ends_with_price?: boolean | null;
  /** Line with which the terms of a continued commitment began; null if they began with this line. */
  readonly commitment_line_id?: string | null;
  /**
   * Anchor of the line's own periods if they continue those of a predecessor; null if they begin at the start of the
   * line.
   */
  readonly period_anchor?: string | null;
  readonly charged_from?: string | null;
};

export type PlanSync = {
  readonly synced_price_sequence: number;
  /** Ended lines. A line without duration is void. */
  readonly ended: readonly {
    readonly line: SyncedLine;
    readonly end_date: string;
    readonly is_void: boolean;
  }[];
  /** Lines to add. `quantity` is that of the predecessor `follows`; both are null without a predecessor. */
  readonly added: readonly {
    readonly price: Price;
    readonly start_date: string;
    readonly end_date: string | null;
    /** False if an end date ends the line: the date at which its predecessor would have ended. */
    readonly ends_with_price: boolean;
    readonly quantity: string | null;
    readonly follows: SyncedLine | null;
    /** Anchor of the predecessor's own periods, which continue; null if they begin with this line. */
    readonly period_anchor: string | null;
  }[];
};

export function computePlanSync(input: PlanSyncInput): PlanSync {
  const { plan_prices } = input;
  const ended = planEndedLines(input);
  return {
    synced_price_sequence: Math.max(0, ...plan_prices.map(({ sequence }) => sequence)),
    ended,
    added: planAddedPrices(input, ended),
  };
}

/** First price of a lineage, which is a price with its successors. Overrides and successors refer to it. */
export const toRootId = (price: Pick<Price, 'id' | 'parent_price_id'>) => price.parent_price_id || price.id;

function planEndedLines(input: PlanSyncInput): PlanSync['ended'] {
  const prices = new Map(input.plan_prices.map((price) => [price.id, price]));
  return input.lines.flatMap((line) => {
    const price = prices.get(line.price_id);
    if (!price?.end_date || line.status !== 'published') return [];
    if (line.end_date && toInstant(line.end_date) <= toInstant(price.end_date)) return [];
    const start = toInstant(line.start_date);
    const is_invoiced = input.invoiced.has(line.id);
    const anchor_ms = line.period_anchor ? toInstant(line.period_anchor) : null;
    const end = computeEnd({ ...toBilledItem(price, start), anchor_ms, is_invoiced }, price, input);
    if (end === null || (line.end_date && toInstant(line.end_date) <= end)) return [];
    return [{ line, end_date: formatMs(Math.max(end, start)), is_void: end <= start }];
  });
}

type SyncedItem = BilledItem & { readonly is_invoiced?: boolean };

/** End of a line whose price ends. A line that never was active ends at its start. Null if the line stays unchanged. */
function computeEnd(item: SyncedItem, price: Price, input: PlanSyncInput): Milliseconds | null {
  const { current, subscription, now } = input;
  const { start_ms: start } = item;
  const priceEnd = toInstant(price.end_date!);
  // A draft is not charged, so its lines are computed as if it were created now.
  const isDraft = subscription.subscription_status === 'draft';
  if (isDraft && priceEnd <= Math.max(start, now)) return start;
  // A one-time charge is made in full at its start and has no end.
  if (item.billing_period === 'ONETIME') return start > current.start && priceEnd <= start ? start : null;
  const end = isDraft ? priceEnd : Math.max(priceEnd, computeUntouchableUntil(item, priceEnd, input));
  return end > start && hasNeverResetMeter(price, input) ? computePeriodEndFrom(end, item, input) : end;
}

/** Earliest end of a line. It must not end in paid or invoiced time, nor in a period of its own that no later invoice would charge. */
function computeUntouchableUntil(item: SyncedItem, priceEnd: Milliseconds, input: PlanSyncInput): Milliseconds {
  const { current, subscription } = input;
  const { start_ms: start } = item;
  if (item.invoice_cadence === 'ARREAR') {
    const running = findRunningPeriod(current.start, item, input);
    if (running === undefined) return start;
    // The price ended in invoiced time, while the line's own longer period still runs. The line ends with this period, because no later
    // invoice would charge a part of it.
    return running.start < priceEnd && priceEnd <= current.start ? running.end : running.start;
  }
  // A line that begins inside the running period may have been charged in advance on an invoice of this period.
  const isCharged = start <= current.start || (start < current.end && (start < priceEnd || item.is_invoiced));
  if (subscription.subscription_status === 'trialing' || subscription.opens_at || !isCharged) return start;
  return findRunningPeriod(current.end - 1, item, input)?.end ?? current.end;
}

export function toBilledItem(price: Price, start_ms: Milliseconds): BilledItem {
  return { ...price, price_type: price.type, start_ms, end_ms: null, reset_usage: null };
}

/** Period of the item that contains `at`, which lies in the subscription's running period or later. */
function findRunningPeriod(at: Milliseconds, item: BilledItem, { billed, current }: PlanSyncInput): Period | undefined {
  const later = () => periodContaining(at, current.end, periodRule(billed)) ?? { start: at, end: at };
  return runningPeriod(item, { subscription: billed, current: at < current.end ? current : later(), now: at });
}

function computePeriodEndFrom(at: Milliseconds, item: BilledItem, input: PlanSyncInput): Milliseconds {
  const period = findRunningPeriod(at, item, input);
  return period === undefined || period.start === at ? at : period.end;
}

/**
 * Whether the price charges a meter that never resets. The standing usage (such as seats) counts in every period, so two lines in one
 * period would charge it twice.
 */
function hasNeverResetMeter(price: Price, { reset_usage }: PlanSyncInput): boolean {
  return price.meter_id !== null && reset_usage.get(price.meter_id) === 'NEVER';
}

function planAddedPrices(input: PlanSyncInput, ended: PlanSync['ended']): PlanSync['added'] {
  const { plan_prices, overridden, subscription } = input;
  const known = findLastKnown(input);
  const lineages = buildLineages(input, ended);
  const added: PlanSync['added'][number][] = [];
  for (const price of plan_prices) {
    if (price.status !== 'published' || price.currency !== subscription.currency) continue;
    if (price.sequence <= (known.get(toRootId(price)) ?? 0)) continue;
    const before = lineages.get(toRootId(price));
    // The override applies to the whole subscription. If only a phase overrides the price, lines of the plan's price exist (`before`).
    if (before === undefined && overridden.has(toRootId(price))) continue;
    const ends = before ?? [NONE_BEFORE];
    const next = ends.map((before) => planSuccessor(price, before, input));
    added.push(...next.flatMap((each) => each?.line ?? []));
    lineages.set(
      toRootId(price),
      ends.map((before, index) => next[index]?.lineage ?? before),
    );
  }
  return added;
}

/**
 * Last price of each lineage that had a line; a lineage is a price with its successors. An earlier price without a line was skipped and
 * stays skipped.
 */
function findLastKnown({ plan_prices, lines }: PlanSyncInput): Map<string, number> {
  const priceIds = new Set(lines.map(({ price_id }) => price_id));
  const known = plan_prices.filter(({ id }) => priceIds.has(id));
  return new Map(known.map((price) => [toRootId(price), price.sequence]));
}

/**
 * A line that a new price of the plan may succeed. Its price is the newest that the subscription uses of a lineage, which is a price with
 * its successors. A lineage may have several such lines.
 */
type Lineage = {
  readonly line: SyncedLine | null;
  readonly quantity: string | null;
  /**
   * End of the line, at which a successor begins without a gap or an overlap. If null, the start of the successor follows from its price
   * alone.
   */
  readonly end: Milliseconds | null;
  /** Instant at which the line would have ended by itself, for example with a phase. Its successors end at this instant, too. */
  readonly until: Milliseconds | null;
  /**
   * Start of a void line (a line without duration), if its price is sold earlier: the line that replaces it begins no earlier. Null
   * otherwise.
   */
  readonly not_before: Milliseconds | null;
  /** The line ended before the running period. A successor does not begin in invoiced time. */
  readonly is_settled: boolean;
  /** The line ended by itself, for example with a phase, or is a one-time charge. It gets no successor. */
  readonly is_last: boolean;
  /** Anchor of the line's own periods, which a successor continues; null if it has none. */
  readonly anchor: Milliseconds | null;
};
const NONE_BEFORE: Lineage = {
  line: null,
  quantity: null,
  end: null,
  until: null,
  not_before: null,
  is_settled: false,
  is_last: false,
  anchor: null,
};

type PlannedSuccessor = { line: PlanSync['added'][number]; lineage: Lineage };

function planSuccessor(price: Price, before: Lineage, input: PlanSyncInput): PlannedSuccessor | null {
  if (before.is_last) return null;
  const isRestart = before.end === null || before.is_settled;
  const own = isRestart ? computeStart(price, input) : toSaleStart(price, input);
  const start = Math.max(own, before.end ?? own, before.not_before ?? own);
  const anchor_ms = hasSamePeriodLength(price, before.line) ? before.anchor : null;
  const priceEnd = price.end_date ? computeAddedEnd(price, { ...toBilledItem(price, start), anchor_ms }, input) : null;
  const end = findEarlier(priceEnd, before.until);
  const last = findEarlier(end, input.billed.end_ms);
  if (last !== null && last <= start) return null;
  const endsByItself = end !== null && end === before.until;
  const quantity = before.quantity === null ? null : inheritQuantity(before.quantity, price);
  return {
    line: {
      price,
      start_date: formatMs(start),
      end_date: end === null ? null : formatMs(end),
      ends_with_price: end !== null && !endsByItself,
      quantity,
      follows: before.line,
      period_anchor: anchor_ms === null ? null : formatMs(anchor_ms),
    },
    lineage: {
      ...before,
      quantity,
      end,
      is_settled: false,
      is_last: endsByItself || price.billing_period === 'ONETIME',
    },
  };
}

/** Computes the end of an added line, which has no paid time yet. */
function computeAddedEnd(price: Price, item: BilledItem, input: PlanSyncInput): Milliseconds {
  const end = toInstant(price.end_date!);
  if (end <= item.start_ms || (price.invoice_cadence === 'ADVANCE' && !hasNeverResetMeter(price, input))) return end;
  return computeEnd(item, price, input) ?? end;
}

function buildLineages(input: PlanSyncInput, ended: PlanSync['ended']): Map<string, Lineage[]> {
  const { plan_prices, lines } = input;
  const endsNow = new Map(ended.map((each) => [each.line.id, each]));
  const lineages = new Map<string, Lineage[]>();
  // Prices are ordered by creation, so for each lineage the map contains the lines of its newest price that has lines.
  // A successor price is planned from these lines.
  for (const price of plan_prices) {
    const before = lineages.get(toRootId(price)) ?? [];
    const here = lines.filter(({ price_id, status }) => price_id === price.id && status === 'published');
    const ends = [...before, ...here.map(({ end_date }) => ({ end: end_date ? toInstant(end_date) : null }))];
    const found = here.map((line) => {
      const now = endsNow.get(line.id);
      return now ? toEndedLineage(now, { price, before: ends }, input) : toContinuedLineage(line, price, input);
    });
    if (found.length > 0) lineages.set(toRootId(price), found);
  }
  return lineages;
}

/**
 * Derives the lineage of an ended line. The replacement of a void line (a line without duration) begins at the end of the line before it.
 * Without such a line, the start of the replacement follows from its price.
 */
function toEndedLineage(
  { line, end_date, is_void }: PlanSync['ended'][number],
  { price, before }: { price: Price; before: readonly Pick<Lineage, 'end'>[] },
  input: PlanSyncInput,
): Lineage {
  const end = toInstant(end_date);
  const isFree = is_void && !before.some((each) => each.end === end);
  const start = toInstant(line.start_date);
  const isOfItself = !price.start_date || toInstant(price.start_date) < start;
  return {
    line,
    quantity: line.quantity,
    end: isFree ? null : end,
    until: line.end_date && !line.ends_with_price ? toInstant(line.end_date) : null,
    not_before: isFree && isOfItself ? start : null,
    is_settled: false,
    is_last: false,
    anchor: is_void ? toStoredAnchor(line) : deriveLineAnchor(line, price, input),
  };
}

/** Whether price and line have periods of equal length. The price then continues the periods of the line. */
function hasSamePeriodLength(price: Price, line: SyncedLine | null): boolean {
  return line?.billing_period === price.billing_period && line.billing_period_count === price.billing_period_count;
}

function toStoredAnchor({ period_anchor }: SyncedLine): Milliseconds | null {
  return period_anchor ? toInstant(period_anchor) : null;
}

/** A draft is not charged yet and its lines start with the subscription, so they need no anchor of their own. */
function deriveLineAnchor(
  line: SyncedLine,
  price: Price,
  { billed, subscription }: PlanSyncInput,
): Milliseconds | null {
  if (line.period_anchor || subscription.subscription_status === 'draft') return toStoredAnchor(line);
  const start = Math.max(
    toInstant(line.charged_from ?? line.start_date),
    billed.trial_end_ms ?? Number.NEGATIVE_INFINITY,
  );
  return hasOwnPeriods(toBilledItem(price, start), billed) ? start : null;
}

function toContinuedLineage(line: SyncedLine, price: Price, input: PlanSyncInput): Lineage {
  const { current } = input;
  const { quantity, end_date, billing_period } = line;
  const end = end_date ? toInstant(end_date) : null;
  const priceEnd = price.end_date ? toInstant(price.end_date) : Number.POSITIVE_INFINITY;
  const isOfItself = line.ends_with_price === false || (end !== priceEnd && !line.ends_with_price);
  const hasLeft = end !== null && (end < priceEnd || isOfItself);
  const is_settled = end !== null && end < current.start;
  const is_last = hasLeft || billing_period === 'ONETIME';
  const anchor = is_settled ? null : deriveLineAnchor(line, price, input);
  return { line, quantity, end, until: null, not_before: null, is_settled, is_last, anchor };
}

/** A successor inherits the commitment of the line, with the times of day of its own price. */
export function inheritCommitment(follows: SyncedLine | null, price: Price): StoredCommitment | undefined {
  if (!follows?.commitment_type) return undefined;
  return {
    commitment_amount: follows.commitment_amount,
    commitment_quantity: follows.commitment_quantity,
    commitment_type: follows.commitment_type,
    commitment_overage_factor: follows.commitment_overage_factor,
    commitment_true_up_enabled: follows.commitment_true_up_enabled,
    commitment_windowed: follows.commitment_windowed,
    commitment_duration: follows.commitment_duration,
    commitment_time_buckets: price.commitment_time_buckets?.length ? [...price.commitment_time_buckets] : null,
  };
}

function inheritQuantity(quantity: string, { min_quantity }: Price): string {
  return Decimal.max(quantity, min_quantity ?? 0).toFixed();
}

/**
 * Computes the start of a line for a new price. It is never in invoiced time. An advance charge of a running subscription starts with the
 * next period at the earliest.
 */
function computeStart(price: Price, input: PlanSyncInput): Milliseconds {
  const { subscription, billed, current, now } = input;
  const start = toSaleStart(price, input);
  if (subscription.subscription_status === 'draft')
    return start > now ? Math.max(start, billed.start_ms) : billed.start_ms;
  if (subscription.subscription_status === 'trialing' || subscription.opens_at) return Math.max(start, current.start);
  const isBehind = start <= now || start <= current.start;
  // The running period is paid. An advance charge that begins inside it would be billed after its service time.
  if (price.invoice_cadence === 'ADVANCE') return Math.max(start, current.end, billed.start_ms);
  if (hasNeverResetMeter(price, input)) return isBehind ? Math.max(current.end, billed.start_ms) : start;
  return Math.max(start, current.start);
}

function toSaleStart({ start_date }: Price, { now }: PlanSyncInput): Milliseconds {
  return start_date ? toInstant(start_date) : now;
}

function findEarlier(a: Milliseconds | null, b: Milliseconds | null): Milliseconds | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
