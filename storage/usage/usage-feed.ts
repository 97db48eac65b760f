/**
 * Tells the memory of usage of an interface that is a process of its own what the slices of other processes have added, before anybody there goes by a progress
 * that has them (docs/decisions/0006-usage-reads.md). A slice that nobody has told, because nobody wanted it yet, it was too much, or it was asked
 * for too late, is one of which the memory knows nothing: it forgets all that it keeps, as where a partition was moved by another worker.
 */

import { readSliceNotifications, requestSliceNotifications } from '../progress/slice-notifications.ts';
import type { SliceState } from '../progress/slice-state.ts';
import type { Database } from '../stores.ts';
import type { UsageCache } from './usage-cache.ts';

/** Well within the time for which it is believed. */
const WANT_EVERY_MS = 15_000;

export class UsageFeed {
  readonly #database: Database;
  readonly #memory: UsageCache;
  #last: Promise<void> = Promise.resolve();
  #wanted_ms = Number.NEGATIVE_INFINITY;

  constructor(database: Database, memory: UsageCache) {
    this.#database = database;
    this.#memory = memory;
  }

  /** One after the other: each goes on from where the one before it came to. */
  bring(progress: readonly SliceState[]): Promise<void> {
    const own = this.#last.then(() => this.#bring(progress));
    this.#last = own.catch(() => undefined);
    return own;
  }

  async #bring(progress: readonly SliceState[]): Promise<void> {
    if (performance.now() - this.#wanted_ms > WANT_EVERY_MS) {
      await requestSliceNotifications(this.#database);
      this.#wanted_ms = performance.now();
    }
    const behind = this.#memory.findLag(progress);
    if (behind.length > 0) {
      const until = new Map(progress.map(({ partition, next_offset }) => [partition, next_offset]));
      for (const { partition, epoch, ...slice } of await readSliceNotifications(this.#database, behind))
        if (slice.to <= until.get(partition)!) this.#memory.coming({ owned: { partition, epoch }, ...slice });
    }
    this.#memory.fed(progress);
  }
}

const feeds = new WeakMap<Database, UsageFeed>();

/** From now on whoever looks at the progress of this pool, or reads usage by it to keep what is made of it, is fed first. */
export function startUsageFeed(database: Database, memory: UsageCache): void {
  feeds.set(database, new UsageFeed(database, memory));
}

export function getUsageFeed(database: Database): UsageFeed | undefined {
  return feeds.get(database);
}
