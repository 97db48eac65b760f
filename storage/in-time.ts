/** No answer within this time is an answer, too, and better than one that never comes: so long waits whoever watches, a scrape or a balancer. */
const PATIENCE_MS = 2_000;

/** Null when the question fails, or is not answered in time. */
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
