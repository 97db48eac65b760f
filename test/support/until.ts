/** Asks again until the answer is not false, null or undefined: for what another process does in its own time. */
export async function until<Answer>(
  what: string,
  ask: () => Promise<Answer | false | null | undefined>,
  timeout_ms = 30_000,
): Promise<Answer> {
  const deadline = performance.now() + timeout_ms;
  for (;;) {
    const answer = await ask();
    if (answer !== false && answer !== null && answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`it did not come to this: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
