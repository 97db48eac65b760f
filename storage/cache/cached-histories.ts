/**
 * Caches a value derived from ordered usage up to an instant, so that the next query reads only later usage. An entry is valid while the
 * earlier usage is unchanged: the rows have the same event count and quantity, and no raw event was corrected since. The audit recomputes a
 * sample of the entries (actions/operations/audit/running.ts).
 */
import type { Decimal } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { formatMs, type Milliseconds } from '../../core/foundation/time/instant.ts';
import type { OrderedUsage } from '../../core/rating/allowances/ordered-usage.ts';
import type { Database, Stores } from '../foundation/stores.ts';
import { sumRebuilds } from '../progress/partition-progress.ts';
import { loadSharedProgress } from '../progress/slices.ts';
import { type BilledUsageQuery, readUsage } from '../usage/usage.ts';
import { readUsageInOrder, type UsageInOrder } from '../usage/usage-in-order.ts';

/** Value that is derived from all usage before `at`. */
export type Until<Made> = {
  readonly at: Milliseconds;
  readonly event_count: number;
  readonly quantity: Decimal;
  readonly made: Made;
};
/** Derives the value again, from all usage of the query. */
type RecomputeHistory<Made> = (usage: OrderedUsage, at: Milliseconds) => Promise<Made>;
type CachedHistory = Until<unknown> & {
  readonly meter_version: number;
  readonly rebuilds: bigint;
  readonly scope: Scope;
  /** Query that covers all usage before `at`. */
  readonly query: BilledUsageQuery;
  readonly recompute: RecomputeHistory<unknown>;
};

/** Usage after the cached instant; all usage if nothing is cached. */
export type UsageSince<Made> = {
  readonly read: UsageInOrder;
  readonly known: Until<Made> | null;
  /** Caches the derived value, unless a correction occurred meanwhile. `recomputed_text` derives the value from all earlier usage. */
  cache(until: Until<Made>, recomputed_text: RecomputeHistory<Made>): void;
};

const CACHED_HISTORIES_MAX = 10_000;
const histories = new WeakMap<Database, Map<string, CachedHistory>>();

/** Reads the usage since the cached history. `key` identifies the derived value and all its inputs except the query. */
export async function readUsageSince<Made>(
  stores: Stores,
  scope: Scope,
  { key, query }: { key: string; query: BilledUsageQuery },
): Promise<UsageSince<Made>> {
  const own = JSON.stringify([scope.tenant_id, scope.environment_id, key]);
  const rebuilds = await rebuildsNow(stores);
  const behind = await readSinceCached(stores, scope, { own, query, rebuilds });
  const read = behind?.read ?? (await readUsageInOrder(stores, scope, query));
  const isSame = rebuilds !== null && (await rebuildsNow(stores)) === rebuilds;
  return {
    read,
    known: (behind?.known ?? null) as Until<Made> | null,
    cache(until, recomputed_text) {
      if (!isSame) return;
      const { meter_version } = read;
      const before = toQueryBefore(query, until.at);
      cacheHistory(stores.postgres, own, {
        ...until,
        meter_version,
        rebuilds,
        scope,
        query: before,
        recompute: recomputed_text,
      });
    },
  };
}

/**
 * Builds the query before the instant with the meter's id only: many entries are cached, and a whole meter is large.
 */
function toQueryBefore({ meter, ...query }: BilledUsageQuery, end_ms: Milliseconds): BilledUsageQuery {
  return { ...query, meter: { id: meter.id }, end_ms };
}

type HistoryQuery = { readonly own: string; readonly query: BilledUsageQuery; readonly rebuilds: bigint | null };

/**
 * The rows are read after the events. A late event that arrives between the two reads is therefore in the rows and invalidates the entry.
 */
