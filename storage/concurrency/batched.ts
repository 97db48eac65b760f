/**
 * A batched transaction: many units of work run concurrently in it, each for its own record. Their concurrent reads and writes go
 * to the database as one statement (docs/decisions/0008-batched-billing.md). The caller opts in; in every other transaction each
 * statement is sent by itself. Code in it never runs in the context of one caller, because a batch is the work of all of them.
 */

import { isAfterFailure } from '../foundation/failure.ts';
import type { Database, Transaction } from '../foundation/stores.ts';
import { currentRecorder, recordAnswer } from '../postgres/interceptors/dependency-recorder.ts';
import { KeyedBatchLoader } from './batch-loader.ts';

/**
 * A transaction that several units of work share: `depth` counts nested calls, `unawaited` are writes without an
 * awaiter, `at_work` counts the outermost units still running, and `arrived` those that wait at the barrier.
 */
type SharedTransaction = { depth: number; unawaited: Promise<unknown>[]; at_work: number; arrived: (() => void)[] };
const shared = new WeakMap<Database, SharedTransaction>();

/**
 * Runs `work` for all items concurrently in this transaction, and returns the results in the order of the items. All units have
 * ended when the first failure is thrown, so nothing is written during the rollback.
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
 * Starts the parts of one work in their order: while the database processes one, the next is prepared. All parts have ended when
 * the first failure is thrown.
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
      // The failure of a part is thrown after all parts have ended.
      making.catch(() => undefined);
      begun.push(making);
      // The statements of the part are sent before the next part begins.
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
  unwrapResults<unknown>([...ended, ...written]);
  return unwrapResults(ended);
}

/**
 * Returns all results, or throws the first failure. In a transaction the statements after a failed one fail, too, so their failures are
 * thrown only if there is no other.
 */
function unwrapResults<Value>(ended: readonly PromiseSettledResult<Value>[]): Value[] {
  const failures = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  if (failures.length > 0) throw failures.find((one) => !isAfterFailure(one)) ?? failures[0];
  return ended.map((end) => (end as PromiseFulfilledResult<Value>).value);
}

/**
 * Barrier: waits until all other units of the batched transaction arrive or end. Units that return from a store in several groups
 * then send their statements in one batch again. No effect outside a batched transaction.
 */
export async function waitAtBarrier(database: Database): Promise<void> {
  const own = shared.get(database);
  if (!own) return;
  await new Promise<void>((resolve) => {
    own.arrived.push(resolve);
    goOn(own);
  });
}

/**
 * Opens the barrier if all units have arrived. A unit with concurrent work may arrive more than once: then the barrier opens earlier, never
 * later.
 */
function goOn({ arrived, at_work }: SharedTransaction): void {
  if (arrived.length >= at_work) for (const next of arrived.splice(0)) next();
}

export function isBatched(database: Database): boolean {
  return shared.has(database);
}

/**
 * Starts a write without a result. In a batched transaction its unit continues at once, and `shareAll` waits for the write. In any other
 * transaction the write is awaited, or sent with the next statement (interceptors/bundled-statements.ts).
 */
export async function write(database: Database, writing: () => Promise<unknown>): Promise<void> {
  const began = writing();
  const unawaited = shared.get(database)?.unawaited;
  if (!unawaited) return void (await began);
  // The failure of a write is thrown after all units have ended.
  began.catch(() => undefined);
  unawaited.push(began);
}

type BatchedQuery = {
  readonly query: unknown;
  answerAll(queries: readonly unknown[]): Promise<readonly unknown[]>;
};

const BATCHES = new KeyedBatchLoader<Database, BatchedQuery, unknown>(
  (_, all) => all[0]!.answerAll(all.map(({ query: queries }) => queries)),
  // No pause between batches is needed, because the units run in step: a query that arrives late joins the next
  // statement.
  { restMax_ms: 0 },
);

type BatchedQueryInput<One> = {
  readonly key: string;
  readonly query: One;
  /**
   * True if the answer is computed from rows that it does not contain. A caller that records the rows it reads then
   * runs its own query, whose inner queries are batched.
   */
  readonly isMade?: boolean;
};

/**
 * Runs similar statements with the same key as one. `answerAll` returns the answers in the order of the queries. Outside a batched
 * transaction each query runs alone.
 */
export async function joinBatch<One, Answer>(
  database: Database,
  { key, query: queries, isMade = false }: BatchedQueryInput<One>,
  answerAll: (queries: readonly One[]) => Promise<readonly Answer[]>,
): Promise<Answer> {
  const recorder = currentRecorder();
  if (!isBatched(database) || (isMade && recorder !== undefined)) {
    const [answer] = await answerAll([queries]);
    return answer!;
  }
  const answer = await BATCHES.load(
    database,
    { query: queries, answerAll: answerAll as BatchedQuery['answerAll'] },
    key,
  );
  // The rows were read for all callers of the batch; each caller records only its own rows.
  if (recorder !== undefined) recordAnswer(recorder, answer);
  return answer as Answer;
}

type BatchedListQuery<Row> = {
  readonly key: string;
  readonly values: readonly string[];
  /** The value of the column by which the row was requested. */
  getKey(row: Row): string;
};

/** Rows requested by some values of a column; the order is that of the query. */
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

/** A query of `loadAll`; null loads nothing. */
type LoadQuery<Connected> = ((connected: Connected) => Promise<unknown>) | null;
type LoadedAnswer<Query> = Query extends (...of: never[]) => Promise<infer Answer> ? Answer : null;
type LoadedAnswers<Queries> = { -readonly [Index in keyof Queries]: LoadedAnswer<Queries[Index]> };

/**
 * Runs several queries of one caller. In a transaction they are sent together, in no certain order: a lock that must come before a read is
 * awaited. Elsewhere they run one after another, because a caller that held a connection could wait for a second one.
 */
export async function loadAll<const Queries extends readonly LoadQuery<Database>[]>(
  database: Database,
  queries: Queries,
): Promise<LoadedAnswers<Queries>> {
  if (database.isTransaction)
    return unwrapResults(
      await Promise.allSettled(queries.map(async (query) => (query ? query(database) : null))),
    ) as never;
  const answers: unknown[] = [];
  for (const query of queries) answers.push(query ? await query(database) : null);
  return answers as never;
}
