/**
 * New ids for the edges: the clock and the randomness that `core/id.ts` must not know. Ids of one kind that are made here for
 * one instant sort in the order in which they were made: the entropy of the next is that of the last plus a random step.
 */
import { randomFillSync, randomInt } from 'node:crypto';
import { formatId, type IdKind } from '../core/id.ts';
import type { Milliseconds } from '../core/time/instant.ts';

const ENTROPY_BYTES = 10;
const STEP_MAX = 0xffffff;

/** By kind, because what happens in between has an instant of its own. */
const last = new Map<IdKind, { ms: number; entropy: Uint8Array }>();

export function newId(kind: IdKind, nowMs: Milliseconds = Date.now()): string {
  const before = last.get(kind);
  const entropy = before?.entropy ?? new Uint8Array(ENTROPY_BYTES);
  if (before?.ms === nowMs) stepUp(entropy);
  else {
    entropy.set(drawn());
    // Room to count up without running over within an instant.
    entropy[0] = entropy[0]! & 0x7f;
    last.set(kind, { ms: nowMs, entropy });
  }
  return formatId(kind, nowMs, entropy);
}

/** Bytes that nobody knows, drawn for many at one time: each request has an id, and to ask for ten bytes costs what a thousand cost. */
const pool = new Uint8Array(ENTROPY_BYTES * 200);
let taken = pool.length;

function drawn(): Uint8Array {
  if (taken === pool.length) {
    randomFillSync(pool);
    taken = 0;
  }
  const bytes = pool.subarray(taken, taken + ENTROPY_BYTES);
  taken += ENTROPY_BYTES;
  return bytes;
}

/** A step that nobody knows, so that an id is not guessed from the one before it. */
function stepUp(entropy: Uint8Array): void {
  let carry = randomInt(1, STEP_MAX);
  for (let at = ENTROPY_BYTES - 1; at >= 0 && carry > 0; at--) {
    const sum = entropy[at]! + carry;
    entropy[at] = sum & 0xff;
    carry = Math.floor(sum / 256);
  }
}
