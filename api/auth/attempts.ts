/** Guessing of passwords: after five wrong ones, whoever guesses waits a quarter of an hour. */
import { LRUCache } from 'lru-cache';
import { FarthingError } from '../../core/error.ts';

const WRONG_MAX = 5;
const WITHIN_MS = 15 * 60_000;

const wrong = new LRUCache<string, number>({ max: 50_000, ttl: WITHIN_MS });

/**
 * Does it, unless too many went wrong before for this one: an email from an address, or a user who changes the password. Each
 * counts from its beginning, so that many at one time are many.
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
