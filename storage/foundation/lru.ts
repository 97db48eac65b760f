import { LRUCache } from 'lru-cache';

/** Without the option `max`, which allocates all slots at once, however few are used: 10 ms for ten thousand entries. */
export function createLru<Value extends {}>(entries_max: number, ttl_ms = 0): LRUCache<string, Value> {
  return new LRUCache({ maxSize: entries_max, sizeCalculation: () => 1, ttl: ttl_ms });
}
