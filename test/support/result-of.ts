/** What the steps of a rule come to, without turns for others between them. */
export function runSteps<Result>(steps: Iterator<unknown, Result, undefined>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
