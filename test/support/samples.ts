/**
 * With how many cases a law is tried: all of them by `npm test`, and by `npm run check`, which is asked before each commit, a
 * tenth. The seed is a new one each time, so what one run has not met another may.
 */
const SHARE = Number(process.env['LAW_SAMPLES'] ?? 1);

export function samples(count: number): number {
  return Math.ceil(count * SHARE);
}

/** How many operations are done at one time against another: those that the tester asks for, and else so many. */
export function operationsAsked(count: number): number {
  return Number(process.env['WALLET_OPERATIONS'] ?? count);
}
