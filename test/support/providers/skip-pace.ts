/**
 * Advances `performance.now` by the interval between two requests with each request that arrives at one of the fakes, until the returned
 * function is called. The rate limit of the provider then delays no test (storage/concurrency/request-pace.ts).
 */
export function skipPace(...fakes: readonly { readonly requests: readonly string[] }[]): () => void {
  const read = performance.now;
  const count = () => fakes.reduce((sum, { requests }) => sum + requests.length, 0);
  performance.now = () => read.call(performance) + count() * INTERVAL_MS;
  return () => {
    performance.now = read;
  };
}

/** Interval at the lowest limit of a provider. */
const INTERVAL_MS = 1_000;
