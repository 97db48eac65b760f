import { ApiError } from './client.ts';

const RETRIES_MAX = 2;
const FIRST_DELAY_MS = 1_000;
const DELAY_MAX_MS = 30_000;

/** Whether a failed read is repeated. A refused request is refused again, so it is not. */
export function shouldRetry(count: number, error: Error): boolean {
  return count < RETRIES_MAX && !(error instanceof ApiError && error.status < 500 && error.status !== 429);
}

/** Milliseconds until a failed read is repeated: the time of `Retry-After`, or a second that doubles each time; 30 seconds at most. */
export function getRetryDelay(count: number, error: Error): number {
  const wanted = error instanceof ApiError ? error.retry_after_ms : null;
  return Math.min(wanted ?? FIRST_DELAY_MS * 2 ** count, DELAY_MAX_MS);
}
