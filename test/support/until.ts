/** Repeats a call until it returns something other than false, null or undefined, to wait for another process. */
export async function until<Answer>(
  what: string,
  ask: () => Promise<Answer | false | null | undefined>,
  timeout_ms = 30_000,
  pause_ms = 20,
): Promise<Answer> {
  const deadline = performance.now() + timeout_ms;
  for (;;) {
    const answer = await ask();
    if (answer !== false && answer !== null && answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`it did not come to this: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }
}
