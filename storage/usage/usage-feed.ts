/**
 * Feeds the usage cache of an API process with the slices of other processes, before any reader uses a progress that includes them
 * (docs/decisions/0007-cached-answers.md). A slice is missing if it was not published (not requested yet, or too large) or was read too
 * late. The cache then clears itself, as it does when another worker takes over a partition.
 */

import type { Database } from '../foundation/stores.ts';
import type { PartitionPosition } from '../progress/partition-progress.ts';
import { readSliceNotifications, requestSliceNotifications } from '../progress/slice-notifications.ts';
import type { UsageCache } from './usage-cache.ts';

/** Interval at which notifications are requested; shorter than the time for which a request is valid. */
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

  /** Calls run one after the other, because each continues at the progress of the previous one. */
  feedUntil(progress: readonly PartitionPosition[]): Promise<void> {
    const own = this.#last.then(() => this.#feedUntil(progress));
    this.#last = own.catch(() => undefined);
    return own;
  }

  async #feedUntil(progress: readonly PartitionPosition[]): Promise<void> {
    if (performance.now() - this.#wanted_ms > WANT_EVERY_MS) {
      await requestSliceNotifications(this.#database);
      this.#wanted_ms = performance.now();
    }
    const behind = this.#memory.findLag(progress);
    if (behind.length > 0) {
      const until = new Map(progress.map(({ partition, next_offset }) => [partition, next_offset]));
      for (const { partition, epoch, ...slice } of await readSliceNotifications(this.#database, behind))
        if (slice.to <= until.get(partition)!)
          this.#memory.announceSlice({ owned_partition: { partition, epoch }, ...slice });
    }
    this.#memory.followFed(progress);
  }
}

const feeds = new WeakMap<Database, UsageFeed>();

/**
 * Starts the feed of this cache. Must be called before a reader uses the progress of this pool, and before values derived from its usage
 * are cached.
 */
export function startUsageFeed(database: Database, memory: UsageCache): void {
  feeds.set(database, new UsageFeed(database, memory));
}

export function getUsageFeed(database: Database): UsageFeed | undefined {
  return feeds.get(database);
}
