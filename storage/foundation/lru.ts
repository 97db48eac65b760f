import { LRUCache } from 'lru-cache';

/**
 * The option `max` is not used, because it allocates all slots at once: that takes 10 ms for ten thousand entries, however few are used.
 * An expired entry remains until its slot is needed, for readers that allow it.
 */
export function createLru<Value extends {}>(entries_max: number, ttl_ms = 0): LRUCache<string, Value> {
  return new LRUCache({ maxSize: entries_max, sizeCalculation: () => 1, ttl: ttl_ms, noDeleteOnStaleGet: true });
}
