/**
 * New ids for the edges: the clock and the randomness that `core/foundation/id.ts` must not know. Ids of one kind that are made in this
 * process for one instant sort in the order of their creation: the entropy of the next is that of the last plus a random step. This
 * holds for each test clock, too, independently of the others.
 */
import { randomFillSync, randomInt } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { formatId, type IdKind } from '../../core/foundation/id.ts';
import type { Milliseconds } from '../../core/foundation/time/instant.ts';
import { CallValue } from './call-value.ts';

const ENTROPY_BYTES = 10;
const STEP_MAX = 0xffffff;

type GeneratedId = { ms: number; entropy: Uint8Array };
/** Last id by kind: with one last id for all kinds, an id of another kind and instant in between would end the sequence. */
const last = new Map<IdKind, GeneratedId>();
/** Last ids for test clocks, by kind and instant: each clock stays at its own instant until it is advanced. */
const standing = new LRUCache<string, GeneratedId>({ max: 50_000 });
/** Distance from the machine's clock above which an instant belongs to a test clock. */
const CLOCK_DISTANCE_MS = 60_000;

export function newId(kind: IdKind, nowMs: Milliseconds = Date.now()): string {
  const made = madeBefore(kind, nowMs);
  if (made.ms === nowMs) stepUp(made.entropy);
  else {
    made.ms = nowMs;
    made.entropy.set(drawn());
    // Leaves room to count up within an instant without an overflow.
    made.entropy[0] = made.entropy[0]! & 0x7f;
  }
  const id = formatId(kind, nowMs, made.entropy);
  collected.get()?.add(id);
  return id;
}

/** Ids made by the current work, if it collects them. */
const collected = new CallValue<Set<string>>();

/** Runs work and returns its result with all ids that it made. */
export async function collectNewIds<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly ids: ReadonlySet<string> }> {
  const ids = new Set<string>();
  return { result: await collected.run(ids, work), ids };
}

function madeBefore(kind: IdKind, nowMs: Milliseconds): GeneratedId {
  if (Math.abs(Date.now() - nowMs) < CLOCK_DISTANCE_MS) return known(last, kind);
  return known(standing, `${kind} ${nowMs}`);
}

function known<Key>(
  all: { get(key: Key): GeneratedId | undefined; set(key: Key, made: GeneratedId): unknown },
  key: Key,
): GeneratedId {
  let made = all.get(key);
  if (made === undefined) all.set(key, (made = { ms: Number.NaN, entropy: new Uint8Array(ENTROPY_BYTES) }));
  return made;
}

/** Random bytes, drawn for many ids at a time: each request has an id, and drawing ten bytes costs as much as drawing a thousand. */
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

/** Adds a random step, so that an id cannot be guessed from the previous one. */
function stepUp(entropy: Uint8Array): void {
  let carry = randomInt(1, STEP_MAX);
  for (let at = ENTROPY_BYTES - 1; at >= 0 && carry > 0; at--) {
    const sum = entropy[at]! + carry;
    entropy[at] = sum & 0xff;
    carry = Math.floor(sum / 256);
  }
}
