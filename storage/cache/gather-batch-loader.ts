/**
 * Computes uncached answers in batches (docs/decisions/0007-cached-answers.md). Concurrent requests of one environment run in one batched
 * transaction, in which equal queries become one statement (storage/concurrency/batched.ts). A single request, and any request that fails
 * in the batch, is computed alone.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Scope } from '../../core/foundation/scope.ts';
import { mapBatched } from '../concurrency/batched.ts';
import { runAsSystem } from '../foundation/request-context.ts';
import type { Database } from '../foundation/stores.ts';
import { runUnrecorded } from '../postgres/interceptors/dependency-recorder.ts';

/** Database for the reads, and the instant of the answer. */
export type GatherContext = { readonly database: Database; readonly now: Date };

type QueuedGather = {
  readonly now: Date;
  gather(gathering: GatherContext): Promise<unknown>;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
};

/** Maximum size of a batch. Larger ones are not faster, and their computation would delay cached answers. */
const BATCH_MAX = 32;
/** Maximum number of concurrent batches per environment, so that a slow environment occupies at most half of `GROUPS_MAX`. */
const GROUPS_PER_ENVIRONMENT_MAX = 2;
/**
 * Maximum number of concurrent batches, because each holds a connection while it waits for answers that need another connection. Above
 * this limit requests are computed alone.
 */
const GROUPS_MAX = 4;

type Environment = { readonly waiting: QueuedGather[]; groups: number };

export class GatherBatchLoader {
  readonly #postgres: Database;
  #groups = 0;
  readonly #environments = new Map<string, Environment>();

  constructor(postgres: Database) {
    this.#postgres = postgres;
  }

  /** Loads an answer in a batch. `gather` gets the latest `now` of the batch. */
  load<Answer>(
    { tenant_id, environment_id }: Scope,
    now: Date,
    gather: (gathering: GatherContext) => Promise<Answer>,
  ): Promise<Answer> {
    const key = `${tenant_id} ${environment_id}`;
    let own = this.#environments.get(key);
    if (own === undefined) this.#environments.set(key, (own = { waiting: [], groups: 0 }));
    const { waiting } = own;
    return new Promise<Answer>((resolve, reject) => {
      // Each computation runs with the context and the recorder of its caller.
      waiting.push({ now, gather: AsyncResource.bind(gather), resolve: resolve as QueuedGather['resolve'], reject });
      if (own.groups < GROUPS_PER_ENVIRONMENT_MAX) void runUnrecorded(() => runAsSystem(() => this.#work(key, own)));
    });
  }

  async #work(key: string, own: Environment): Promise<void> {
    own.groups++;
    // Collects the requests of this event-loop tick.
    await new Promise((resolve) => setImmediate(resolve));
    while (own.waiting.length > 0) await this.#gather(own.waiting.splice(0, BATCH_MAX));
    own.groups--;
    if (own.groups === 0) this.#environments.delete(key);
  }

  async #gather(group: readonly QueuedGather[]): Promise<void> {
    const now = new Date(Math.max(...group.map((one) => one.now.getTime())));
    const isAlone = group.length < 2 || this.#groups >= GROUPS_MAX;
    const left = isAlone ? group : await this.#gatherBatch(group, now);
    await Promise.all(left.map((one) => gatherOne(one, { database: this.#postgres, now })));
  }

  /** Computes the requests in one transaction. Returns those that got no answer; the failure of another request may be the cause. */
  async #gatherBatch(group: readonly QueuedGather[], now: Date): Promise<QueuedGather[]> {
    const left = new Set(group);
    const gather = async (one: QueuedGather, database: Database): Promise<void> => {
      const answer = await one.gather({ database, now });
      left.delete(one);
      one.resolve(answer);
    };
    this.#groups++;
    await this.#postgres
      .transaction((transaction) =>
        mapBatched(transaction, group, (one) => gather(one, transaction).catch(() => undefined)),
      )
      // An answered request has read its result already, so a failed end of the transaction does not matter.
      .catch(() => undefined)
      .finally(() => this.#groups--);
    return [...left];
  }
}

async function gatherOne(one: QueuedGather, gathering: GatherContext): Promise<void> {
  await one.gather(gathering).then(one.resolve, one.reject);
}
