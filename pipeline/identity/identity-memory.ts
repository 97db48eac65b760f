/**
 * The ids that a partition has seen, with bounded memory: the recent ones exactly (`identity-set.ts`), all older ones in immutable files of
 * closed intervals of the log (`identity-filter.ts`). An id in neither is new; an id that may be in either is queried in the store. At
 * start the files are read and compared with their checksums. Only ids after the end of the files are read from ClickHouse.
 *
 * The files are a cache. They are rebuilt from ClickHouse if they are missing, have a damaged byte, or belong to another number of
 * partitions or to other stores. `onRemade` reports this.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../../storage/foundation/make-directory.ts';
import { pipelineMetrics } from '../metrics.ts';
import { DamagedFile, type IdentitySource, joinPairs, writeIdentityFile } from './identity-file.ts';
import { IdentityFilter } from './identity-filter.ts';
import { type Manifest, readManifest, writeManifest } from './identity-manifest.ts';
import { IdentitySet } from './identity-set.ts';

export type IdentityOptions = {
  /** Folder of the files. If null, all seen ids are held in memory as an exact set. */
  readonly dir: string | null;
  /** Maximum number of ids in the exact set in memory. */
  readonly hot_ids: number;
  /** Memory for the filters. Filters beyond it are read from the files. */
  readonly filter_bytes: number;
  /** Receives the reason when files are rebuilt. */
  readonly onRemade?: ((partition: number, why: string) => void) | undefined;
};

export const EXACT_ONLY: IdentityOptions = { dir: null, hot_ids: Number.POSITIVE_INFINITY, filter_bytes: 0 };

/**
 * Reads the stored hashes in [`from`, `before`) of the log. If `from` is 0, it also reads hashes that another partition wrote for shards of
 * this one, before the number of partitions changed. It reads all of them or fails.
 */
export type ReadIdentities = (
  range: { from: bigint; before: bigint },
  visit: (high: number, low: number) => Promise<void> | void,
) => Promise<void>;

type IdentityPartition = {
  readonly partition: number;
  readonly partition_count: number;
  /** Id of the installation. Files of another installation are rebuilt, because they do not have the ids of this one. */
  readonly installation: string;
};

/** Number of files of a level that merge into one of the next level. */
const FAN_OUT = 4;
const PARTS = 256;

export class IdentityMemory {
  readonly #options: IdentityOptions;
  readonly #partition: IdentityPartition;
  readonly #read: ReadIdentities;
  #hot = new IdentitySet(PARTS);
  #files: { filter: IdentityFilter; level: number }[] = [];
  #until = 0n;
  #made = 0;
  #is_closed = false;

  /** Opens the identities of a partition. `next`: log offset before which everything is in ClickHouse. */
  static async open(
    options: IdentityOptions,
    partition: IdentityPartition,
    { next, read }: { next: bigint; read: ReadIdentities },
  ): Promise<IdentityMemory> {
    const memory = new IdentityMemory(options, partition, read);
    try {
      await memory.#openFiles(next);
      await memory.#readAfterFiles(next);
      return memory;
    } catch (error) {
      memory.close();
      throw error;
    }
  }

  private constructor(options: IdentityOptions, partition: IdentityPartition, read: ReadIdentities) {
    this.#options = options;
    this.#partition = partition;
    this.#read = read;
  }

  /** Adds a hash. Returns true if it is new, false if it may have been seen. */
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

  /**
   * Writes the exact set to a file if it has reached its limit. Must be called between slices, when everything before `next` is in
   * ClickHouse.
   */
  async sealIfFull(next: bigint): Promise<void> {
    if (this.#options.dir === null || this.#hot.size < this.#options.hot_ids) return;
    try {
      await this.seal(next);
    } catch (error) {
      if (!(error instanceof DamagedFile) || this.#is_closed) throw error;
      this.#rebuildFromStore(error.message);
      await this.#readAfterFiles(next);
    }
  }

  /** Writes the exact set to a file and closes the interval of the log before `next`. */
  async seal(next: bigint): Promise<void> {
    await this.#spill();
    await this.#compact();
    this.#until = next;
    this.#writeManifest();
    await this.#share();
  }

  close(): void {
    this.#is_closed = true;
    this.#closeFiles();
  }

  /** Reads the ids that ClickHouse has at or after the end of the files. */
  async #readAfterFiles(next: bigint): Promise<void> {
    let spilled = false;
    await this.#read({ from: this.#until, before: next }, (high, low) => {
      this.#hot.add(high, low);
      if (this.#hot.size < this.#options.hot_ids || this.#options.dir === null) return;
      spilled = true;
      return this.#spill();
    });
    // The rows are not in the order of the log, so the interval of the files is closed only after the last row.
    if (spilled) await this.seal(next);
  }

