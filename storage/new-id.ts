/**
 * New ids for the edges: the clock and the randomness that `core/id.ts` must not know. Ids made here one after another sort
 * in that order, also within a millisecond: the entropy of the next is that of the last plus one.
 */
import { randomFillSync } from 'node:crypto';
import { formatId, type IdKind } from '../core/id.ts';

const ENTROPY_BYTES = 10;
const entropy = new Uint8Array(ENTROPY_BYTES);
let lastMs = -1;

export function newId(kind: IdKind, nowMs: number = Date.now()): string {
  if (nowMs === lastMs) increment();
  else {
    randomFillSync(entropy);
    // Room to count up without running over within a millisecond.
    entropy[0]! &= 0x7f;
    lastMs = nowMs;
  }
  return formatId(kind, nowMs, entropy);
}

/** Adds a random step, so that an id cannot be guessed from the one before it. */
function increment(): void {
  let carry = 1 + Math.floor(Math.random() * 0xffffff);
  for (let at = ENTROPY_BYTES - 1; at >= 0 && carry > 0; at--) {
    const sum = entropy[at]! + carry;
    entropy[at] = sum & 0xff;
    carry = Math.floor(sum / 256);
  }
}
