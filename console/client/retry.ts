import { ApiError } from './client.ts';

const RETRIES_MAX = 2;
const FIRST_DELAY_MS = 1_000;
/** If the service wants a longer wait, the failure is shown, because its message names the time. */
const DELAY_MAX_MS = 30_000;

/** Whether a failed read is repeated. A refused request is refused again, so it is not. */
export function shouldRetry(count: number, error: Error, retries_max = RETRIES_MAX): boolean {
  if (count >= retries_max) return false;
  if (!(error instanceof ApiError)) return true;
  if ((error.retry_after_ms ?? 0) > DELAY_MAX_MS) return false;
  return error.status >= 500 || error.status === 429;
}

/** Milliseconds until a failed read is repeated: the time of `Retry-After`, or a second that doubles each time. */
export function getRetryDelay(count: number, error: Error): number {
  const wanted = error instanceof ApiError ? error.retry_after_ms : null;
  return wanted ?? Math.min(FIRST_DELAY_MS * 2 ** count, DELAY_MAX_MS);
}
