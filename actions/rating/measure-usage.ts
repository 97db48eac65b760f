/**
 * Billing reads the usage of a line item only here: in its own window, or as its chain is measured (docs/rules/proration.md, "Usage over a
 * change"). The result includes the usage that its allowances need.
 */

import { termsKey } from '../../core/catalog/pricing/equal-terms.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { formatUs, type Milliseconds, toInstant } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import { measureGrants } from '../../core/rating/allowances/allowance.ts';
import type { Granting } from '../../core/rating/allowances/grants.ts';
import { type Chain, computeGaps } from '../../core/rating/chains/chain.ts';
import { integrateLevel, type LevelReading, levelReadings } from '../../core/rating/chains/levels.ts';
import type { BilledSubscription } from '../../core/rating/charges.ts';
import type { CountedScope } from '../../core/rating/computed-from.ts';
import type { MeasuredUsage, PricedItem } from '../../core/rating/line-amount.ts';
import { type Tariff } from '../../core/rating/valued-usage.ts';
import type { SubscriptionMember } from '../../core/subscriptions/members.ts';
import { NotCached } from '../../storage/cache/cache-entry.ts';
import { isBatched } from '../../storage/concurrency/batched.ts';
import { Semaphore } from '../../storage/concurrency/semaphore.ts';
import type { PositionedRawEvent } from '../../storage/events/raw-events.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { type BilledUsageQuery, readUsage } from '../../storage/usage/usage.ts';
import { readUsageInOrder, type UsageInOrder } from '../../storage/usage/usage-in-order.ts';
import {
  type AllowanceWindows,
  computeGrants,
  computeLimitedSince,
  computeMetAllowances,
  isGranting,
  isLimit,
  limitedWindows,
  measureAllowances,
} from './allowances/gather-allowances.ts';
import { type BillableItem, toBilledSubscription, toScope } from './billable-items.ts';
import { buildCustomerFilter } from './members.ts';

type MeasureOptions<Item extends PricedItem = BillableItem> = {
  /** Limits that apply; for an earlier charge, the limits recorded then. Default: the item's own. */
  readonly limited?: readonly AllowanceWindows[];
  /** The paid interval; the window may begin before it. */
  readonly service?: Period;
  /** The chain in which the line is charged. */
  readonly chain?: Chain<Item> | undefined;
};
export type UsageMeasure<Item extends PricedItem = BillableItem> = (
  item: Item,
  window: Period,
  about?: MeasureOptions<Item>,
) => Promise<MeasuredUsage>;

const semaphores = new WeakMap<Database, Semaphore>();

/** Limit of concurrent usage queries in batched transactions, regardless of the number of subscriptions. */
const BATCHED_QUERIES_MAX = 200;

function getSemaphore(database: Database): Semaphore {
  const own = semaphores.get(database) ?? new Semaphore(BATCHED_QUERIES_MAX);
  semaphores.set(database, own);
  return own;
}

type UsageReaderInput = {
  readonly subscription: SubscriptionModel;
  readonly members: readonly SubscriptionMember[];
  readonly now?: Date;
  /** Stored event that is left out. */
  readonly without?: PositionedRawEvent | undefined;
};

/** `members` are the customers whose usage the subscription counts. */
export function createUsageReader(
  stores: Stores,
  database: Database,
  { subscription, members, now, without }: UsageReaderInput,
): UsageMeasure {
  const scope = toScope(subscription);
  const buildUsageQuery = ({ meter, id }: BillableItem, window: Period, { service, gaps }: ReadUsageOptions) => {
    if (meter === null) throw new FarthingError('system_error', `line item ${id} has no meter`);
    return {
      meter,
      ...buildCustomerFilter(members, window, service.start, gaps),
      start_ms: window.start,
      end_ms: window.end,
      timezone: subscription.timezone,
      billing_anchor_ms: toInstant(subscription.billing_anchor),
      ...(now === undefined ? {} : { now_ms: now.getTime() }),
      without,
    };
  };
  const inPlace = <Answer>(ask: () => Promise<Answer>): Promise<Answer> =>
    isBatched(database) ? getSemaphore(database).within(ask) : ask();
  const read = (item: BillableItem, window: Period, about: ReadUsageOptions): Promise<MeasuredUsage> => {
    const query = buildUsageQuery(item, window, about);
    return inPlace(async () => ({
      ...(await readUsage(stores, scope, query)),
      counted: buildCountedCustomers(query, subscription),
    }));
  };
  const readInOrder = (item: BillableItem, since: Milliseconds, window: Period): Promise<OrderedUsageRead> => {
    const query = buildUsageQuery(item, { start: since, end: window.end }, { service: window });
    return inPlace(async () => ({
      ...(await readUsageInOrder(stores, scope, query)),
      counted: buildCountedCustomers(buildUsageQuery(item, window, { service: window }), subscription),
    }));
  };
  return buildMeasure(toBilledSubscription(subscription), { read, readInOrder });
}

