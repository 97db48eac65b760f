/**
 * Usage that is kept in memory, where the pipeline runs in the same process: what was read once for a question is brought
 * forward by what each slice writes, so that whoever asks the same again, as dashboards, previews and balances do, is answered
 * without a statement (docs/decisions/0012).
 *
 * It follows the progress that Postgres commits, and says nothing where it cannot tell what came in between: a partition that
 * another worker has moved, rows that were rebuilt, an offset that is missing. Then the rows answer, as if it were not there.
 */
import type { BucketRow } from '../../core/metering/plan.ts';
import { type HeldPartition, rebuildsOf, type SliceState } from '../progress/slice-state.ts';
import type { BucketQuestion, Inside, StoredCells } from './bucket-cells.ts';
import { isOfLines } from './bucket-lines.ts';
import { CELLS_MAX, KeptUsage, keyOf, openKeyOf } from './kept-usage.ts';

/** What a slice is about to add, told before Postgres commits it. */
export type ComingSlice = {
  readonly held: HeldPartition;
  readonly from: bigint;
  readonly to: bigint;
  /** Base rows. */
  readonly rows: readonly BucketRow[];
  versionOf(meter_id: string): number;
};

/** A rebuild of rows that is about to be committed: how far `rebuildsOf` the progress will have grown then, and what of. */
export type ComingRebuild = {
  readonly before: bigint;
  readonly after: bigint;
  /** By meter the customers whose rows are written anew; all of them when null. */
  readonly customers: ReadonlyMap<string, ReadonlySet<string> | null>;
};

/** A partition as far as all that is kept has it, and the slice that may be the next. */
type PartitionPlace = Pick<SliceState, 'partition' | 'epoch' | 'next_offset'>;
type Followed = { readonly epoch: bigint; at: bigint; coming: ComingSlice | null };

/** Of all that is kept: a hundred megabytes at worst. */
const ALL_CELLS_MAX = 100_000;
/** Nobody asks any more: slices are not listened to until somebody does. */
const IDLE_MS = 60_000;

export class UsageMemory {
  readonly #followed = new Map<number, Followed>();
  #rebuilds = 0n;
  #rebuilding: ComingRebuild | null = null;
  /** Those that were asked for last come last. */
  readonly #kept = new Map<string, KeptUsage>();
  /** Where the end does not matter: the key of the latest. */
  readonly #open = new Map<string, string>();
  readonly #byLine = new Map<string, Map<string, Set<KeptUsage>>>();
  #cells = 0;
  #wanted_until = 0;

  /** A slice is written, and about to be committed: it counts from the moment at which Postgres says so. */
  coming(slice: ComingSlice): void {
    if (performance.now() > this.#wanted_until) {
      this.#forget();
      this.#followed.clear();
      return;
    }
    this.#moveTo({ ...slice.held, next_offset: slice.from }).coming = slice;
  }

  /** Rows are written anew; under the lock on the bucket rows, so that there is one at a time. */
  comingRebuild(rebuild: ComingRebuild): void {
    this.#rebuilding = rebuild;
  }

  /** What is asked for as of this progress, or null. */
  find(question: BucketQuestion, inside: Inside | undefined, progress: readonly SliceState[]): StoredCells | null {
    if (!isOfLines(question)) return null;
    this.#wanted_until = performance.now() + IDLE_MS;
    if (!this.#follow(progress)) return null;
    const key = keyOf(question, inside);
    const kept = this.#kept.get(key) ?? this.#extended(question);
    if (kept === undefined) return null;
    this.#put(key, kept);
    if (kept.is_overgrown) return null;
    return kept.answer(question, inside);
  }

  /** That of an earlier end, taken from its place: nobody asks until then any more. */
  #extended(question: BucketQuestion): KeptUsage | undefined {
    const open = openKeyOf(question);
    const key = open === null ? undefined : this.#open.get(open);
    const kept = key === undefined ? undefined : this.#kept.get(key);
    if (!kept?.extendTo(question)) return undefined;
    this.#kept.delete(key!);
    return kept;
  }

