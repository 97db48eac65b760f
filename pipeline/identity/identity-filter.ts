/**
 * Ids of a closed interval of the log as an immutable file (`identity-file.ts`). A filter recognizes a new id without a query to the store.
 * The fingerprints are in memory if they fit, and are read from the file otherwise.
 */
import { readSync, rmSync } from 'node:fs';
import { type FuseFilter, hasKey, hasKeyInMemory } from './fuse-filter.ts';
import { type FileSeal, IdentityFile } from './identity-file.ts';

export class IdentityFilter {
  readonly size: number;
  readonly filter_bytes: number;
  readonly #file: IdentityFile;
  readonly #shift: number;
  #resident: FuseFilter[] | null = null;
  readonly #byte = new Uint8Array(1);

  /** Opens an existing file: all of it is read and compared with its checksums. */
  static async open(path: string, seal: FileSeal, inMemory: (filterBytes: number) => boolean): Promise<IdentityFilter> {
    const filter = new IdentityFilter(await IdentityFile.open(path, seal));
    try {
      await filter.#check(inMemory(filter.filter_bytes));
      return filter;
    } catch (error) {
      filter.close();
      throw error;
    }
  }

  /** Opens a file that this process has just written. */
  static async openNew(path: string, seal: FileSeal): Promise<IdentityFilter> {
    return new IdentityFilter(await IdentityFile.open(path, seal));
  }

  private constructor(file: IdentityFile) {
    this.#file = file;
    this.size = file.parts.reduce((sum, part) => sum + part.keys, 0);
    this.filter_bytes = file.parts.reduce((sum, part) => sum + part.filter_bytes, 0);
    this.#shift = Math.clz32(file.parts.length - 1);
  }

  get path(): string {
    return this.#file.path;
  }

  get seal(): FileSeal {
    return this.#file.seal;
  }

  get is_resident(): boolean {
    return this.#resident !== null;
  }

  /** Loads the fingerprints into memory, or releases them. */
  async reside(inMemory: boolean): Promise<void> {
    if (inMemory === this.is_resident) return;
    this.#resident = inMemory ? await this.#filters() : null;
  }

  has(high: number, low: number): boolean {
    const index = (high << this.#shift) >>> this.#shift;
    const part = this.#file.parts[index]!;
    if (part.keys === 0) return false;
    if (this.#resident) return hasKeyInMemory(this.#resident[index]!, high, low);
    return hasKey(part, [high, low], (place) => this.#byteAt(part.at + place));
  }

  readPairs(index: number): Promise<Uint32Array> {
    return this.#file.readPairs(index);
  }

  close(): void {
    this.#file.close();
  }

  remove(): void {
    this.close();
    rmSync(this.path, { force: true });
  }

  async #check(inMemory: boolean): Promise<void> {
    const filters: FuseFilter[] = [];
    for (let index = 0; index < this.#file.parts.length; index++) {
      const filter = await this.#file.readFilter(index);
      if (inMemory) filters.push(filter);
      await this.#file.checkPairs(index);
    }
    if (inMemory) this.#resident = filters;
  }

  async #filters(): Promise<FuseFilter[]> {
    const filters: FuseFilter[] = [];
    for (let index = 0; index < this.#file.parts.length; index++) filters.push(await this.#file.readFilter(index));
    return filters;
  }

  #byteAt(position: number): number {
    if (readSync(this.#file.descriptor, this.#byte, 0, 1, position) !== 1)
      throw new Error(`${this.path} is shorter than it was`);
    return this.#byte[0]!;
  }
}