type OrderedUsageRead = UsageInOrder & Pick<MeasuredUsage, 'counted'>;

/**
 * Options of a usage reading. `service` is the paid interval; usage within `gaps`, which are parts of the window, is
 * not counted.
 */
type ReadUsageOptions = { readonly service: Period; readonly gaps?: readonly Period[] };

/**
 * Usage readers. `read` returns the usage of an item in a window. `readInOrder` returns it in time order, from an
 * earlier instant to the window's end.
 */
export type UsageReading<Item extends PricedItem> = {
  read(item: Item, window: Period, about: ReadUsageOptions): Promise<MeasuredUsage>;
  readInOrder(item: Item, since: Milliseconds, window: Period): Promise<OrderedUsageRead>;
};

/**
 * Builds a function that measures the usage of a window, with the additional usage that allowances of the item need. `reading` is the
 * source of the usage: the stores or memory.
 */
export function buildMeasure<Item extends PricedItem>(
  billed: BilledSubscription,
  { read, readInOrder }: UsageReading<Item>,
): UsageMeasure<Item> {
  return async (item, window, about = {}) => {
    const { service = window, chain } = about;
    if (chain?.rule === 'integral') return measureLevel(item, service, { ...about, billed, read });
    const { limited = limitedWindows(item, window, billed) } = about;
    const gaps = chain?.rule === 'shared' ? computeGaps(chain) : [];
    const isInOrder = limited.some(isGranting);
    const inOrder = isInOrder ? await readInOrder(item, computeLimitedSince(limited.filter(isGranting)), window) : null;
    const measured = inOrder ? toMeasuredUsage(inOrder, window) : await read(item, window, { service, gaps });
    if (limited.length === 0) return measured;
    // For a meter that never resets, customers that left before the service are excluded. For any other meter they are included, because
    // they caused the usage.
    const readOther = (other: Period) =>
      read(item, other, { service: item.reset_usage === 'NEVER' ? service : other, gaps });
    const granted = async (granting: Granting) => {
      const { usage } = inOrder!;
      const used = await computeGrants(granting, { usage, tariffs: deriveTariffs(item, window, chain) });
      return { allowance: measureGrants(used.free, { usage: used.usage, charge: window, granting }), usage };
    };
    return { ...measured, ...(await measureAllowances(limited, { window, measured, read: readOther, granted })) };
  };
}

/** Derives the tariffs that value usage for grants of money. Tiers continue if the next line of a chain has equal terms. */
function deriveTariffs(
  { price }: PricedItem,
  window: Period,
  chain: Chain<PricedItem> | undefined,
): [Tariff, ...Tariff[]] {
  const lines = chain?.lines.map(({ item, service }) => ({ from: service.start, price: item.price })) ?? [];
  const begun = lines.filter(
    (line, index) => index === 0 || termsKey(line.price) !== termsKey(lines[index - 1]!.price),
  );
  const [first = { from: window.start, price }, ...others] = begun;
  return [first, ...others];
}

type MeasureLevelInput<Item extends PricedItem> = Pick<MeasureOptions<Item>, 'limited' | 'chain'> &
  Pick<UsageReading<Item>, 'read'> & { readonly billed: BilledSubscription };

