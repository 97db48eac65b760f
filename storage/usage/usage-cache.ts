/**
 * Usage that is kept in memory, where the pipeline runs in the same process: what was read once for a question is brought
 * forward by what each slice writes, so that whoever asks the same again, as dashboards, previews and balances do, is answered
 * without a statement (docs/decisions/0006).
 *
 * It follows the progress that Postgres commits, and says nothing where it cannot tell what came in between: a partition that
 * another worker has moved, rows that were rebuilt, an offset that is missing. Then the rows answer, as if it were not there.
 */
import type { BucketRow } from '../../core/metering/plan.ts';
import { type OwnedPartition, type SliceState, sumRebuilds } from '../progress/slice-state.ts';
import type { BucketQuery, Inside, StoredCells } from './bucket-cells.ts';
import { isCacheable } from './bucket-lines.ts';
import { CachedUsage, CELLS_MAX, toOpenQueryKey, toQueryKey } from './cached-usage.ts';
import { LiveUsage } from './live-usage.ts';

/** What a slice is about to add, told before Postgres commits it. */
export type ComingSlice = {
  readonly owned: OwnedPartition;
  readonly from: bigint;
  readonly to: bigint;
  /** Base rows. */
  readonly rows: readonly BucketRow[];
  getVersion(meter_id: string): number;
};

/** A rebuild of rows that is about to be committed: what `rebuildsOf` the progress is before and after it, and whose rows it writes. */
export type ComingRebuild = {
  readonly before: bigint;
  readonly after: bigint;
  /** By meter the customers whose rows are written anew; all of them when null. */
  readonly customers: ReadonlyMap<string, ReadonlySet<string> | null>;
};

/** A partition as far as all that is kept has it, and the slice that may be the next: its rows are held until it is seen to be. */
type PartitionPosition = Pick<SliceState, 'partition' | 'epoch' | 'next_offset'>;
type FollowedPartition = { readonly epoch: bigint; at: bigint; coming: ComingSlice | null };

/** Of all that is kept: some fifty megabytes. Of one tenant a part of it, so that it does not take the places of all others. */
const ALL_CELLS_MAX = 100_000;
const TENANT_CELLS_MAX = 40_000;
/** About one customer and meter: each row of theirs is added to all of these. */
const LINE_MAX = 32;
/** Told, and not seen to be committed yet. */
const REBUILDS_MAX = 64;
/** Nobody asks any more: slices are not listened to until somebody does. */
const IDLE_MS = 60_000;
/** The same for running periods, which are asked for again and again. */
const RUNNING_IDLE_MS = 3_600_000;

export class UsageCache {
  /** Of running periods: told of what is committed, and forgotten, as everything here. */
  readonly running = new LiveUsage();
  /** What comes is fed by another process (usage-feed.ts): a progress that was not fed yet is no reason to forget. */
  readonly #isFed: boolean;
  readonly #followed = new Map<number, FollowedPartition>();
  #rebuilds = 0n;
  #rebuilding: ComingRebuild[] = [];
  /** Those that were asked for last come last. */
  readonly #cached = new Map<string, CachedUsage>();
  /** By `openKeyOf`: the key of what a later end may extend. */
  readonly #open = new Map<string, string>();
  readonly #byLine = new Map<string, Map<string, Set<CachedUsage>>>();
  #cells = 0;
  readonly #cellsByTenant = new Map<string, number>();
  #wanted_until = 0;

  constructor({ isFed = false } = {}) {
    this.#isFed = isFed;
  }

  /** Of which partitions slices are missing up to this progress, and from where on. */
  findLag(progress: readonly SliceState[]): { readonly partition: number; readonly at: bigint }[] {
    return progress.flatMap(({ partition, epoch, next_offset }) => {
      const followed = this.#followed.get(partition);
      return followed?.epoch === epoch && followed.at < next_offset ? [{ partition, at: followed.at }] : [];
    });
  }

  /** All was told that anybody tells of what came before this progress. */
  fed(progress: readonly SliceState[]): void {
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + RUNNING_IDLE_MS);
    this.#followTo(progress);
  }

  /** A slice is written, and about to be committed: it counts from the moment at which Postgres says so. */
  coming(slice: ComingSlice): void {
    if (performance.now() > this.#wanted_until) {
      this.#clear();
      this.#followed.clear();
      return;
    }
    this.#moveTo({ ...slice.owned, next_offset: slice.from }).coming = slice;
  }

  /** Rows are written anew; under the lock on the bucket rows, so that there is one at a time. */
  comingRebuild(rebuild: ComingRebuild): void {
    this.#rebuilding.push(rebuild);
    if (this.#rebuilding.length > REBUILDS_MAX) this.#rebuilding.shift();
  }

  /** Brings all that is kept to this progress, and keeps it there while nobody asks for a while. */
  follow(progress: readonly SliceState[]): void {
    this.#wanted_until = Math.max(this.#wanted_until, performance.now() + RUNNING_IDLE_MS);
    this.#follow(progress);
  }

  /** Whether all that is kept stands at this progress. */
  isAt(progress: readonly SliceState[]): boolean {
    return this.#follow(progress);
  }

  /** What is asked for as of this progress, or null. */
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

  /** That of an earlier end, taken from its place: nobody asks until then any more. */
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

  /** What was read for a question while the progress stood still. */
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
   * Rows have answered, and what they said may hold slices that are not committed yet: whoever asks next must not be told of the
   * moment before them.
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

  /** Those that were asked for longest ago leave: of a tenant with too many its own, else anybody's. */
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

  /** Whether it is at this progress, or was brought there; false when it is further already, or has to be fed before. */
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

  /** Brings all that is kept to this progress; false when it is further already. */
  #followTo(progress: readonly SliceState[]): boolean {
    const rebuilds = sumRebuilds(progress);
    if (rebuilds < this.#rebuilds || progress.some((state) => this.#isLagging(state))) return false;
    // A partition that was added since.
    const known = new Set(progress.map(({ partition }) => partition));
    if ([...this.#followed.keys()].some((partition) => !known.has(partition))) return false;
    if (rebuilds !== this.#rebuilds) this.#rebuilt(rebuilds);
    for (const state of progress) this.#moveTo(state);
    return true;
  }

  /** What is kept does not know what came on a partition that has moved by other than the coming slice. */
  #moveTo({ partition, epoch, next_offset }: PartitionPosition): FollowedPartition {
    const followed = this.#followed.get(partition);
    if (followed?.epoch === epoch && this.#isAt(followed, next_offset)) return followed;
    this.#clear();
    const coming = followed?.epoch === epoch && followed.coming?.from === next_offset ? followed.coming : null;
    const moved = { epoch, at: next_offset, coming };
    this.#followed.set(partition, moved);
    return moved;
  }

  /** Of rebuilds that were told only that is forgotten whose rows they have written. */
  #rebuilt(rebuilds: bigint): void {
    let reached = this.#rebuilds;
    const touched: ComingRebuild[] = [];
    for (const pending_rebuild of this.#rebuilding) {
      // One that failed was told again.
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

  /** Whether it is at this offset, where the coming slice has been committed if it ends there. */
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
