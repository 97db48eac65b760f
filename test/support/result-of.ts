/** Runs the steps of a computation without a pause between them, and returns the result. */
export function runSteps<Result>(steps: Iterator<unknown, Result, undefined>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