async function readSinceCached(stores: Stores, scope: Scope, { own, query, rebuilds }: HistoryQuery) {
  const known = histories.get(stores.postgres)?.get(own);
  if (known === undefined || known.rebuilds !== rebuilds || known.at > (query.now_ms ?? 0)) return null;
  const read = await readUsageInOrder(stores, scope, { ...query, start_ms: known.at });
  return (await isHistoryCurrent(stores, known, { read, query })) ? { read, known } : null;
}

type HistoryComparison = { readonly read: UsageInOrder; readonly query: BilledUsageQuery };

/** Whether the cached history is valid. Must run after the events were read, to notice events that arrived during that read. */
async function isHistoryCurrent(
  stores: Stores,
  known: CachedHistory,
  { read, query }: HistoryComparison,
): Promise<boolean> {
  const before = await readUsage(stores, known.scope, { ...query, end_ms: known.at });
  const versions = [read.meter_version, before.meter_version];
  const isThat = before.event_count === known.event_count && before.quantity.eq(known.quantity);
  const isSame = isThat && versions.every((version) => version === known.meter_version);
  return isSame && (await rebuildsNow(stores)) === known.rebuilds;
}

function cacheHistory(postgres: Database, own: string, history: CachedHistory): void {
  let all = histories.get(postgres);
  if (all === undefined) histories.set(postgres, (all = new Map()));
  all.delete(own);
  all.set(own, history);
  if (all.size > CACHED_HISTORIES_MAX) all.delete(all.keys().next().value!);
}

/** Loads the number of rebuilds; null while rows are being rebuilt, because raw events will soon count differently. */
async function rebuildsNow({ postgres }: Stores): Promise<bigint | null> {
  const progress = await loadSharedProgress(postgres);
  return progress.some(({ gate }) => gate !== null) ? null : sumRebuilds(progress);
}

/** An entry and its key, for the audit. */
export type NamedHistory = { readonly own: string; readonly history: CachedHistory };

/** Samples up to `count` entries with up to `events` events in all; the first entry may exceed that. */
export function sampleHistories(
  { postgres }: Pick<Stores, 'postgres'>,
  { count, events, chance }: { count: number; events: number; chance: () => number },
): NamedHistory[] {
  const all = histories.get(postgres) ?? new Map<string, CachedHistory>();
  let skipped = Math.floor(chance() * Math.max(1, all.size - count + 1));
  let left = events;
  const some: NamedHistory[] = [];
  for (const [own, history] of all) {
    if (skipped-- > 0) continue;
    left -= history.event_count;
    if (some.length > 0 && left < 0) break;
    if (some.push({ own, history }) === count) break;
  }
  return some;
}

export function deleteHistory({ postgres }: Pick<Stores, 'postgres'>, { own, history }: NamedHistory): void {
  const all = histories.get(postgres);
  if (all?.get(own) === history) all.delete(own);
}

/** Text that shows the cached value and the value of the raw events, if they differ and the entry is valid; otherwise null. */
export async function findHistoryDifference(
  stores: Stores,
  { history }: NamedHistory,
  now: Milliseconds,
): Promise<string | null> {
  const { scope, at } = history;
  const query = { ...history.query, now_ms: now };
  if ((await rebuildsNow(stores)) !== history.rebuilds) return null;
  const read = await readUsageInOrder(stores, scope, query);
  if (!(await isHistoryCurrent(stores, history, { read, query }))) return null;
  const counted = read.event_counts.reduce((sum, count) => sum + count, 0);
  const quantity = read.usage.sumBetween({ start: query.start_ms, end: at });
  const [cached_text, recomputed_text] = [
    toHistoryText(history),
    toHistoryText({ at, event_count: counted, quantity, made: await history.recompute(read.usage, at) }),
  ];
  return cached_text === recomputed_text ? null : `${cached_text} in memory, ${recomputed_text} of raw events`;
}

function toHistoryText({ at, event_count, quantity, made }: Until<unknown>): string {
  return `${quantity.toFixed()} of ${event_count} events before ${formatMs(at)}: ${JSON.stringify(made)}`;
}
