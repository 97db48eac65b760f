/**
 * Which ids a partition has seen, with bounded memory: the recent ones exactly (`identity-set.ts`), all older ones in
 * immutable files of closed stretches of the log (`identity-filter.ts`). An id that is in neither is new; one that may be in
 * either is looked up in the store. At start the files are opened, and only what stands behind them is read from ClickHouse.
 *
 * The files are a cache: without them, with another number of partitions, or beside other stores, they are made again from ClickHouse.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IdentityFilter, type IdentitySource, writeIdentityFile } from './identity-filter.ts';
import { IdentitySet } from './identity-set.ts';

export type IdentityOptions = {
  /** Where the files are; without it everything is kept exactly and in memory. */
  readonly dir: string | null;
  /** So many ids are kept exactly. */
  readonly hot_ids: number;
  /** So much of the filters is kept in memory; what is beyond is read from the files. */
  readonly filter_bytes: number;
};

export const EXACT_ONLY: IdentityOptions = { dir: null, hot_ids: Number.POSITIVE_INFINITY, filter_bytes: 0 };

/** Reads the stored hashes that stand at `from` or behind; with 0 also those of shards that came from other partitions. */
export type ReadIdentities = (
  from: bigint,
  visit: (high: number, low: number) => Promise<void> | void,
) => Promise<void>;

export type PartitionPlace = {
  readonly partition: number;
  readonly partition_count: number;
  /** Whose ids they are: the files of other stores know nothing of these. */
  readonly installation: string;
};

type Manifest = {
  installation: string;
  partition_count: number;
  until: string;
  levels: { name: string; level: number }[];
};

/** So many files of a level become one of the next. */
const FAN_OUT = 4;
const PARTS = 256;

export class IdentityMemory {
  readonly #options: IdentityOptions;
  readonly #place: PartitionPlace;
  #hot = new IdentitySet(PARTS);
  #files: { filter: IdentityFilter; level: number }[] = [];
  #until = 0n;
  #made = 0;

  /** `next`: everything before it is in ClickHouse. */
  static async open(
    options: IdentityOptions,
    place: PartitionPlace,
    { next, read }: { next: bigint; read: ReadIdentities },
  ): Promise<IdentityMemory> {
    const memory = new IdentityMemory(options, place);
    memory.#openFiles(next);
    let spilled = false;
    await read(memory.#until, (high, low) => {
      memory.#hot.add(high, low);
      if (memory.#hot.size < options.hot_ids || options.dir === null) return;
      spilled = true;
      return memory.#spill();
    });
    // The order of what was read is not that of the log: the files are complete only with the last of it.
    if (spilled) await memory.seal(next);
    return memory;
  }

  private constructor(options: IdentityOptions, place: PartitionPlace) {
    this.#options = options;
    this.#place = place;
  }