  #put(key: string, kept: KeptUsage): void {
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    if (kept.open_key !== null) this.#open.set(kept.open_key, key);
  }

  /** What was read for a question while the progress stood still. */
  keep(
    question: BucketQuestion,
    { inside, progress, stored }: { inside: Inside | undefined; progress: readonly SliceState[]; stored: StoredCells },
  ): void {
    if (stored.cells.length > CELLS_MAX || !isOfLines(question) || !this.#follow(progress)) return;
    const key = keyOf(question, inside);
    const known = this.#kept.get(key);
    if (known) this.#drop(key, known);
    const kept = new KeptUsage(question, stored);
    this.#put(key, kept);
    this.#cells += kept.weight;
    for (const customer of kept.customers) this.#atLine(question.meter.id, customer).add(kept);
    for (const [oldest, of] of this.#kept) {
      if (this.#cells <= ALL_CELLS_MAX) break;
      this.#drop(oldest, of);
    }
  }

  /** Brings all that is kept to this progress; false when it is further already. */
  #follow(progress: readonly SliceState[]): boolean {
    const rebuilds = rebuildsOf(progress);
    if (rebuilds < this.#rebuilds || progress.some((state) => this.#isBehind(state))) return false;
    if (rebuilds !== this.#rebuilds) this.#rebuilt(rebuilds);
    for (const state of progress) this.#moveTo(state);
    return true;
  }

  /** What is kept does not know what came on a partition that has moved by other than the coming slice. */
  #moveTo({ partition, epoch, next_offset }: PartitionPlace): Followed {
    const followed = this.#followed.get(partition);
    if (followed?.epoch === epoch && this.#isAt(followed, next_offset)) return followed;
    this.#forget();
    const coming = followed?.epoch === epoch && followed.coming?.from === next_offset ? followed.coming : null;
    const moved = { epoch, at: next_offset, coming };
    this.#followed.set(partition, moved);
    return moved;
  }

  /** Of what was told only those are forgotten whose rows were written anew. */
  #rebuilt(rebuilds: bigint): void {
    const told = this.#rebuilding;
    if (told?.before === this.#rebuilds && told.after === rebuilds) {
      for (const [key, kept] of [...this.#kept]) if (isOf(told, kept)) this.#drop(key, kept);
    } else this.#forget();
    this.#rebuilds = rebuilds;
  }

  #isBehind({ partition, epoch, next_offset }: SliceState): boolean {
    const followed = this.#followed.get(partition);
    return (
      followed !== undefined && (epoch < followed.epoch || (epoch === followed.epoch && next_offset < followed.at))
    );
  }

  /** Whether it is at this offset, where the coming slice has been committed if it ends there. */
  #isAt(followed: Followed, offset: bigint): boolean {
    const { coming } = followed;
    if (followed.at !== offset && coming?.from === followed.at && coming.to === offset) {
      this.#add(coming);
      followed.at = offset;
      followed.coming = null;
    }
    return followed.at === offset;
  }

  #add({ rows, versionOf }: ComingSlice): void {
    if (this.#byLine.size === 0) return;
    for (const row of rows) {
      const some = this.#byLine.get(row.meter_id)?.get(row.external_customer_id);
      if (some === undefined) continue;
      const version = versionOf(row.meter_id);
      for (const kept of some) kept.add(row, version);
    }
  }

  #atLine(meter_id: string, customer: string): Set<KeptUsage> {
    let customers = this.#byLine.get(meter_id);
    if (customers === undefined) this.#byLine.set(meter_id, (customers = new Map()));
    let some = customers.get(customer);
    if (some === undefined) customers.set(customer, (some = new Set()));
    return some;
  }

  #drop(key: string, kept: KeptUsage): void {
    this.#kept.delete(key);
    this.#cells -= kept.weight;
    if (kept.open_key !== null && this.#open.get(kept.open_key) === key) this.#open.delete(kept.open_key);
    const customers = this.#byLine.get(kept.meter_id);
    for (const customer of kept.customers) {
      const some = customers?.get(customer);
      some?.delete(kept);
      if (some?.size === 0) customers?.delete(customer);
    }
    if (customers?.size === 0) this.#byLine.delete(kept.meter_id);
  }

  #forget(): void {
    this.#kept.clear();
    this.#cells = 0;
    this.#open.clear();
    this.#byLine.clear();
  }
}

function isOf({ customers: rebuilt }: ComingRebuild, { meter_id, customers }: KeptUsage): boolean {
  const some = rebuilt.get(meter_id);
  return some !== undefined && (some === null || [...customers].some((customer) => some.has(customer)));
}
