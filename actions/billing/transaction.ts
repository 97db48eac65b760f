/**
 * A transaction in which usage is read: it holds one connection and waits for the stores, whose answers need another. If
 * all connections of the pool were held so, none would be left to answer with; so only a few run at once per process, and
 * the others wait before they take a connection.
 */
import type { Database, Stores, Transaction } from '../../storage/stores.ts';
import { inSpan } from '../../tracing/spans.ts';

const AT_ONCE = 4;

type Queue = { running: number; waiting: (() => void)[] };
const queues = new WeakMap<Database, Queue>();

/** `isKept`: where it says no to the answer, everything that was written is undone, and the answer stays. */
export async function billingTransaction<T>(
  { postgres }: Stores,
  work: (transaction: Transaction) => Promise<T>,
  isKept: (answer: T) => boolean = () => true,
): Promise<T> {
  const queue = queues.get(postgres) ?? { running: 0, waiting: [] };
  queues.set(postgres, queue);
  if (queue.running >= AT_ONCE) await new Promise<void>((resolve) => queue.waiting.push(resolve));
  else queue.running += 1;
  try {
    return await inSpan('invoice.transaction', {}, () => undoneUnless(isKept, postgres, work));
  } finally {
    // The place goes to the next in line; only when nobody waits is it free.
    const next = queue.waiting.shift();
    if (next) next();
    else queue.running -= 1;
  }
}

class Undone<T> extends Error {
  readonly answer: T;
  constructor(answer: T) {
    super('what was written is undone');
    this.answer = answer;
  }
}

/** A transaction is undone by what is thrown in it. */
async function undoneUnless<T>(
  isKept: (answer: T) => boolean,
  postgres: Database,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  try {
    return await postgres.transaction(async (transaction) => {
      const answer = await work(transaction);
      if (!isKept(answer)) throw new Undone(answer);
      return answer;
    });
  } catch (error) {
    if (error instanceof Undone) return (error as Undone<T>).answer;
    throw error;
  }
}
