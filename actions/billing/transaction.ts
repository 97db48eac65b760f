/**
 * A transaction in which usage is read: it holds one connection and waits for the stores, whose answers need another. If
 * all connections of the pool were held so, none would be left to answer with; so only a few run at once per process, and
 * the others wait before they take a connection.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { FarthingError } from '../../core/error.ts';
import { recordRequestAnswer } from '../../storage/models/request-effects.ts';
import { retryOnDeadlock } from '../../storage/postgres/deadlock-retry.ts';
import { Semaphore } from '../../storage/semaphore.ts';
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';

const AT_ONCE = 4;

const semaphores = new WeakMap<Database, Semaphore>();

/** Which transaction of this kind the code runs in. */
const within = new AsyncLocalStorage<Database>();

/**
 * One inside of another would take a second of the few places, and a second connection: were all of them to do so, none could go on.
 * Previews and balances in real time are asked before the transaction that goes by them (real-time-balance.ts).
 */
function checkOutside(postgres: Database): void {
  if (within.getStore() === postgres)
    throw new FarthingError(
      'system_error',
      'a billing transaction was begun inside of another, whose place it would wait for',
    );
}

/** `isKept`: where it says no to the answer, everything that was written is undone, and the answer stays. */
export async function runBillingTransaction<T>(
  { postgres }: Stores,
  work: (transaction: Transaction) => Promise<T>,
  shouldCommit: (answer: T) => boolean = () => true,
): Promise<T> {
  checkOutside(postgres);
  const own = semaphores.get(postgres) ?? new Semaphore(AT_ONCE);
  semaphores.set(postgres, own);
  return own.within(() =>
    inSpan('invoice.transaction', {}, () => retryOnDeadlock(() => rollbackUnless(shouldCommit, postgres, work))),
  );
}

class RollbackSignal<T> extends Error {
  readonly answer: T;
  constructor(answer: T) {
    super('what was written is undone');
    this.answer = answer;
  }
}

/** A transaction is undone by what is thrown in it. */
async function rollbackUnless<T>(
  shouldCommit: (answer: T) => boolean,
  postgres: Database,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  try {
    return await postgres.transaction(async (transaction) => {
      const answer = await within.run(postgres, () => work(transaction));
      if (!shouldCommit(answer)) throw new RollbackSignal(answer);
      await recordRequestAnswer(answer, transaction);
      return answer;
    });
  } catch (error) {
    if (error instanceof RollbackSignal) return (error as RollbackSignal<T>).answer;
    throw error;
  }
}
