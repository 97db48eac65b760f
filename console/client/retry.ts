import { ApiError } from './client.ts';

const RETRIES_MAX = 2;

/** Whether a failed read is repeated. A refused request is refused again, so it is not. */
export function shouldRetry(count: number, error: Error): boolean {
  return count < RETRIES_MAX && !(error instanceof ApiError && error.status < 500 && error.status !== 429);
}
