/**
 * Caches usage in memory. Each slice updates the cached results, so that a repeated query of a dashboard, preview or balance needs no
 * statement (docs/decisions/0007-cached-answers.md). The cache follows the progress that Postgres commits. It returns nothing if it cannot
 * know the changes in between: another worker took over a partition, rows were rebuilt, or an offset is missing. The query then reads the
 * stored rows.
 */
import { HOUR_MS, MINUTE_MS } from '../../core/foundation/time/durations.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import { type OwnedPartition, type PartitionPosition, sumRebuilds } from '../progress/partition-progress.ts';
import { isCacheable } from './batched-cells.ts';
import type { BucketQuery, EventRange, StoredCells } from './bucket-cells.ts';
import { CachedUsage, CELLS_MAX, toOpenQueryKey, toQueryKey } from './cached-usage.ts';
import { LiveUsage } from './live-usage.ts';

/** Rows that a slice is about to add, published before Postgres commits it. */
type AnnouncedSlice = {
  readonly owned_partition: OwnedPartition;
  readonly from: bigint;
  readonly to: bigint;
  /** Base rows (one per meter, customer, group and base window) that the slice adds. */
  readonly rows: readonly BucketRow[];
  getVersion(meter_id: string): number;
};

/** A rebuild of rows that is about to be committed; `before` and `after` are values of `sumRebuilds`. */
type AnnouncedRebuild = {
  readonly before: bigint;
  readonly after: bigint;
  /** Customers whose rows are rewritten, by meter; null: all customers. */
  readonly customers: ReadonlyMap<string, ReadonlySet<string> | null>;
};

/**
 * Offset up to which the cache contains a partition, and the slice that is announced for it. The slice's rows are added
 * only after its commit is answered or seen.
 */
type FollowedPartition = { readonly epoch: bigint; at: bigint; announced: AnnouncedSlice | null };
type PartitionOffset = Omit<PartitionPosition, 'rebuilds'>;

/** Limit of the whole cache, about fifty megabytes. The limit per tenant prevents one tenant from evicting all others. */
const ALL_CELLS_MAX = 100_000;
const TENANT_CELLS_MAX = 40_000;
/**
 * Maximum number of entries per customer and meter, because each new row of the customer is added to every one of its
 * entries.
 */
const SERIES_MAX = 32;
/** Maximum number of rebuilds that are published and not yet seen to be committed. */
const REBUILDS_MAX = 64;
/** Time without queries after which the cache ignores slices until the next query. */
const IDLE_MS = MINUTE_MS;
/** Idle time for current periods, which are queried often. */
const RUNNING_IDLE_MS = HOUR_MS;

export class UsageCache {
  /** Live usage of current periods; it is updated and cleared with this cache. */
  readonly running = new LiveUsage();
  /** Increases with each new offset of a partition. */
  moves = 0;
  /**
   * True if another process feeds the slices (usage-feed.ts). A progress that was not fed yet then does not clear the
   * cache.
   */
  readonly #isFed: boolean;
  readonly #followed = new Map<number, FollowedPartition>();
  #rebuilds = 0n;
  #rebuilding: AnnouncedRebuild[] = [];
  /** In order of use, most recent last. */
  readonly #cached = new Map<string, CachedUsage>();
  /** Key of the entry that a query with a later end may extend, by `toOpenQueryKey`. */
  readonly #open = new Map<string, string>();
  readonly #bySeries = new Map<string, Map<string, Set<CachedUsage>>>();
  #cells = 0;
  readonly #cellsByTenant = new Map<string, number>();
  #wanted_until = 0;

  constructor({ isFed = false } = {}) {
    this.#isFed = isFed;
  }

  /** Finds the partitions that lack slices up to this progress, and the offset from which they lack them. */
  findLag(progress: readonly PartitionPosition[]): { readonly partition: number; readonly at: bigint }[] {
    return progress.flatMap(({ partition, epoch, next_offset }) => {
      const followed = this.#followed.get(partition);
      return followed?.epoch === epoch && followed.at < next_offset ? [{ partition, at: followed.at }] : [];
    });
  }

