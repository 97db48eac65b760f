/**
 * Charges at instants within their periods, as if the period ended there. Customers with the same meter, start, instant and clock share one
 * query; so do the days of a meter with cumulative windows.
 */

import { ZERO } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { ceilToMs, toInstant, toMs, toUs } from '../../../core/foundation/time/instant.ts';
import { type WindowSize, windowCount, windowStart } from '../../../core/foundation/time/window.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import { canRun, type WindowAnswer } from '../../../core/metering/usage.ts';
import type { Allowance, LimitAllowance } from '../../../core/rating/allowances/allowance.ts';
import { chainCosts } from '../../../core/rating/chains/chain-costs.ts';
import type { ChainedLine } from '../../../core/rating/chains/chained-line.ts';
import {
  type ChargedAmounts,
  type ChargeInterval,
  NOTHING_CHARGED,
  toChargedAmounts,
} from '../../../core/rating/charge-intervals.ts';
import { commitmentPart, deriveDrawPeriod } from '../../../core/rating/commitments/part.ts';
import { type MeasuredUsage, priceUsageCharge } from '../../../core/rating/line-amount.ts';
import { BATCH_SIZE_MAX, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { readUsageReport, type UsageReport } from '../../../storage/usage/usage.ts';
import { computeLimitWindows } from '../../rating/allowances/gather-allowances.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';
import { buildCustomerFilter } from '../../rating/members.ts';
import type { AnalyticsItem } from './analytics-items.ts';
import type { ChainedCharge } from './chained-charges.ts';
import { splitPortions } from './portions.ts';

/** A line item, the start of its counting, and the instant of the cut. */
export type UsageCut = {
  readonly item: AnalyticsItem;
  readonly since_us: number;
  readonly at_us: number;
  /** The whole charged interval. */
  readonly service: ChargeInterval;
  /** Set if the charge is shared with earlier lines of its chain. */
  readonly chained?: ChainedCharge | undefined;
};

/** `timezone` is that of the export (null means UTC): cuts at its midnights can share one query. */
type MeasureCutsQuery = {
  readonly timezone: string | null;
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};
type CutAnswer = { readonly report: UsageReport; readonly total: WindowAnswer };
/** Answers by customer in time order; a customer without usage has no entry. */
type CutAnswers = Map<string, CutAnswer[]>;
type CutQuestion = {
  readonly stores: Stores;
  readonly scope: Scope;
  readonly query: MeasureCutsQuery;
  readonly same: readonly UsageCut[];
};

export async function measureCuts(
  stores: Stores,
  scope: Scope,
  { query, cuts }: { query: MeasureCutsQuery; cuts: readonly UsageCut[] },
): Promise<(cut: UsageCut) => ChargedAmounts> {
  const toQuestionKey = buildQuestionKeys(query, cuts);
  const answers = new Map<string, CutAnswers>();
  await mapConcurrently(BATCH_SIZE_MAX, [...groupBy(cuts, toQuestionKey)], async ([question, same]) => {
    answers.set(question, await readAnswers({ stores, scope, query, same }));
  });
  return (cut) => {
    const answered = answers.get(toQuestionKey(cut))?.get(cut.item.external_customer_id);
    const found = answered?.findLast(({ total }) => total.end_us <= cut.at_us);
    return found ? computeCharge(cut, found) : NOTHING_CHARGED;
  };
}

/**
 * Builds the key by which cuts share a query. Cuts at midnights of one period share one if the meter supports
 * cumulative windows. A meter with windows of its own must also use the time zone of the query. A cut at any other
 * instant has a query of its own.
 */
function buildQuestionKeys({ timezone }: MeasureCutsQuery, cuts: readonly UsageCut[]): (cut: UsageCut) => string {
  const midnights = new Map<number, boolean>();
  for (const { at_us } of cuts)
    if (!midnights.has(at_us))
      midnights.set(at_us, toUs(windowStart(toMs(at_us), 'DAY', { timezone: timezone ?? 'UTC' })) === at_us);
  const runs = new Map<string, boolean>();
  for (const { item } of cuts) if (!runs.has(item.meter.id)) runs.set(item.meter.id, canRun(compileMeter(item.meter)));
  return ({ item, since_us, at_us, service }) => {
    const { members } = item;
    if (members.length > 1) return JSON.stringify([item.id, since_us, at_us, service.start_us]);
    const clock = item.subscription;
    if (runs.get(item.meter.id) && midnights.get(at_us)) {
      if (!item.meter.aggregation.bucket_size) return JSON.stringify([item.meter.id, since_us]);
      if (clock.timezone === (timezone ?? 'UTC'))
        return JSON.stringify([item.meter.id, since_us, clock.timezone, clock.billing_anchor]);
    }
    const { timezone: own_timezone, billing_anchor } = clock;
    return JSON.stringify([item.meter.id, since_us, at_us, own_timezone, billing_anchor]);
  };
}

async function readAnswers({ stores, scope, query, same }: CutQuestion): Promise<CutAnswers> {
  const { item, since_us } = same[0]!;
  if (item.members.length > 1) return readMembersAnswer({ stores, scope, query, same });
  const ends = same.map(({ at_us }) => at_us);
  const end_us = Math.max(...ends);
  const isRunning = ends.some((at_us) => at_us < end_us);
  const customers = [...new Set(same.map((cut) => cut.item.external_customer_id))];
  const range = { start_us: since_us, end_us };
  const { bucket_size } = item.meter.aggregation;
  const size = isRunning && !isFiner(bucket_size, range) ? 'DAY' : bucket_size;
  const billing_anchor_ms = toInstant(item.subscription.billing_anchor);
  const clock = isRunning
    ? ({ timezone: query.timezone ?? 'UTC', billing_anchor_ms, window_size: 'DAY', running: true } as const)
    : { timezone: item.subscription.timezone, billing_anchor_ms };
  const answers: CutAnswers = new Map();
  for (const external_customer_ids of splitPortions(customers, size, range)) {
    const report = await readUsageReport(stores, scope, {
      meter: item.meter,
      external_customer_ids,
      start_us: since_us,
      end_us,
      ...clock,
      by_customer: true,
      now_ms: query.now.getTime(),
      bounds: query.bounds,
    });
    for (const { key, total, windows } of report.usage)
      answers.set(
        key,
        (isRunning ? windows : [total]).map((total) => ({ report, total })),
      );
  }
  return answers;
}

/** Whether the range has more windows of this size than days. */
function isFiner(size: WindowSize | null | undefined, range: { start_us: number; end_us: number }): boolean {
  return windowCount(range, size) > windowCount(range, 'DAY');
}

/** Usage of members measured as one customer, under the external id of the paying customer. */
async function readMembersAnswer({ stores, scope, query, same }: CutQuestion): Promise<CutAnswers> {
  const { item, since_us, at_us, service } = same[0]!;
  const window = { start: toMs(since_us), end: ceilToMs(at_us) };
  const report = await readUsageReport(stores, scope, {
    meter: item.meter,
    ...buildCustomerFilter(item.members, window, toMs(service.start_us)),
    start_us: since_us,
    end_us: at_us,
    timezone: item.subscription.timezone,
    billing_anchor_ms: toInstant(item.subscription.billing_anchor),
    now_ms: query.now.getTime(),
    bounds: query.bounds,
  });
  const answers = report.usage.map(({ total }) => ({ report, total }));
  return new Map([[item.external_customer_id, answers]]);
}

/**
 * The charge includes the free units and the commitment of the billing period; a shortfall is charged at the end of the period. Limits and
 * commitment terms that are longer than the charge are not applied, because only the invoice knows their earlier use.
 */
function computeCharge(
  { item, since_us, at_us, service, chained }: UsageCut,
  { report, total }: CutAnswer,
): ChargedAmounts {
  const { as_of, high_water, meter_version } = report;
  const { value: quantity, event_count, buckets, bucket_starts_us } = total;
  const window = { start: Math.floor(since_us / 1000), end: Math.ceil(at_us / 1000) };
  const bucket_starts = bucket_starts_us?.map(toMs) ?? null;
  const { subscription } = item;
  const billed = toBilledSubscription(subscription);
  const whole = { start: Math.floor(service.start_us / 1000), end: Math.ceil(service.end_us / 1000) };
  const limited = listPeriodAllowances(item).map((one) =>
    computeLimitWindows(one, whole, { billed, reset_usage: item.reset_usage }),
  );
  const allowances = limited.map(({ limit, windows: [first] }) => ({
    limit: first?.limit ?? limit,
    windows: [{ ...window, before: ZERO, after: quantity }],
  }));
  const read = { quantity, event_count, buckets, bucket_starts, as_of, high_water, meter_version };
  const measured = { ...read, allowances, integral: total.integral };
  const commitment = deriveDrawPeriod(item, whole, { subscription: billed }) ? null : item.commitment;
  const query = { subscription: billed, recorded: [] };
  const part = commitment && { ...commitmentPart(item, whole, query), is_last: at_us === service.end_us };
  const { currency } = subscription;
  const chargeInput = { measured, currency, part: part ?? undefined };
  const line = chained && cutChain(chained, measured);
  return toChargedAmounts(priceUsageCharge({ ...item, commitment }, window, { ...chargeInput, chained: line }));
}

/** Computes the line as if its chain ended at the cut, with the usage until then. */
function cutChain({ item, service, chain, measured }: ChainedCharge, own: MeasuredUsage): ChainedLine {
  const place = chain.lines.findIndex((line) => line.item.id === item.id && line.service.start === service.start);
  const until = { ...chain, lines: chain.lines.slice(0, place + 1) };
  const costs = chainCosts(until, (line) => (line === chain.lines[place] ? own : measured.get(line.item.id)!));
  return { chain, cost: costs[place]! };
}

/** Lists the limits whose reset period is the billing period of the item. Returns none if the item has any other allowance. */
export function listPeriodAllowances({ allowances = [], subscription }: AnalyticsItem): LimitAllowance[] {
  const { billing_period, billing_period_count } = subscription;
  const isOfPeriod = (allowance: Allowance): allowance is LimitAllowance =>
    'limit' in allowance &&
    (allowance.limit === null ||
      allowance.usage_reset_period === null ||
      (allowance.usage_reset_period === billing_period && billing_period_count === 1));
  return allowances.every(isOfPeriod) ? [...allowances] : [];
}
