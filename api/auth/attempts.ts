/** Guessing of passwords: after five wrong ones for an email from one address, that address waits a quarter of an hour. */
import { LRUCache } from 'lru-cache';
import { FarthingError } from '../../core/error.ts';
import type { Context } from '../http/route.ts';

const WRONG_MAX = 5;
const WITHIN_MS = 15 * 60_000;

const wrong = new LRUCache<string, number>({ max: 50_000, ttl: WITHIN_MS });

/** Does it, unless too many went wrong before; what is refused counts. */
export async function guarded<Result>(email: string, context: Context, work: () => Promise<Result>): Promise<Result> {
  const name = JSON.stringify([context.request.ip, email.toLowerCase()]);
  const before = wrong.get(name) ?? 0;
  if (before >= WRONG_MAX)
    throw new FarthingError('too_many_requests', 'too many wrong passwords for this email: try again in 15 minutes');
  try {
    const result = await work();
    wrong.delete(name);
    return result;
  } catch (error) {
    if (error instanceof FarthingError && error.code === 'permission_denied') wrong.set(name, before + 1);
    throw error;
  }
}
