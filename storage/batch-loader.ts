/**
 * Those who ask the same store at one time are answered by one question. Nobody waits for others to come: a question goes out
 * with all who have asked by then, and whoever asks while it is out is answered by the next one. So every answer was begun
 * after it was asked for, and the busier the service is, the fewer questions there are to a request: while some wait, the store
 * rests as long as it has worked for the others, and more come together. A slow one holds up the next of its kind, and no other.
 */

import { runUnrecorded } from './cache/dependency-recorder.ts';
import { runAsSystem } from './request-context.ts';

export type LoadBatch<Asked, Answer> = (queries: readonly Asked[]) => Promise<readonly Answer[]>;

type QueuedQuery<Asked, Answer> = {
  readonly query: Asked;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
};

const REST_MAX_MS = 60;

/**
 * How many are answered by one question at most, how long what they send to the store may be together (`lengthOf` each, and one alone
 * whatever it is), and how long the store rests after one while others wait.
 */
export type BatchLimits<Asked> = {
  readonly batchMax?: number;
  readonly lengthMax?: number;
  readonly measureLength?: (queries: Asked) => number;
  readonly restMax_ms?: number;
};
type BatchLoaderOptions<Asked> = BatchLimits<Asked> & {
  /** All who have asked are answered, or about to be. */
  readonly onIdle?: () => void;
};

export class BatchLoader<Asked, Answer> {
  readonly #answerAll: LoadBatch<Asked, Answer>;
  readonly #batchMax: number;
  readonly #lengthMax: number;
  readonly #measureLength: (queries: Asked) => number;
  readonly #restMax_ms: number;
  readonly #onIdle: (() => void) | undefined;
  #waiting: QueuedQuery<Asked, Answer>[] = [];
  #isOut = false;

  /** `answerAll` answers in the order of what was asked. */
  constructor(answerAll: LoadBatch<Asked, Answer>, options: BatchLoaderOptions<Asked> = {}) {
    const { batchMax: atOnceMax, lengthMax, measureLength: lengthOf, restMax_ms, onIdle } = options;
    this.#answerAll = answerAll;
    this.#batchMax = atOnceMax ?? Number.POSITIVE_INFINITY;
    this.#lengthMax = lengthMax ?? Number.POSITIVE_INFINITY;
    this.#measureLength = lengthOf ?? (() => 0);
    this.#restMax_ms = restMax_ms ?? REST_MAX_MS;
    this.#onIdle = onIdle;
  }

  get isIdle(): boolean {
    return !this.#isOut;
  }

  load(queries: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ query: queries, resolve, reject });
      // Whoever asks first asks for the others, too.
      if (!this.#isOut) void runUnrecorded(() => runAsSystem(() => this.#answerWaiting()));
    });
  }

  async #answerWaiting(): Promise<void> {
    this.#isOut = true;
    while (this.#waiting.length > 0) {
      // Who is about to ask in this round of the event loop is taken along.
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

  /** So many of those who wait go into one question. */
  #fitting(): number {
    let length = 0;
    const most = Math.min(this.#waiting.length, this.#batchMax);
    for (let count = 0; count < most; count++) {
      length += this.#measureLength(this.#waiting[count]!.query);
      if (length > this.#lengthMax && count > 0) return count;
    }
    return most;
  }

  async #answerSome(some: readonly QueuedQuery<Asked, Answer>[]): Promise<void> {
    try {
      const answers = await this.#answerAll(some.map(({ query: queries }) => queries));
      for (const [index, { resolve }] of some.entries()) resolve(answers[index]!);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}

/** One for each store, and for each key where what is asked must be alike. */
export class KeyedBatchLoader<Store extends object, Asked, Answer> {
  readonly #answerAll: (store: Store, queries: readonly Asked[]) => Promise<readonly Answer[]>;
  readonly #limits: BatchLimits<Asked>;
  readonly #open = new WeakMap<Store, Map<string, BatchLoader<Asked, Answer>>>();

  constructor(
    answerAll: (store: Store, queries: readonly Asked[]) => Promise<readonly Answer[]>,
    limits: BatchLimits<Asked> = {},
  ) {
    this.#answerAll = answerAll;
    this.#limits = limits;
  }

  load(store: Store, queries: Asked, key = ''): Promise<Answer> {
    const open = this.#getOpen(store);
    let loader = open.get(key);
    if (!loader) {
      // Keys are many, and none is kept for long.
      const onIdle = () => void open.delete(key);
      loader = new BatchLoader((some) => this.#answerAll(store, some), { ...this.#limits, onIdle });
      open.set(key, loader);
    }
    return loader.load(queries);
  }

  #getOpen(store: Store): Map<string, BatchLoader<Asked, Answer>> {
    let open = this.#open.get(store);
    if (!open) this.#open.set(store, (open = new Map()));
    return open;
  }
}

/**
 * Of what one answer is made of, so many are asked for at one time. What is asked together goes to the stores as one; an answer of
 * a thousand lines that asked for a few of them after the other took a hundred rounds of all that a question takes.
 */
export const BATCH_SIZE_MAX = 500;

/** A few read their raw events each for itself: to look first whether all of them together are few is a statement, too. */
export function hasMany(questions: number): boolean {
  return questions > 16;
}

/** What `work` makes of each, so many at a time, in the order of the items; the first failure is thrown. */
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
    next = items.length; // The others begin nothing more.
    throw error;
  }
  return made;
}
