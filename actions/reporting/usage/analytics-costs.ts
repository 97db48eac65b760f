/**
 * Exact cost of usage in analytics (docs/rules/usage.md, "Analytics"). A range costs as much as an invoice of just this time before
 * rounding, including allowances and the commitment of the line. A point costs the amount that it adds to the running cost. Filtered or
 * grouped usage is a part of a line's usage, so only the price applies.
 */

import { type Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { ceilToMs, type Microseconds, toInstant, toMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { WindowAnswer } from '../../../core/metering/usage.ts';
import { measureGrants } from '../../../core/rating/allowances/allowance.ts';
import type { Granting, UsedGrants } from '../../../core/rating/allowances/grants.ts';
import { type CommitmentInfo, computedText } from '../../../core/rating/commitments/info.ts';
import { commitmentPart } from '../../../core/rating/commitments/part.ts';
import type { WindowedCharge } from '../../../core/rating/commitments/windowed.ts';
import {
  computeTimeOfDayCharges,
  type LineAmount,
  type MeasuredUsage,
  priceUsageCharge,
} from '../../../core/rating/line-amount.ts';
import { RunningCost } from '../../../core/rating/running-cost.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { MeterModel } from '../../../storage/models/metering/meter.ts';
import { readUsage, type UsageReport } from '../../../storage/usage/usage.ts';
import { readUsageInOrder } from '../../../storage/usage/usage-in-order.ts';
import {
  computeGrants,
  computeLimitedSince,
  limitedWindows,
  measureAllowances,
} from '../../rating/allowances/gather-allowances.ts';
import { toBilledSubscription, toScope } from '../../rating/billable-items.ts';
import { buildCustomerFilter } from '../../rating/members.ts';
import type { AnalyticsItem } from './analytics-items.ts';
import type { ChainedCharge } from './chained-charges.ts';
import type { InvoicedUsageReader } from './invoiced-once.ts';

export type TimesOfDay = WindowedCharge['by_time'];

type AnalyticsCost = {
  readonly cost: Decimal;
  readonly commitment_info: CommitmentInfo | null;
  /** Charges per time of day of a commitment, if requested. */
  readonly times_of_day: TimesOfDay | null;
};

const FREE: AnalyticsCost = { cost: ZERO, commitment_info: null, times_of_day: null };

type Costs = {
  total(answer: WindowAnswer): Promise<AnalyticsCost>;
  /** Returns the cost that a window adds. Windows are passed in time order, from the start of the range. */
  added(answer: WindowAnswer): AnalyticsCost;
};

type RangeCosting = {
  readonly item: AnalyticsItem | null;
  readonly report: Pick<UsageReport, 'as_of' | 'high_water' | 'meter_version'>;
  /** True if the usage is the whole usage of the line, without a filter or group. */
  readonly isWhole: boolean;
  /** Whether charges per time of day of a commitment are requested. */
  readonly by_time_of_day: boolean;
  readonly now: Date;
  readonly invoiced: InvoicedUsageReader;
  /** Share of the line in the cost of its chain (docs/rules/proration.md, "Usage over a change"); undefined if it is charged by itself. */
  readonly chained?: ChainedCharge | undefined;
};

/** Whether pricing may query the usage of the line again, or its invoiced usage. */
export function needsUsageQuery({ allowances = [], commitment }: AnalyticsItem): boolean {
  return allowances.length > 0 || Boolean(commitment?.duration);
}

export type PricedRange = { readonly costs: Costs; readonly total: AnalyticsCost };

/** Prices the whole range first, which prepares the prices of its points. */
export async function priceRange(stores: Stores, costing: RangeCosting, answer: WindowAnswer): Promise<PricedRange> {
  const costs = createCosts(stores, costing);
  return { costs, total: await costs.total(answer) };
}

type UnusedRange = { readonly meter: MeterModel; readonly since_us: Microseconds; readonly end_us: Microseconds };

export function buildEmptyAnswer({ meter, since_us: start_us, end_us }: UnusedRange): WindowAnswer {
  const buckets = meter.aggregation.bucket_size ? [] : null;
  return { start_us, end_us, window_us: start_us, value: ZERO, event_count: 0, buckets, bucket_starts_us: buckets };
}

function createCosts(
  stores: Stores,
  { item, report, isWhole, by_time_of_day, now, invoiced, chained }: RangeCosting,
): Costs {
  if (item === null) return { total: async () => FREE, added: () => FREE };
  const priced = isWhole ? item : { ...item, commitment: null, allowances: [] };
  const { currency } = item.subscription;
  const timesIn = (window: Period, measured: MeasuredUsage) =>
    by_time_of_day && priced.commitment?.time_buckets.length
      ? computeTimeOfDayCharges(priced, window, { measured })
      : null;
  const grants = new Map<Granting, UsedGrants>();
  let running: RunningCost | null = null;
  return {
    async total(answer) {
      const window = toWindow(answer);
      const measured = toMeasuredUsage(answer, report);
      const read = (other: Period) => readUsage(stores, toScope(item.subscription), buildUsageQuery(item, other, now));
      const limited = limitedWindows(priced, window, toBilledSubscription(item.subscription));
      const granted = async (granting: Granting) => {
        const since = { start: computeLimitedSince([granting]), end: window.end };
        const question = buildUsageQuery(item, since, now);
        const { usage } = await readUsageInOrder(stores, toScope(item.subscription), question);
        const used = await computeGrants(granting, { usage, tariffs: [{ from: window.start, price: item.price }] });
        grants.set(granting, used);
        return { allowance: measureGrants(used.free, { usage: used.usage, charge: window, granting }), usage };
      };
      const met = await measureAllowances(limited, { window, measured, read, granted });
      const part = priced.commitment ? await loadCommitmentPart(invoiced, item, window) : undefined;
      const known = { ...measured, ...met };
      const charge = chained ?? priceUsageCharge(priced, window, { measured: known, currency, part });
      running = new RunningCost(priced, { window, met, part, grants });
      return { cost: charge.exact!, commitment_info: exactInfo(charge), times_of_day: timesIn(window, known) };
    },
    added(answer) {
      if (running === null) throw new FarthingError('internal_error', 'a window was priced before its range');
      const window = toWindow(answer);
      const own = { window, measured: toMeasuredUsage(answer, report), running: answer.running_value };
      const { measured, ...added } = running.add(own);
      return { ...added, times_of_day: timesIn(window, measured) };
    },
  };
}

/** Returns the commitment parts before the rounding of the line. */
function exactInfo({ commitment_info, exact_parts }: LineAmount): CommitmentInfo | null {
  return commitment_info && exact_parts ? { ...commitment_info, ...computedText(exact_parts) } : null;
}

function toWindow({ start_us, end_us }: WindowAnswer) {
  return { start: toMs(start_us), end: ceilToMs(end_us) };
}

function toMeasuredUsage(answer: WindowAnswer, { as_of, high_water, meter_version }: RangeCosting['report']) {
  const { value: quantity, event_count, buckets, bucket_starts_us } = answer;
  const bucket_starts = bucket_starts_us?.map(toMs) ?? null;
  return { quantity, event_count, buckets, bucket_starts, as_of, high_water, meter_version };
}

function buildUsageQuery({ meter, members, subscription }: AnalyticsItem, window: Period, now: Date) {
  return {
    meter,
    ...buildCustomerFilter(members, window, window.start),
    start_ms: window.start,
    end_ms: window.end,
    timezone: subscription.timezone,
    billing_anchor_ms: toInstant(subscription.billing_anchor),
    now_ms: now.getTime(),
  };
}

/** Loads the commitment part of a line. For a commitment over several periods, it includes the amounts drawn by invoices. */
async function loadCommitmentPart(
  invoiced: InvoicedUsageReader,
  item: AnalyticsItem,
  window: { start: number; end: number },
) {
  const subscription = toBilledSubscription(item.subscription);
  const isTerm = Boolean(item.commitment?.duration);
  const recorded = isTerm ? await invoiced(item.subscription) : [];
  const service = { start: Math.max(window.start, item.start_ms), end: window.end };
  // The line is computed by itself, as on an invoice of only this line and time.
  return commitmentPart({ ...item, committed_lines: null }, service, { subscription, recorded });
}
