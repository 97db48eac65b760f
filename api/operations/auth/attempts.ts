/** Limits password guessing: after five wrong passwords, attempts are refused for 15 minutes. */
import { LRUCache } from 'lru-cache';
import { FarthingError } from '../../../core/foundation/error.ts';
import { MINUTE_MS } from '../../../core/foundation/time/durations.ts';

const WRONG_MAX = 5;
const WITHIN_MS = 15 * MINUTE_MS;

const wrong = new LRUCache<string, number>({ max: 50_000, ttl: WITHIN_MS });

/**
 * Runs `work`, unless too many attempts of `whom` failed. `whom` is an email from an address, or a user who changes the password.
 * An attempt counts from its start, so concurrent attempts are limited too.
 */
export async function limitAttempts<Result>(whom: readonly string[], work: () => Promise<Result>): Promise<Result> {
  const name = JSON.stringify(whom);
  const count = (wrong.get(name) ?? 0) + 1;
  if (count > WRONG_MAX)
    throw new FarthingError('too_many_requests', 'too many wrong passwords: try again in 15 minutes', {
      details: { retry_after_seconds: Math.ceil(wrong.getRemainingTTL(name) / 1000) },
    });
  wrong.set(name, count);
  try {
    const result = await work();
    wrong.delete(name);
    return result;
  } catch (error) {
    const isWrong = error instanceof FarthingError && error.code === 'permission_denied';
    if (!isWrong) wrong.set(name, Math.max(0, (wrong.get(name) ?? 1) - 1));
    throw error;
  }
}
