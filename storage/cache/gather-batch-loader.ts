/**
 * Answers that are not kept are gathered together (docs/decisions/0007-cached-answers.md): those of one environment that are asked for at
 * one time go through the same steps side by side in one transaction, in which what they ask alike is one statement
 * (storage/models/batched.ts). Who asks alone, and whoever fails there, is gathered by itself.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Scope } from '../../core/scope.ts';
import { mapBatched } from '../models/batched.ts';
import { runAsSystem } from '../request-context.ts';
import type { Database } from '../stores.ts';
import { runUnrecorded } from './dependency-recorder.ts';

/** Where what is gathered is read, and the instant as of which. */
export type GatherContext = { readonly database: Database; readonly now: Date };

type QueuedGather = {
  readonly now: Date;
  gather(gathering: GatherContext): Promise<unknown>;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
};

/** More are not faster, and would hold up those whose answers are kept by what they compute at one moment. */
const BATCH_MAX = 32;
/** Of one environment: so that a slow one holds up half of the others at most. */
const GROUPS_PER_ENVIRONMENT_MAX = 2;
/** Of all: each holds a connection while it waits for answers that need another. Who finds no place among them is gathered alone. */
const GROUPS_MAX = 4;

type Environment = { readonly waiting: QueuedGather[]; groups: number };

export class GatherBatchLoader {
  readonly #postgres: Database;
  #groups = 0;
  readonly #environments = new Map<string, Environment>();

  constructor(postgres: Database) {
    this.#postgres = postgres;
  }

  /** `gather` may be as of a later instant than `now`: as of that of whoever asks last of those that it is gathered with. */
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
      // Each on behalf of who asks, and noting what is its own.
      waiting.push({ now, gather: AsyncResource.bind(gather), resolve: resolve as QueuedGather['resolve'], reject });
      if (own.groups < GROUPS_PER_ENVIRONMENT_MAX) void runUnrecorded(() => runAsSystem(() => this.#work(key, own)));
    });
  }

  async #work(key: string, own: Environment): Promise<void> {
    own.groups++;
    // Who asks in this round of the event loop is taken along.
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

  /** Answers those who have none: in a transaction one may fail by another's fault. */
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
      // Who has been answered has read what it says, however the transaction ends.
      .catch(() => undefined)
      .finally(() => this.#groups--);
    return [...left];
  }
}

async function gatherOne(one: QueuedGather, gathering: GatherContext): Promise<void> {
  await one.gather(gathering).then(one.resolve, one.reject);
}
