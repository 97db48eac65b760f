/**
 * Answers that are not kept are gathered together (docs/decisions/0007-cached-answers.md): those of one environment that are asked for at
 * one time go through the same steps side by side in one transaction, in which what they ask alike is one statement
 * (storage/models/side-by-side.ts). Who asks alone, and whoever fails there, is gathered by itself.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Scope } from '../../core/scope.ts';
import { forEverybody } from '../caller.ts';
import { sideBySide } from '../models/side-by-side.ts';
import type { Database } from '../stores.ts';
import { unnoted } from './noting.ts';

/** Where what is gathered is read, and the instant as of which. */
export type Gathering = { readonly database: Database; readonly now: Date };

type Waiting = {
  readonly now: Date;
  gather(gathering: Gathering): Promise<unknown>;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
};

/** More are not faster, and would hold up those whose answers are kept by what they compute at one moment. */
const TOGETHER_MAX = 32;
/** Of one environment: so that a slow one holds up half of the others at most. */
const GROUPS_OF_ONE = 2;
/** Of all: each holds a connection while it waits for answers that need another. Who finds no place among them is gathered alone. */
const GROUPS_OF_ALL = 4;

type Environment = { readonly waiting: Waiting[]; groups: number };

export class GatherDesk {
  readonly #postgres: Database;
  #groups = 0;
  readonly #environments = new Map<string, Environment>();

  constructor(postgres: Database) {
    this.#postgres = postgres;
  }

  /** `gather` may be as of a later instant than `now`: as of that of whoever asks last of those that it is gathered with. */
  ask<Answer>(
    { tenant_id, environment_id }: Scope,
    now: Date,
    gather: (gathering: Gathering) => Promise<Answer>,
  ): Promise<Answer> {
    const key = `${tenant_id} ${environment_id}`;
    let own = this.#environments.get(key);
    if (own === undefined) this.#environments.set(key, (own = { waiting: [], groups: 0 }));
    const { waiting } = own;
    return new Promise<Answer>((resolve, reject) => {
      // Each on behalf of who asks, and noting what is its own.
      waiting.push({ now, gather: AsyncResource.bind(gather), resolve: resolve as Waiting['resolve'], reject });
      if (own.groups < GROUPS_OF_ONE) void unnoted(() => forEverybody(() => this.#work(key, own)));
    });
  }

  async #work(key: string, own: Environment): Promise<void> {
    own.groups++;
    // Who asks in this round of the event loop is taken along.
    await new Promise((resolve) => setImmediate(resolve));
    while (own.waiting.length > 0) await this.#gather(own.waiting.splice(0, TOGETHER_MAX));
    own.groups--;
    if (own.groups === 0) this.#environments.delete(key);
  }

  async #gather(group: readonly Waiting[]): Promise<void> {
    const now = new Date(Math.max(...group.map((one) => one.now.getTime())));
    const isAlone = group.length < 2 || this.#groups >= GROUPS_OF_ALL;
    const left = isAlone ? group : await this.#gatherTogether(group, now);
    await Promise.all(left.map((one) => settle(one, { database: this.#postgres, now })));
  }

  /** Answers those who have none: in a transaction one may fail by another's fault. */
  async #gatherTogether(group: readonly Waiting[], now: Date): Promise<Waiting[]> {
    const left = new Set(group);
    const gather = async (one: Waiting, database: Database): Promise<void> => {
      const answer = await one.gather({ database, now });
      left.delete(one);
      one.resolve(answer);
    };
    this.#groups++;
    await this.#postgres
      .transaction((transaction) =>
        sideBySide(transaction, group, (one) => gather(one, transaction).catch(() => undefined)),
      )
      // Who has been answered has read what it says, however the transaction ends.
      .catch(() => undefined)
      .finally(() => this.#groups--);
    return [...left];
  }
}

async function settle(one: Waiting, gathering: Gathering): Promise<void> {
  await one.gather(gathering).then(one.resolve, one.reject);
}
