/** New ids for the edges: the clock and the randomness that `core/id.ts` must not know. */
import { randomFillSync } from 'node:crypto';
import { formatId, type IdKind } from '../core/id.ts';

// One refill per 1,000 ids: a call to the system per id would cost more than the id.
const pool = new Uint8Array(10_000);
let used = pool.length;

export function newId(kind: IdKind, nowMs: number = Date.now()): string {
  if (used >= pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = formatId(kind, nowMs, pool.subarray(used, used + 10));
  used += 10;
  return id;
}
