/**
 * A transaction in which many do the same side by side, each for a record of its own: what they ask and write at one time goes to
 * the database as one statement (docs/decisions/0017-side-by-side.md). Whoever opens it says so; in every other transaction each
 * statement goes by itself. Nobody in it may be on behalf of a caller: what goes together is the work of all of them.
 */
import type { Database, Transaction } from '../stores.ts';
import { TogetherByKey } from '../together.ts';

const shared = new WeakSet<Database>();

/**
 * What `work` makes of each, all of them at one time in this transaction, in the order of the items. All have come to their end when the
 * first failure is thrown: nobody writes behind the back of whoever rolls back.
 */
export async function sideBySide<Item, Made>(
  transaction: Transaction,
  items: readonly Item[],
  work: (item: Item) => Promise<Made>,
): Promise<Made[]> {
  if (items.length > 1) shared.add(transaction);
  const ended = await Promise.allSettled(items.map(work));
  return ended.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}

export function isSideBySide(database: Database): boolean {
  return shared.has(database);
}

type Asked = {
  readonly asked: unknown;
  answerAll(asked: readonly unknown[]): Promise<readonly unknown[]>;
};

const TOGETHER = new TogetherByKey<Database, Asked, unknown>(
  (_, all) => all[0]!.answerAll(all.map(({ asked }) => asked)),
  // They go on in step: who is not there yet comes with the next statement.
  { restMax_ms: 0 },
);

/** Like statements, those with one key, as one: `answerAll` answers in the order of what was asked. Elsewhere than side by side, of one alone. */
export async function together<One, Answer>(
  database: Database,
  { key, asked }: { readonly key: string; readonly asked: One },
  answerAll: (asked: readonly One[]) => Promise<readonly Answer[]>,
): Promise<Answer> {
  if (!isSideBySide(database)) return (await answerAll([asked]))[0]!;
  return (await TOGETHER.ask(database, { asked, answerAll: answerAll as Asked['answerAll'] }, key)) as Answer;
}
