/**
 * Concurrent queries of one store are batched. A query never waits for others to arrive: each batch contains all queries queued by then,
 * and later ones go into the next batch. So every answer is read after its query was made. While queries wait, each batch is followed by a
 * pause as long as the batch took, so that batches grow with the load. A slow batch delays only queries of its own loader.
 */

import { runAsSystem } from '../foundation/request-context.ts';
import { runUnrecorded } from '../postgres/interceptors/dependency-recorder.ts';

type LoadBatch<Query, Answer> = (queries: readonly Query[]) => Promise<readonly Answer[]>;

type QueuedQuery<Query, Answer> = {
  readonly query: Query;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
};

const REST_MAX_MS = 60;

/**
 * Limits of a batch: number of queries; total length sent to the store (`measureLength` of each; a single query may exceed it); and maximum
 * pause after a batch while other queries wait.
 */
export type BatchLimits<Query> = {
  readonly batchMax?: number;
  readonly lengthMax?: number;
  readonly measureLength?: (query: Query) => number;
  readonly restMax_ms?: number;
};
type BatchLoaderOptions<Query> = BatchLimits<Query> & {
  /** Called when the queue is empty. */
  readonly onIdle?: () => void;
};

export class BatchLoader<Query, Answer> {
  readonly #answerAll: LoadBatch<Query, Answer>;
  readonly #batchMax: number;
  readonly #lengthMax: number;
  readonly #measureLength: (query: Query) => number;
  readonly #restMax_ms: number;
  readonly #onIdle: (() => void) | undefined;
  #waiting: QueuedQuery<Query, Answer>[] = [];
  #isOut = false;

  /** `answerAll` returns the answers in the order of the queries. */
  constructor(answerAll: LoadBatch<Query, Answer>, options: BatchLoaderOptions<Query> = {}) {
    const { batchMax, lengthMax, measureLength, restMax_ms, onIdle } = options;
    this.#answerAll = answerAll;
    this.#batchMax = batchMax ?? Number.POSITIVE_INFINITY;
    this.#lengthMax = lengthMax ?? Number.POSITIVE_INFINITY;
    this.#measureLength = measureLength ?? (() => 0);
    this.#restMax_ms = restMax_ms ?? REST_MAX_MS;
    this.#onIdle = onIdle;
  }

  get isIdle(): boolean {
    return !this.#isOut;
  }

  load(query: Query): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ query, resolve, reject });
      // If no batch is running, the query starts the loop, which then answers all waiting queries.
      if (!this.#isOut) void runUnrecorded(() => runAsSystem(() => this.#answerWaiting()));
    });
  }

  async #answerWaiting(): Promise<void> {
    this.#isOut = true;
    while (this.#waiting.length > 0) {
      // Queries made in this tick of the event loop join the batch.
      await new Promise((resolve) => setImmediate(resolve));
      const began = performance.now();
      await this.#answerSome(this.#waiting.splice(0, this.#fitting()));
      const rest_ms = Math.min(performance.now() - began, this.#restMax_ms);
      const mayBecomeMore =
        this.#waiting.length > 0 && this.#fitting() === this.#waiting.length && this.#waiting.length < this.#batchMax;
      if (mayBecomeMore && rest_ms > 0) await new Promise((resolve) => setTimeout(resolve, rest_ms));
    }
    this.#isOut = false;
    this.#onIdle?.();
  }

  /** Number of waiting queries that fit into one batch. */
  #fitting(): number {
    let length = 0;
    const most = Math.min(this.#waiting.length, this.#batchMax);
    for (let count = 0; count < most; count++) {
      length += this.#measureLength(this.#waiting[count]!.query);
      if (length > this.#lengthMax && count > 0) return count;
    }
    return most;
  }

  async #answerSome(some: readonly QueuedQuery<Query, Answer>[]): Promise<void> {
    try {
      const answers = await this.#answerAll(some.map(({ query: queries }) => queries));
      for (const [index, { resolve }] of some.entries()) resolve(answers[index]!);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}

/** One loader per store and key; queries of one batch have the same key. */
export class KeyedBatchLoader<Store extends object, Query, Answer> {
  readonly #answerAll: (store: Store, queries: readonly Query[]) => Promise<readonly Answer[]>;
  readonly #limits: BatchLimits<Query>;
  readonly #open = new WeakMap<Store, Map<string, BatchLoader<Query, Answer>>>();

  constructor(
    answerAll: (store: Store, queries: readonly Query[]) => Promise<readonly Answer[]>,
    limits: BatchLimits<Query> = {},
  ) {
    this.#answerAll = answerAll;
    this.#limits = limits;
  }

  load(store: Store, queries: Query, key = ''): Promise<Answer> {
    const open = this.#getOpen(store);
    let loader = open.get(key);
    if (!loader) {
      // There are many keys, so an idle loader is removed.
      const onIdle = () => void open.delete(key);
      loader = new BatchLoader((some) => this.#answerAll(store, some), { ...this.#limits, onIdle });
      open.set(key, loader);
    }
    return loader.load(queries);
  }

  #getOpen(store: Store): Map<string, BatchLoader<Query, Answer>> {
    let open = this.#open.get(store);
    if (!open) this.#open.set(store, (open = new Map()));
    return open;
  }
}

/**
 * Number of items that one answer requests concurrently. Concurrent requests reach the stores as one batch; with a few at a time, an answer
 * of a thousand lines needs a hundred round trips.
 */
export const BATCH_SIZE_MAX = 500;

/**
 * Whether the queries are so many that an additional statement is worthwhile: it finds the queries with few events, whose events one batch
 * then reads. Up to 16 queries read their raw events one by one.
 */
export function hasMany(questions: number): boolean {
  return questions > 16;
}

/** Runs `work` for the items, `count` at a time, and returns the results in their order. Throws the first failure. */
export async function mapConcurrently<Item, Made>(
  count: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Made>,
): Promise<Made[]> {
  const made: Made[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      made[index] = await work(items[index]!);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(count, items.length) }, worker));
  } catch (error) {
    next = items.length; // The other workers start nothing more.
    throw error;
  }
  return made;
}
