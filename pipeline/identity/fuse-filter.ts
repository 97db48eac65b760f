/**
 * A binary fuse filter (Graf and Lemire, 2022) with fingerprints of 8 bits. It needs about 9 bits per key, never gives a false "no", and
 * gives a false "yes" for one key in 256. Each key owns three slots in neighbouring segments; the bytes there, XORed, equal its
 * fingerprint. The filter is built once from all its keys by repeatedly peeling off a key that is alone in one of its slots.
 */
export type FuseFilter = {
  readonly seed: number;
  /** Number of slots per segment, always a power of two. */
  readonly segment_length: number;
  readonly segment_count: number;
  readonly fingerprints: Uint8Array;
};

const TRIES_MAX = 100;

/** Builds a filter from distinct keys; `pairs` has two 32-bit halves for each. */
export function makeFuseFilter(pairs: Uint32Array): FuseFilter {
  const keys = pairs.length / 2;
  const shape = shapeFor(keys);
  for (let seed = 1; seed <= TRIES_MAX; seed++) {
    const filter = { ...shape, seed, fingerprints: new Uint8Array((shape.segment_count + 2) * shape.segment_length) };
    if (fill(filter, pairs, keys)) return filter;
  }
  throw new Error('a filter could not be made: are its keys distinct?');
}

/** Slots and fingerprint of the key that `locate` computed last. They are module state, so that no object is created per key. */
const at = { a: 0, b: 0, c: 0, fingerprint: 0 };

/**
 * Whether the key may be in the filter; true for every key it was built from. `byteAt` reads one byte of the
 * fingerprints.
 */
export function hasKey(
  filter: Omit<FuseFilter, 'fingerprints'>,
  [high, low]: readonly [number, number],
  byteAt: (place: number) => number,
): boolean {
  locate(filter, high, low);
  const { a, b, c, fingerprint } = at;
  return (byteAt(a) ^ byteAt(b) ^ byteAt(c)) === fingerprint;
}

/** Variant of `hasKey` for fingerprints in memory. It is called for every event. */
export function hasKeyInMemory(filter: FuseFilter, high: number, low: number): boolean {
  locate(filter, high, low);
  const { fingerprints } = filter;
  return (fingerprints[at.a]! ^ fingerprints[at.b]! ^ fingerprints[at.c]!) === at.fingerprint;
}

function shapeFor(keys: number): { segment_length: number; segment_count: number } {
  const n = Math.max(2, keys);
  const exponent = Math.min(16, Math.max(2, Math.floor(Math.log(n) / Math.log(3.33) + 2.25)));
  const segment_length = 2 ** exponent;
  const factor = Math.max(1.125, 0.875 + (0.25 * Math.log(1_000_000)) / Math.log(n));
  const segment_count = Math.max(1, Math.ceil(Math.round(n * factor) / segment_length) - 2);
  return { segment_length, segment_count };
}

function locate(
  { seed, segment_length, segment_count }: Omit<FuseFilter, 'fingerprints'>,
  high: number,
  low: number,
): void {
  let x = Math.imul(high ^ Math.imul(seed, 0x9e3779b1), 0x85ebca6b);
  let y = Math.imul(low ^ x ^ (x >>> 15), 0xc2b2ae35);
  x = Math.imul(x ^ (y >>> 13), 0x27d4eb2f);
  y ^= Math.imul(x ^ (x >>> 16), 0x165667b1);
  x ^= Math.imul(y ^ (y >>> 15), 0x9e3779b1);
  const first = Math.floor(((x >>> 0) / 4294967296) * segment_count * segment_length);
  const mask = segment_length - 1;
  at.a = first;
  at.b = (first + segment_length) ^ ((y >>> 16) & mask);
  at.c = (first + 2 * segment_length) ^ (y & mask);
  at.fingerprint = (Math.imul(x ^ (y >>> 7), 0x2c1b3c6d) >>> 24) & 0xff;
}

/** Fills the filter; returns false if the keys cannot be peeled with this seed. */
function fill(filter: FuseFilter, pairs: Uint32Array, keys: number): boolean {
  const places = filter.fingerprints.length;
  const counts = new Uint32Array(places);
  // XOR of the numbers of all keys in a slot. If one key is left in it, this is its number.
  const owners = new Uint32Array(places);
  const toggle = (key: number, by: 1 | -1) => {
    locate(filter, pairs[key * 2]!, pairs[key * 2 + 1]!);
    for (const place of [at.a, at.b, at.c]) {
      counts[place]! += by;
      owners[place]! ^= key;
    }
  };
  for (let key = 0; key < keys; key++) toggle(key, 1);
  const peeled = new Uint32Array(keys);
  const alone = new Uint32Array(keys);
  const waiting: number[] = [];
  for (let place = 0; place < places; place++) if (counts[place] === 1) waiting.push(place);
  let done = 0;
  while (waiting.length > 0) {
    const place = waiting.pop()!;
    if (counts[place] !== 1) continue;
    const key = owners[place]!;
    peeled[done] = key;
    alone[done++] = place;
    toggle(key, -1);
    for (const other of [at.a, at.b, at.c]) if (counts[other] === 1) waiting.push(other);
  }
  if (done < keys) return false;
  assign(filter, pairs, { peeled, alone });
  return true;
}

/** Assigns in reverse order of peeling, so that no later assignment changes a slot on which an earlier key depends. */
function assign(
  filter: FuseFilter,
  pairs: Uint32Array,
  { peeled, alone }: { peeled: Uint32Array; alone: Uint32Array },
): void {
  const { fingerprints } = filter;
  for (let index = peeled.length - 1; index >= 0; index--) {
    const key = peeled[index]!;
    locate(filter, pairs[key * 2]!, pairs[key * 2 + 1]!);
    const place = alone[index]!;
    fingerprints[place] = 0;
    fingerprints[place] = at.fingerprint ^ fingerprints[at.a]! ^ fingerprints[at.b]! ^ fingerprints[at.c]!;
  }
}
