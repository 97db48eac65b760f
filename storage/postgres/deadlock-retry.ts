/**
 * Two transactions that wait for each other are told apart by Postgres, which undoes one of them: that one begins anew, behind the other.
 * Whoever asked is not answered 503 for what was only a matter of order.
 */
import { isDeadlock } from '../failure.ts';
import type { Stores, Transaction } from '../stores.ts';

const TRIES = 3;

/** `attempt` is a whole transaction that reads in it what it goes by, so that a second time is as good as the first. */
export async function retryOnDeadlock<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 1 || !isDeadlock(error)) throw error;
    }
  }
}

/** One in which nobody outside of Postgres is asked: where it and another wait for each other it begins anew, behind the other. */
export function retryTransaction<T>(
  { postgres }: Pick<Stores, 'postgres'>,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return retryOnDeadlock(() => postgres.transaction(work));
}
