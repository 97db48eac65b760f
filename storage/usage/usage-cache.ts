/**
 * Caches usage in memory. Each slice updates the cached results, so that a repeated query of a dashboard, preview or balance needs no
 * statement (docs/decisions/0006).
 *
 * The cache follows the progress that Postgres commits. It returns nothing if it cannot know the changes in between: another worker moved a
 * partition, rows were rebuilt, or an offset is missing. Then the rows answer.
 */
import type { BucketRow } from '../../core/metering/plan.ts';
import { type OwnedPartition, type SliceState, sumRebuilds } from '../progress/slice-state.ts';
import type { BucketQuery, Inside, StoredCells } from './bucket-cells.ts';
import { isCacheable } from './bucket-lines.ts';
import { CachedUsage, CELLS_MAX, toOpenQueryKey, toQueryKey } from './cached-usage.ts';
import { LiveUsage } from './live-usage.ts';

/** Rows that a slice is about to add, published before Postgres commits it. */
type ComingSlice = {
  readonly owned: OwnedPartition;
  readonly from: bigint;
  readonly to: bigint;
  /** Base rows. */
  readonly rows: readonly BucketRow[];
  getVersion(meter_id: string): number;
};

/** A rebuild of rows that is about to be committed; `before` and `after` are values of `sumRebuilds`. */
type ComingRebuild = {
  readonly before: bigint;
  readonly after: bigint;
  /** Customers whose rows are rewritten, by meter; null: all customers. */
  readonly customers: ReadonlyMap<string, ReadonlySet<string> | null>;
};

/** A partition at the offset of the whole cache, and a possible next slice. Its rows wait until its commit is seen. */
type PartitionPosition = Pick<SliceState, 'partition' | 'epoch' | 'next_offset'>;
type FollowedPartition = { readonly epoch: bigint; at: bigint; coming: ComingSlice | null };

/** Limit of the whole cache, about fifty megabytes. The limit per tenant prevents one tenant from evicting all others. */
const ALL_CELLS_MAX = 100_000;
const TENANT_CELLS_MAX = 40_000;
/** Maximum number of entries per customer and meter: each row of theirs is added to all of these. */
const LINE_MAX = 32;
/** Maximum number of rebuilds that are published and not yet seen to be committed. */
const REBUILDS_MAX = 64;
/** Without queries for this long, the cache ignores slices until the next query. */
const IDLE_MS = 60_000;
/** Idle time for current periods, which are queried often. */
const RUNNING_IDLE_MS = 3_600_000;

export class UsageCache {
  /** Live usage of current periods; it is updated and cleared with this cache. */
  readonly running = new LiveUsage();
  /** Another process feeds the slices (usage-feed.ts): a progress that was not fed yet does not clear the cache. */
  readonly #isFed: boolean;
  readonly #followed = new Map<number, FollowedPartition>();
  #rebuilds = 0n;
  #rebuilding: ComingRebuild[] = [];
  /** In order of use, most recent last. */
  readonly #cached = new Map<string, CachedUsage>();
  /** By `toOpenQueryKey`: key of an entry that a later end may extend. */
  readonly #open = new Map<string, string>();
  readonly #byLine = new Map<string, Map<string, Set<CachedUsage>>>();
  #cells = 0;
  readonly #cellsByTenant = new Map<string, number>();
  #wanted_until = 0;

  constructor({ isFed = false } = {}) {
    this.#isFed = isFed;
  }

  /** Partitions that lack slices up to this progress, and the offset from which they lack them. */
  findLag(progress: readonly SliceState[]): { readonly partition: number; readonly at: bigint }[] {
    return progress.flatMap(({ partition, epoch, next_offset }) => {
      const followed = this.#followed.get(partition);
      return followed?.epoch === epoch && followed.at < next_offset ? [{ partition, at: followed.at }] : [];
    });
  }

