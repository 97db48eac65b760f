/**
 * The seen ids as 64-bit hashes in typed arrays with open addressing. There is no object per id. An id takes at most 15 bytes, because a
 * table grows by half instead of doubling. There are many small tables, so none takes long to grow and the memory for old and new copies
 * stays small. A hash that is not in the set was never accepted. A hash in the set needs the exact query by id
 * (`storage/events/identities.ts`), so a collision costs time and never an event.
 */
export class IdentitySet {
  readonly #tables: IdentityTable[];
  readonly #mask: number;

  /** Creates an empty set; `table_count` is a power of two. */
  constructor(table_count = 256) {
    this.#tables = Array.from({ length: table_count }, () => new IdentityTable());
    this.#mask = table_count - 1;
  }

  get size(): number {
    return this.#tables.reduce((sum, table) => sum + table.size, 0);
  }

  /** Memory of the ids, in bytes. */
  get bytes(): number {
    return this.#tables.reduce((sum, table) => sum + table.bytes, 0);
  }

  /** Adds a hash. Returns true if it is new. */
  add(high: number, low: number): boolean {
    // (0, 0) marks a free slot; the one id in 2^64 that hashes to it shares the slot of (0, 1).
    const lower = high === 0 && low === 0 ? 1 : low;
    // The upper bits of `high` are the shard and equal within a partition, so the lower bits choose the table.
    return this.#tables[high & this.#mask]!.add(high, lower);
  }

  get table_count(): number {
    return this.#tables.length;
  }

  /** The hashes of one table, as two halves each. Filters are built from them (`pipeline/identity/identity-filter.ts`). */
  listPairs(table: number): Uint32Array {
    return this.#tables[table]!.pairs();
  }
}

const SLOTS_AT_FIRST = 16;
const FULLEST = 0.82;
const GROWTH = 1.5;

class IdentityTable {
  #words = new Uint32Array(SLOTS_AT_FIRST * 2);
  #slots = SLOTS_AT_FIRST;
  #full = Math.floor(SLOTS_AT_FIRST * FULLEST);
  size = 0;

  get bytes(): number {
    return this.#words.byteLength;
  }

  pairs(): Uint32Array {
    const words = this.#words;
    const pairs = new Uint32Array(this.size * 2);
    let next = 0;
    for (let at = 0; at < words.length; at += 2) {
      if (words[at] === 0 && words[at + 1] === 0) continue;
      pairs[next++] = words[at]!;
      pairs[next++] = words[at + 1]!;
    }
    return pairs;
  }

  add(high: number, low: number): boolean {
    if (this.size >= this.#full) this.#grow();
    const isNew = this.#put(high, low);
    if (isNew) this.size++;
    return isNew;
  }

  #put(high: number, low: number): boolean {
    const words = this.#words;
    const end = words.length;
    let at = Math.floor((low * this.#slots) / 4294967296) * 2;
    while (words[at] !== 0 || words[at + 1] !== 0) {
      if (words[at] === high && words[at + 1] === low) return false;
      at += 2;
      if (at === end) at = 0;
    }
    words[at] = high;
    words[at + 1] = low;
    return true;
  }

  #grow(): void {
    const old = this.#words;
    this.#slots = Math.ceil(this.#slots * GROWTH);
    this.#full = Math.floor(this.#slots * FULLEST);
    this.#words = new Uint32Array(this.#slots * 2);
    for (let at = 0; at < old.length; at += 2)
      if (old[at] !== 0 || old[at + 1] !== 0) this.#put(old[at]!, old[at + 1]!);
  }
}