/** Measures the level over the time of the line, in units × whole billing periods; its free part has this unit, too. */
async function measureLevel<Item extends PricedItem>(
  item: Item,
  service: Period,
  { limited, chain, billed, read }: MeasureLevelInput<Item>,
): Promise<MeasuredUsage> {
  const time = measuredTime(service, chain);
  const level = async (of: Period) => {
    const readings = levelReadings(of, item, billed);
    // A customer that left a hierarchy before the billing period is not counted. One that leaves within it is counted, regardless of the
    // dates of the line.
    return computeLevel(
      readings,
      await Promise.all(readings.map(({ window, period }) => read(item, window, { service: period }))),
    );
  };
  const measured = await level(time);
  const windows = (limited ?? limitedWindows(item, time, billed)).filter(isLimit);
  if (windows.length === 0) return measured;
  const granted = () => Promise.reject(new FarthingError('system_error', 'a level is not granted bit by bit'));
  return { ...measured, ...(await measureAllowances(windows, { window: time, measured, read: level, granted })) };
}

function measuredTime({ start, end }: Period, chain: Pick<Chain, 'measured_until'> | undefined): Period {
  return { start, end: Math.min(end, chain?.measured_until ?? end) };
}

function computeLevel(readings: readonly LevelReading[], answers: readonly MeasuredUsage[]): MeasuredUsage {
  const last = answers[readings.findLastIndex(({ isBefore }) => !isBefore)];
  if (!last) throw new FarthingError('system_error', 'a level was asked for outside of all billing periods');
  const as_of = answers.map((answer) => answer.as_of).sort((a, b) => (a < b ? -1 : 1))[0]!;
  return { ...last, ...integrateLevel(readings, answers), as_of };
}

/** Returns the usage of the window alone, as a separate read would return it. */
function toMeasuredUsage({ usage, event_counts, ...read }: OrderedUsageRead, window: Period): MeasuredUsage {
  const [from, to] = [usage.findIndex(window.start), usage.findIndex(window.end)];
  const event_count = event_counts.slice(from, to).reduce((sum, count) => sum + count, 0);
  return { ...read, quantity: usage.sumBetween(window), event_count, buckets: null };
}

type LocalMeasureInput = { readonly window: Period; readonly service: Period; readonly chain?: Chain | undefined };

/** Measures one item and window from usage in memory. Limits are computed once, because they do not depend on usage. */
export function buildLocalMeasure(
  billed: BilledSubscription,
  item: PricedItem,
  { window, service, chain }: LocalMeasureInput,
): (read: (window: Period) => MeasuredUsage) => MeasuredUsage {
  const isLevel = chain?.rule === 'integral';
  const time = isLevel ? measuredTime(service, chain) : window;
  const limited = limitedWindows(item, time, billed);
  return (read) => {
    const measure = (of: Period): MeasuredUsage => {
      if (!isLevel) return read(of);
      const readings = levelReadings(of, item, billed);
      return computeLevel(
        readings,
        readings.map((one) => read(one.window)),
      );
    };
    const measured = measure(time);
    if (limited.length === 0) return measured;
    // A usage-ordered grant depends on the order of events, which usage in memory lacks.
    if (!limited.every(isLimit)) throw new NotCached();
    const usedIn = (other: Period) => measure(other).quantity;
    return { ...measured, ...computeMetAllowances(limited, { window: time, measured, usedIn }) };
  };
}

/** Builds the record of the counted customers and the time zone, because both may differ when the line is computed again. */
export function buildCountedCustomers(
  { external_customer_ids, clipped }: Pick<BilledUsageQuery, 'external_customer_ids' | 'clipped'>,
  { timezone, billing_anchor }: Pick<SubscriptionModel, 'timezone' | 'billing_anchor'>,
): CountedScope {
  const customers = external_customer_ids.map((external_customer_id) => {
    const times = clipped?.get(external_customer_id) ?? null;
    return {
      external_customer_id,
      times: times && times.map(([start, end]) => ({ start: formatUs(start), end: formatUs(end) })),
    };
  });
  return { customers, timezone, billing_anchor };
}
