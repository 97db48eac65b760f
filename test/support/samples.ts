/**
 * With how many cases a law is tried: all of them by `npm test` and CI, and by `npm run check` and `npm run test:product`, which are asked
 * while one works, one of fifty. The seed is a new one each time, so what one run has not met another may.
 */
const SHARE = Number(process.env['LAW_SAMPLES'] ?? 1);

export function samples(count: number): number {
  return Math.ceil(count * SHARE);
}

/** How many of the cases must be of a kind for a law to say something: a third of its share where one of fifty is tried, because chance takes some. */
export function leastOf(count: number): number {
  return SHARE === 1 ? count : Math.floor(samples(count) / 3);
}

/** How many operations are done at one time against another: those that the tester asks for, and else so many. */
export function operationCount(count: number): number {
  return Number(process.env['WALLET_OPERATIONS'] ?? count);
}

/** Of what a test goes through one after the other as many as are tried, others each time, and in their order; by `npm test` all. */
export function some<Item>(items: readonly Item[]): Item[] {
  const shuffled = [...items.keys()].map((at) => ({ at, by: Math.random() })).sort((a, b) => a.by - b.by);
  const chosen = new Set(shuffled.slice(0, samples(items.length)).map(({ at }) => at));
  return items.filter((_item, at) => chosen.has(at));
}
