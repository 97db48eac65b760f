/** Queue of many tenants: the next item is the oldest of the tenant that was served least recently. */

/** The tenant for which an item waits. */
export type Asker = string;

export class FairQueue<Item> {
  /** Waiting items by tenant; tenants are in the order of their next turn. */
  readonly #waiting = new Map<Asker, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Number of tenants with waiting items. */
  get askers(): number {
    return this.#waiting.size;
  }

  count(asker: Asker): number {
    return this.#waiting.get(asker)?.length ?? 0;
  }

  add(asker: Asker, item: Item): void {
    this.#size++;
    const own = this.#waiting.get(asker);
    if (own) own.push(item);
    else this.#waiting.set(asker, [item]);
  }

  /** Takes the next item, or the next one of a tenant for which `isEligible` holds. Its tenant moves to the end. */
  take(isEligible: (asker: Asker) => boolean = () => true): Item | undefined {
    for (const [asker, own] of this.#waiting) {
      if (!isEligible(asker)) continue;
      this.#waiting.delete(asker);
      const next = own.shift();
      if (own.length > 0) this.#waiting.set(asker, own);
      this.#size--;
      return next;
    }
    return undefined;
  }

  /** Removes the items that match and returns them. */
  remove(matches: (item: Item) => boolean, askers: Iterable<Asker> = [...this.#waiting.keys()]): Item[] {
    const removed: Item[] = [];
    for (const asker of askers) {
      const own = this.#waiting.get(asker) ?? [];
      const left = own.filter((item) => !matches(item));
      if (left.length === own.length) continue;
      removed.push(...own.filter(matches));
      this.#size -= own.length - left.length;
      // The tenant retains its turn if it still has items.
      if (left.length > 0) this.#waiting.set(asker, left);
      else this.#waiting.delete(asker);
    }
    return removed;
  }
}
