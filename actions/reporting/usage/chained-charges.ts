/**
 * Charges the usage lines of a chain within a requested interval, for analytics and the usage export (docs/rules/usage.md, "Over a change
 * inside a period"). Lines are measured and priced like those of an invoice for only this interval.
 */

import { groupBy } from '../../../core/foundation/group-by.ts';
import { ceilToMs, type Microseconds, toInstant, toMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { Chain } from '../../../core/rating/chains/chain.ts';
import { planServedLines, type QueriedItem, type ServedLine } from '../../../core/rating/chains/chains-within.ts';
import { chargeKey, usageToRead } from '../../../core/rating/chains/charge-chains.ts';
import type { BilledSubscription } from '../../../core/rating/charges.ts';
import type { RecordedUsage } from '../../../core/rating/commitments/part.ts';
import type { LineAmount, MeasuredUsage } from '../../../core/rating/line-amount.ts';
import { priceServedLines } from '../../../core/rating/served-lines.ts';
import { BATCH_SIZE_MAX, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { readUsage } from '../../../storage/usage/usage.ts';
import { readUsageInOrder } from '../../../storage/usage/usage-in-order.ts';
import { CHARGES_AT_ONCE, toBilledSubscription, toScope } from '../../rating/billable-items.ts';
import { buildMeasure, type UsageReading } from '../../rating/measure-usage.ts';
import { buildCustomerFilter } from '../../rating/members.ts';
import type { AnalyticsItem } from './analytics-items.ts';
import type { InvoicedUsageReader } from './invoiced-once.ts';

export type ChainedCharge = LineAmount & {
  readonly item: AnalyticsItem;
  readonly service: Period;
  readonly chain: Chain<AnalyticsItem>;
  /** Measured usage of each line of the chain, by line item. */
  readonly measured: ReadonlyMap<string, MeasuredUsage>;
};

type ChainChargesInput = {
  readonly queried: readonly QueriedItem<AnalyticsItem>[];
  readonly now: Date;
  /** Usage that invoices have drawn from commitments over several periods. */
  readonly loadRecorded: (item: AnalyticsItem) => Promise<readonly RecordedUsage[]>;
};

/**
 * Computes the charges of the chains, without lines that are charged by themselves. Subscriptions are charged concurrently, because
 * concurrent usage queries become one statement.
 */
export async function chargeChains(stores: Stores, input: ChainChargesInput): Promise<ChainedCharge[]> {
  const bySubscription = [...groupBy(input.queried, ({ item }) => item.subscription.id).values()];
  const charged = await mapConcurrently(BATCH_SIZE_MAX, bySubscription, (queried) =>
    chargeSubscription(stores, queried, input),
  );
  return charged.flat();
}

type ChainRange = { readonly start_us: Microseconds; readonly end_us: Microseconds };

/** Computes the charges of a range, by line item. */
export async function chargeChainsWithin(
  stores: Stores,
  items: readonly AnalyticsItem[],
  { start_us, end_us, now, invoiced }: ChainRange & { readonly now: Date; readonly invoiced: InvoicedUsageReader },
): Promise<ReadonlyMap<string, ChainedCharge>> {
  const period = { start: toMs(start_us), end: ceilToMs(end_us) };
  const queried = items.map((item) => ({ item, period }));
  const loadRecorded = ({ subscription }: AnalyticsItem) => invoiced(subscription);
  const charges = await chargeChains(stores, { queried, now, loadRecorded });
  return new Map(charges.map((charge) => [charge.item.id, charge]));
}

type ServedChainLine = ServedLine<AnalyticsItem> & { readonly chain: Chain<AnalyticsItem> };

async function chargeSubscription(
  stores: Stores,
  queried: readonly [QueriedItem<AnalyticsItem>, ...QueriedItem<AnalyticsItem>[]],
  { now, loadRecorded }: Omit<ChainChargesInput, 'queried'>,
): Promise<ChainedCharge[]> {
  const [{ item: first }] = queried;
  const billed = toBilledSubscription(first.subscription);
  const served = planServedLines(queried, billed).filter((one): one is ServedChainLine => one.chain !== undefined);
  if (served.length === 0) return [];
  const usage = await measureServed(stores, served, { billed, now });
  const isOfTerm = served.some(({ item }) => item.commitment?.duration);
  const recorded = isOfTerm ? await loadRecorded(first) : [];
  const { currency } = first.subscription;
  const amounts = priceServedLines(served, { usage, subscription: billed, currency, recorded });
  return served.map(({ item, service, chain }, index) => {
    return { ...amounts[index]!, item, service, chain, measured: collectMeasured(chain, usage) };
  });
}

type Usage = ReadonlyMap<string, MeasuredUsage>;

async function measureServed(
  stores: Stores,
  served: readonly ServedChainLine[],
  { billed, now }: { billed: BilledSubscription; now: Date },
): Promise<Usage> {
  const measure = buildMeasure(billed, createUsageReading(stores, now));
  const usage = new Map<string, MeasuredUsage>();
  await mapConcurrently(CHARGES_AT_ONCE, usageToRead(served), async ({ item, window, service, chain, keys }) => {
    const measured = await measure(item, window, { service, chain });
    for (const key of keys) usage.set(key, measured);
  });
  return usage;
}

function createUsageReading(stores: Stores, now: Date): UsageReading<AnalyticsItem> {
  const buildUsageQuery = (
    { meter, members, subscription }: AnalyticsItem,
    window: Period,
    { service, gaps }: Parameters<UsageReading<AnalyticsItem>['read']>[2],
  ) => ({
    meter,
    ...buildCustomerFilter(members, window, service.start, gaps),
    start_ms: window.start,
    end_ms: window.end,
    timezone: subscription.timezone,
    billing_anchor_ms: toInstant(subscription.billing_anchor),
    now_ms: now.getTime(),
  });
  return {
    read: (item, window, about) => readUsage(stores, toScope(item.subscription), buildUsageQuery(item, window, about)),
    readInOrder: (item, since, window) =>
      readUsageInOrder(
        stores,
        toScope(item.subscription),
        buildUsageQuery(item, { start: since, end: window.end }, { service: window }),
      ),
  };
}

function collectMeasured({ lines }: Chain<AnalyticsItem>, usage: Usage): ReadonlyMap<string, MeasuredUsage> {
  return new Map(lines.map(({ item, service }) => [item.id, usage.get(chargeKey(item.id, service))!]));
}
