/**
 * Postgres resolves a deadlock of two transactions by aborting one of them. The aborted transaction is retried after the other, so that the
 * caller gets no 503 for a mere lock order.
 */
import { isDeadlock } from '../../foundation/failure.ts';
import type { Stores, Transaction } from '../../foundation/stores.ts';

const TRIES = 3;

/** Retries a transaction on deadlock. `attempt` is the whole transaction and reads everything it depends on, so that it can be repeated. */
export async function retryOnDeadlock<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 1 || !isDeadlock(error)) throw error;
    }
  }
}

/** Runs a transaction and retries it on deadlock. `work` may run several times, so it must not call another system. */
export function retryTransaction<T>(
  { postgres }: Pick<Stores, 'postgres'>,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return retryOnDeadlock(() => postgres.transaction(work));
}