  /** True when the hash was never seen and is remembered now; false when it may have been. */
  add(high: number, low: number): boolean {
    if (!this.#hot.add(high, low)) return false;
    for (const { filter } of this.#files) if (filter.has(high, low)) return false;
    return true;
  }

  get size(): number {
    return this.#hot.size;
  }

  get bytes(): number {
    const resident = this.#files.filter(({ filter }) => filter.is_resident);
    return this.#hot.bytes + resident.reduce((sum, { filter }) => sum + filter.filter_bytes, 0);
  }

  get old(): { ids: number; files: number; filter_bytes: number } {
    const sum = (of: (filter: IdentityFilter) => number) =>
      this.#files.reduce((all, { filter }) => all + of(filter), 0);
    return {
      ids: sum((filter) => filter.size),
      files: this.#files.length,
      filter_bytes: sum((filter) => filter.filter_bytes),
    };
  }

  /** Called between slices, when everything before `next` is in ClickHouse: keeps the exact set small. */
  async settle(next: bigint): Promise<void> {
    if (this.#options.dir !== null && this.#hot.size >= this.#options.hot_ids) await this.seal(next);
  }

  /** The exact set becomes a file, and the stretch of the log before `next` is closed. */
  async seal(next: bigint): Promise<void> {
    await this.#spill();
    await this.#compact();
    this.#until = next;
    this.#writeManifest();
    this.#share();
  }

  close(): void {
    for (const { filter } of this.#files) filter.close();
    this.#files = [];
  }

  async #spill(): Promise<void> {
    const hot = this.#hot;
    if (hot.size === 0) return;
    this.#files.push({ filter: await this.#make({ parts: PARTS, pairsOf: (part) => hot.pairsOf(part) }), level: 0 });
    this.#hot = new IdentitySet(PARTS);
  }

  /** A few small files become a larger one, so that an id is looked for in few of them. */
  async #compact(): Promise<void> {
    for (let level = 0; ; level++) {
      const some = this.#files.filter((file) => file.level === level);
      if (some.length === 0 && !this.#files.some((file) => file.level > level)) return;
      if (some.length < FAN_OUT) continue;
      const pairsOf = (part: number) => joined(some.map(({ filter }) => filter.pairsOf(part)));
      const filter = await this.#make({ parts: PARTS, pairsOf });
      this.#files = [...this.#files.filter((file) => !some.includes(file)), { filter, level: level + 1 }];
      this.#writeManifest();
      for (const file of some) file.filter.remove();
    }
  }

  async #make(source: IdentitySource): Promise<IdentityFilter> {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const path = join(this.#dir, `${process.pid}-${Date.now()}-${this.#made++}.ids`);
    await writeIdentityFile(path, source);
    const filter = IdentityFilter.open(path);
    filter.reside(true);
    return filter;
  }

  /** The newest filters stay in memory as far as it goes. */
  #share(): void {
    let rest = this.#options.filter_bytes;
    for (const { filter } of [...this.#files].sort((a, b) => a.level - b.level)) {
      filter.reside(filter.filter_bytes <= rest);
      if (filter.is_resident) rest -= filter.filter_bytes;
    }
  }

  get #dir(): string {
    return join(this.#options.dir!, `partition-${this.#place.partition}`);
  }

  #openFiles(next: bigint): void {
    if (this.#options.dir === null || !existsSync(this.#dir)) return;
    const manifest = readManifest(this.#dir);
    const { partition_count, installation } = this.#place;
    const ours = manifest?.partition_count === partition_count && manifest.installation === installation;
    const fits = ours && BigInt(manifest.until) <= next;
    try {
      if (fits) {
        this.#files = manifest.levels.map(({ name, level }) => ({
          filter: IdentityFilter.open(join(this.#dir, name)),
          level,
        }));
        this.#until = BigInt(manifest.until);
        this.#share();
      }
    } catch {
      // A file is missing or damaged: they are made again.
      this.close();
      this.#until = 0n;
    }
    const kept = new Set(this.#files.map(({ filter }) => filter.path));
    for (const name of readdirSync(this.#dir)) {
      if (name !== MANIFEST && !kept.has(join(this.#dir, name))) rmSync(join(this.#dir, name), { force: true });
    }
  }

  #writeManifest(): void {
    const { partition_count, installation } = this.#place;
    const levels = this.#files.map(({ filter, level }) => ({ name: filter.path.slice(this.#dir.length + 1), level }));
    const manifest: Manifest = { installation, partition_count, until: String(this.#until), levels };
    const draft = join(this.#dir, `${MANIFEST}.draft`);
    writeFileSync(draft, JSON.stringify(manifest), { mode: 0o600, flush: true });
    renameSync(draft, join(this.#dir, MANIFEST));
  }
}

const MANIFEST = 'manifest.json';

function readManifest(dir: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(dir, MANIFEST), 'utf8')) as Manifest;
  } catch {
    return undefined;
  }
}

function joined(some: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(some.reduce((length, pairs) => length + pairs.length, 0));
  let at = 0;
  for (const pairs of some) {
    all.set(pairs, at);
    at += pairs.length;
  }
  return all;
}
