/**
 * Charges usage lines of a chain for a requested time, for analytics and the usage export (docs/rules/usage.md, "Over a change inside a
 * period"). Lines are measured and priced like an invoice of just this time.
 */

import { groupBy } from '../../../core/foundation/group-by.ts';
import { ceilToMs, type Microseconds, toInstant, toMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { Chain } from '../../../core/rating/chains/chain.ts';
import { planServedLines, type ServedLine } from '../../../core/rating/chains/chains-within.ts';
import { ChainCharges, chargeKey, usageToRead } from '../../../core/rating/chains/charge-chains.ts';
import type { BilledSubscription } from '../../../core/rating/charges.ts';
import { commitmentPart, drawInOrder, type RecordedUsage } from '../../../core/rating/commitments/part.ts';
import { toBaseAmount } from '../../../core/rating/committed-lines.ts';
import { type LineAmount, type MeasuredUsage, usageCharge } from '../../../core/rating/line-amount.ts';
import { BATCH_SIZE_MAX, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { readUsage } from '../../../storage/usage/usage.ts';
import { readUsageInOrder } from '../../../storage/usage/usage-in-order.ts';
import { billedSubscription, CHARGES_AT_ONCE, toScope } from '../../rating/billable-items.ts';
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
  readonly items: readonly AnalyticsItem[];
  /** The requested time; undefined if an item has none. */
  readonly findPeriod: (item: AnalyticsItem) => Period | undefined;
  readonly now: Date;
  /** Usage that invoices have drawn from commitments over several periods. */
  readonly loadRecorded: (item: AnalyticsItem) => Promise<readonly RecordedUsage[]>;
};

/**
 * Lines that are charged by themselves are left out. Subscriptions are charged concurrently, because concurrent usage queries become one
 * statement.
 */
export async function chargeChains(stores: Stores, input: ChainChargesInput): Promise<ChainedCharge[]> {
  const bySubscription = [...groupBy(input.items, ({ subscription }) => subscription.id).values()];
  const charged = await mapConcurrently(BATCH_SIZE_MAX, bySubscription, (items) =>
    chargeSubscription(stores, items, input),
  );
  return charged.flat();
}

type ChainRange = { readonly start_us: Microseconds; readonly end_us: Microseconds };

/** Cost of a range, by line item. */
export async function chargeChainsWithin(
  stores: Stores,
  items: readonly AnalyticsItem[],
  { start_us, end_us, now, invoiced }: ChainRange & { readonly now: Date; readonly invoiced: InvoicedUsageReader },
): Promise<ReadonlyMap<string, ChainedCharge>> {
  const range = { start: toMs(start_us), end: ceilToMs(end_us) };
  const findPeriod = () => range;
  const loadRecorded = ({ subscription }: AnalyticsItem) => invoiced(subscription);
  const charges = await chargeChains(stores, { items, findPeriod, now, loadRecorded });
  return new Map(charges.map((charge) => [charge.item.id, charge]));
}

type ServedChainLine = ServedLine<AnalyticsItem> & { readonly chain: Chain<AnalyticsItem> };

async function chargeSubscription(
  stores: Stores,
  items: readonly [AnalyticsItem, ...AnalyticsItem[]],
  { findPeriod, now, loadRecorded }: ChainChargesInput,
): Promise<ChainedCharge[]> {
  const [first] = items;
  const billed = billedSubscription(first.subscription);
  const served = planServedLines(findPeriod, items, billed).filter(
    (one): one is ServedChainLine => one.chain !== undefined,
  );
  if (served.length === 0) return [];
  const usage = await measureServed(stores, served, { billed, now });
  const isOfTerm = served.some(({ item }) => item.commitment?.duration);
  return priceServed(served, { usage, billed, recorded: isOfTerm ? await loadRecorded(first) : [] });
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

function priceServed(
  served: readonly ServedChainLine[],
  { usage, billed, recorded }: { usage: Usage; billed: BilledSubscription; recorded: readonly RecordedUsage[] },
): ChainedCharge[] {
  const chains = new ChainCharges<AnalyticsItem>(usage);
  return drawInOrder(served, recorded, {
    priceLine: (one, before): ChainedCharge => {
      const { item, service, chain, usage_window: window } = one;
      const { currency } = item.subscription;
      const measured = usage.get(chargeKey(item.id, service))!;
      const part = item.commitment
        ? commitmentPart(item, service, { subscription: billed, recorded: before })
        : undefined;
      const amount = chains.price(one, (chained) => usageCharge(item, window, { measured, currency, part, chained }));
      return { ...amount, item, service, chain, measured: collectMeasured(chain, usage) };
    },
    toDrawnAmount: toBaseAmount,
  });
}

function collectMeasured({ lines }: Chain<AnalyticsItem>, usage: Usage): ReadonlyMap<string, MeasuredUsage> {
  return new Map(lines.map(({ item, service }) => [item.id, usage.get(chargeKey(item.id, service))!]));
}
