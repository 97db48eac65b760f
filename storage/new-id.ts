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
    randomFillSync(entropy);
    // Room to count up without running over within an instant.
    entropy[0] = entropy[0]! & 0x7f;
    last.set(kind, { ms: nowMs, entropy });
  }
  return formatId(kind, nowMs, entropy);
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
