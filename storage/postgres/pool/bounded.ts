/**
 * Work in a transaction that ends when its signal aborts. Without this, a statement that waits for a lock, or a frozen process,
 * would hold the transaction's locks without limit.
 */
import type { Database } from '../../foundation/stores.ts';

export type TransactionLimit = {
  readonly signal: AbortSignal;
  /** Longest time until the signal aborts. The server ends the transaction itself after that, if this process cannot. */
  readonly timeout_ms: number;
};

/** Rejects with the signal's reason. If `work` continues after that, its transaction is closed. */
export async function runBounded<Result>(
  { postgres, transaction }: { postgres: Database; transaction: Database },
  { signal, timeout_ms }: TransactionLimit,
  work: () => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const { rows } = await transaction.raw(
    `select pg_backend_pid() as pid, set_config('statement_timeout', ?, true),
            set_config('idle_in_transaction_session_timeout', ?, true)`,
    [String(timeout_ms), String(timeout_ms)],
  );
  const over = rejection(signal);
  try {
    return await Promise.race([work(), over.promise]);
  } catch (error) {
    // The transaction still holds the connection, and its rollback would wait for the running statement. That statement is therefore
    // cancelled. If the cancellation fails, too, the statement timeout ends it.
    if (signal.aborted) await postgres.raw('select pg_cancel_backend(?)', [rows[0].pid]).catch(() => undefined);
    throw error;
  } finally {
    over.forget();
  }
}

function rejection(signal: AbortSignal) {
  let removeListener = () => {};
  const promise = new Promise<never>((_, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    removeListener = () => signal.removeEventListener('abort', abort);
  });
  return { promise, forget: removeListener };
}
