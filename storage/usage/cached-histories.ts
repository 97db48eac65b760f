/**
 * What was made of usage in its order up to an instant, kept so that who asks again reads what came later alone. It holds while the usage before that instant is what
 * it was: the rows say how many events there are, and what they come to, and no raw event was corrected since. The audit makes some of them anew (actions/audit/running.ts).
 */
import type { Decimal } from '../../core/decimal.ts';
import type { OrderedUsage } from '../../core/entitlement/ordered-usage.ts';
import type { Scope } from '../../core/scope.ts';
import { formatMs, type Milliseconds } from '../../core/time/instant.ts';
import { sumRebuilds } from '../progress/slice-state.ts';
import { loadSharedProgress } from '../progress/slices.ts';
import type { Database, Stores } from '../stores.ts';
import { type BilledUsageQuery, readUsage } from './usage.ts';
import { readUsageInOrder, type UsageInOrder } from './usage-in-order.ts';

/** `made` is of all usage before `at`. */
export type Until<Made> = {
  readonly at: Milliseconds;
  readonly event_count: number;
  readonly quantity: Decimal;
  readonly made: Made;
};
/** The same, made of all of its usage. */
type RecomputeHistory<Made> = (usage: OrderedUsage, at: Milliseconds) => Promise<Made>;
type CachedHistory = Until<unknown> & {
  readonly meter_version: number;
  readonly rebuilds: bigint;
  readonly scope: Scope;
  /** Of all before. */
  readonly question: BilledUsageQuery;
  readonly recompute: RecomputeHistory<unknown>;
};

/** Usage behind what is known of it, or all of it. */
export type UsageSince<Made> = {
  readonly read: UsageInOrder;
  readonly known: Until<Made> | null;
  /** Keeps what was made of it, where nothing was corrected meanwhile, and how the same is made of all usage before. */
  cache(until: Until<Made>, recomputed_text: RecomputeHistory<Made>): void;
};

const CACHED_HISTORIES_MAX = 10_000;
const histories = new WeakMap<Database, Map<string, CachedHistory>>();

/** `key` names what is made of the question, with everything else that it goes by. */
export async function readUsageSince<Made>(
  stores: Stores,
  scope: Scope,
  { key, question }: { key: string; question: BilledUsageQuery },
): Promise<UsageSince<Made>> {
  const own = JSON.stringify([scope.tenant_id, scope.environment_id, key]);
  const rebuilds = await rebuildsNow(stores);
  const behind = await readSinceCached(stores, scope, { own, question, rebuilds });
  const read = behind?.read ?? (await readUsageInOrder(stores, scope, question));
  const isSame = rebuilds !== null && (await rebuildsNow(stores)) === rebuilds;
  return {
    read,
    known: (behind?.known ?? null) as Until<Made> | null,
    cache(until, recomputed_text) {
      if (!isSame) return;
      const { meter_version } = read;
      const before = toQueryBefore(question, until.at);
      cacheHistory(stores.postgres, own, {
        ...until,
        meter_version,
        rebuilds,
        scope,
        question: before,
        recompute: recomputed_text,
      });
    },
  };
}

/** Of the meter only its name: there are many that are kept. */
function toQueryBefore({ meter, ...question }: BilledUsageQuery, end_ms: Milliseconds): BilledUsageQuery {
  return { ...question, meter: { id: meter.id }, end_ms };
}

type HistoryQuery = { readonly own: string; readonly question: BilledUsageQuery; readonly rebuilds: bigint | null };

/** What came late shows in the rows, which are asked behind the events: an event that came between is in them. */
async function readSinceCached(stores: Stores, scope: Scope, { own, question, rebuilds }: HistoryQuery) {
  const known = histories.get(stores.postgres)?.get(own);
  if (known === undefined || known.rebuilds !== rebuilds || known.at > (question.now_ms ?? 0)) return null;
  const read = await readUsageInOrder(stores, scope, { ...question, start_ms: known.at });
  return (await isHistoryCurrent(stores, known, { read, question })) ? { read, known } : null;
}

type HistoryComparison = { readonly read: UsageInOrder; readonly question: BilledUsageQuery };

/** Asked behind what was read. */
async function isHistoryCurrent(
  stores: Stores,
  known: CachedHistory,
  { read, question }: HistoryComparison,
): Promise<boolean> {
  const before = await readUsage(stores, known.scope, { ...question, end_ms: known.at });
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

/** Null while rows are rebuilt: raw events count otherwise soon. */
async function rebuildsNow({ postgres }: Stores): Promise<bigint | null> {
  const progress = await loadSharedProgress(postgres);
  return progress.some(({ gate }) => gate !== null) ? null : sumRebuilds(progress);
}

/** One that is kept, by its name, as an audit compares it. */
export type NamedHistory = { readonly own: string; readonly history: CachedHistory };

/** Some of them, which come to so many events; the first however many it comes to. */
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
    if (some.push({ own, history: history }) === count) break;
  }
  return some;
}

export function deleteHistory({ postgres }: Pick<Stores, 'postgres'>, { own, history }: NamedHistory): void {
  const all = histories.get(postgres);
  if (all?.get(own) === history) all.delete(own);
}

/** What it says and what raw events say, in words, where these differ and it would be believed; else null. */
export async function findHistoryDifference(
  stores: Stores,
  { history }: NamedHistory,
  now: Milliseconds,
): Promise<string | null> {
  const { scope, at } = history;
  const question = { ...history.question, now_ms: now };
  if ((await rebuildsNow(stores)) !== history.rebuilds) return null;
  const read = await readUsageInOrder(stores, scope, question);
  if (!(await isHistoryCurrent(stores, history, { read, question }))) return null;
  const counted = read.event_counts.reduce((sum, count) => sum + count, 0);
  const quantity = read.usage.sumBetween({ start: question.start_ms, end: at });
  const [cached_text, recomputed_text] = [
    toHistoryText(history),
    toHistoryText({ at, event_count: counted, quantity, made: await history.recompute(read.usage, at) }),
  ];
  return cached_text === recomputed_text ? null : `${cached_text} in memory, ${recomputed_text} of raw events`;
}

function toHistoryText({ at, event_count, quantity, made }: Until<unknown>): string {
  return `${quantity.toFixed()} of ${event_count} events before ${formatMs(at)}: ${JSON.stringify(made)}`;
}
