/** Writes without a result: their callers continue at once, and the end of the transaction waits for them. */
import { isAfterFailure } from '../../foundation/failure.ts';
import type { Database, Transaction } from '../../foundation/stores.ts';

const unawaitedWrites = new WeakMap<Database, Promise<unknown>[]>();

/** Runs the work of a transaction, and waits for its writes without a result. */
export async function runWithWrites<Made>(
  transaction: Transaction,
  work: (transaction: Transaction) => Promise<Made>,
): Promise<Made> {
  const unawaited: Promise<unknown>[] = [];
  unawaitedWrites.set(transaction, unawaited);
  const [ended] = await Promise.allSettled([work(transaction)]);
  unawaitedWrites.delete(transaction);
  const written = await Promise.allSettled(unawaited);
  return unwrapResults<unknown>([ended, ...written])[0] as Made;
}

/** The writes for which the end of the transaction waits; undefined if its writes are awaited one by one. */
export function findUnawaitedWrites(transaction: Database): Promise<unknown>[] | undefined {
  return unawaitedWrites.get(transaction);
}

/**
 * Returns all results, or throws the first failure. In a transaction the statements after a failed one fail, too, so their failures are
 * thrown only if there is no other.
 */
export function unwrapResults<Value>(ended: readonly PromiseSettledResult<Value>[]): Value[] {
  const failures = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  if (failures.length > 0) throw failures.find((one) => !isAfterFailure(one)) ?? failures[0];
  return ended.map((end) => (end as PromiseFulfilledResult<Value>).value);
}
