/**
 * Advances `performance.now` with each request that arrives at a fake, until the returned function is called. The rate limit of the provider
 * then delays no test (storage/concurrency/request-pace.ts).
 */
export function skipPace(fake: { readonly requests: readonly string[] }, requests_per_second = 1): () => void {
  const read = performance.now;
  performance.now = () => read.call(performance) + (fake.requests.length * 1_000) / requests_per_second;
  return () => {
    performance.now = read;
  };
}
