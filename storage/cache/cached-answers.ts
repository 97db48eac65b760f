/**
 * Caches answers in memory with their dependencies (docs/decisions/0007-cached-answers.md). An entry is valid while none of its records has
 * changed (change-feed.ts), its recorded end of validity is not reached, and no usage update was lost. New usage updates the cached usage
 * (storage/usage/live-usage.ts), from which `ComputedAnswer.again` computes the answer. After any other change it is recomputed in full.
 */
import type { LRUCache } from 'lru-cache';
import type { Scope } from '../../core/foundation/scope.ts';
import { createLru } from '../foundation/lru.ts';
import type { Database, Stores } from '../foundation/stores.ts';
import { isByTheMachine } from '../models/schedule/environment-clock.ts';
import { currentRecorder, runWithRecorder } from '../postgres/interceptors/dependency-recorder.ts';
import { loadFreshness } from '../usage/usage.ts';
import type { UsageCache } from '../usage/usage-cache.ts';
import { CacheEntry, type ComputedAnswer, NotCached } from './cache-entry.ts';
import { countRunning } from './cache-metrics.ts';
import { type ChangeSnapshot, type RecentChanges, readChanges, requestRecentChanges } from './change-feed.ts';
import { GatherBatchLoader, type GatherContext } from './gather-batch-loader.ts';
import { readUpcomingStarts } from './upcoming-starts.ts';

type FreshAnswer<Answer> = {
  readonly answer: Answer;
  /** The answer includes everything that was accepted before this instant. */
  readonly as_of: string;
};

type CacheQuery = Scope & {
  /** Identifies the query within the scope. If the key contains ids of records, the answer depends on these records. */
  readonly key: string;
  readonly now: Date;
};

/** Computes the answer. It must read its records through the given context. */
type Make<Answer> = (gathering: GatherContext) => Promise<ComputedAnswer<Answer>>;

export async function loadCached<Answer>(
  stores: Stores,
  query: CacheQuery,
  make: Make<Answer>,
): Promise<FreshAnswer<Answer>> {
  const { usage_cache } = stores;
  // If a recorder is active, another answer includes this one, and the reads are recorded as dependencies of that
  // answer.
  if (usage_cache === undefined || currentRecorder() !== undefined) return computeNow(stores, query, make);
  const cached = getCache(usage_cache);
  const loader = getGatherBatchLoader(stores.postgres);
  // `as_of` is read before the progress, so that the answer is at least as fresh as `as_of`.
  const as_of = await loadFreshness(stores, query, query.now.getTime());
  const snapshot = await followChanges(stores, cached);
  const known = cached.find<Answer>(query, query.key, snapshot);
  return {
    answer: known === undefined ? await cached.make(query, { snapshot, loader }, make) : known,
    as_of,
  };
}

/** Cached answers as of one change snapshot. */
export type CacheView = {
  /** The answers include everything that was accepted before this instant. */
  readonly as_of: string;
  /** Undefined if the answer must be recomputed. */
  find<Answer>(key: string): Answer | undefined;
};

type View = Omit<CacheQuery, 'key'>;

/**
 * Serves callers with thousands of requests a second: the answers are as of a recent snapshot. `onView` gets null if the environment has a
 * clock of its own, or if the snapshot cannot be read. `onView` must not throw.
 */
export function viewCached(stores: Stores, query: View, onView: (view: CacheView | null) => void): void {
  const { usage_cache, postgres } = stores;
  if (usage_cache === undefined || !isByTheMachine(postgres, query, query.now.getTime())) return onView(null);
  const cache = getCache(usage_cache);
  requestRecentChanges(stores, query.now, (recent) => {
    if (recent === null) return onView(null);
    cache.follow(recent.snapshot);
    onView(new SnapshotView(recent, { cache, query }));
  });
}

/** Cached answers as of one snapshot. This is a class, so that no closures are allocated per read. */
class SnapshotView implements CacheView {
  readonly as_of: string;
  readonly #snapshot: ChangeSnapshot;
  readonly #at: { readonly cache: AnswerCache; readonly query: View };

