/**
 * A transaction in which many do the same side by side, each for a record of its own: what they ask and write at one time goes to
 * the database as one statement (docs/decisions/0008-batched-billing.md). Whoever opens it says so; in every other transaction each
 * statement goes by itself. Nobody in it may be on behalf of a caller: what goes together is the work of all of them.
 */

import { KeyedBatchLoader } from '../batch-loader.ts';
import { currentRecorder, recordAnswer } from '../cache/dependency-recorder.ts';
import type { Database, Transaction } from '../stores.ts';

/**
 * How many have begun in it, one within the other; what was written of which nobody waits for the end; how many of the outermost are
 * still at work, and who of them waits for the others.
 */
type SharedTransaction = { depth: number; unawaited: Promise<unknown>[]; at_work: number; arrived: (() => void)[] };
const shared = new WeakMap<Database, SharedTransaction>();

/**
 * What `work` makes of each, all of them at one time in this transaction, in the order of the items. All have come to their end when the
 * first failure is thrown: nobody writes behind the back of whoever rolls back.
 */
export async function mapBatched<Item, Made>(
  transaction: Transaction,
  items: readonly Item[],
  work: (item: Item) => Promise<Made>,
): Promise<Made[]> {
  if (items.length < 2) return Promise.all(items.map(work));
  return shareAll(transaction, items.length, (done) => items.map((item) => work(item).finally(done)));
}

/**
 * Parts of one work, begun in their order: while the database works for one, the next is made ready. All have come to their end when the
 * first failure is thrown.
 */
export async function mapPipelined<Part, Made>(
  transaction: Transaction,
  parts: readonly Part[],
  work: (part: Part) => Promise<Made>,
): Promise<Made[]> {
  if (parts.length < 2) return Promise.all(parts.map(work));
  return shareAll(transaction, parts.length, async (done) => {
    const begun: Promise<Made>[] = [];
    for (const part of parts) {
      const making = work(part).finally(done);
      // Its failure is thrown where all have ended.
      making.catch(() => undefined);
      begun.push(making);
      // What it has asked is sent meanwhile.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return begun;
  });
}

type Begin<Made> = (done: () => void) => readonly Promise<Made>[] | Promise<readonly Promise<Made>[]>;

async function shareAll<Made>(transaction: Transaction, count: number, begin: Begin<Made>): Promise<Made[]> {
  const own: SharedTransaction = shared.get(transaction) ?? { depth: 0, unawaited: [], at_work: 0, arrived: [] };
  shared.set(transaction, own);
  const isOutermost = own.depth++ === 0;
  if (isOutermost) own.at_work = count;
  const done = () => {
    if (isOutermost) own.at_work--;
    goOn(own);
  };
  const ended = await Promise.allSettled(await begin(done));
  const written = await Promise.allSettled(own.unawaited.splice(0));
  if (--own.depth === 0) shared.delete(transaction);
  const made = unwrapResults(ended);
  unwrapResults(written);
  return made;
}

/** Of what has come to its end, all of it; the first failure is thrown. */
function unwrapResults<Value>(ended: readonly PromiseSettledResult<Value>[]): Value[] {
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
  return ended.map((end) => (end as PromiseFulfilledResult<Value>).value);
}

/**
 * Waits until all others side by side are here, too, or have ended: those who come from a store in several groups ask and write
 * together again. Elsewhere nobody waits.
 */
export async function waitAtBarrier(database: Database): Promise<void> {
  const own = shared.get(database);
  if (!own) return;
  await new Promise<void>((resolve) => {
    own.arrived.push(resolve);
    goOn(own);
  });
}

/** Who does several things side by side itself may be here more than once: then they go on sooner, and never later. */
function goOn({ arrived, at_work }: SharedTransaction): void {
  if (arrived.length >= at_work) for (const next of arrived.splice(0)) next();
}

export function isBatched(database: Database): boolean {
  return shared.has(database);
}

/**
 * What is written and answers nothing: side by side its writer goes on meanwhile, and it has come to its end when all of them have.
 * Elsewhere it is waited for.
 */
export async function write(database: Database, writing: () => Promise<unknown>): Promise<void> {
  const began = writing();
  const unawaited = shared.get(database)?.unawaited;
  if (!unawaited) return void (await began);
  // Its failure is thrown where all have ended.
  began.catch(() => undefined);
  unawaited.push(began);
}

type BatchedQuery = {
  readonly query: unknown;
  answerAll(queries: readonly unknown[]): Promise<readonly unknown[]>;
};

const BATCHES = new KeyedBatchLoader<Database, BatchedQuery, unknown>(
  (_, all) => all[0]!.answerAll(all.map(({ query: queries }) => queries)),
  // They go on in step: who is not there yet comes with the next statement.
  { restMax_ms: 0 },
);

type BatchedQueryInput<One> = {
  readonly key: string;
  readonly query: One;
  /** What is made of rows that are not in the answer: whoever notes what it reads asks by itself, and only the parts of it go together. */
  readonly isMade?: boolean;
};

/** Like statements, those with one key, as one: `answerAll` answers in the order of what was asked. Elsewhere than side by side, of one alone. */
export async function joinBatch<One, Answer>(
  database: Database,
  { key, query: queries, isMade = false }: BatchedQueryInput<One>,
  answerAll: (queries: readonly One[]) => Promise<readonly Answer[]>,
): Promise<Answer> {
  // Who is told what it is made of needs no rows for that.
  const recorder = currentRecorder()?.dependsOn === undefined ? currentRecorder() : undefined;
  if (!isBatched(database) || (isMade && recorder !== undefined)) {
    const [answer] = await answerAll([queries]);
    return answer!;
  }
  const answer = await BATCHES.load(
    database,
    { query: queries, answerAll: answerAll as BatchedQuery['answerAll'] },
    key,
  );
  // The rows were read for all of them: each notes what is its own.
  if (recorder !== undefined) recordAnswer(recorder, answer);
  return answer as Answer;
}

type BatchedListQuery<Row> = {
  readonly key: string;
  readonly values: readonly string[];
  /** By which of the values it was asked for. */
  getKey(row: Row): string;
};

/** Rows that are asked for by some values of a column, in the order of the question. */
export function listBatched<Row>(
  database: Database,
  { key, values, getKey }: BatchedListQuery<Row>,
  listAll: (values: readonly string[]) => Promise<readonly Row[]>,
): Promise<Row[]> {
  return joinBatch(database, { key, query: values }, async (queries) => {
    const rows = await listAll(queries.length === 1 ? queries[0]! : [...new Set(queries.flat())]);
    if (queries.length === 1) return [[...rows]];
    return queries.map((own) => {
      const wanted = new Set(own);
      return rows.filter((row) => wanted.has(getKey(row)));
    });
  });
}

/**
 * Several questions of one: side by side at one time, so that the database answers one while we read the answer to another. Elsewhere
 * one after the other: a transaction has one connection, and nobody else takes several of the pool.
 */
export async function loadAll<Answers extends readonly unknown[]>(
  database: Database,
  questions: { readonly [Index in keyof Answers]: () => Promise<Answers[Index]> },
): Promise<Answers> {
  if (isBatched(database)) return unwrapResults(await Promise.allSettled(questions.map((ask) => ask()))) as never;
  const answers: unknown[] = [];
  for (const ask of questions) answers.push(await ask());
  return answers as unknown as Answers;
}
