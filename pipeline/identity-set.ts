/**
 * The ids that were seen, as 64-bit hashes in two typed arrays with open addressing: no object per id, at most about 13
 * bytes each on the way to a doubling. A hash that is not here was never accepted; one that is here needs the exact
 * look-up by id (`storage/events/identities.ts`), so a collision costs time and never an event.
 */
export class IdentitySet {
  #high: Uint32Array;
  #low: Uint32Array;
  #mask: number;
  #size = 0;

  constructor(expected = 1024) {
    let slots = 1024;
    while (slots * 0.6 < expected) slots *= 2;
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#mask = slots - 1;
  }

  get size(): number {
    return this.#size;
  }

  /** Memory held for the ids, in bytes. */
  get bytes(): number {
    return this.#high.byteLength + this.#low.byteLength;
  }

  /** True when the hash is new and now remembered; false when it was here. */
  add(high: number, low: number): boolean {
    // (0, 0) marks a free slot; the one id in 2^64 that hashes to it shares the slot of (0, 1).
    const lower = high === 0 && low === 0 ? 1 : low;
    const highs = this.#high;
    const lows = this.#low;
    let slot = (lower ^ (high >>> 7)) & this.#mask;
    while (highs[slot] !== 0 || lows[slot] !== 0) {
      if (highs[slot] === high && lows[slot] === lower) return false;
      slot = (slot + 1) & this.#mask;
    }
    highs[slot] = high;
    lows[slot] = lower;
    if (++this.#size > this.#mask * 0.7) this.#grow();
    return true;
  }

  #grow(): void {
    const highs = this.#high;
    const lows = this.#low;
    const slots = highs.length * 2;
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#mask = slots - 1;
    for (let old = 0; old < highs.length; old++) {
      if (highs[old] === 0 && lows[old] === 0) continue;
      let slot = (lows[old]! ^ (highs[old]! >>> 7)) & this.#mask;
      while (this.#high[slot] !== 0 || this.#low[slot] !== 0) slot = (slot + 1) & this.#mask;
      this.#high[slot] = highs[old]!;
      this.#low[slot] = lows[old]!;
    }
  }
}