  /** All available slices before this progress were added. */
  fed(progress: readonly SliceState[]): void {
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + RUNNING_IDLE_MS);
    this.#followTo(progress);
  }

  /** A slice is written and about to be committed; it counts once Postgres shows the commit. */
  coming(slice: ComingSlice): void {
    if (performance.now() > this.#wanted_until) {
      this.#clear();
      this.#followed.clear();
      return;
    }
    this.#moveTo({ ...slice.owned, next_offset: slice.from }).coming = slice;
  }

  /** Rows are being rewritten. The lock on the bucket rows allows one rebuild at a time. */
  comingRebuild(rebuild: ComingRebuild): void {
    this.#rebuilding.push(rebuild);
    if (this.#rebuilding.length > REBUILDS_MAX) this.#rebuilding.shift();
  }

  /** Brings the cache to this progress, and updates it further during the idle time. */
  follow(progress: readonly SliceState[]): void {
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + RUNNING_IDLE_MS);
    this.#follow(progress);
  }

  isAt(progress: readonly SliceState[]): boolean {
    return this.#follow(progress);
  }

  find(question: BucketQuery, inside: Inside | undefined, progress: readonly SliceState[]): StoredCells | null {
    if (!isCacheable(question)) return null;
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + IDLE_MS);
    if (!this.#follow(progress)) return null;
    const key = toQueryKey(question, inside);
    const cached = this.#cached.get(key) ?? this.#extended(question);
    if (cached === undefined) return null;
    this.#put(key, cached);
    if (!cached.is_overgrown) return cached.answer(question, inside);
    this.#drop(cached);
    return null;
  }

  /** Extends the entry of an earlier end and removes its old key, because later queries do not use the earlier end. */
  #extended(question: BucketQuery): CachedUsage | undefined {
    const open = toOpenQueryKey(question);
    const key = open === null ? undefined : this.#open.get(open);
    const cached = key === undefined ? undefined : this.#cached.get(key);
    const before = cached?.weight ?? 0;
    if (!cached?.extendTo(question)) return undefined;
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

  /** Caches the cells that were read while the progress did not move. */
  cache(
    question: BucketQuery,
    { inside, progress, stored }: { inside: Inside | undefined; progress: readonly SliceState[]; stored: StoredCells },
  ): void {
    if (stored.cells.length > CELLS_MAX || !isCacheable(question) || !this.#follow(progress)) return;
    const key = toQueryKey(question, inside);
    const known = this.#cached.get(key);
    if (known) this.#drop(known);
    const cached = new CachedUsage(question, stored);
    this.#put(key, cached);
    this.#count(cached, cached.weight);
    for (const customer of cached.customers) {
      const line = this.#atLine(question.meter.id, customer);
      line.add(cached);
      const [oldest] = line;
      if (line.size > LINE_MAX) this.#drop(oldest!);
    }
    this.#makeRoom(question.tenant_id);
  }

  /**
   * The rows have answered and may include slices that are not committed yet. A later query must not get an older result from the cache.
   */
  discard(question: BucketQuery, inside: Inside | undefined): void {
    const open = toOpenQueryKey(question);
    for (const key of [toQueryKey(question, inside), open === null ? undefined : this.#open.get(open)]) {
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

  /** Whether the cache is at this progress, or was brought there; false if it is further, or must be fed first. */
  #follow(progress: readonly SliceState[]): boolean {
    if (this.#isFed && this.#isAhead(progress)) return false;
    return this.#followTo(progress);
  }

  #isAhead(progress: readonly SliceState[]): boolean {
    if (sumRebuilds(progress) > this.#rebuilds) return true;
    return progress.some(({ partition, epoch, next_offset }) => {
      const followed = this.#followed.get(partition);
      return !followed || epoch > followed.epoch || (epoch === followed.epoch && next_offset > followed.at);
    });
  }

  /** Brings the cache to this progress; false if it is further. */
  #followTo(progress: readonly SliceState[]): boolean {
    const rebuilds = sumRebuilds(progress);
    if (rebuilds < this.#rebuilds || progress.some((state) => this.#isLagging(state))) return false;
    // A partition was added since this progress.
    const known = new Set(progress.map(({ partition }) => partition));
    if ([...this.#followed.keys()].some((partition) => !known.has(partition))) return false;
    if (rebuilds !== this.#rebuilds) this.#rebuilt(rebuilds);
    for (const state of progress) this.#moveTo(state);
    return true;
  }

  /** Clears the cache if the partition moved by anything other than the coming slice. */
  #moveTo({ partition, epoch, next_offset }: PartitionPosition): FollowedPartition {
    const followed = this.#followed.get(partition);
    if (followed?.epoch === epoch && this.#isAt(followed, next_offset)) return followed;
    this.#clear();
    const coming = followed?.epoch === epoch && followed.coming?.from === next_offset ? followed.coming : null;
    const moved = { epoch, at: next_offset, coming };
    this.#followed.set(partition, moved);
    return moved;
  }

  /** Drops only the entries whose rows the published rebuilds rewrote. */
  #rebuilt(rebuilds: bigint): void {
    let reached = this.#rebuilds;
    const touched: ComingRebuild[] = [];
    for (const pending_rebuild of this.#rebuilding) {
      // A failed rebuild is published again.
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

  #isLagging({ partition, epoch, next_offset }: SliceState): boolean {
    const followed = this.#followed.get(partition);
    return (
      followed !== undefined && (epoch < followed.epoch || (epoch === followed.epoch && next_offset < followed.at))
    );
  }

  /** Whether the partition is at this offset. A coming slice that ends there is committed, and is added now. */
  #isAt(followed: FollowedPartition, offset: bigint): boolean {
    const { coming } = followed;
    if (followed.at !== offset && coming?.from === followed.at && coming.to === offset) {
      this.#add(coming);
      followed.at = offset;
      followed.coming = null;
    }
    return followed.at === offset;
  }

  #add({ rows, getVersion }: ComingSlice): void {
    this.running.take(rows, getVersion);
    if (this.#byLine.size === 0) return;
    const tenants = new Set<string>();
    for (const row of rows) {
      const some = this.#byLine.get(row.meter_id)?.get(row.external_customer_id);
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

  #atLine(meter_id: string, customer: string): Set<CachedUsage> {
    let customers = this.#byLine.get(meter_id);
    if (customers === undefined) this.#byLine.set(meter_id, (customers = new Map()));
    let some = customers.get(customer);
    if (some === undefined) customers.set(customer, (some = new Set()));
    return some;
  }

  #drop(cached: CachedUsage): void {
    const { key } = cached;
    this.#cached.delete(key);
    this.#count(cached, -cached.weight);
    if (cached.open_key !== null && this.#open.get(cached.open_key) === key) this.#open.delete(cached.open_key);
    const customers = this.#byLine.get(cached.meter_id);
    for (const customer of cached.customers) {
      const some = customers?.get(customer);
      some?.delete(cached);
      if (some?.size === 0) customers?.delete(customer);
    }
    if (customers?.size === 0) this.#byLine.delete(cached.meter_id);
  }

  #clear(): void {
    this.running.clear();
    this.#cached.clear();
    this.#cells = 0;
    this.#cellsByTenant.clear();
    this.#open.clear();
    this.#byLine.clear();
  }
}

function isAffected({ customers: rebuilt }: ComingRebuild, { meter_id, customers }: CachedUsage): boolean {
  const some = rebuilt.get(meter_id);
  return some !== undefined && (some === null || [...customers].some((customer) => some.has(customer)));
}