  constructor({ as_of, snapshot }: RecentChanges, at: { readonly cache: AnswerCache; readonly query: View }) {
    this.as_of = as_of;
    this.#snapshot = snapshot;
    this.#at = at;
  }

  find<Answer>(key: string): Answer | undefined {
    return this.#at.cache.find(this.#at.query, key, this.#snapshot);
  }
}

/** Finds the cached answer if it is valid, without loading the freshness of the log. Used by the audit. */
export async function findCached<Answer>(stores: Stores, { key, ...query }: CacheQuery): Promise<Answer | undefined> {
  if (stores.usage_cache === undefined) return undefined;
  const cache = getCache(stores.usage_cache);
  return cache.find(query, key, await followChanges(stores, cache));
}

async function followChanges({ postgres }: Stores, cached: AnswerCache): Promise<ChangeSnapshot> {
  const snapshot = await readChanges(postgres);
  cached.follow(snapshot);
  return snapshot;
}

async function computeNow<Answer>(stores: Stores, query: CacheQuery, make: Make<Answer>) {
  const as_of = await loadFreshness(stores, query, query.now.getTime());
  return { answer: (await make({ database: stores.postgres, now: query.now })).answer, as_of };
}

/** Maximum number of cached answers. The limit per tenant is lower, so that one tenant cannot evict the entries of all others. */
const ANSWERS_MAX = 500_000;
const TENANT_ANSWERS_MAX = 420_000;

const memories = new WeakMap<UsageCache, AnswerCache>();
const loaders = new WeakMap<Database, GatherBatchLoader>();

function getGatherBatchLoader(postgres: Database): GatherBatchLoader {
  let loader = loaders.get(postgres);
  if (loader === undefined) loaders.set(postgres, (loader = new GatherBatchLoader(postgres)));
  return loader;
}

export function getCache(memory: UsageCache): AnswerCache {
  let cached = memories.get(memory);
  if (cached === undefined) memories.set(memory, (cached = new AnswerCache(memory)));
  return cached;
}

/**
 * Entries of one tenant in order of use. A `Map` with delete and reinsert does not suffice: with hundreds of thousands of entries, it is
 * rehashed as a whole whenever its slots are used up.
 */
type OfTenant = LRUCache<string, CacheEntry>;

function createTenantEntries(): OfTenant {
  return createLru(TENANT_ANSWERS_MAX + 1);
}

type GatheredEntry<Answer> = { readonly entry: CacheEntry; readonly answer: Answer; readonly is_cached: boolean };
type CacheMoment = { readonly snapshot: ChangeSnapshot; readonly loader: GatherBatchLoader };
/** Computation that has not begun yet; it serves all callers with the same query. */
type PendingEntry = {
  readonly snapshot_number: number;
  hasBegun: boolean;
  readonly gathered: Promise<GatheredEntry<unknown>>;
};

class AnswerCache {
  readonly #memory: UsageCache;
  readonly #tenants = new Map<string, OfTenant>();
  readonly #making = new Map<string, PendingEntry>();
  #count = 0;
  #followed = 0;

  constructor(memory: UsageCache) {
    this.#memory = memory;
  }