  async #spill(): Promise<void> {
    const hot = this.#hot;
    if (hot.size === 0) return;
    this.#files.push({
      filter: await this.#make({ parts: PARTS, readPairs: (part) => hot.listPairs(part) }),
      level: 0,
    });
    this.#hot = new IdentitySet(PARTS);
  }

  /** Merges a few small files into a larger one, so that an id is searched in few files. */
  async #compact(): Promise<void> {
    for (let level = 0; ; level++) {
      const some = this.#files.filter((file) => file.level === level);
      if (some.length === 0 && !this.#files.some((file) => file.level > level)) return;
      if (some.length < FAN_OUT) continue;
      const readPairs = async (part: number) =>
        joinPairs(await Promise.all(some.map(({ filter }) => filter.readPairs(part))));
      const filter = await this.#make({ parts: PARTS, readPairs });
      this.#files = [...this.#files.filter((file) => !some.includes(file)), { filter, level: level + 1 }];
      this.#writeManifest();
      for (const file of some) file.filter.remove();
    }
  }

  async #make(source: IdentitySource): Promise<IdentityFilter> {
    makeDirectory(this.#dir, 0o700);
    const path = join(this.#dir, `${process.pid}-${Date.now()}-${this.#made++}.ids`);
    const filter = await IdentityFilter.openNew(path, await writeIdentityFile(path, source));
    await filter.reside(true);
    return filter;
  }

  /** Decides which filters are in memory: the newest ones, as far as the budget allows. */
  async #share(): Promise<void> {
    const fits = this.#budget();
    for (const { filter } of this.#newestFirst(this.#files)) await filter.reside(fits(filter.filter_bytes));
  }

  #budget(): (bytes: number) => boolean {
    let rest = this.#options.filter_bytes;
    return (bytes) => {
      if (bytes > rest) return false;
      rest -= bytes;
      return true;
    };
  }

  #newestFirst<File extends { level: number }>(files: readonly File[]): File[] {
    return [...files].sort((a, b) => a.level - b.level);
  }

  get #dir(): string {
    return join(this.#options.dir!, `partition-${this.#partition.partition}`);
  }

  async #openFiles(next: bigint): Promise<void> {
    if (this.#options.dir === null || !existsSync(this.#dir)) return;
    try {
      await this.#openNamed(this.#manifestFor(next));
    } catch (error) {
      // The cause may also be a missing file, or a disk that fails to read it.
      return this.#rebuildFromStore((error as Error).message);
    }
    const filesInUse = new Set(this.#files.map(({ filter }) => filter.path));
    for (const name of readdirSync(this.#dir).filter((each) => each.includes('.ids')))
      if (!filesInUse.has(join(this.#dir, name))) rmSync(join(this.#dir, name), { force: true });
  }

  async #openNamed({ files, until }: Manifest): Promise<void> {
    const fits = this.#budget();
    for (const { name, level, ...seal } of this.#newestFirst(files))
      this.#files.push({ filter: await IdentityFilter.open(join(this.#dir, name), seal, fits), level });
    this.#until = BigInt(until);
  }

  #manifestFor(next: bigint): Manifest {
    const { partition, partition_count, installation } = this.#partition;
    const manifest = readManifest(this.#dir);
    if (!manifest) throw new Error('there is no manifest');
    if (manifest.installation !== installation) throw new Error('they belong to another installation');
    if (manifest.partition !== partition) throw new Error('they belong to another partition');
    if (manifest.partition_count !== partition_count) throw new Error('the log has another number of partitions');
    if (BigInt(manifest.until) > next) throw new Error('they know more of the log than the stores do');
    return manifest;
  }

  /** Discards the files, because none of them is trusted any more. */
  #rebuildFromStore(why: string): void {
    this.#closeFiles();
    this.#hot = new IdentitySet(PARTS);
    this.#until = 0n;
    rmSync(this.#dir, { recursive: true, force: true });
    pipelineMetrics.identityFilesRemade();
    this.#options.onRemade?.(this.#partition.partition, why);
  }

  #closeFiles(): void {
    for (const { filter } of this.#files) filter.close();
    this.#files = [];
  }

  #writeManifest(): void {
    const files = this.#files.map(({ filter, level }) => ({
      name: filter.path.slice(this.#dir.length + 1),
      level,
      ...filter.seal,
    }));
    writeManifest(this.#dir, { ...this.#partition, until: String(this.#until), files });
  }
}