  /** Records that all available slices before this progress were added. */
  followFed(progress: readonly PartitionPosition[]): void {
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + RUNNING_IDLE_MS);
    this.#followTo(progress);
  }

  /** Announces a slice that is written and about to be committed; it counts once Postgres shows the commit. */
  announceSlice(slice: AnnouncedSlice): void {
    if (performance.now() > this.#wanted_until) {
      this.#clear();
      this.#followed.clear();
      return;
    }
    this.#moveTo({ ...slice.owned_partition, next_offset: slice.from }).announced = slice;
  }

  /** Announces that rows are being rewritten. The lock on the bucket rows allows one rebuild at a time. */
  announceRebuild(rebuild: AnnouncedRebuild): void {
    this.#rebuilding.push(rebuild);
    if (this.#rebuilding.length > REBUILDS_MAX) this.#rebuilding.shift();
  }

  /** Applies the announced slice, which this process has committed. */
  confirmSlice(position: PartitionOffset): void {
    if (!this.#isLagging(position)) this.#moveTo(position);
  }

  /** Brings the cache to this progress, and updates it further during the idle time. */
  follow(progress: readonly PartitionPosition[]): void {
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + RUNNING_IDLE_MS);
    this.#follow(progress);
  }

  isAt(progress: readonly PartitionPosition[]): boolean {
    return this.#follow(progress);
  }

  find(
    query: BucketQuery,
    event_range: EventRange | undefined,
    progress: readonly PartitionPosition[],
  ): StoredCells | null {
    if (!isCacheable(query)) return null;
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + IDLE_MS);
    if (!this.#follow(progress)) return null;
    const key = toQueryKey(query, event_range);
    const cached = this.#cached.get(key) ?? this.#extended(query);
    if (cached === undefined) return null;
    this.#put(key, cached);
    if (!cached.is_overgrown) return cached.toStoredCells(query, event_range);
    this.#drop(cached);
    return null;
  }

  /** Extends the entry of a query with an earlier end, and removes its old key, because later queries do not use the earlier end. */
  #extended(query: BucketQuery): CachedUsage | undefined {
    const open = toOpenQueryKey(query);
    const key = open === null ? undefined : this.#open.get(open);
    const cached = key === undefined ? undefined : this.#cached.get(key);
    const before = cached?.weight ?? 0;
    if (!cached?.extendTo(query)) return undefined;
    this.#count(cached, cached.weight - before);
    this.#cached.delete(key!);
    return cached;
  }

  #put(key: string, cached: CachedUsage): void {
    this.#cached.delete(key);
    this.#cached.set(key, cached);
    cached.key = key;
    if (cached.open_key !== null) this.#open.set(cached.open_key, key);
  }

  /** Caches cells if the progress did not change while they were read. */
  cache(
    query: BucketQuery,
    {
      event_range,
      progress,
      stored,
    }: { event_range: EventRange | undefined; progress: readonly PartitionPosition[]; stored: StoredCells },
  ): void {
    if (stored.cells.length > CELLS_MAX || !isCacheable(query) || !this.#follow(progress)) return;
    const key = toQueryKey(query, event_range);
    const known = this.#cached.get(key);
    if (known) this.#drop(known);
    const cached = new CachedUsage(query, stored);
    this.#put(key, cached);
    this.#count(cached, cached.weight);
    for (const customer of cached.customers) {
      const series = this.#atSeries(query.meter.id, customer);
      series.add(cached);
      const [oldest] = series;
      if (series.size > SERIES_MAX) this.#drop(oldest!);
    }
    this.#makeRoom(query.tenant_id);
  }

  /**
   * Discards the entry of a query that was just answered from stored rows. These rows may include slices that are not committed yet, and a
   * later query must not get an older result from the cache.
   */
  discard(query: BucketQuery, event_range: EventRange | undefined): void {
    const open = toOpenQueryKey(query);
    for (const key of [toQueryKey(query, event_range), open === null ? undefined : this.#open.get(open)]) {
      const cached = key === undefined ? undefined : this.#cached.get(key);
      if (cached) this.#drop(cached);
    }
  }

  #count({ tenant_id }: CachedUsage, cells: number): void {
    this.#cells += cells;
    this.#cellsByTenant.set(tenant_id, this.#countCells(tenant_id) + cells);
  }

  #countCells(tenant_id: string): number {
    return this.#cellsByTenant.get(tenant_id) ?? 0;
  }

  /** Evicts the least recently used entries: the tenant's own if it exceeds its limit, then any tenant's. */
  #makeRoom(tenant_id: string): void {
    for (const cached of this.#countCells(tenant_id) > TENANT_CELLS_MAX ? this.#cached.values() : []) {
      if (cached.tenant_id === tenant_id) this.#drop(cached);
      if (this.#countCells(tenant_id) <= TENANT_CELLS_MAX) break;
    }
    for (const cached of this.#cached.values()) {
      if (this.#cells <= ALL_CELLS_MAX) break;
      this.#drop(cached);
    }
  }

  /**
   * Brings the cache to this progress if possible. False if the cache is at a later progress, or if slices up to this
   * progress must be fed first.
   */
  #follow(progress: readonly PartitionPosition[]): boolean {
    if (this.#isFed && this.#isAhead(progress)) return false;
    return this.#followTo(progress);
  }

  #isAhead(progress: readonly PartitionPosition[]): boolean {
    if (sumRebuilds(progress) > this.#rebuilds) return true;
    return progress.some(({ partition, epoch, next_offset }) => {
      const followed = this.#followed.get(partition);
      return !followed || epoch > followed.epoch || (epoch === followed.epoch && next_offset > followed.at);
    });
  }

  /**
   * Brings the cache to this progress; false if the cache is at a later progress. It may be ahead in a partition of this process, and behind
   * in those of others.
   */
  #followTo(progress: readonly PartitionPosition[]): boolean {
    const rebuilds = sumRebuilds(progress);
    if (rebuilds < this.#rebuilds) return false;
    if (rebuilds !== this.#rebuilds) this.#rebuilt(rebuilds);
    const newer = progress.filter((state) => !this.#isLagging(state));
    for (const state of newer) this.#moveTo(state);
    // If fewer, a slice has ended or a partition was added since this progress.
    return newer.length === this.#followed.size;
  }

  /** Advances a partition. Clears the cache unless the announced slice explains the new offset. */
  #moveTo({ partition, epoch, next_offset }: PartitionOffset): FollowedPartition {
    const followed = this.#followed.get(partition);
    if (followed?.epoch === epoch && this.#isAt(followed, next_offset)) return followed;
    this.moves++;
    this.#clear();
    const announced = followed?.epoch === epoch && followed.announced?.from === next_offset ? followed.announced : null;
    const moved = { epoch, at: next_offset, announced };
    this.#followed.set(partition, moved);
    return moved;
  }

  /** Drops the entries whose rows the announced rebuilds rewrote. Clears the cache if a rebuild was not announced. */
  #rebuilt(rebuilds: bigint): void {
    let reached = this.#rebuilds;
    const touched: AnnouncedRebuild[] = [];
    for (const pending_rebuild of this.#rebuilding) {
      // A failed rebuild is announced again, so several may have the same `before`.
      if (
        pending_rebuild.before >= rebuilds ||
        (pending_rebuild.before !== reached && pending_rebuild.before !== touched.at(-1)?.before)
      )
        continue;
      touched.push(pending_rebuild);
      reached = pending_rebuild.after;
    }
    if (reached !== rebuilds) this.#clear();
    else {
      for (const cached of this.#cached.values())
        if (touched.some((rebuild) => isAffected(rebuild, cached))) this.#drop(cached);
      for (const { customers } of touched) this.running.rebuilt(customers);
    }
    this.#rebuilding = this.#rebuilding.filter(({ before }) => before >= rebuilds);
    this.#rebuilds = rebuilds;
  }

  #isLagging({ partition, epoch, next_offset }: PartitionOffset): boolean {
    const followed = this.#followed.get(partition);
    return (
      followed !== undefined && (epoch < followed.epoch || (epoch === followed.epoch && next_offset < followed.at))
    );
  }

  /**
   * Whether the partition is at this offset. If an announced slice ends at the offset, it is committed, and its rows
   * are added now.
   */
  #isAt(followed: FollowedPartition, offset: bigint): boolean {
    const { announced } = followed;
    if (followed.at !== offset && announced?.from === followed.at && announced.to === offset) {
      this.moves++;
      this.#add(announced);
      followed.at = offset;
      followed.announced = null;
    }
    return followed.at === offset;
  }

  #add({ rows, getVersion }: AnnouncedSlice): void {
    this.running.take(rows, getVersion);
    if (this.#bySeries.size === 0) return;
    const tenants = new Set<string>();
    for (const row of rows) {
      const some = this.#bySeries.get(row.meter_id)?.get(row.external_customer_id);
      if (some === undefined) continue;
      const version = getVersion(row.meter_id);
      for (const cached of some) {
        const before = cached.weight;
        cached.add(row, version);
        if (cached.weight === before) continue;
        this.#count(cached, cached.weight - before);
        tenants.add(cached.tenant_id);
      }
    }
    for (const tenant_id of tenants) this.#makeRoom(tenant_id);
  }

  #atSeries(meter_id: string, customer: string): Set<CachedUsage> {
    let customers = this.#bySeries.get(meter_id);
    if (customers === undefined) this.#bySeries.set(meter_id, (customers = new Map()));
    let some = customers.get(customer);
    if (some === undefined) customers.set(customer, (some = new Set()));
    return some;
  }

  #drop(cached: CachedUsage): void {
    const { key } = cached;
    this.#cached.delete(key);
    this.#count(cached, -cached.weight);
    if (cached.open_key !== null && this.#open.get(cached.open_key) === key) this.#open.delete(cached.open_key);
    const customers = this.#bySeries.get(cached.meter_id);
    for (const customer of cached.customers) {
      const some = customers?.get(customer);
      some?.delete(cached);
      if (some?.size === 0) customers?.delete(customer);
    }
    if (customers?.size === 0) this.#bySeries.delete(cached.meter_id);
  }

  #clear(): void {
    this.running.clear();
    this.#cached.clear();
    this.#cells = 0;
    this.#cellsByTenant.clear();
    this.#open.clear();
    this.#bySeries.clear();
  }
}

function isAffected({ customers: rebuilt }: AnnouncedRebuild, { meter_id, customers }: CachedUsage): boolean {
  const some = rebuilt.get(meter_id);
  return some !== undefined && (some === null || [...customers].some((customer) => some.has(customer)));
}
