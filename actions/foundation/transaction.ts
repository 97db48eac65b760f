/**
 * Limits the billing transactions per process. A transaction that reads usage holds one connection, and its reads need another. If such
 * transactions held all connections of the pool, no read could run. So only a few run at once; the others wait before they take a
 * connection.
 */
import { FarthingError } from '../../core/foundation/error.ts';
import { Semaphore } from '../../storage/concurrency/semaphore.ts';
import { CallValue } from '../../storage/foundation/call-value.ts';
import type { Database, Stores, Transaction } from '../../storage/foundation/stores.ts';
import { recordRequestAnswer } from '../../storage/models/foundation/request-effects.ts';
import { retryOnDeadlock } from '../../storage/postgres/pool/deadlock-retry.ts';
import { inSpan } from '../../tracing/spans.ts';

const AT_ONCE = 4;

const semaphores = new WeakMap<Database, Semaphore>();

/** Database of the current billing transaction; unset outside of one. It detects nested transactions. */
const within = new CallValue<Database>();

/**
 * Throws inside a billing transaction: a nested one would take a second slot and a second connection, and if all did so, none could
 * proceed. Previews and real-time balances are computed before the transaction that uses them (real-time-balance.ts).
 */
function checkOutside(postgres: Database): void {
  if (within.get() === postgres)
    throw new FarthingError(
      'system_error',
      'a billing transaction was begun inside of another, whose place it would wait for',
    );
}

/**
 * Runs a billing transaction. If `shouldCommit` returns false for the answer, all writes are rolled back and the answer
 * is still returned.
 */
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

/** Throws inside the transaction to roll it back. */
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
