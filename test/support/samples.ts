/**
 * Share of the random cases that a property test runs: all in `npm test` and CI, and one of fifty in `npm run check`
 * and `npm run test:product`, which run during development. Each run has a new seed, so later runs may find what one
 * run missed.
 */
const SHARE = Number(process.env['LAW_SAMPLES'] ?? 1);

export function samples(count: number): number {
  return Math.ceil(count * SHARE);
}

/**
 * Minimum number of cases of one kind for a property test to be meaningful. If one of fifty cases runs, a third of the
 * expected number is enough, because cases are random.
 */
export function leastOf(count: number): number {
  return SHARE === 1 ? count : Math.floor(samples(count) / 3);
}

/** Number of concurrent operations: WALLET_OPERATIONS, or else `count`. */
export function operationCount(count: number): number {
  return Number(process.env['WALLET_OPERATIONS'] ?? count);
}

/** Selects a random share of the items, in their order, as many as the property tests run; `npm test` selects all. */
export function some<Item>(items: readonly Item[]): Item[] {
  const shuffled = [...items.keys()].map((at) => ({ at, by: Math.random() })).sort((a, b) => a.by - b.by);
  const chosen = new Set(shuffled.slice(0, samples(items.length)).map(({ at }) => at));
  return items.filter((_item, at) => chosen.has(at));
}