  /** Passes the progress of a new change snapshot to the usage cache, once per snapshot. */
  follow({ number, progress }: ChangeSnapshot): void {
    if (number <= this.#followed) return;
    this.#followed = number;
    this.#memory.follow(progress);
  }

  /** Returns the cached answer if it is valid at the change snapshot, otherwise undefined. A cached answer is never undefined itself. */
  find<Answer>({ tenant_id, environment_id, now }: View, key: string, snapshot: ChangeSnapshot): Answer | undefined {
    const known = this.#tenants.get(tenant_id)?.get(`${environment_id} ${key}`);
    if (known === undefined) return undefined;
    if (known.isFresh(snapshot, now.getTime())) {
      try {
        return known.current() as Answer;
      } catch (error) {
        if (!(error instanceof NotCached)) throw error;
      }
    }
    this.drop(known);
    return undefined;
  }

  /**
   * Computes and caches an answer. A caller shares a pending computation that has not begun, or whose change snapshot is at least as recent
   * as the caller's.
   */
  async make<Answer>(query: CacheQuery, at: CacheMoment, make: Make<Answer>): Promise<Answer> {
    const name = `${query.tenant_id} ${query.environment_id} ${query.key}`;
    const making = this.#making.get(name);
    if (making && (!making.hasBegun || making.snapshot_number >= at.snapshot.number)) {
      const { entry: cached, answer, is_cached } = await making.gathered;
      // An answer that is not cached is valid at the instant of the query only, such as an answer for a range until now.
      const now_ms = query.now.getTime();
      if (is_cached ? !cached.isOver(now_ms) : now_ms <= cached.since_ms) return answer as Answer;
    }
    const gather = (gathering: GatherContext) => {
      own.hasBegun = true;
      return this.#gather(query, { snapshot: at.snapshot, gathering }, make);
    };
    const gathered = at.loader.load(query, query.now, gather);
    const own: PendingEntry = { snapshot_number: at.snapshot.number, hasBegun: false, gathered };
    this.#making.set(name, own);
    try {
      return (await gathered).answer;
    } finally {
      if (this.#making.get(name) === own) this.#making.delete(name);
    }
  }

  async #gather<Answer>(
    { tenant_id, environment_id, key }: CacheQuery,
    { snapshot, gathering }: { snapshot: ChangeSnapshot; gathering: GatherContext },
    make: Make<Answer>,
  ): Promise<GatheredEntry<Answer>> {
    const scope = { tenant_id, environment_id };
    const { now } = gathering;
    const cached = new CacheEntry({ scope, key: `${environment_id} ${key}`, snapshot, now }, this.#memory);
    countRunning('gathered');
    try {
      const made = await runWithRecorder(cached, async () => {
        const answer = await make(gathering);
        await readUpcomingStarts(gathering, scope, cached.subjects);
        return answer;
      });
      const is_cached = cached.complete(made as ComputedAnswer<unknown>);
      if (is_cached) this.#put(cached);
      else cached.end();
      return { entry: cached, answer: made.answer, is_cached };
    } catch (error) {
      cached.end();
      throw error;
    }
  }

  drop(cached: CacheEntry): void {
    const own = this.#tenants.get(cached.tenant_id);
    if (own?.peek(cached.key) === cached) {
      own.delete(cached.key);
      this.#count--;
      if (own.size === 0) this.#tenants.delete(cached.tenant_id);
    }
    cached.end();
  }

  /** Returns `count` entries from a random position, for the audit. */
  some(count: number, chance: () => number): CacheEntry[] {
    const some: CacheEntry[] = [];
    let left = Math.floor(chance() * Math.max(1, this.#count - count + 1));
    for (const own of this.#tenants.values()) {
      if (left >= own.size) left -= own.size;
      else
        for (const cached of own.rvalues()) {
          if (cached === undefined || left-- > 0) continue;
          if (some.push(cached) === count) return some;
        }
    }
    return some;
  }

  #put(cached: CacheEntry): void {
    const before = this.#tenants.get(cached.tenant_id)?.peek(cached.key);
    if (before) this.drop(before);
    let own = this.#tenants.get(cached.tenant_id);
    if (own === undefined) this.#tenants.set(cached.tenant_id, (own = createTenantEntries()));
    own.set(cached.key, cached);
    this.#count++;
    if (own.size > TENANT_ANSWERS_MAX) this.#dropOldest(own);
    // The oldest entry of the tenant with the most entries is evicted.
    if (this.#count > ANSWERS_MAX)
      this.#dropOldest([...this.#tenants.values()].reduce((most, some) => (some.size > most.size ? some : most)));
  }

  #dropOldest(own: OfTenant): void {
    const [oldest] = own.rvalues();
    if (oldest) this.drop(oldest);
  }
}
