/** Longest wait for an answer to a scrape or a load balancer: reporting a timeout is better than not answering. */
const PATIENCE_MS = 2_000;

/** Runs a query with a time limit; null if it fails or times out. */
export async function runWithTimeout<Answer>(
  query: () => Promise<Answer>,
  patience_ms = PATIENCE_MS,
): Promise<Answer | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, patience_ms, null);
  });
  try {
    return await Promise.race([query(), late]);
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}
